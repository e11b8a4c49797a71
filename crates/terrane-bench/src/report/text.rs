//! Words and plain-text tables that several reports share.
//!
//! Texts of a result file are not trusted: [`clean`] leaves only printable ASCII, so that a label cannot move
//! the cursor or break a column. Every table is of ASCII alone.

use crate::engine::{Control, Direction, Shape};
use crate::generate::catalogue::{self, Kind};
use crate::generate::operation::OperationKind;
use crate::plan::{Data, Distribution, Plan, Run, Scenario, Step, Until, ValueSize};
use crate::report::metric;
use crate::report::model::{Failed, Machine};

/// Printable ASCII; anything else becomes `?`.
pub(super) fn clean(text: &str) -> String {
    text.chars().map(|c| if c == ' ' || c.is_ascii_graphic() { c } else { '?' }).collect()
}

/// At most so many characters; a cut one ends in `~`.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['~']).collect()
}

/// Words broken into lines of at most `width` characters; a longer word is broken.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        loop {
            let line = lines.last_mut().expect("there is always a line");
            let space = usize::from(!line.is_empty());
            if line.chars().count() + space + word.len() <= width {
                line.extend([' '].into_iter().take(space).chain(word));
                break;
            }
            if line.is_empty() {
                line.extend(word.drain(..width.max(1)));
            }
            lines.push(String::new());
        }
    }
    lines
}

/// A machine in one line.
pub(super) fn machine(machine: &Machine) -> String {
    let counted = |name: &str, value: &str| (!value.is_empty()).then(|| format!("{name} {value}"));
    let some = |value: &str| (!value.is_empty()).then(|| value.to_owned());
    let parts = [
        some(&machine.cpu),
        Some(format!("{} processors", machine.processors)),
        Some(format!("{} memory", metric::bytes(machine.memory_bytes as f64))),
        some(&machine.kernel),
        some(&machine.file_system),
        some(&machine.device),
        counted("governor", &machine.governor),
        counted("huge pages", &machine.huge_pages),
        Some(format!("load {:.2}", machine.load)),
        counted("counters:", &machine.counters),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// A scenario in one line.
pub(super) fn scenario(scenario: &Scenario) -> String {
    let Scenario {
        data,
        memory_bytes,
        memory_limit_bytes,
        direct_io,
        background_threads,
        level_fanout,
        filter_bits_per_key,
        ..
    } = scenario;
    let mut words = vec![data_words(data), format!("{} memory", metric::bytes(*memory_bytes as f64))];
    words.extend(
        memory_limit_bytes
            .map(|limit| format!("{} ceiling with the page cache", metric::bytes(limit as f64))),
    );
    if *direct_io {
        words.push("direct I/O".to_owned());
    }
    if *background_threads > 0 {
        words.push(format!("{background_threads} background threads"));
    }
    if *level_fanout > 0 {
        words.push(format!("fan-out {level_fanout}"));
    }
    words.push(format!("{filter_bits_per_key} filter bits per key"));
    words.join(", ")
}

fn data_words(data: &Data) -> String {
    let value = match data.value {
        ValueSize::Fixed(bytes) => format!("{bytes} B"),
        ValueSize::Uniform(least, most) => format!("{least} to {most} B"),
        ValueSize::Pareto { shape, scale, max } => format!("Pareto({shape}, {scale}) up to {max} B"),
    };
    let tables = if data.tables > 1 { format!(" in {} tables", data.tables) } else { String::new() };
    let order = if data.hashed_keys { "hashed" } else { "ordered" };
    format!(
        "{} {order} keys of {} B{tables}, values of {value} (entropy {})",
        metric::scaled(data.keys as f64),
        data.key_bytes,
        data.entropy
    )
}

/// A step in some words; empty for a step that the plan does not know.
pub(super) fn step(plan: &Plan, scenario: &str, name: &str, index: u32) -> String {
    let Some(scenario) = plan.scenarios.iter().find(|candidate| candidate.name == scenario) else {
        return String::new();
    };
    let named = scenario.steps.iter().find_map(|step| match step {
        Step::Run(run) if run.name == name => Some(run_words(run)),
        _ => None,
    });
    named.unwrap_or_else(|| match scenario.steps.get(index as usize) {
        Some(Step::Control(control)) => control_words(*control).to_owned(),
        Some(Step::Reopen) => "close and open".to_owned(),
        _ => String::new(),
    })
}

fn run_words(run: &Run) -> String {
    let mut words = Vec::new();
    if run.workload != run.name {
        words.push(run.workload.clone());
    }
    match run.distribution {
        Distribution::Default => {}
        Distribution::Sequential => words.push("sequential".to_owned()),
        Distribution::Uniform => words.push("uniform".to_owned()),
        Distribution::Zipfian(constant) => words.push(format!("zipfian {constant}")),
        Distribution::Latest => words.push("latest".to_owned()),
        Distribution::HotRange(keys, operations) => words.push(format!("hot range {keys}/{operations}")),
    }
    words.push(if run.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", run.threads) });
    words.push(match run.until {
        Until::Operations(count) => format!("{} operations", metric::scaled(count as f64)),
        Until::Seconds(seconds) => format!("{seconds} s"),
    });
    words.extend(run.rate.map(|rate| format!("arrivals at {}", metric::rate(rate))));
    let flag = |set: bool, word: &str| set.then(|| word.to_owned());
    words.extend(flag(run.batch > 1, &format!("batch {}", run.batch)));
    words.extend(flag(run.window > 1, &format!("{} requests at once", run.window)));
    words.extend(flag(run.in_flight > 1, &format!("{} writes in flight", run.in_flight)));
    words.extend(flag(does(run, OperationKind::MultiRead), &format!("multi-get {}", run.multi_get)));
    let keys = format!("{} keys a transaction", run.transaction_keys);
    words.extend(flag(does(run, OperationKind::Transaction), &keys));
    if does(run, OperationKind::Scan) {
        words.push(format!("{} rows", run.scan_rows));
        words.extend(flag(run.direction == Direction::Backward, "backward"));
    }
    words.extend(flag(run.sync, "sync"));
    words.extend(flag(
        run.background_rate > 0.0,
        &format!("background at {}", metric::rate(run.background_rate)),
    ));
    words.extend(flag(run.replay.is_some(), "replayed"));
    words.extend(flag(run.until_quiescent, "until quiescent"));
    words.extend(flag(run.verify, "verified"));
    words.join(", ")
}

/// Returns true if the workload has operations of this kind, so that its settings say something.
fn does(run: &Run, kind: OperationKind) -> bool {
    let mix = catalogue::find(&run.workload).ok().and_then(|definition| match definition.kind {
        Kind::Stream(mix) => Some(mix),
        _ => None,
    });
    mix.is_some_and(|mix| mix.share(kind) > 0.0)
}

fn control_words(control: Control) -> &'static str {
    match control {
        Control::Flush => "flush",
        Control::Compact0 => "compact level 0",
        Control::Compact1 => "compact level 1",
        Control::CompactAll => "compact all",
        Control::WaitUntilQuiescent => "wait until quiescent",
        Control::PauseBackground => "pause background",
        Control::ResumeBackground => "resume background",
        Control::FlushToRun => "flush to a run of level 0",
        Control::FiltersOff => "filters off",
        Control::FiltersOn => "filters on",
    }
}

/// A tree in one line: `memtable 1.2M, L0 4 runs 33M, L1 87M`; parts that hold nothing are left out.
pub(super) fn shape(shape: &Shape) -> String {
    let held =
        shape.rows.iter().filter(|row| row.bytes > 0 || row.entries.is_some_and(|entries| entries > 0));
    let parts: Vec<String> = held
        .map(|row| {
            let runs = if row.runs > 1 { format!(" {} runs", row.runs) } else { String::new() };
            format!("{}{runs} {}", clean(&row.part), metric::bytes(row.bytes as f64))
        })
        .collect();
    if parts.is_empty() { "empty".to_owned() } else { parts.join(", ") }
}

/// A cell that was not measured, in one line.
pub(super) fn failed(failed: &Failed) -> String {
    let step = if failed.step.is_empty() { "open" } else { &failed.step };
    let verb = if failed.unsupported { "unsupported" } else { "FAILED" };
    format!("{} / {step} / {} #{}: {verb}: {}", failed.scenario, failed.engine, failed.repetition, failed.why)
}

/// A wall time as `2026-01-31 12:34:56 UTC`.
pub(super) fn date(epoch: u64) -> String {
    let (days, second) = (epoch / 86_400, epoch % 86_400);
    let leap = |year: u64| (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400);
    let (mut year, mut day) = (1970, days);
    while year < 10_000 && day >= 365 + u64::from(leap(year)) {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{year}-{month:02}-{:02} {hour:02}:{minute:02}:{:02} UTC", day + 1, second % 60)
}

/// Columns of text, as wide as their widest cell; a column without any figure is left out.
pub(super) struct Columns {
    heads: Vec<String>,
    rows: Vec<Vec<Text>>,
    /// How many columns at the left are words: aligned left and never left out.
    words: usize,
}

/// A cell of text and the colour it should have.
pub(super) struct Text {
    pub(super) text: String,
    pub(super) colour: Colour,
}

/// Colours by their meaning.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Colour {
    Plain,
    Good,
    Bad,
}

impl Colour {
    /// The text in this colour; plain if colours are not wanted.
    pub(super) fn paint(self, text: &str, wanted: bool) -> String {
        match self {
            Colour::Good if wanted => format!("\u{1b}[32m{text}\u{1b}[0m"),
            Colour::Bad if wanted => format!("\u{1b}[31m{text}\u{1b}[0m"),
            _ => text.to_owned(),
        }
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text { text, colour: Colour::Plain }
    }
}

impl Columns {
    pub(super) fn new(words: usize, heads: impl IntoIterator<Item = String>) -> Columns {
        Columns { heads: heads.into_iter().collect(), rows: Vec::new(), words }
    }

    pub(super) fn row(&mut self, row: Vec<Text>) {
        assert_eq!(row.len(), self.heads.len(), "a row has a cell for each head");
        self.rows.push(row);
    }

    /// The lines: the heads, then the rows.
    pub(super) fn lines(&self, colour: bool) -> Vec<String> {
        let shown = |at: usize| at < self.words || self.rows.iter().any(|row| row[at].text != metric::NONE);
        let columns: Vec<usize> = (0..self.heads.len()).filter(|at| shown(*at)).collect();
        let width = |at: usize| {
            let cells = self.rows.iter().map(|row| row[at].text.chars().count());
            cells.chain([self.heads[at].chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = columns.iter().map(|at| width(*at)).collect();
        let line = |cell: &dyn Fn(usize) -> (String, Colour)| {
            let cells = columns.iter().zip(&widths).map(|(&at, &width)| {
                let (text, paint) = cell(at);
                let padded =
                    if at < self.words { format!("{text:<width$}") } else { format!("{text:>width$}") };
                paint.paint(&padded, colour)
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let head = line(&|at| (self.heads[at].clone(), Colour::Plain));
        let rows = self.rows.iter().map(|row| line(&|at| (row[at].text.clone(), row[at].colour)));
        [head].into_iter().chain(rows).collect()
    }
}
