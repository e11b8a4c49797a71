//! Stress: which programs take part, what a run is, what a failure names, and that nothing outlives a run.
//!
//! A program of its own: a file that it writes does not run while it is open in a child of another test.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests, which run programs of their own")]

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tempfile::TempDir;
use xtask::child;
use xtask::outcome::{Outcome, failed_tests, listed_tests, unfinished_tests};
use xtask::programs::build_until;
use xtask::stress::plan::{Plan, Program, RunName};
use xtask::stress::select::{self, Target};
use xtask::stress::settings::Settings;
use xtask::stress::tally::Tally;
use xtask::stress::{build_arguments, drive, tests_of};
use xtask::tree::Tree;

const PROPERTY: &str = "proptest! {";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn names(targets: &[Target]) -> Vec<String> {
    targets.iter().map(|target| format!("{} {}", target.package, target.name())).collect()
}

#[test]
fn properties_threads_and_databases_take_part() {
    let tree = Tree::of([
        ("crates/low/tests/plain.rs", ""),
        ("crates/low/tests/model.rs", ""),
        ("crates/low/tests/shuttle.rs", "thread::spawn("),
        ("crates/low/tests/whole.rs", "mod part;"),
        ("crates/low/tests/whole/part.rs", PROPERTY),
        ("crates/low/tests/support/mod.rs", PROPERTY),
        ("crates/low/src/cache/tests.rs", "std::thread::scope(|scope| ())"),
        ("crates/other-low/src/door.rs", "thread::spawn("),
        ("crates/terrane-engine/tests/any.rs", ""),
        ("crates/terrane-bench/tests/load.rs", "thread::spawn("),
    ]);
    let all = select::targets(&tree, None);
    assert_eq!(names(&all), ["low low", "low model", "low whole", "terrane-engine any"]);
    assert_eq!(names(&select::targets(&tree, Some("engine"))), ["terrane-engine any"]);
    assert_eq!(names(&select::targets(&tree, Some("low whole"))), ["low whole"]);
}

#[test]
fn the_lists_name_what_there_is() {
    let tree = Tree::read(root()).unwrap();
    assert_eq!(select::unknown_rows(&tree), [""; 0]);
    let all = names(&select::targets(&tree, None));
    for expected in [
        "terrane ingest",
        "terrane-engine concurrent",
        "terrane-memtable stress",
        "terrane-table terrane_table",
    ] {
        assert!(all.iter().any(|name| name == expected), "{expected} of {all:?}");
    }
}

#[test]
fn packages_that_have_the_feature_are_built_with_it() {
    let tree = Tree::of([
        ("crates/low/tests/model.rs", ""),
        ("crates/low/src/tests.rs", PROPERTY),
        ("crates/high/tests/model.rs", ""),
        ("crates/high/Cargo.toml", "[features]\nschedule = [\"low/schedule\"]\n"),
        ("crates/terrane-base/Cargo.toml", "[features]\nschedule = []\n"),
    ]);
    let targets = select::targets(&tree, None);
    let packages = ["--package=high", "--package=low"];
    let tests = ["--lib", "--test=model"];
    assert_eq!(build_arguments(&tree, &targets, false), [packages, tests].concat());
    let packages = ["--package=high", "--package=low", "--package=terrane-base"];
    let features = ["--features=high/schedule", "--features=terrane-base/schedule"];
    assert_eq!(build_arguments(&tree, &targets, true), [&packages[..], &tests, &features].concat());
}

fn program(name: &str, path: &Path) -> Program {
    let target = Target { package: "low".to_owned(), test: Some(name.to_owned()), is_in_suite: false };
    Program { target, path: path.to_owned(), folder: PathBuf::from("/"), parts: Vec::new() }
}

#[test]
fn one_number_decides_all_and_every_program_has_its_turn() {
    let programs: Vec<Program> = ["a", "b", "c", "d", "e"].map(|name| program(name, Path::new(name))).into();
    let lines = |seed: u64| -> Vec<String> {
        let plan = Plan::new(programs.clone(), seed, true);
        (0..20).map(|number| plan.run(number).command_line(&[])).collect()
    };
    assert_eq!(lines(1), lines(1));
    assert_ne!(lines(1), lines(2));
    let plan = Plan::new(programs.clone(), 1, true);
    let mut turns: Vec<String> = (5..10).map(|number| plan.run(number).program.name()).collect();
    turns.sort();
    assert_eq!(turns, ["low a", "low b", "low c", "low d", "low e"]);
    let variable = |number: u64, name: &str| {
        let run = plan.run(number);
        run.variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
    };
    for name in ["TERRANE_DELAYS", "PROPTEST_RNG_SEED"] {
        assert_ne!(
            variable(0, name).unwrap(),
            variable(5, name).unwrap(),
            "{name} is another in the next round"
        );
    }
    let plan = Plan::new(programs, 1, false);
    assert!(plan.run(0).variables.iter().all(|(name, _)| *name != "TERRANE_DELAYS"));
}

#[test]
fn a_run_is_repeated_by_a_line() {
    let plan = Plan::new(vec![program("a", Path::new("/target/with blank"))], 1, true);
    let mut run = plan.run(0);
    run.variables = vec![("TERRANE_DELAYS", "7".to_owned())];
    run.test_threads = 2;
    assert_eq!(run.command_line(&[]), "cd / && TERRANE_DELAYS=7 '/target/with blank' --test-threads=2");
    let tests = ["part::one", "two"].map(str::to_owned);
    let line = run.command_line(&tests);
    assert!(line.ends_with("'/target/with blank' part::one two --exact --test-threads=2"), "{line}");
    assert_eq!(run.file_name(), "000000-low-a.txt");
}

#[test]
fn modules_of_a_suite_take_part_one_by_one() {
    let tree = Tree::of([
        ("crates/low/tests/suite/main.rs", "mod model; mod plain; mod whole; mod support;"),
        ("crates/low/tests/suite/model.rs", ""),
        ("crates/low/tests/suite/plain.rs", ""),
        ("crates/low/tests/suite/whole.rs", "mod part;"),
        ("crates/low/tests/suite/whole/part.rs", PROPERTY),
        ("crates/low/tests/suite/support/mod.rs", PROPERTY),
    ]);
    let targets = select::targets(&tree, None);
    assert_eq!(names(&targets), ["low model", "low whole"]);
    assert_eq!(build_arguments(&tree, &targets, false), ["--package=low", "--test=suite"]);
    let whole = Program { target: targets[1].clone(), ..program("whole", Path::new("suite")) };
    let plan = Plan::new(vec![whole], 1, true);
    let mut run = plan.run(0);
    run.test_threads = 2;
    assert_eq!(run.arguments(&[]), ["whole::", "--test-threads=2"]);
    let one = ["whole::part::one".to_owned()];
    assert_eq!(run.arguments(&one), ["whole::part::one", "--exact", "--test-threads=2"]);
}

#[test]
fn a_program_in_parts_does_one_test_in_each_run_in_turn() {
    let parts: Vec<String> = ["one", "two", "part::three"].map(str::to_owned).into();
    let in_parts = Program { parts: parts.clone(), ..program("a", Path::new("a")) };
    let mut first_parts = BTreeSet::new();
    for seed in 0..60 {
        let plan = Plan::new(vec![in_parts.clone(), program("b", Path::new("b"))], seed, true);
        let runs: Vec<_> = (0..6).filter_map(|number| plan.run(number).part).collect();
        assert!(
            BTreeSet::from_iter(runs.iter().copied()).iter().copied().eq(&BTreeSet::from_iter(parts.clone())),
            "{runs:?}"
        );
        first_parts.insert(runs[0].clone());
    }
    assert_eq!(first_parts, BTreeSet::from_iter(parts), "another seed begins with another part");
    let plan = Plan::new(vec![in_parts], 1, true);
    let mut run = plan.run(0);
    run.test_threads = 4;
    let part = run.part.unwrap();
    assert_eq!(run.arguments(&[]), [part, "--exact", "--test-threads=4"]);
    assert_eq!(run.arguments(&["other".to_owned()]), ["other", "--exact", "--test-threads=4"]);
}

#[test]
fn failed_tests_are_those_of_the_last_list() {
    let output = "
running 3 tests
test one ... ok
test part::two ... a thread said this
FAILED
test three ... FAILED

failures:

---- part::two stdout ----
failures:
    not this

---- three stdout ----

failures:
    part::two
    three

test result: FAILED. 1 passed; 2 failed; 0 ignored
";
    assert_eq!(failed_tests(output), ["part::two", "three"]);
    assert_eq!(failed_tests("running 1 test\ntest one ... ok\n\ntest result: ok."), [""; 0]);
}

#[test]
fn where_there_is_no_list_tests_without_a_result_are_named() {
    let all =
        listed_tests("one: test\npart::two: test\nthree: test\nfour: benchmark\n\n3 tests, 0 benchmarks\n");
    assert_eq!(all, ["one", "part::two", "three"]);
    let output = "test one ... ok\ntest three has been running for over 60 seconds\n";
    assert_eq!(unfinished_tests(output, &all), ["part::two", "three"]);
}

#[test]
fn arguments_are_read() {
    let settings =
        Settings::of(&["--minutes", "3", "--loops", "5", "--only", "engine", "--seed", "9"]).unwrap();
    assert_eq!((settings.time, settings.loops(), settings.seed()), (Duration::from_secs(180), 5, 9));
    assert_eq!(settings.only.as_deref(), Some("engine"));
    assert!(settings.has_delays && !settings.keeps_going);
    assert_eq!(Settings::of(&[]), Ok(Settings::default()));
    assert!(Settings::of(&["--keep-going"]).unwrap().keeps_going);
    for (wrong, why) in [
        (&["--minutes"][..], "--minutes needs a value"),
        (&["--minutes", "few"], "--minutes takes a number from 1 to 525600, not \"few\""),
        (&["--minutes", "0"], "from 1 to 525600"),
        (&["--minutes", "525601"], "from 1 to 525600"),
        (&["--minutes", "18446744073709551615"], "from 1 to 525600"),
        (&["--minutes", "18446744073709551616"], "from 1 to 525600"),
        (&["--limit", "18446744073709551615"], "from 1 to 31536000"),
        (&["--loops", "0"], "from 1 to 1000"),
        (&["--loops", "1001"], "from 1 to 1000"),
        (&["5"], "no option 5"),
    ] {
        let refused = Settings::of(wrong).unwrap_err();
        assert!(refused.contains(why), "{wrong:?}: {refused}");
    }
    let longest = Settings::of(&["--minutes", "525600"]).unwrap();
    assert!(std::time::Instant::now().checked_add(longest.time).is_some());
}

/// Tests that write a program and run it, and those that start a child: a file that is open for writing in a
/// child of another thread does not run.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A program that does what a script says.
fn script(folder: &Path, name: &str, text: &str) -> Program {
    let path = folder.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    program(name, &path)
}

/// A folder that no other run of these tests has.
fn folder() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

#[test]
fn nothing_outlives_a_run() {
    let (_alone, folder) = (alone(), folder());
    let folder = folder.path();
    let (output, pipe) = (folder.join("output.txt"), folder.join("pipe"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (ending, expected) in [
        ("exit 0", Outcome::Passed),
        ("exit 3", Outcome::Failed("exit status: 3".to_owned())),
        // Until a signal comes.
        ("sleep 100000", Outcome::Ended),
    ] {
        let (is_over, reading) = (Arc::new(AtomicBool::new(false)), pipe.clone());
        let (signal, waits) = (is_over.clone(), expected == Outcome::Ended);
        let reader = std::thread::spawn(move || {
            let mut lines = BufReader::new(File::open(reading).unwrap()).lines();
            assert_eq!(lines.next().unwrap().unwrap(), "begun");
            signal.store(waits, Ordering::Relaxed);
            // The end comes when the last process that holds it has gone.
            lines.count()
        });
        let text = format!("exec 3>{}\necho begun >&3\nsleep 100000 &\n{ending}", pipe.display());
        let plan = Plan::new(vec![script(folder, "program", &text)], 1, true);
        let outcome =
            child::run(&mut plan.run(0).command(folder), &output, Duration::from_secs(3600), &is_over)
                .unwrap();
        assert_eq!(outcome, expected, "{ending}");
        assert_eq!(reader.join().unwrap(), 0, "{ending}");
    }
}

#[test]
fn a_run_at_its_limit_hangs_and_its_threads_are_listed() {
    let (_alone, folder) = (alone(), folder());
    let folder = folder.path();
    let plan = Plan::new(vec![script(folder, "program", "sleep 100000")], 1, true);
    let output = folder.join("output.txt");
    let outcome =
        child::run(&mut plan.run(0).command(folder), &output, Duration::ZERO, &AtomicBool::new(false));
    assert_eq!(outcome.unwrap(), Outcome::Hung);
    let threads = std::fs::read_to_string(folder.join("output.threads.txt")).unwrap();
    assert!(threads.contains("State:"), "{threads}");
}

#[test]
fn a_build_that_is_ended_by_a_signal_leaves_nothing() {
    let (_alone, (mut reader, writer)) = (alone(), std::io::pipe().unwrap());
    let mut command = Command::new("sh");
    command.args(["-c", "sleep 100000 & sleep 100000"]).stderr(writer);
    let refused = build_until(&mut command, &AtomicBool::new(true)).unwrap_err();
    assert!(refused.contains("signal"), "{refused}");
    drop(command);
    // The end comes when the last process that holds it has gone.
    assert_eq!(reader.read(&mut [0; 1]).unwrap(), 0);
}

#[test]
fn the_first_failure_ends_it_unless_it_goes_on() {
    let (_alone, folder) = (alone(), folder());
    let folder = folder.path();
    let passing = script(folder, "passing", "test $PROPTEST_MAX_SHRINK_ITERS = 0 && mkdir $TMPDIR/left");
    let failing = script(folder, "failing", "echo; echo failures:; echo '    one'; exit 1");
    let settings = Settings { time: Duration::from_secs(600), loops: Some(2), ..Settings::default() };
    let plan = Plan::new(vec![passing.clone(), failing], 1, true);
    let output = folder.join("output");
    let refused = drive(&plan, &settings, &output, &AtomicBool::new(false)).unwrap_err();
    assert!(refused.contains("failed") && refused.contains("output"), "{refused}");
    let kept: Vec<_> = std::fs::read_dir(&output).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert!(
        !kept.is_empty() && kept.iter().all(|name| name.to_string_lossy().ends_with("failing.txt")),
        "{kept:?}"
    );

    // Each loop does one run whatever the time.
    let settings = Settings { time: Duration::ZERO, keeps_going: true, ..settings };
    assert!(drive(&plan, &settings, &output, &AtomicBool::new(false)).is_err(), "to the end of the time");
    let output = folder.join("passed");
    let plan = Plan::new(vec![passing], 1, true);
    drive(&plan, &settings, &output, &AtomicBool::new(false)).unwrap();
    assert!(!output.exists(), "nothing is left of what passed");
}

#[test]
fn a_program_without_a_run_is_an_error() {
    let (_alone, folder) = (alone(), folder());
    let folder = folder.path();
    let programs: Vec<Program> = ["a", "b", "c"].map(|name| script(folder, name, "exit 0")).into();
    let output = folder.join("output");
    let settings = Settings { time: Duration::ZERO, loops: Some(2), ..Settings::default() };
    let plan = Plan::new(programs.clone(), 1, true);
    let left = plan.run(2).program.name();
    let refused = drive(&plan, &settings, &output, &AtomicBool::new(false)).unwrap_err();
    assert!(refused.contains("a run of 1 programs") && refused.ends_with(&format!(": {left}")), "{refused}");

    let settings = Settings { loops: Some(3), ..settings };
    drive(&plan, &settings, &output, &AtomicBool::new(false)).unwrap();
    let settings = Settings { loops: Some(0), ..settings };
    let refused = drive(&plan, &settings, &output, &AtomicBool::new(false)).unwrap_err();
    assert!(refused.contains("no run was made"), "{refused}");
}

#[test]
fn runs_of_parts_are_counted_by_part() {
    let in_parts =
        Program { parts: ["one", "two"].map(str::to_owned).into(), ..program("a", Path::new("a")) };
    let plan = Plan::new(vec![in_parts, program("b", Path::new("b"))], 1, true);
    let mut tally = Tally::of(plan.programs().iter().flat_map(Program::run_names));
    assert_eq!(tally.unfinished(), ["low a", "low b"]);
    let second = Duration::from_secs(1);
    let name = |part: &str| RunName { program: "low a".to_owned(), part: Some(part.to_owned()) };
    tally.count(name("one"), &Outcome::Ended, second);
    assert_eq!(tally.unfinished(), ["low a", "low b"]);
    tally.count(name("one"), &Outcome::Passed, second);
    assert_eq!(tally.unfinished(), ["low b"]);
    tally.count(name("one"), &Outcome::Hung, second);
    let table = tally.to_string();
    let row = |name: &str| table.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
    let counts = |row: String| row.split_whitespace().take(2).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(counts(row("low a: one")), ["1", "1"], "{table}");
    assert_eq!(counts(row("low a: two")), ["0", "0"], "{table}");
    assert!(table.contains("1 parts of programs in parts had no run"), "{table}");
    assert!(table.ends_with("2 programs, 3 runs: 1 passed, 1 failed, 1 ended unfinished"), "{table}");
}

#[test]
fn ignored_tests_are_not_tests_of_a_program() {
    let (_alone, folder) = (alone(), folder());
    let folder = folder.path();
    let text =
        "case $* in --list) echo 'one: test'; echo 'two: test';; '--list --ignored') echo 'two: test';; esac";
    let program = script(folder, "program", text);
    assert_eq!(tests_of(&program.path, folder).unwrap(), ["one"]);
    let program = script(folder, "refuses", "exit 3");
    assert!(tests_of(&program.path, folder).unwrap_err().contains("exit status: 3"));
}
