//! `cargo xtask busy-tests`: the test programs again and again on a busy machine, so that a test that depends
//! on time fails where it is looked for and not where a change is judged.
//!
//! 1. Cargo builds the programs of [`crate::suites::test_steps`].
//! 2. Processes that do nothing but compute run beside them, four for each processor.
//! 3. All programs run, as in `cargo xtask test`, as often as asked for; a failure ends nothing.
//!
//! With `--together` the rounds are each other's busy processes: the programs of all rounds stand in one
//! line, and so many run at once that each has four others for each processor beside it. Ten rounds take a
//! quarter of the time then, and the machine is busy with what the tests do: files, memory, waiting.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::outcome::{self, Outcome};
use crate::runner::{self, Done, Job};
use crate::sizes::{self, Sizes};
use crate::suites::{Step, Way, test_steps};
use crate::test::{at_once, output_folder, prepare, processors, until_signal};
use crate::tree::Tree;

/// Busy processes for each processor.
const BUSY: usize = 4;
/// How often all programs run where nothing else is asked for.
const REPEAT: u32 = 10;
/// A program has so many times as long as in `cargo xtask test`: its share of a processor is smaller.
const LIMIT_FACTOR: u32 = 6;

/// The requested run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// How often all programs run.
    pub repeat: u32,
    /// Only programs with this in their name.
    pub only: Option<String>,
    /// The rounds run beside each other, in the place of processes that only compute.
    pub together: bool,
}

impl Request {
    /// Of the arguments of the command; none if they are not a request.
    #[must_use]
    pub fn of(arguments: &[&str]) -> Option<Request> {
        let mut request = Request { repeat: REPEAT, only: None, together: false };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match *argument {
                "--repeat" => request.repeat = rest.next()?.parse().ok().filter(|repeat| *repeat > 0)?,
                "--together" => request.together = true,
                "--only" => request.only = Some((*rest.next()?).to_owned()),
                _ => return None,
            }
        }
        Some(request)
    }
}

/// A process that computes until it is dropped, or until this process has ended.
#[derive(Debug)]
pub struct Busy(Child);

impl Busy {
    /// Starts one.
    ///
    /// # Errors
    /// Says that there is no shell.
    pub fn start() -> Result<Busy, String> {
        let owner = std::process::id();
        let script = format!(
            "while kill -0 {owner} 2>/dev/null; do i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; done"
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        shell.spawn().map(Busy).map_err(|why| format!("no busy process: {why}"))
    }

    /// The number of the process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Failures by program and test, and how long the programs took.
#[derive(Debug, Default)]
pub struct Findings {
    runs: u64,
    failed: BTreeMap<(String, String), Vec<u32>>,
    longest: BTreeMap<String, Duration>,
}

impl Findings {
    /// Counts a program that has ended in a round; a run that a signal ended says nothing.
    pub fn count(&mut self, round: u32, done: &Done) {
        if done.outcome == Outcome::Ended {
            return;
        }
        self.runs += 1;
        let longest = self.longest.entry(done.job.name.clone()).or_default();
        *longest = done.took.max(*longest);
        if done.outcome == Outcome::Passed {
            return;
        }
        let mut tests = outcome::failed_tests(&done.output);
        if tests.is_empty() {
            tests.push(format!("({:?})", done.outcome));
        }
        for test in tests {
            self.failed.entry((done.job.name.clone(), test)).or_default().push(round);
        }
    }

    /// Number of tests that failed.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.failed.len()
    }

    /// A row for each test that failed, and the programs that took longest.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = String::from("| program | test | failed | in rounds |\n|---|---|---|---|\n");
        for ((program, test), rounds) in &self.failed {
            let list = rounds.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
            let _ = writeln!(text, "| {program} | {test} | {} | {list} |", rounds.len());
        }
        let mut longest: Vec<(&String, &Duration)> = self.longest.iter().collect();
        longest.sort_by_key(|(_, took)| std::cmp::Reverse(**took));
        let longest =
            longest.iter().take(20).map(|(name, took)| format!("{name} {:.0} s", took.as_secs_f64()));
        let longest = longest.collect::<Vec<_>>().join(", ");
        let _ =
            writeln!(text, "{} runs, {} tests failed; the longest: {longest}", self.runs, self.failed.len());
        text
    }
}

/// Runs all programs as often as asked for, and prints the table.
///
/// # Errors
/// Says what does not build, that a test failed, or that a signal ended it.
pub fn run(root: &Path, request: &Request) -> Result<(), String> {
    let tree = Tree::read(root).map_err(|why| format!("cannot read the tree: {why}"))?;
    let steps: Vec<Step> = test_steps(&tree).into_iter().filter(is_repeated).collect();
    let is_over = until_signal()?;
    let (_, mut jobs) = prepare(root, &steps, Sizes::Quick(sizes::seed(root)?), &is_over)?;
    jobs.retain(|job| request.only.as_ref().is_none_or(|only| job.name.contains(only)));
    if jobs.is_empty() {
        return Err("there is no such program".to_owned());
    }
    jobs.iter_mut().for_each(|job| job.limit *= LIMIT_FACTOR);
    let mut findings = Findings::default();
    if request.together {
        let others = BUSY * processors();
        let all: Vec<Job> = (0..request.repeat).flat_map(|_| jobs.iter().cloned()).collect();
        println!("xtask: {} programs, {} beside each other", all.len(), at_once() + others);
        run_all(root, all, at_once() + others, &is_over, &mut findings)?;
    } else {
        let _busy = (0..BUSY * processors()).map(|_| Busy::start()).collect::<Result<Vec<_>, _>>()?;
        for round in 1..=request.repeat {
            let start = Instant::now();
            run_all(root, jobs.clone(), at_once(), &is_over, &mut findings)?;
            println!("xtask: round {round} of {}: {:.0} s", request.repeat, start.elapsed().as_secs_f64());
            if is_over.load(Ordering::Relaxed) {
                break;
            }
        }
    }
    print!("{}", findings.table());
    match findings.failed() {
        _ if is_over.load(Ordering::Relaxed) => Err("ended by a signal".to_owned()),
        0 => Ok(()),
        failed => Err(format!("{failed} tests failed on a busy machine")),
    }
}

/// Runs the programs, so many at once, and counts how they end.
fn run_all(
    root: &Path,
    jobs: Vec<Job>,
    at_once: usize,
    is_over: &AtomicBool,
    findings: &mut Findings,
) -> Result<(), String> {
    let mut ended: BTreeMap<String, u32> = BTreeMap::new();
    runner::run(jobs, at_once, &output_folder(root), is_over, |done| {
        let round = ended.entry(done.job.name.clone()).or_default();
        *round += 1;
        findings.count(*round, done);
        if matches!(done.outcome, Outcome::Failed(_) | Outcome::Hung) {
            println!("xtask: run {round} of {} failed\n{}", done.job.name, done.output.trim());
        }
    })
    .map(drop)
}

/// Programs of tests: no commands of cargo, which would build beside them.
fn is_repeated(step: &Step) -> bool {
    step.way == Way::Programs
}
