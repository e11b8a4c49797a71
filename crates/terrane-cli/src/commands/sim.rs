//! `sim`: simulated runs of the engine, by seed, from a script, or through every crash of small histories.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use terrane::Env;
use terrane_sim::campaign::{Campaign, Job, Seeds};
use terrane_sim::metamorph::Metamorph;
use terrane_sim::{Explored, Explorer, Outcome, Script};

use crate::exit::{Code, Failure};
use crate::progress::{Meter, Unit};
use crate::signals::{stop_on_signals, stopped};

/// Help after the options.
pub(crate) const HELP: &str = "\
Examples:
  terrane sim --seeds 1000
  terrane sim --seeds 1 --start 4711     one of them again, call by call
  terrane sim --replay failed.txt        a script, such as a failed run prints
  terrane sim --seed 4711 > run.txt      the script of a run, to change it
  terrane sim --seeds 20 --variants 30   the same under 30 configurations each
  terrane sim --until 10000000 --kinds   until so many operations are done
  terrane sim --crash-points 1000000     every crash of every small history

A run is a script: one line per operation, and what happens around it (crash, fault, rot, ...). The seed \
decides all of it: options, operations, the order of background work, which writes a loss of power leaves. \
A failing run is made shorter while it still fails, and printed; the exit code is 3 then. The writes \
are compared with a model: what a recovery finds must be a prefix of the commits with everything in it that \
was acknowledged (after a kill) or synced (after a loss of power); damage may be reported, never returned \
as data.
";

/// How often the figures are drawn.
const DRAW: Duration = Duration::from_millis(200);
/// Runs that making one failure shorter may take.
const SHRINK_RUNS: u64 = 2_000;

/// `sim`.
#[derive(Clone, Debug, Args)]
pub struct Sim {
    /// Number of seeds to run
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub seeds: u64,
    /// The first seed, or the first history
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub start: u64,
    /// Operations of each run
    #[arg(long, value_name = "K", default_value_t = 1_000)]
    pub operations: u64,
    /// Run seeds until this number of operations is done, however many seeds that takes
    #[arg(long, value_name = "N", conflicts_with_all = ["seeds", "replay", "seed", "crash_points", "variants"])]
    pub until: Option<u64>,
    /// Print at the end the number of operations of each kind, as rows of a table
    #[arg(long)]
    pub kinds: bool,
    /// Threads; each run needs one
    #[arg(long, value_name = "T", default_value_t = 2)]
    pub threads: u64,
    /// Stop after so many failures
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub failures: usize,
    /// Stop after so many seconds; what was begun is finished
    #[arg(long, value_name = "SECONDS")]
    pub time: Option<u64>,
    /// Run the operations of each seed under so many configurations: the answers must be the same
    #[arg(long, value_name = "N", conflicts_with_all = ["replay", "seed", "crash_points"])]
    pub variants: Option<u64>,
    /// Do the run that a file describes
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seed", "crash_points"])]
    pub replay: Option<PathBuf>,
    /// Print the script of a seed instead of running it
    #[arg(long, value_name = "SEED", conflicts_with = "crash_points")]
    pub seed: Option<u64>,
    /// Crash small histories at each call, in every way, until so many states were recovered and judged
    #[arg(long, value_name = "N")]
    pub crash_points: Option<u64>,
    /// With --crash-points: operations of a history, 2 for all pairs of kinds, 3 for all triples
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=4))]
    pub depth: u32,
    /// With --crash-points: outcomes per call, all of them if there are fewer
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub outcomes: u64,
    /// With --crash-points: crash one recovery in so many again, at each of its calls; 0 means never
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub again: u64,
}

impl Sim {
    /// The seeds.
    fn numbers(&self) -> std::ops::Range<u64> {
        match self.until {
            Some(_) => self.start..u64::MAX,
            None => self.start..self.start.saturating_add(self.seeds),
        }
    }
}

/// Runs the command.
pub(super) fn run(command: &Sim, out: &mut dyn Write) -> Result<(), Failure> {
    if let Some(seed) = command.seed {
        write!(out, "{}", terrane_sim::generate(seed, command.operations))?;
        return Ok(());
    }
    if let Some(path) = &command.replay {
        return replay(path, out);
    }
    match (command.crash_points, command.variants) {
        (Some(states), _) => explore(command, states, out),
        (None, Some(variants)) => {
            let job = Metamorph { operations: command.operations, variants };
            follow(command, job, command.numbers(), out, (show, |_| String::new()), &|_| false)
        }
        (None, None) => run_seeds(command, out),
    }
}

fn replay(path: &std::path::Path, out: &mut dyn Write) -> Result<(), Failure> {
    let text =
        crate::files::read_text(path).map_err(|error| Failure::file(&path.display().to_string(), &error))?;
    let script: Script = text.parse().map_err(|why: String| Failure::new(Code::Usage, why))?;
    match terrane_sim::run(&script) {
        Ok(outcome) => {
            writeln!(out, "{}", show(&outcome))?;
            writeln!(out, "trace {:032x}", outcome.trace.value())?;
            Ok(())
        }
        Err(failure) => {
            let message = format!("operation {} (from 0): {}", failure.at, failure.message);
            Err(Failure::new(Code::Corrupt, message))
        }
    }
}

fn run_seeds(command: &Sim, out: &mut dyn Write) -> Result<(), Failure> {
    let job = Seeds { operations: command.operations, shrink_runs: SHRINK_RUNS };
    let is_enough = |sum: &Outcome| command.until.is_some_and(|count| sum.operations >= count);
    let table = |sum: &Outcome| {
        if command.kinds { format!("| what | times |\n|---|---|\n{}", sum.did) } else { String::new() }
    };
    follow(command, job, command.numbers(), out, (show, table), &is_enough)
}

fn explore(command: &Sim, states: u64, out: &mut dyn Write) -> Result<(), Failure> {
    let job = Explorer {
        operations: command.depth,
        outcomes_max: command.outcomes.max(1),
        again_one_in: command.again,
    };
    // Past the last history they begin again, with other samples.
    let numbers = command.start..u64::MAX;
    follow(command, job, numbers, out, (show_explored, |_| String::new()), &|sum| sum.states >= states)
}

/// The engine checks whole structures in a build with the feature `verify`, and in one for tests.
const WALKS: &str =
    if terrane_base::assertion::VERIFY { "structures checked" } else { "structures not checked" };

/// Runs a campaign, draws its figures and reports how it ended: in a line, and in a table.
fn follow<J: Job>(
    command: &Sim,
    job: J,
    numbers: std::ops::Range<u64>,
    out: &mut dyn Write,
    (show, table): (impl Fn(&J::Sum) -> String, impl Fn(&J::Sum) -> String),
    is_enough: &dyn Fn(&J::Sum) -> bool,
) -> Result<(), Failure> {
    let env = Env::real();
    let count = numbers.end.saturating_sub(numbers.start);
    let bar = if numbers.end == u64::MAX { ProgressBar::new_spinner() } else { ProgressBar::new(count) };
    let style = if numbers.end == u64::MAX {
        "{spinner} {pos} {elapsed} {msg}"
    } else {
        "{bar:24} {pos}/{len} {elapsed} {msg}"
    };
    bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()));
    // Without a terminal the bar draws nothing.
    let mut lines = (!io::stderr().is_terminal()).then(|| Meter::new("sim", Unit::Runs));
    let stop = stop_on_signals()?;
    let total = (numbers.end != u64::MAX).then_some(count);
    let start = env.clock.now();
    let campaign = Campaign::start(job, numbers, command.threads, command.failures.max(1), &*env.spawn)?;
    while !campaign.is_over() {
        env.clock.sleep(DRAW);
        let state = campaign.state();
        bar.set_position(state.done);
        bar.set_message(show(&state.sum));
        if let Some(lines) = &mut lines {
            lines.set_total(total);
            lines.show(state.done, None);
        }
        // Acquire: pairs with the store of the thread that waits for signals.
        let is_stopped = stop.load(Ordering::Acquire);
        let is_late = command.time.is_some_and(|limit| (env.clock.now() - start).as_secs() >= limit);
        if is_stopped || is_late || is_enough(&state.sum) {
            campaign.stop();
        }
    }
    let state = campaign.finish();
    bar.finish_and_clear();
    let seconds = (env.clock.now() - start).as_secs_f64();
    writeln!(out, "{} done in {seconds:.1} s, {WALKS}: {}", state.done, show(&state.sum))?;
    write!(out, "{}", table(&state.sum))?;
    if state.failures.is_empty() {
        let is_stopped = stop.load(Ordering::Acquire);
        return if is_stopped { Err(stopped("the finished runs have no failure")) } else { Ok(()) };
    }
    for (number, script) in &state.failures {
        writeln!(out, "\n# {number} failed; do it again with: terrane sim --replay FILE\n{script}")?;
    }
    let count = state.failures.len();
    Err(Failure::new(Code::Corrupt, format!("{count} of {} failed: the scripts above show how", state.done)))
}

fn show(sum: &Outcome) -> String {
    let mut text = String::new();
    let _ = write!(
        text,
        "{} operations ({} inside others), {} opens, {} crashes; faults: {} EIO, {} ENOSPC, {} lying syncs, {} silent; \
         {} extents scrubbed, {} findings, {} looks from outside",
        sum.operations,
        sum.nested,
        sum.opens,
        sum.crashes,
        sum.broken,
        sum.full,
        sum.lies,
        sum.silent,
        sum.scrubbed,
        sum.found,
        sum.looks
    );
    text
}

fn show_explored(sum: &Explored) -> String {
    format!(
        "{} histories, {} calls ({} with every outcome by pages), {} states ({} torn within pages, {} of a second crash), \
         {} written on and crashed once more",
        sum.histories, sum.calls, sum.exhausted, sum.states, sum.torn, sum.again, sum.onward
    )
}
