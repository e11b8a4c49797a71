//! How far a run is: a bar on a terminal, a line per step elsewhere.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use terrane_bench::child::protocol::{Event, Job};
use terrane_bench::plan::Plan;
use terrane_bench::report::model;
use terrane_bench::run::Watcher;

use super::is_watched;

/// Shows the run on standard error.
#[derive(Debug)]
pub(super) struct Bars {
    bar: Option<ProgressBar>,
    position: Cell<(usize, usize)>,
    step: RefCell<String>,
    last: Cell<(u64, f64)>,
}

impl Bars {
    pub(super) fn new(plan: &Plan) -> Self {
        let bar = is_watched().then(|| {
            let bar = ProgressBar::new(0);
            let style = ProgressStyle::with_template("{prefix} {bar:24} {msg}").expect("a constant template");
            bar.set_style(style);
            bar.set_prefix(plan.name.clone());
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Bars { bar, position: Cell::new((0, 0)), step: RefCell::default(), last: Cell::new((0, 0.0)) }
    }

    fn place(&self, job: &Job) -> String {
        let (position, total) = self.position.get();
        format!("[{}/{total}] {} · {}", position + 1, job.engine.label, job.scenario.name)
    }

    fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None => eprintln!("{line}"),
        }
    }

    fn moved(&self, job: &Job, operations: u64, seconds: f64, total: Option<u64>) {
        let Some(bar) = &self.bar else { return };
        let (before, at) = self.last.replace((operations, seconds));
        let rate = operations.saturating_sub(before) as f64 / (seconds - at).max(1e-3);
        bar.set_length(total.unwrap_or(0));
        bar.set_position(operations.min(total.unwrap_or(0)));
        bar.set_message(format!(
            "{} · {} · {} ops/s · {seconds:.1} s",
            self.place(job),
            self.step.borrow(),
            human(rate)
        ));
    }

    fn measured(&self, job: &Job, cell: &model::Cell) {
        let place = self.place(job);
        if cell.operations == 0 {
            self.say(&format!("{place} · {}: {:.2} s", cell.step, cell.seconds));
            return;
        }
        self.say(&format!(
            "{place} · {}: {} ops/s, p99 {:.1} us",
            cell.step,
            human(cell.rate()),
            cell.latency.p99 as f64 / 1000.0
        ));
    }
}

impl Watcher for Bars {
    fn begun(&self, position: usize, total: usize, job: &Job) {
        self.position.set((position, total));
        if let Some(bar) = &self.bar {
            bar.set_message(self.place(job));
        }
    }

    fn event(&self, job: &Job, event: &Event) {
        match event {
            Event::Started { step } => {
                self.step.replace(step.clone());
                self.last.set((0, 0.0));
            }
            Event::Progress { operations, seconds, total } => self.moved(job, *operations, *seconds, *total),
            Event::Measured(cell) => self.measured(job, cell),
            Event::Failed(failed) => {
                self.say(&format!("{} · {}: {}", self.place(job), failed.step, failed.why));
            }
            Event::Done => {}
        }
    }
}

/// A rate in three digits.
fn human(rate: f64) -> String {
    match rate {
        rate if rate >= 1e6 => format!("{:.2}M", rate / 1e6),
        rate if rate >= 1e3 => format!("{:.0}k", rate / 1e3),
        rate => format!("{rate:.0}"),
    }
}
