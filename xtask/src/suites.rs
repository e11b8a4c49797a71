//! The suites: each a list of steps. [`crate::test`] runs those of `cargo xtask test`; the others run in
//! order, stop at the first failure and say how long they took.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::tree::Tree;

/// Programs with sizes that [`crate::sizes`] makes smaller; those on shuttle are a step of their own.
const SOAKED: &[(&str, &str)] = &[
    ("terrane-sim", "suite"),
    ("terrane-sim", "values"),
    ("terrane-sim", "schedules"),
    ("terrane-fuzz", "smoke"),
    ("terrane-engine", "suite"),
    ("terrane-journal", "suite"),
    ("terrane-compaction", "suite"),
    ("terrane-remote", "suite"),
    ("terrane-cli", "suite"),
];

/// How `cargo xtask test` runs a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// Cargo builds the test programs; they run beside each other, without cargo.
    Programs,
    /// The command runs beside the programs, after cargo has built with these arguments.
    Command(Vec<String>),
}

/// One command of a suite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its purpose.
    pub title: &'static str,
    /// Arguments of `cargo`.
    pub arguments: Vec<String>,
    /// Variables set for it.
    pub variables: Vec<(&'static str, String)>,
    /// The most time for it, or for each of its programs, where it is not run from a terminal.
    pub limit: Duration,
    /// How it runs among the steps of [`crate::test`].
    pub way: Way,
    /// The programs that run, by package and target; where the list is empty, all that were built.
    pub only: &'static [(&'static str, &'static str)],
}

impl Step {
    fn new(title: &'static str, minutes: u64, arguments: &str) -> Step {
        let arguments = arguments.split_whitespace().map(str::to_owned).collect();
        let limit = Duration::from_secs(60 * minutes);
        Step { title, arguments, variables: Vec::new(), limit, way: Way::Programs, only: &[] }
    }

    fn command(title: &'static str, minutes: u64, arguments: &str, build: Vec<String>) -> Step {
        Step { way: Way::Command(build), ..Step::new(title, minutes, arguments) }
    }

    /// Returns true if a program that was built for it runs.
    #[must_use]
    pub fn runs(&self, package: &str, target: &str) -> bool {
        self.only.is_empty() || self.only.contains(&(package, target))
    }
}

/// The documentation, warnings refused.
///
/// # Errors
/// Names the first step that failed.
pub fn docs(root: &Path) -> Result<(), String> {
    run(root, &[docs_step()])
}

/// The parts of CI besides [`crate::test`]: format, lints, house rules, documentation.
///
/// # Errors
/// As [`docs`].
pub fn ci_parts(root: &Path) -> Result<(), String> {
    run(
        root,
        &[
            Step::new("format", 5, "fmt --all -- --check"),
            // With the explorer, which a normal build leaves out.
            Step::new(
                "lints",
                40,
                &format!("clippy {WORKSPACE},terrane-sim/schedule --all-targets -- -D warnings"),
            ),
            // The only crate that has other code without it. A constant of its tests refuses planted bugs in
            // a normal build; the programs of `cargo xtask test` have them, switched off.
            Step::new(
                "lints without the explorer",
                20,
                "clippy -p terrane-base --all-targets -- -D warnings",
            ),
        ],
    )?;
    crate::tidy::run(root, false)?;
    docs(root)
}

/// The peers of the bench, which [`crate::test`] leaves out: lints, documentation, and the tests of the two
/// crates that use them.
///
/// # Errors
/// As [`docs`].
pub fn peers(root: &Path) -> Result<(), String> {
    const CRATES: &str = "-p terrane-bench -p terrane-cli";
    let mut documentation = Step::new("documentation", 20, "doc -p terrane-bench --no-deps");
    documentation.variables.push(("RUSTDOCFLAGS", "-D warnings".to_owned()));
    run(
        root,
        &[
            Step::new("lints", 40, &format!("clippy {CRATES} --all-targets -- -D warnings")),
            documentation,
            Step::new("tests", 40, &format!("test {CRATES}")),
        ],
    )
}

fn docs_step() -> Step {
    let mut step = Step::new("documentation", 20, &format!("doc {WORKSPACE} --no-deps"));
    step.variables.push(("RUSTDOCFLAGS", "-D warnings".to_owned()));
    step
}

/// Arguments of the builds of CI: all crates, and the default features but the peers of the bench, which are
/// crates of others with their own dependencies. `cargo xtask peers` has those. Further features may follow a
/// comma.
pub const WORKSPACE: &str =
    "--workspace --no-default-features --features terrane-cli/grpc,terrane-cli/rocksdb";

/// Features of every test program but those on shuttle, behind [`WORKSPACE`]: the points of the explorer of
/// schedules, and planted bugs that can be switched on. So one build serves the tests, the schedules of the
/// whole engine and the planted bugs. Where neither is switched on, a point is one load and a planted bug one
/// comparison.
pub const FEATURES: &str = "terrane-sim/planted,terrane-sim/schedule";

/// The steps of [`crate::test`] for a tree: a crate takes part in schedule exploration by having
/// `tests/shuttle.rs`. One command for all of a kind: what they share is built once, and cargo builds beside
/// each other what does not wait for each other.
///
/// Each command is of the whole workspace with the same features, so that what the first one has built
/// serves the others. `--tests` leaves out the examples, which the lints compile; those with tests are built.
#[must_use]
pub fn test_steps(tree: &Tree) -> Vec<Step> {
    let mut steps = vec![
        Step::new("tests", 20, &format!("test {WORKSPACE},{FEATURES} --tests")),
        Step::command("doc tests", 20, &format!("test {WORKSPACE},{FEATURES} --doc"), Vec::new()),
    ];
    steps.extend(shuttle_step(tree, 20));
    let sample = crate::planted::sample(tree);
    let build = if sample.is_empty() { Vec::new() } else { crate::planted::sample_arguments(&sample) };
    let mut planted = Step::command("planted bugs, a sample", 20, "xtask planted --sample", build);
    let (steps_of_histories, number) = crate::sizes::STEPS;
    planted.variables.push((steps_of_histories, number.to_owned()));
    steps.push(planted);
    steps
}

/// The steps of [`crate::test::bench_smoke`]: every file in `benches/` runs each of its benchmarks once,
/// built without the features of the tests.
#[must_use]
pub fn bench_steps(tree: &Tree) -> Vec<Step> {
    let paths = tree.rust_files().map(|(path, _)| path.split('/').collect::<Vec<_>>());
    let benches: BTreeSet<String> = paths
        .filter_map(|path| match path.as_slice() {
            ["crates", _, "benches", file] => Some(format!("--bench {}", file.strip_suffix(".rs")?)),
            _ => None,
        })
        .collect();
    let benches = benches.into_iter().collect::<Vec<_>>().join(" ");
    vec![Step::new("benchmarks, once", 30, &format!("test --workspace {benches} -- --test"))]
}

fn shuttle_step(tree: &Tree, minutes: u64) -> Option<Step> {
    let explored: Vec<String> = tree
        .rust_files()
        .filter_map(|(path, _)| match path.split('/').collect::<Vec<_>>().as_slice() {
            ["crates", package, "tests", "shuttle.rs"] => Some(format!("{package}/shuttle")),
            _ => None,
        })
        .collect();
    // Of the whole workspace, so that crates from outside have the features that the first step built.
    let arguments = format!("test {WORKSPACE},{} --test shuttle", explored.join(","));
    (!explored.is_empty()).then(|| Step::new("schedule exploration", minutes, &arguments))
}

/// The steps of [`crate::test::soak`]: what [`crate::sizes`] makes smaller in [`crate::test::run`].
#[must_use]
pub fn soak_steps(tree: &Tree) -> Vec<Step> {
    // The build of [`test_steps`]: a soak of a tree that was tested with the same settings builds nothing.
    let arguments = format!("test {WORKSPACE},{FEATURES} --tests");
    let programs = Step::new("simulation, fuzz smoke, loads and kills", 240, &arguments);
    let mut steps = vec![Step { only: SOAKED, ..programs }];
    steps.extend(shuttle_step(tree, 240));
    steps
}

/// The property tests on other cases than those of [`crate::test`], which are the same in every run
/// (`.cargo/config.toml`): `number` for each property, from a seed that the clock gives and that is printed.
///
/// # Errors
/// Names the first step that failed.
pub fn cases(root: &Path, number: u32) -> Result<(), String> {
    let tree = Tree::read(root).map_err(|why| format!("cannot read the tree: {why}"))?;
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|why| why.to_string())?;
    let seed = since.as_nanos() as u64;
    println!("xtask: {number} cases of each property, PROPTEST_RNG_SEED={seed}");
    run(root, &case_steps(&tree, number, seed))
}

/// The steps of [`cases()`] for a tree: one, with every test target that has a property. Of the whole
/// workspace, so that what `cargo xtask test` has built serves.
#[must_use]
pub fn case_steps(tree: &Tree, number: u32, seed: u64) -> Vec<Step> {
    let with_properties = tree.rust_files().filter(|(_, text)| text.contains("proptest! {"));
    let targets: BTreeSet<String> = with_properties.filter_map(|(path, _)| target_arguments(path)).collect();
    let targets: Vec<String> = targets.into_iter().collect();
    let mut step =
        Step::new("properties", 300, &format!("test --workspace --no-fail-fast {}", targets.join(" ")));
    step.variables.push(("PROPTEST_CASES", number.to_string()));
    step.variables.push(("PROPTEST_RNG_SEED", seed.to_string()));
    vec![step]
}

fn target_arguments(path: &str) -> Option<String> {
    match path.split('/').collect::<Vec<_>>().as_slice() {
        ["crates", _, "tests", file] => Some(format!("--test {}", file.strip_suffix(".rs")?)),
        ["crates", _, "tests", target, ..] => Some(format!("--test {target}")),
        ["crates", _, "src", ..] => Some("--lib".to_owned()),
        _ => None,
    }
}

fn run(root: &Path, steps: &[Step]) -> Result<(), String> {
    let start = Instant::now();
    for (index, step) in steps.iter().enumerate() {
        let command = step.arguments.join(" ");
        println!("xtask: [{}/{}] {}: cargo {command}", index + 1, steps.len(), step.title);
        let step_start = Instant::now();
        let status = run_step(root, step)?;
        if !status.success() {
            return Err(format!("{} failed ({status}): cargo {command}", step.title));
        }
        println!("xtask: {} took {:.1} s", step.title, step_start.elapsed().as_secs_f64());
    }
    println!("xtask: {} steps passed in {:.1} s", steps.len(), start.elapsed().as_secs_f64());
    Ok(())
}

fn run_step(root: &Path, step: &Step) -> Result<ExitStatus, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(&step.arguments)
        .envs(step.variables.iter().map(|(name, value)| (name, value)))
        .current_dir(root);
    if std::io::stdin().is_terminal() {
        // Run from a terminal, it can be interrupted; a process group of its own would not hear the key.
        return command.status().map_err(|why| format!("cannot run cargo: {why}"));
    }
    run_within(&mut command, step.limit).map_err(|why| format!("{}: {why}", step.title))
}

/// Runs a command; ends it and everything that it started when the time is over.
///
/// # Errors
/// Says that it could not be started, or how long it ran.
pub fn run_within(command: &mut Command, limit: Duration) -> Result<ExitStatus, String> {
    let mut child = command.process_group(0).spawn().map_err(|why| format!("cannot run it: {why}"))?;
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if start.elapsed() < limit => std::thread::sleep(Duration::from_millis(50)),
            Ok(None) => {
                let group = format!("-{}", child.id());
                let _ = Command::new("kill").args(["-s", "KILL", "--", &group]).status();
                let _ = child.wait();
                return Err(format!("ended after {:.0} s, its limit", limit.as_secs_f64()));
            }
            Err(why) => return Err(why.to_string()),
        }
    }
}
