//! Test programs beside each other: what cargo says of them, what they print, and what the table says.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests, which run programs of their own")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use xtask::outcome::{Counts, Outcome, counts, not_run, without_successes};
use xtask::programs::{path_of, programs_in};
use xtask::report::{Row, elsewhere, table};
use xtask::runner::{self, Job};
use xtask::sizes::{Sizes, seed_of};
use xtask::tree::Tree;

fn message(kind: &str, name: &str, is_test: bool) -> String {
    format!(
        r#"{{"manifest_path":"/w/crates/low/Cargo.toml","target":{{"kind":["{kind}"],"name":"{name}"}},"profile":{{"test":{is_test}}},"executable":"/t/{kind}-{name}"}}"#
    )
}

#[test]
fn programs_of_one_name_are_separate() {
    let messages = [
        message("lib", "low", true),
        message("bin", "ring", true),
        message("test", "ring", true),
        message("test", "ring", true),
        message("bin", "ring", false),
        r#"{"reason":"build-finished","success":true}"#.to_owned(),
    ];
    let programs = programs_in(messages.join("\n").as_bytes());
    let names: Vec<String> = programs.iter().map(xtask::programs::Program::name).collect();
    assert_eq!(names, ["low low", "low bin ring", "low ring"]);
    let selections: Vec<String> = programs.iter().map(xtask::programs::Program::selection).collect();
    assert_eq!(selections, ["-p low --lib", "-p low --bin ring", "-p low --test ring"]);
    assert_eq!(path_of(&programs, "low", "ring"), Some(Path::new("/t/test-ring")));
    assert_eq!(programs[0].folder, Path::new("/w/crates/low"));
}

const OUTPUT: &str = "
running 3 tests
test a ... ok
test b ... ok

successes:

---- a stdout ----
not run: there is no `cc`


successes:
    a
    b

test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

#[test]
fn output_is_counted() {
    assert_eq!(counts(OUTPUT), Counts { passed: 2, failed: 0, ignored: 1 });
    assert_eq!(not_run(OUTPUT), ["a: there is no `cc`"]);
    let short = without_successes(OUTPUT);
    assert!(short.contains("test b ... ok\n\ntest result: ok") && !short.contains("cc"), "{short}");
    assert_eq!(without_successes("no list"), "no list");

    let own = "test one ... ok: seen\ntest two ... NOT RUN: no strace\n1 passed, 2 failed, 1 not run\n";
    assert_eq!(counts(own), Counts { passed: 1, failed: 2, ignored: 0 });
    assert_eq!(not_run(own), ["two: no strace"]);
    assert_eq!(counts("Testing put\nSuccess\n\nxtask: 5 of 6 planted bugs caught\n").passed, 6);
}

/// A folder that no other run of these tests has.
fn folder() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn job(name: &str, script: &str, folder: &Path) -> Job {
    Job {
        step: 0,
        name: name.to_owned(),
        program: "sh".into(),
        arguments: vec!["-c".to_owned(), script.to_owned()],
        folder: folder.to_owned(),
        variables: vec![("NUMBER".to_owned(), "7".to_owned())],
        again: String::new(),
        limit: Duration::from_secs(3600),
    }
}

#[test]
fn a_failure_ends_no_other_job_and_output_is_whole() {
    let folder = folder();
    let folder = folder.path();
    let jobs = ["echo $NUMBER; exit 3", "echo one; echo two >&2", "pwd"];
    let jobs = jobs.iter().enumerate().map(|(n, script)| job(&format!("job {n}"), script, folder)).collect();
    let mut ended = 0;
    let output = folder.join("output");
    let done = runner::run(jobs, 2, &output, &AtomicBool::new(false), |_| ended += 1).unwrap();
    assert_eq!((done.len(), ended), (3, 3));
    let of = |name: &str| done.iter().find(|done| done.job.name == name).unwrap();
    assert_eq!(of("job 0").outcome, Outcome::Failed("exit status: 3".to_owned()));
    assert_eq!((of("job 0").output.as_str(), of("job 1").output.as_str()), ("7\n", "one\ntwo\n"));
    assert_eq!(of("job 2").output.trim(), folder.to_string_lossy());
}

/// Each of two jobs waits for the other: one after the other they would wait for ever.
#[test]
fn jobs_run_beside_each_other() {
    let folder = folder();
    let folder = folder.path();
    let meet = |own: &str, other: &str| {
        format!("mkfifo {own} 2>/dev/null; mkfifo {other} 2>/dev/null; echo > {own} & cat {other}; wait")
    };
    let jobs = vec![job("a", &meet("x", "y"), folder), job("b", &meet("y", "x"), folder)];
    let done = runner::run(jobs, 2, &folder.join("output"), &AtomicBool::new(false), |_| ()).unwrap();
    assert!(done.iter().all(|done| done.outcome == Outcome::Passed), "{done:?}");
}

#[test]
fn a_signal_ends_what_runs_and_starts_nothing() {
    let folder = folder();
    let folder = folder.path();
    let is_over = AtomicBool::new(false);
    let jobs = ["exit 0", "sleep 100000", "sleep 100000"];
    let jobs = jobs.iter().enumerate().map(|(n, script)| job(&format!("job {n}"), script, folder)).collect();
    let done = runner::run(jobs, 1, &folder.join("output"), &is_over, |_| {
        is_over.store(true, Ordering::Relaxed);
    });
    let done = done.unwrap();
    assert_eq!(done[0].outcome, Outcome::Passed);
    assert!(done.len() < 3 && done[1..].iter().all(|done| done.outcome == Outcome::Ended), "{done:?}");
}

#[test]
fn the_list_of_long_programs_names_what_there_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    assert_eq!(runner::unknown_rows(&Tree::read(root).unwrap()), [""; 0]);
}

#[test]
fn the_table_says_what_did_not_run() {
    let row = Row {
        title: "tests".to_owned(),
        programs: 2,
        counts: Counts { passed: 5, failed: 0, ignored: 1 },
        not_run: vec!["low c: there is no `cc`".to_owned()],
        ..Row::default()
    };
    let text = table(&[row], Duration::from_secs(9));
    let cells = |name: &str| -> Vec<String> {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().skip(1).map(str::to_owned).collect()
    };
    assert_eq!(cells("tests")[..5], ["2", "5", "0", "1", "1"]);
    assert_eq!(cells("tests"), cells("all"));
    assert!(text.contains("\nnot run: low c: there is no `cc`\n"), "{text}");
    assert!(elsewhere().contains("\nnot part of it: cargo xtask fuzz: "));
}

#[test]
fn a_commit_decides_where_explorations_begin() {
    assert_eq!(seed_of("00000ff1234567\n"), Some(255));
    assert_eq!((seed_of("no commit"), seed_of("")), (None, None));
    let set = |sizes: Sizes, package, is_explored| -> Vec<String> {
        let variables = sizes.variables(package, is_explored);
        variables.into_iter().map(|(name, value)| format!("{name}={value}")).collect()
    };
    assert_eq!(set(Sizes::Quick(7), "terrane-fuzz", false), ["TERRANE_FUZZ_SEED=7"]);
    assert_eq!(set(Sizes::Quick(7), "terrane-engine", true), ["TERRANE_SCHEDULES=500"]);
    assert_eq!(set(Sizes::Quick(7), "terrane-cli", false), ["TERRANE_KILLS=3"]);
    assert!(set(Sizes::Quick(7), "terrane-table", false).is_empty());
    assert!(set(Sizes::Full(7), "terrane-engine", true).is_empty());
    let full = set(Sizes::Full(7), "terrane-sim", false);
    assert_eq!(full, ["TERRANE_SIM_START=7", "TERRANE_SCHEDULES_START=7"]);
    let quick = set(Sizes::Quick(7), "terrane-sim", false);
    for size in ["TERRANE_SIM_SEEDS=80", "TERRANE_SIM_HISTORIES=2"] {
        assert!(quick.contains(&size.to_owned()), "{quick:?}");
    }
}
