//! `top`: a live database, by the page of metrics that its writer shares.
//!
//! * `sample`: two pages, and what happened between them. `screen`: a sample as lines. `json`: as one object.
//! * `keys`: the terminal, which gives single keys while this runs.
//!
//! The first sample is shown once a second page is there, so that it has rates. A writer that is gone ends
//! the command, and so does one that has closed the database. A writer that still closes it shares no page
//! any more; the command waits.

mod json;
mod keys;
mod sample;
mod screen;

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use terrane::{Kind, PageWriterState, SharedMetrics, metrics_page};
use terrane_base::env::{Clock, Env};

use self::keys::Keys;
use self::sample::Sample;
pub(super) use self::screen::time;
use super::deployment::{self, Target};
use crate::arguments::top::Top;
use crate::exit::{Code, Failure};
use crate::signals::stop_on_signals;
use crate::text;

/// Time between two looks at the keys, at the stop flag and for a new page.
const TURN: Duration = Duration::from_millis(50);

pub(super) fn run(command: &Top, out: &mut dyn Write) -> Result<(), Failure> {
    // The writer of a deployment shares its page in the directory of its journal.
    let command = &match deployment::target(&command.database)? {
        Target::Directory => command.clone(),
        Target::Deployment(parts) => Top { database: parts.journal, ..command.clone() },
    };
    let mut before = metrics_page(&command.database)?;
    let stop = stop_on_signals()?;
    let is_drawn = !command.json && std::io::stdout().is_terminal() && !command.once;
    let mut waiting = Waiting { keys: is_drawn.then(Keys::open).flatten(), stop, clock: Env::real().clock };
    let mut left = if command.once { 1 } else { command.count.unwrap_or(u64::MAX) };
    let mut is_first = true;
    while left > 0 {
        let Some(after) = waiting.next_page(command, &before, is_first)? else { return Ok(()) };
        let after = match after {
            Ok(after) => after,
            Err(error) if error.kind() == Kind::NotFound && !is_first => {
                eprintln!("terrane: {}: {error}", text::path(&command.database));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let sample = Sample::new(&before, &after);
        if command.json {
            writeln!(out, "{}", json::of(&sample))?;
        } else if is_drawn {
            screen::draw(&command.database, &sample, out)?;
        } else {
            let gap = if is_first { "" } else { "\n" };
            write!(out, "{gap}{}", screen::lines(&command.database, &sample).join("\n") + "\n")?;
        }
        out.flush()?;
        if after.writer == PageWriterState::Gone {
            return Err(gone(command, &after));
        }
        (before, is_first) = (after, false);
        left -= 1;
    }
    Ok(())
}

fn gone(command: &Top, last: &SharedMetrics) -> Failure {
    let (path, process) = (text::path(&command.database), last.page.process);
    let age = screen::time(last.age);
    let why = format!(
        "{path}: process {process} is gone without closing the database, and no other has it open for writing: this is its \
         last page, {age} old; the next opening for writing recovers the database"
    );
    Failure::new(Code::NotFound, why)
}

/// The events that end a wait for the next page.
struct Waiting {
    keys: Option<Keys>,
    stop: Arc<AtomicBool>,
    clock: Arc<dyn Clock>,
}

/// A page, or the error of reading it.
type Page = terrane::Result<SharedMetrics>;

impl Waiting {
    /// The page after `before`, an interval later, or the same again once it is old. `None` if a user or a
    /// signal ends the command. A writer that has shown a page and shares none now closes the database.
    fn next_page(
        &mut self,
        command: &Top,
        before: &SharedMetrics,
        is_first: bool,
    ) -> Result<Option<Page>, Failure> {
        debug_assert!(command.interval >= Duration::from_millis(100), "the command line has been checked");
        let now = self.clock.now();
        // Of a writer that is gone nothing more comes.
        let due = if before.writer == PageWriterState::Gone { now } else { now + command.interval };
        let mut is_printed = false;
        loop {
            // Acquire: pairs with the store of the thread that waits for signals.
            let is_ended = self.stop.load(Ordering::Acquire)
                || self.keys.as_mut().is_some_and(|keys| keys.is_end_asked());
            if is_ended {
                return Ok(None);
            }
            let now = self.clock.now();
            if now >= due {
                let page = metrics_page(&command.database);
                let is_same = page.as_ref().is_ok_and(|page| {
                    sample::identity(&page.page) == sample::identity(&before.page)
                        && page.writer == PageWriterState::Writing
                });
                match page {
                    Err(error) if error.kind() == Kind::Busy && !is_first => {
                        if !std::mem::replace(&mut is_printed, true) {
                            eprintln!("terrane: waiting: {}: {error}", text::path(&command.database));
                        }
                    }
                    page if !is_same => return Ok(Some(page)),
                    Ok(_) | Err(_) => {}
                }
            }
            self.clock.sleep(TURN.min(due.saturating_sub(now).max(Duration::from_millis(10))));
        }
    }
}
