//! `cargo xtask test`: every test. `cargo xtask soak`: those that explore, for longer. `cargo xtask
//! bench-smoke`: each benchmark once.
//!
//! 1. Cargo builds the test programs of each step ([`crate::suites::test_steps`]); nothing runs meanwhile.
//! 2. All programs of all steps run beside each other ([`crate::runner`]), in the folder and with the
//!    variables that cargo would give them. A failure ends none of them.
//! 3. Failures are repeated with a command for each, and a table says what ran, what did not and why
//!    ([`crate::report`]).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::outcome::{self, Outcome};
use crate::programs::{self, Program};
use crate::report::{self, Row};
use crate::runner::{self, Done, Job};
use crate::sizes::{self, Sizes};
use crate::suites::{Step, Way, bench_steps, soak_steps, test_steps};
use crate::tree::Tree;

/// Variables that cargo sets for what it runs.
const CONFIG: &str = ".cargo/config.toml";
/// Most tests of one program beside each other: other programs run, too.
const TEST_THREADS_MAX: usize = 4;

/// Builds and runs every test; with `only`, the steps that have it in their title.
///
/// # Errors
/// Says what does not build, that a program failed, or that a signal ended it.
pub fn run(root: &Path, only: Option<&str>) -> Result<(), String> {
    let tree = Tree::read(root).map_err(|why| format!("cannot read the tree: {why}"))?;
    let mut steps = test_steps(&tree);
    let titles: Vec<&str> = steps.iter().map(|step| step.title).collect();
    let left: Vec<&str> =
        titles.iter().copied().filter(|title| only.is_some_and(|only| !title.contains(only))).collect();
    if left.len() == titles.len() {
        return Err(format!("there is no such step; there are: {}", titles.join(", ")));
    }
    steps.retain(|step| !left.contains(&step.title));
    println!("xtask: explorations are a part of what `cargo xtask soak` does");
    let done = run_steps(root, &steps, Sizes::Quick(sizes::seed(root)?));
    print!("{}", report::elsewhere());
    left.iter().for_each(|title| println!("not run: the step {title}: --only leaves it out"));
    done
}

/// Simulation, fuzz smoke and schedule exploration at full sizes.
///
/// # Errors
/// As [`run`].
pub fn soak(root: &Path) -> Result<(), String> {
    let tree = Tree::read(root).map_err(|why| format!("cannot read the tree: {why}"))?;
    run_steps(root, &soak_steps(&tree), Sizes::Full(sizes::seed(root)?))
}

/// Each benchmark of the crates once: that it runs, not how fast.
///
/// # Errors
/// As [`run`].
pub fn bench_smoke(root: &Path) -> Result<(), String> {
    let tree = Tree::read(root).map_err(|why| format!("cannot read the tree: {why}"))?;
    run_steps(root, &bench_steps(&tree), Sizes::Quick(sizes::seed(root)?))
}

fn run_steps(root: &Path, steps: &[Step], sizes: Sizes) -> Result<(), String> {
    let start = Instant::now();
    let is_over = until_signal()?;
    let (rows, jobs) = prepare(root, steps, sizes, &is_over)?;
    let at_once = at_once();
    println!("xtask: {} programs, {at_once} beside each other", jobs.len());
    let all = jobs.len();
    let mut ended = 0;
    let done = runner::run(jobs, at_once, &output_folder(root), &is_over, |done| {
        ended += 1;
        tell(done, ended, all);
    })?;
    close(rows, &done, start.elapsed());
    if is_over.load(Ordering::Relaxed) {
        return Err("ended by a signal".to_owned());
    }
    let failed: Vec<&Done> = done.iter().filter(|done| done.outcome != Outcome::Passed).collect();
    failed.iter().for_each(|done| println!("{}", failure(done)));
    if failed.is_empty() { Ok(()) } else { Err(format!("{} of {all} programs failed", failed.len())) }
}

/// Becomes true with the first signal that ends the command.
pub(crate) fn until_signal() -> Result<Arc<AtomicBool>, String> {
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        let hooked = signal_hook::flag::register(signal, is_over.clone());
        hooked.map_err(|why| format!("signals cannot be heard: {why}"))?;
    }
    Ok(is_over)
}

pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Programs that run beside each other. They also wait: for devices, for each other's processes, for times.
pub(crate) fn at_once() -> usize {
    processors() + processors() / 2
}

/// Where the output of programs goes.
pub(crate) fn output_folder(root: &Path) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    target.join("tests")
}

/// Builds what all steps run: a row of the table for each step, and the jobs, the longest first.
pub(crate) fn prepare(
    root: &Path,
    steps: &[Step],
    sizes: Sizes,
    is_over: &AtomicBool,
) -> Result<(Vec<Row>, Vec<Job>), String> {
    println!("xtask: explorations begin at the seed {0}; {1}={0} repeats them", sizes.seed(), sizes::SEED);
    let variables = variables(root, processors())?;
    let (mut rows, mut jobs) = (Vec::new(), Vec::new());
    for (number, step) in steps.iter().enumerate() {
        let (row, mut of_step) = build(root, number, step, (&variables, sizes), is_over)?;
        rows.push(row);
        jobs.append(&mut of_step);
    }
    runner::longest_first(&mut jobs);
    Ok((rows, jobs))
}

/// Builds what a step runs.
fn build(
    root: &Path,
    number: usize,
    step: &Step,
    (variables, sizes): (&[(String, String)], Sizes),
    is_over: &AtomicBool,
) -> Result<(Row, Vec<Job>), String> {
    let start = Instant::now();
    let arguments: Vec<&str> = step.arguments.iter().map(String::as_str).collect();
    let (cargo, own) = match arguments.iter().position(|argument| *argument == "--") {
        Some(at) => (&arguments[..at], &arguments[at + 1..]),
        None => (&arguments[..], &[][..]),
    };
    let to_build: Vec<&str> = match &step.way {
        Way::Programs => cargo[1..].to_vec(),
        Way::Command(build) => build.iter().map(String::as_str).collect(),
    };
    let mut built = Vec::new();
    if step.way == Way::Programs || !to_build.is_empty() {
        println!("xtask: building {}: cargo {}", step.title, arguments.join(" "));
        built = programs::build_until(programs::build_command(root).args(&to_build), is_over)?;
    }
    let step_variables = step.variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    let variables: Vec<_> = variables.iter().cloned().chain(step_variables).collect();
    let jobs = match &step.way {
        Way::Programs => {
            let job = |program: &Program| job_of(program, number, step, (cargo, own), (&variables, sizes));
            let missing = step.only.iter().find(|(package, target)| {
                !built.iter().any(|program| program.package == *package && program.target == *target)
            });
            if let Some((package, target)) = missing {
                return Err(format!("{}: there is no test program {target} of {package}", step.title));
            }
            let runs = |program: &&Program| step.runs(&program.package, &program.target);
            built.iter().filter(runs).map(job).collect()
        }
        Way::Command(_) => vec![Job {
            step: number,
            name: step.title.to_owned(),
            program: std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()).into(),
            arguments: step.arguments.clone(),
            folder: root.to_owned(),
            variables,
            again: format!("cargo {}", arguments.join(" ")),
            limit: step.limit,
        }],
    };
    let row = Row { title: step.title.to_owned(), build: start.elapsed(), ..Row::default() };
    Ok((row, jobs))
}

/// A test program as cargo would run it.
fn job_of(
    program: &Program,
    number: usize,
    step: &Step,
    (cargo, own): (&[&str], &[&str]),
    (variables, sizes): (&[(String, String)], Sizes),
) -> Job {
    let features = cargo.iter().position(|argument| *argument == "--features");
    let features = features.map_or_else(String::new, |at| features_of(&program.package, cargo[at + 1]));
    let mut sizes = sizes.variables(&program.package, step.arguments.iter().any(|word| word == "shuttle"));
    // A size that the caller has set stays.
    sizes.retain(|(name, _)| std::env::var_os(name).is_none());
    let set: String =
        step.variables.iter().chain(&sizes).map(|(name, value)| format!("{name}={value} ")).collect();
    let mut arguments: Vec<String> = own.iter().map(|argument| (*argument).to_owned()).collect();
    if program.kind != "bench" {
        // What a test says that it did not do is said by a test that passes.
        arguments.push("--show-output".to_owned());
    }
    let mut variables = variables.to_vec();
    variables.extend(sizes.into_iter().map(|(name, value)| (name.to_owned(), value)));
    variables.push(("CARGO_PKG_NAME".to_owned(), program.package.clone()));
    variables.push(("CARGO_MANIFEST_DIR".to_owned(), program.folder.display().to_string()));
    Job {
        step: number,
        name: program.name(),
        program: program.path.clone(),
        arguments,
        folder: program.folder.clone(),
        variables,
        again: format!("{set}cargo test{features} {}", program.selection()),
        limit: step.limit,
    }
}

/// The argument that turns on a package's own features among those of a step.
fn features_of(package: &str, features: &str) -> String {
    let own = features.split(',').filter_map(|feature| match feature.split_once('/') {
        Some((of, name)) => (of == package).then_some(name),
        None => Some(feature),
    });
    let own: Vec<&str> = own.collect();
    if own.is_empty() { String::new() } else { format!(" --features {}", own.join(",")) }
}

/// The variables that cargo sets for programs by its settings, and how many tests of a program run beside
/// each other. A variable that is set already stays.
fn variables(root: &Path, processors: usize) -> Result<Vec<(String, String)>, String> {
    let text = std::fs::read_to_string(root.join(CONFIG)).map_err(|why| format!("{CONFIG}: {why}"))?;
    let config: BTreeMap<String, toml::Value> =
        toml::from_str(&text).map_err(|why| format!("{CONFIG}: {why}"))?;
    let table = config.get("env").and_then(toml::Value::as_table).cloned().unwrap_or_default();
    let mut variables = Vec::new();
    for (name, value) in table {
        let value = value.as_str().ok_or_else(|| format!("{CONFIG}: {name} is not a plain text"))?;
        variables.push((name, value.to_owned()));
    }
    variables.push(("RUST_TEST_THREADS".to_owned(), processors.min(TEST_THREADS_MAX).to_string()));
    variables.retain(|(name, _)| std::env::var_os(name).is_none());
    Ok(variables)
}

/// Prints what a job printed.
fn tell(done: &Done, ended: usize, all: usize) {
    let how = match &done.outcome {
        Outcome::Passed => "passed".to_owned(),
        Outcome::Failed(status) => format!("FAILED ({status})"),
        Outcome::Hung => "HUNG".to_owned(),
        Outcome::Ended => "ended by a signal".to_owned(),
    };
    println!("xtask: [{ended}/{all}] {} {how} in {:.1} s", done.job.name, done.took.as_secs_f64());
    if done.outcome == Outcome::Passed {
        println!("{}", outcome::without_successes(&done.output).trim());
    } else {
        println!("{}", done.output.trim());
    }
}

/// Prints the table.
fn close(mut rows: Vec<Row>, done: &[Done], whole: Duration) {
    for done in done {
        let row = &mut rows[done.job.step];
        row.programs += 1;
        // Without what passing tests printed: tests of the runner print such lines themselves.
        row.counts += outcome::counts(&outcome::without_successes(&done.output));
        row.failed += usize::from(done.outcome != Outcome::Passed);
        row.run += done.took;
        let not_run = outcome::not_run(&done.output);
        row.not_run.extend(not_run.into_iter().map(|why| format!("{} {why}", done.job.name)));
    }
    let mut longest: Vec<&Done> = done.iter().collect();
    longest.sort_by_key(|done| std::cmp::Reverse(done.took));
    let longest: Vec<String> = longest
        .iter()
        .take(20)
        .map(|done| format!("{} {:.0} s", done.job.name, done.took.as_secs_f64()))
        .collect();
    println!("xtask: the longest: {}", longest.join(", "));
    print!("{}", report::table(&rows, whole));
}

/// A failure in one line, and the command that repeats it.
fn failure(done: &Done) -> String {
    let tests = outcome::failed_tests(&done.output);
    let names = if tests.is_empty() { String::new() } else { format!(" -- --exact {}", tests.join(" ")) };
    let how = match &done.outcome {
        Outcome::Failed(status) => status.clone(),
        _ => format!("no end after {:.0} s", done.took.as_secs_f64()),
    };
    format!(
        "xtask: {} FAILED ({how}): {}\n  again: {}{names}",
        done.job.name,
        tests.join(", "),
        done.job.again
    )
}
