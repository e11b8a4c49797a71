//! A whole run: every scenario on every engine, repetition by repetition, each in a child process.
//!
//! The order interleaves: repetition by repetition, within it scenario by scenario, within that engine by
//! engine, starting with another engine each time. A machine that drifts (heat, neighbours, a filling disk)
//! so treats all alike, and ratios are taken between neighbours.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use terrane::Env;
use terrane_device::MemoryLimit;

use crate::child::parent::{self, Launcher, Outcome};
use crate::child::protocol::{Event, Job};
use crate::error::{Error, Result};
use crate::files;
use crate::measure::machine;
use crate::plan::Plan;
use crate::report::jsonl::Sink;
use crate::report::model::{End, FORMAT, Failed, Header, Line, RunReport};

use scratch::Scratch;

mod ready;
mod scratch;

/// Where and how a plan is run.
#[derive(Debug)]
pub struct RunSettings {
    /// Directory for the databases. They lie in a new directory below it, which is removed after the run;
    /// whatever else is there is left alone.
    pub directory: PathBuf,
    /// File for the lines of the result, as they come.
    pub results: Option<PathBuf>,
    /// Keeps the databases.
    pub keep: bool,
    /// Labels of engines that must be there; without one of them nothing is run. One that is not among them
    /// and that this machine lacks is listed as not measured.
    pub must_have: Vec<String>,
    /// How a child is started.
    pub launcher: Launcher,
    /// The command, for the report.
    pub command: String,
}

/// Hears of a run while it goes on.
pub trait Watcher {
    /// A child has begun: which of how many.
    fn begun(&self, position: usize, total: usize, job: &Job);
    /// A line of the child.
    fn event(&self, job: &Job, event: &Event);
}

/// Runs `plan`.
///
/// # Errors
/// `Plan` if the disk is too small for it, an engine does not open or a trace cannot be read: nothing was
/// run; `Io` if files or children fail. What engines do wrong is in the report. An interruption ends the run
/// with a partial report, not with an error.
pub fn run(
    plan: &Plan,
    place: &RunSettings,
    interrupted: &AtomicBool,
    watcher: &dyn Watcher,
) -> Result<RunReport> {
    let scratch = Scratch::new(&place.directory, place.keep)?;
    check_disk(plan, &place.directory)?;
    let clock = Env::real().clock;
    let start = clock.now();
    let header = Header {
        format: FORMAT,
        bench_version: env!("CARGO_PKG_VERSION").to_owned(),
        started: clock.wall().as_secs(),
        command: place.command.clone(),
        plan: plan.clone(),
        machine: machine::describe(&place.directory),
    };
    let mut session = Session { place, interrupted, watcher, sink: None, report: empty(header) };
    session.check_ready(plan, scratch.path())?;
    session.sink = place.results.as_deref().map(Sink::create).transpose()?;
    session.keep(Line::Header(Box::new(session.report.header.clone())))?;
    let jobs = jobs(plan, scratch.path());
    let total = jobs.len();
    for (position, job) in jobs.into_iter().enumerate() {
        if interrupted.load(Ordering::Relaxed) {
            break;
        }
        watcher.begun(position, total, &job);
        session.child(&job)?;
    }
    let complete = !interrupted.load(Ordering::Relaxed);
    session.keep(Line::End(End { complete, seconds: (clock.now() - start).as_secs_f64() }))?;
    Ok(session.report)
}

fn empty(header: Header) -> RunReport {
    RunReport { header, cells: Vec::new(), failed: Vec::new(), end: None }
}

/// Every child of the run, in the order of the run.
fn jobs(plan: &Plan, directory: &Path) -> Vec<Job> {
    let mut jobs = Vec::new();
    let engines = plan.engines.len();
    for repetition in 0..plan.repetitions {
        for scenario in &plan.scenarios {
            for turn in 0..engines {
                let engine = &plan.engines[(turn + repetition as usize) % engines];
                let (scenario_name, label) = (file_name(&scenario.name), file_name(&engine.label));
                // With its number, since two labels may look alike as file names.
                let name = format!("{}-{scenario_name}-{label}-{repetition}", jobs.len() + 1);
                jobs.push(Job {
                    engine: engine.clone(),
                    scenario: scenario.clone(),
                    repetition,
                    seed: plan.seed + u64::from(repetition),
                    directory: directory.join(name),
                });
            }
        }
    }
    jobs
}

/// A label as part of a file name.
fn file_name(label: &str) -> String {
    label.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' }).collect()
}

/// Refuses a run whose largest database would not fit.
fn check_disk(plan: &Plan, directory: &Path) -> Result<()> {
    // Old and new files of a compaction exist at once, engines differ in slack, inserts add to the load.
    const FACTOR: f64 = 4.0;
    let Some(largest) =
        plan.scenarios.iter().max_by(|left, right| left.data.bytes().total_cmp(&right.data.bytes()))
    else {
        return Ok(());
    };
    let needed = (largest.data.bytes() * FACTOR) as u64 + (1 << 30);
    let free = machine::free_bytes(directory)?;
    if free >= needed {
        return Ok(());
    }
    Err(Error::plan(format!(
        "scenario {:?} may need {:.1} GiB below {}, but only {:.1} GiB are free: use fewer keys, or --dir on a larger disk",
        largest.name,
        needed as f64 / f64::from(1 << 30),
        directory.display(),
        free as f64 / f64::from(1 << 30),
    )))
}

/// The step of a child, by its lines.
#[derive(Default)]
struct At {
    /// The last step that it began; empty before the first.
    step: String,
    /// True if it reported the outcome of that step.
    has_outcome: bool,
}

impl At {
    fn follow(&mut self, event: &Event) {
        match event {
            Event::Started { step } => *self = At { step: step.clone(), has_outcome: false },
            Event::Measured(_) | Event::Failed(_) => self.has_outcome = true,
            Event::Progress { .. } | Event::Done => {}
        }
    }
}

struct Session<'p> {
    place: &'p RunSettings,
    interrupted: &'p AtomicBool,
    watcher: &'p dyn Watcher,
    sink: Option<Sink>,
    report: RunReport,
}

impl Session<'_> {
    /// Adds a line to the report and to the file.
    fn keep(&mut self, line: Line) -> Result<()> {
        if let Some(sink) = &mut self.sink {
            sink.append(&line)?;
        }
        match line {
            Line::Header(_) => {}
            Line::Cell(cell) => self.report.cells.push(*cell),
            Line::Failed(failed) => self.report.failed.push(failed),
            Line::End(end) => self.report.end = Some(end),
        }
        Ok(())
    }

    fn child(&mut self, job: &Job) -> Result<()> {
        files::create_directory(&job.directory)?;
        let (limit, unlimited) = match job.scenario.memory_limit_bytes.map(MemoryLimit::new) {
            None => (None, None),
            Some(Ok(limit)) => (Some(limit), None),
            Some(Err(why)) => (None, Some(why)),
        };
        let place = self.place;
        let interrupted = self.interrupted;
        let mut at = At::default();
        let outcome = parent::run(&place.launcher, job, limit.as_ref(), interrupted, &mut |event| {
            self.watcher.event(job, &event);
            at.follow(&event);
            self.hear(event, unlimited.as_deref())
        });
        if !place.keep {
            files::remove_directory(&job.directory)?;
        }
        match outcome? {
            Outcome::Done | Outcome::Interrupted => Ok(()),
            Outcome::Died(why) => self.keep(Line::Failed(Failed {
                scenario: job.scenario.name.clone(),
                step: at.step,
                engine: job.engine.label.clone(),
                repetition: job.repetition,
                unsupported: false,
                why: if at.has_outcome { format!("after this step: {why}") } else { why },
            })),
        }
    }

    fn hear(&mut self, event: Event, unlimited: Option<&str>) -> Result<()> {
        match event {
            Event::Measured(mut cell) => {
                if let Some(why) = unlimited {
                    let note = ("memory limit".to_owned(), format!("not enforced: {why}"));
                    cell.opened.settings.push(note);
                }
                self.keep(Line::Cell(cell))
            }
            Event::Failed(failed) => {
                // Remedies may have several lines; a table's cell has one.
                let why = failed.why.split_whitespace().collect::<Vec<_>>().join(" ");
                self.keep(Line::Failed(Failed { why, ..failed }))
            }
            Event::Started { .. } | Event::Progress { .. } | Event::Done => Ok(()),
        }
    }
}
