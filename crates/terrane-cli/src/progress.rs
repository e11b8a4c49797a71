//! How far long work is, on standard error: on a terminal one line that is drawn again and again, as wide as
//! the terminal; elsewhere a plain line every [`PLAIN_EVERY`], or as
//! often as [`EVERY`] says.
//!
//! [`Sample::line`] makes the text, from numbers alone. [`Meter`] says when and where it is written.
//! [`ticking`] does so beside work that cannot report by itself.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;

use terrane_base::env::{Clock, Env};
use terrane_base::sync::{Condvar, Mutex};

use crate::exit::Failure;
use crate::files;
use crate::text::{count, size};

/// Time between two lines where no terminal is.
pub const PLAIN_EVERY: Duration = Duration::from_secs(10);
/// Variable of the environment: seconds between two lines where no terminal is, such as 0.5.
pub const EVERY: &str = "TERRANE_PROGRESS_SECONDS";
/// Time between two drawings on a terminal.
const DRAW_EVERY: Duration = Duration::from_millis(100);
/// Time after which work that is over at once, as a rule, is said to be slow.
const SLOW: Duration = Duration::from_secs(2);
/// Columns of a terminal that does not say how wide it is.
const COLUMNS: usize = 80;

/// The unit of the amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Rows.
    Rows,
    /// Runs of a simulation.
    Runs,
}

/// The state of some work at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The work, in one word: `import`, `check`.
    pub what: &'static str,
    /// The unit of the amounts.
    pub unit: Unit,
    /// The amount that an earlier run did: shown, but not part of the rate.
    pub before: u64,
    /// The amount that is done, what an earlier run did included.
    pub done: u64,
    /// All there is to do, if known.
    pub total: Option<u64>,
    /// Records done by this run, if they are counted beside bytes.
    pub records: Option<u64>,
    /// Time since this run began.
    pub elapsed: Duration,
}

impl Sample {
    /// The state in at most `columns` columns: what fits of it, the most important parts first.
    #[must_use]
    pub fn line(&self, columns: usize) -> String {
        // In the order of the line, each with its rank: the part with the highest rank is left out first.
        let mut parts = vec![(0, self.what.to_owned())];
        let total = self.total.filter(|&total| total > 0);
        if let Some(total) = total {
            parts.push((1, format!("{}%", u128::from(self.done.min(total)) * 100 / u128::from(total))));
        }
        let amount = |amount| match self.unit {
            Unit::Bytes => size(amount),
            Unit::Rows | Unit::Runs => count(amount),
        };
        let rows = match self.unit {
            Unit::Bytes => "",
            Unit::Rows => " rows",
            Unit::Runs => " runs",
        };
        parts.push(match total {
            Some(total) => (2, format!("{} of {}{rows}", amount(self.done), amount(total))),
            None => (2, format!("{}{rows}", amount(self.done))),
        });
        if let Some(records) = self.records {
            parts.push((3, format!("{} records", count(records))));
        }
        let rate = self.per_second(self.done.saturating_sub(self.before));
        parts.push((6, format!("{}{rows}/s", amount(rate))));
        if let Some(records) = self.records {
            parts.push((7, format!("{} records/s", count(self.per_second(records)))));
        }
        parts.push((4, format!("{} elapsed", clock_text(self.elapsed.as_secs()))));
        if let Some(left) = total.and_then(|total| total.saturating_sub(self.done).checked_div(rate)) {
            parts.push((5, format!("{} left", clock_text(left))));
        }
        fit(parts, columns)
    }

    fn per_second(&self, amount: u64) -> u64 {
        (amount as f64 / self.elapsed.as_secs_f64().max(1e-3)) as u64
    }
}

/// Joins the parts, without those of the highest ranks that do not fit.
fn fit(mut parts: Vec<(u8, String)>, columns: usize) -> String {
    loop {
        let text = parts.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("  ");
        if text.chars().count() <= columns {
            return text;
        }
        let last = (0..parts.len()).max_by_key(|&at| parts[at].0);
        match last.filter(|_| parts.len() > 1) {
            Some(last) => drop(parts.remove(last)),
            None => return text.chars().take(columns).collect(),
        }
    }
}

/// Seconds as minutes and seconds, with hours where there are any.
fn clock_text(seconds: u64) -> String {
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// Shows how far some work is.
#[derive(Debug)]
pub struct Meter {
    sample: Sample,
    clock: Arc<dyn Clock>,
    start: Duration,
    is_terminal: bool,
    /// Time between two drawings or lines.
    every: Duration,
    /// When the next line is due, as time since the start.
    due: Duration,
    is_drawn: bool,
}

impl Meter {
    /// Begins to show some work.
    #[must_use]
    pub fn new(what: &'static str, unit: Unit) -> Meter {
        let clock = Env::real().clock;
        let is_terminal = io::stderr().is_terminal();
        let zero = Duration::ZERO;
        let sample = Sample { what, unit, before: 0, done: 0, total: None, records: None, elapsed: zero };
        let every = if is_terminal { DRAW_EVERY } else { plain_every(std::env::var(EVERY).ok().as_deref()) };
        Meter { sample, start: clock.now(), clock, is_terminal, every, due: every, is_drawn: false }
    }

    /// Begins to show work whose rows go to standard output, if that is a file: on a terminal or in a pipe
    /// a reader sees them come.
    #[must_use]
    pub fn of_output_file(what: &'static str) -> Option<Meter> {
        files::is_output_file().then(|| Meter::new(what, Unit::Rows))
    }

    /// Says how much there is to do.
    pub fn set_total(&mut self, total: Option<u64>) {
        self.sample.total = total;
    }

    /// Says what an earlier run did.
    pub fn begin_at(&mut self, done: u64) {
        assert!(self.sample.done == 0, "what an earlier run did is in front of all that this one does");
        (self.sample.before, self.sample.done) = (done, done);
    }

    /// Shows the amount of work done, if it is time to.
    pub fn show(&mut self, done: u64, records: Option<u64>) {
        (self.sample.done, self.sample.records) = (done, records);
        self.sample.elapsed = self.clock.now().saturating_sub(self.start);
        if self.sample.elapsed < self.due {
            return;
        }
        self.due = self.sample.elapsed + self.every;
        self.draw();
    }

    /// Writes a line of text beside the shown progress.
    pub fn say(&mut self, text: &str) {
        self.clear();
        eprintln!("{text}");
    }

    /// Takes the line off the terminal.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }

    fn draw(&mut self) {
        let mut out = io::stderr().lock();
        // Standard error may be closed: the progress is then not seen, and the work goes on.
        let _ = if self.is_terminal {
            self.is_drawn = true;
            // One column is left free, since a full line makes some terminals wrap.
            write!(out, "\r{}\x1b[K", self.sample.line(columns().saturating_sub(1)))
        } else {
            writeln!(out, "terrane: {}", self.sample.line(usize::MAX))
        };
        let _ = out.flush();
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Time between two plain lines, from the variable [`EVERY`]; nothing if it is not a number of seconds.
fn plain_every(typed: Option<&str>) -> Duration {
    let seconds = typed.and_then(|typed| typed.parse().ok());
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(PLAIN_EVERY)
}

/// Columns of the terminal.
fn columns() -> usize {
    match rustix::termios::tcgetwinsize(io::stderr()) {
        Ok(found) if found.ws_col > 0 => found.ws_col.into(),
        _ => COLUMNS,
    }
}

/// Does `work`, and shows beside it the two numbers of `amount`: the work done, and the whole work, if known.
///
/// # Errors
/// The system refuses a thread.
pub fn ticking<T>(
    what: &'static str,
    mut amount: impl FnMut() -> (u64, Option<u64>) + Send + 'static,
    work: impl FnOnce() -> T,
) -> Result<T, Failure> {
    let without_records = move || {
        let (done, total) = amount();
        (done, total, None)
    };
    ticking_records(what, without_records, work)
}

/// [`ticking`], with a third number: the records that are done.
///
/// # Errors
/// As [`ticking`].
pub fn ticking_records<T>(
    what: &'static str,
    mut amount: impl FnMut() -> (u64, Option<u64>, Option<u64>) + Send + 'static,
    work: impl FnOnce() -> T,
) -> Result<T, Failure> {
    let mut meter = Meter::new(what, Unit::Bytes);
    let show = move |over: &Over| {
        let mut is_over = over.0.lock();
        loop {
            let (done, total, records) = amount();
            meter.set_total(total);
            meter.show(done, records);
            // Behind the first look: work that is over before this thread began is shown, too.
            if *is_over {
                break;
            }
            over.1.wait_for(&mut is_over, DRAW_EVERY);
        }
    };
    beside_spawned("terrane-progress", show, work)
}

/// Does `work`, and says `line` on standard error once it has taken 2 s.
///
/// # Errors
/// The system refuses a thread.
pub fn saying_when_slow<T>(line: String, work: impl FnOnce() -> T) -> Result<T, Failure> {
    debug_assert!(!line.is_empty(), "the line names the slow work");
    let say = move |over: &Over| {
        let clock = Env::real().clock;
        let until = clock.now() + SLOW;
        let mut is_over = over.0.lock();
        while !*is_over {
            let left = until.saturating_sub(clock.now());
            if left.is_zero() {
                eprintln!("terrane: {line}");
                return;
            }
            over.1.wait_for(&mut is_over, left);
        }
    };
    beside_spawned("terrane-slow", say, work)
}

/// True once the work is over, and the signal of that.
type Over = (Mutex<bool>, Condvar);

/// Does `work` beside a thread that runs `body`, which ends soon after the work.
fn beside_spawned<T>(
    thread: &str,
    body: impl FnOnce(&Over) + Send + 'static,
    work: impl FnOnce() -> T,
) -> Result<T, Failure> {
    let over: Arc<Over> = Arc::default();
    let seen = over.clone();
    let thread = Env::real().spawn.spawn(thread, Box::new(move || body(&seen)))?;
    let done = work();
    *over.0.lock() = true;
    over.1.notify_all();
    thread.join();
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Sample {
        Sample {
            what: "import",
            unit: Unit::Bytes,
            before: 500 << 20,
            done: 600 << 20,
            total: Some(1000 << 20),
            records: Some(1_204_000),
            elapsed: Duration::from_secs(10),
        }
    }

    #[test]
    fn a_line_tells_amount_records_rates_and_times() {
        assert_eq!(
            sample().line(200),
            "import  60%  600 MiB of 1.0 GiB  1,204,000 records  10.0 MiB/s  120,400 records/s  0:10 elapsed  \
             0:40 left"
        );
        let unknown =
            Sample { total: None, records: None, before: 0, unit: Unit::Rows, done: 72_000, ..sample() };
        let unknown = Sample { elapsed: Duration::from_secs(7200), ..unknown };
        assert_eq!(unknown.line(200), "import  72,000 rows  10 rows/s  2:00:00 elapsed");
    }

    #[test]
    fn rows_that_a_resume_skips_count_for_no_rate() {
        let fresh = Sample { done: 500 << 20, ..sample() };
        assert!(fresh.line(200).contains("  0 B/s  "), "{}", fresh.line(200));
    }

    #[test]
    fn a_line_fits_every_width() {
        for columns in 0..130 {
            let line = sample().line(columns);
            assert!(line.chars().count() <= columns, "{columns}: {line}");
        }
        assert_eq!(sample().line(40), "import  60%  600 MiB of 1.0 GiB");
        assert_eq!(sample().line(12), "import  60%");
    }

    #[test]
    fn plain_lines_come_as_often_as_they_are_asked_for() {
        assert_eq!(plain_every(Some("0.5")), Duration::from_millis(500));
        assert_eq!(plain_every(Some("0")), Duration::ZERO);
        for none in [None, Some(""), Some("-1"), Some("inf"), Some("often")] {
            assert_eq!(plain_every(none), PLAIN_EVERY, "{none:?}");
        }
    }

    #[test]
    fn work_is_done_beside_a_meter() {
        assert_eq!(ticking("count", || (1, Some(2)), || 42), Ok(42));
    }
}
