//! The mutation suite: each bug of `crates/terrane-base/src/planted.rs` is switched on, and its test must
//! fail.
//!
//! 1. build the test programs that the bugs name, once, with the feature `planted` of `terrane-base`
//! 2. run each test without a bug: it must pass 3. run it with each bug: it must fail. A test that is killed
//!    at its time limit has not caught the bug, unless the bug is about blocking.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::programs::{self, Program};
use crate::suites::run_within;
use crate::tidy::Finding;
use crate::tree::Tree;

const LIST: &str = "crates/terrane-base/src/planted.rs";
const PAGE: &str = "docs/planted-bugs.md";
/// Bugs that `cargo xtask test` runs: the simulator's tests find them, of reads, ranges and doors. Their
/// programs are those of the other tests ([`crate::suites::FEATURES`]), so that nothing is built for them.
const SAMPLE: [&str; 4] = ["SnapshotSeesNewer", "SkipLevelInRead", "WrongUpperBound", "GoAroundDoor"];
/// Features of the build.
const FEATURES: &str = "terrane-base/planted";
/// The most time of a test without a bug.
const LIMIT: Duration = Duration::from_secs(900);
/// The most time of a test with a bug: so much, or so many times as long as without one, whatever is more. A
/// test that waits for a state fails after tens of thousands of looks, which take minutes on a busy machine.
const LIMIT_WITH_BUG: Duration = Duration::from_secs(600);
const LIMIT_FACTOR: u32 = 5;
/// Tests that run beside each other.
const WORKERS: usize = 2;
const HEAD: &str = "\
# Planted bugs

Written by `cargo xtask planted --write`; `cargo xtask tidy` refuses a page that lists other bugs than the code.
Each bug stands in the product code behind `planted!`, which is the constant `false` in every normal build. Tests are
named by package, test target and the beginning of the test's name. Invariants are those of the architecture page.

| bug | breaks | what it does | test | outcome | seconds |
|---|---|---|---|---|---|
";

/// A row of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planted {
    /// Name, as the environment gives it.
    pub name: String,
    /// The invariant or step.
    pub breaks: String,
    /// Its effect.
    pub what: String,
    /// Package, test target, and the test that fails.
    pub test: String,
}

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Passed,
    Failed,
    /// At its limit.
    Hung,
}

/// The rows of the list.
#[must_use]
pub fn planted(tree: &Tree) -> Vec<Planted> {
    let lines = tree.get(LIST).unwrap_or_default().lines();
    let rows = lines.skip_while(|line| *line != "bugs! {").skip(1).take_while(|line| *line != "}");
    let row = |line: &str| {
        let parts: Vec<&str> = line.split('"').collect();
        let [name, breaks, _, what, _, test, _] = parts.as_slice() else { return None };
        let name = name.trim().trim_end_matches(':').to_owned();
        Some(Planted { name, breaks: (*breaks).into(), what: (*what).into(), test: (*test).into() })
    };
    rows.filter_map(row).collect()
}

/// Checks that the page has a row for each bug of the list, in its order and with its words.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let page = tree.get(PAGE).unwrap_or_default();
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let bugs = planted(tree);
    let mut findings = without_test(tree);
    let differs = rows.iter().zip(&bugs).find(|(row, bug)| !row.starts_with(&start_of_row(bug)));
    if let Some((_, bug)) = differs {
        let why =
            format!("the row of {} is not that of the code: run `cargo xtask planted --write`", bug.name);
        findings.push(Finding::new(PAGE, 0, why));
    } else if rows.len() != bugs.len() {
        let why = "lists other bugs than the code: run `cargo xtask planted --write`";
        findings.push(Finding::new(PAGE, 0, why));
    }
    findings
}

/// A row of the page up to the outcome.
fn start_of_row(bug: &Planted) -> String {
    let Planted { name, breaks, what, test } = bug;
    format!("| `{name}` | {breaks} | {what} | {test} | ")
}

/// Bugs whose test the package has not: its program would run no test, and pass.
fn without_test(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for bug in planted(tree) {
        let mut words = bug.test.split(' ');
        let (Some(package), Some(filter)) = (words.next(), words.nth(1)) else { continue };
        let last = filter.rsplit("::").next().unwrap_or(filter);
        let folder = format!("crates/{package}/");
        let (function, module) = (format!("fn {last}"), format!("mod {last}"));
        let is_there = tree.files().any(|(path, text)| {
            let is_code = path.starts_with(&folder) && path.ends_with(".rs") && path != LIST;
            let has_test = || text.contains(&function) && is_within(&module_of(path), last, filter);
            is_code && (has_test() || text.contains(&module) || path.contains(&format!("/{last}")))
        });
        if !is_there {
            let why = format!("{} names the test `{filter}`, which `{package}` does not have", bug.name);
            findings.push(Finding::new(LIST, 0, why));
        }
    }
    findings
}

/// Returns true if a test program finds the test `last` of a module by `filter`; a module may have its tests
/// in a module `tests` of the same file.
fn is_within(module: &str, last: &str, filter: &str) -> bool {
    [format!("{module}::{last}"), format!("{module}::tests::{last}")].iter().any(|name| name.contains(filter))
}

/// The module of a file of a package, as a test program names it.
fn module_of(path: &str) -> String {
    let below = path.splitn(3, '/').nth(2).unwrap_or(path);
    let below = below.trim_end_matches(".rs");
    let parts = below.split('/').enumerate().filter(|(at, part)| {
        let is_folder = *at == 0 && matches!(*part, "src" | "tests");
        !is_folder && !matches!(*part, "mod" | "lib" | "main")
    });
    parts.map(|(_, part)| part).collect::<Vec<_>>().join("::")
}

/// Which bugs are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice<'n> {
    /// All of them.
    All,
    /// A few, of several layers.
    Sample,
    /// The one of this name.
    One(&'n str),
}

impl Choice<'_> {
    fn takes(self, name: &str) -> bool {
        match self {
            Choice::All => true,
            Choice::Sample => SAMPLE.contains(&name),
            Choice::One(only) => only == name,
        }
    }
}

/// Names of the sample that no bug of the list has.
#[must_use]
pub fn missing_from_sample(tree: &Tree) -> Vec<&'static str> {
    let bugs = planted(tree);
    SAMPLE.into_iter().filter(|name| bugs.iter().all(|bug| bug.name != *name)).collect()
}

/// The bugs that [`Choice::Sample`] takes.
#[must_use]
pub fn sample(tree: &Tree) -> Vec<Planted> {
    planted(tree).into_iter().filter(|bug| Choice::Sample.takes(&bug.name)).collect()
}

/// Runs the bugs of a choice; with `write`, renews the page with all of them.
///
/// # Errors
/// Names the tests that fail without a bug, and the bugs that are missed.
pub fn run(root: &Path, choice: Choice<'_>, write: bool) -> Result<(), String> {
    let tree = Tree::read(root).map_err(|why| format!("cannot read the tree: {why}"))?;
    let mut bugs = planted(&tree);
    bugs.retain(|bug| choice.takes(&bug.name));
    if bugs.is_empty() || choice == Choice::Sample && bugs.len() < SAMPLE.len() {
        return Err("there is no such planted bug".to_owned());
    }
    let arguments = match choice {
        Choice::Sample => sample_arguments(&bugs),
        Choice::All | Choice::One(_) => build_arguments(&bugs, FEATURES),
    };
    let programs = programs::build(programs::build_command(root).args(arguments))?;
    let times = without_bugs(root, &programs, &bugs)?;
    let ends = in_parallel(&bugs, |bug| {
        let limit = LIMIT_WITH_BUG.max(times[bug.test.as_str()] * LIMIT_FACTOR);
        run_test(root, &programs, &bug.test, Some(&bug.name), limit)
    });
    let (mut page, mut missed) = (HEAD.to_owned(), Vec::new());
    for (bug, end) in bugs.iter().zip(ends) {
        let (end, took) = end?;
        let is_caught = end == Ended::Failed || end == Ended::Hung && bug.breaks.contains("blocking");
        let outcome = if is_caught { "caught" } else { "MISSED" };
        if !is_caught {
            missed.push(format!("{} ({end:?})", bug.name));
        }
        let (start, seconds) = (start_of_row(bug), took.as_secs_f64());
        let _ = writeln!(page, "{start}{outcome} | {seconds:.1} |");
    }
    print!("{}", page.split_once("|---|---|---|---|---|---|\n").map_or("", |(_, rows)| rows));
    println!("xtask: {} of {} planted bugs caught", bugs.len() - missed.len(), bugs.len());
    if write && choice == Choice::All {
        std::fs::write(root.join(PAGE), page).map_err(|why| format!("cannot write {PAGE}: {why}"))?;
    }
    if missed.is_empty() { Ok(()) } else { Err(format!("missed: {}", missed.join(", "))) }
}

/// Runs each test without a bug, and returns how long it took.
fn without_bugs<'b>(
    root: &Path,
    programs: &[Program],
    bugs: &'b [Planted],
) -> Result<BTreeMap<&'b str, Duration>, String> {
    let tests: BTreeSet<&str> = bugs.iter().map(|bug| bug.test.as_str()).collect();
    let tests: Vec<&str> = tests.into_iter().collect();
    for test in &tests {
        if !is_there(root, programs, test)? {
            return Err(format!("there is no such test: {test}"));
        }
    }
    let (mut times, mut unsound) = (BTreeMap::new(), Vec::new());
    for (test, end) in
        tests.iter().zip(in_parallel(&tests, |test| run_test(root, programs, test, None, LIMIT)))
    {
        match end? {
            (Ended::Passed, took) => drop(times.insert(*test, took)),
            _ => unsound.push(*test),
        }
    }
    if unsound.is_empty() {
        Ok(times)
    } else {
        Err(format!("without a bug these tests fail: {}", unsound.join("; ")))
    }
}

/// Arguments by which `cargo test` builds the sample: the programs of these targets in all packages, as the
/// first step of [`crate::suites::test_steps`] builds them. With fewer packages the crates from outside have
/// fewer features, and everything is compiled again.
#[must_use]
pub fn sample_arguments(bugs: &[Planted]) -> Vec<String> {
    let (_, targets) = packages_and_targets(bugs);
    let targets = targets.into_iter().collect::<Vec<_>>().join(" ");
    let (workspace, features) = (crate::suites::WORKSPACE, crate::suites::FEATURES);
    format!("{workspace},{features} {targets}").split(' ').map(str::to_owned).collect()
}

/// Arguments by which `cargo test` builds these bugs: the programs of their tests and no others, for linking
/// is most of the work.
#[must_use]
pub fn build_arguments(bugs: &[Planted], features: &str) -> Vec<String> {
    let (packages, targets) = packages_and_targets(bugs);
    // Some of its tests are of the service, which is a feature.
    let service = if packages.contains("-p terrane-remote") { ",terrane-remote/grpc" } else { "" };
    let arguments = packages.into_iter().chain(targets).collect::<Vec<_>>().join(" ");
    format!("{arguments} --features {features}{service}").split(' ').map(str::to_owned).collect()
}

/// Arguments of cargo that choose the packages of their tests, and the targets.
fn packages_and_targets(bugs: &[Planted]) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut packages, mut targets) = (BTreeSet::new(), BTreeSet::new());
    for bug in bugs {
        let mut words = bug.test.split(' ');
        let (package, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        packages.insert(format!("-p {package}"));
        // The program of a library's own tests has the name of the library.
        let is_library = target == package.replace('-', "_");
        targets.insert(if is_library { "--lib".to_owned() } else { format!("--test {target}") });
    }
    (packages, targets)
}

/// Returns true if the filter takes a test of the program: otherwise it would pass, whatever is planted.
fn is_there(root: &Path, programs: &[Program], test: &str) -> Result<bool, String> {
    let listed = command(root, programs, test)?.arg("--list").output();
    let listed = listed.map_err(|why| format!("the tests of {test} cannot be listed: {why}"))?;
    Ok(String::from_utf8_lossy(&listed.stdout).lines().any(|line| line.ends_with(": test")))
}

/// The program of a test, with its filter.
fn command(root: &Path, programs: &[Program], test: &str) -> Result<Command, String> {
    let [package, target, filter] = test.split(' ').collect::<Vec<_>>()[..] else {
        return Err(format!("no package, test target and test: {test}"));
    };
    let program = programs::path_of(programs, package, target);
    let mut command = Command::new(program.ok_or_else(|| format!("no test program for {test}"))?);
    command.arg(filter).current_dir(root.join("crates").join(package));
    command.env_remove("TERRANE_PLANTED").stdin(Stdio::null());
    Ok(command)
}

fn run_test(
    root: &Path,
    programs: &[Program],
    test: &str,
    bug: Option<&str>,
    limit: Duration,
) -> Result<(Ended, Duration), String> {
    let mut command = command(root, programs, test)?;
    command.stdout(Stdio::null()).stderr(Stdio::null());
    if let Some(bug) = bug {
        command.env("TERRANE_PLANTED", bug);
    }
    let start = Instant::now();
    let ended = match run_within(&mut command, limit) {
        Ok(status) if status.success() => Ended::Passed,
        Ok(_) => Ended::Failed,
        Err(_) => Ended::Hung,
    };
    eprintln!(
        "xtask: {} {test}: {ended:?} after {:.1} s",
        bug.unwrap_or("sound"),
        start.elapsed().as_secs_f64()
    );
    Ok((ended, start.elapsed()))
}

/// `each` of all items, in order, by [`WORKERS`] threads.
fn in_parallel<T: Sync, R: Send>(items: &[T], each: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let index = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
                    && let Some(item) = items.get(index)
                {
                    let result = each(item);
                    done.lock().expect("no worker panics with the lock").push((index, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("every worker has ended well");
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}
