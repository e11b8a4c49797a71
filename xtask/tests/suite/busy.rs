//! Tests on a busy machine: the arguments, the busy processes, and the table of failures.
#![allow(clippy::disallowed_methods, reason = "a test, which looks at processes")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use xtask::busy::{Busy, Findings, Request};
use xtask::outcome::Outcome;
use xtask::runner::{Done, Job};

#[test]
fn a_request_says_how_often_and_which_programs() {
    assert_eq!(Request::of(&[]), Some(Request { repeat: 10, only: None, together: false }));
    let only = Some("terrane-sim".to_owned());
    assert_eq!(
        Request::of(&["--only", "terrane-sim", "--repeat", "3", "--together"]),
        Some(Request { repeat: 3, only, together: true })
    );
    for wrong in [&["--repeat"][..], &["--repeat", "0"], &["--repeat", "x"], &["--only"], &["more"]] {
        assert_eq!(Request::of(wrong), None, "{wrong:?}");
    }
}

#[test]
fn a_busy_process_ends_with_its_handle() {
    let busy = Busy::start().expect("there is a shell");
    let process = format!("/proc/{}", busy.id());
    assert!(Path::new(&process).exists());
    drop(busy);
    assert!(!Path::new(&process).exists());
}

fn done(name: &str, outcome: Outcome, output: &str, seconds: u64) -> Done {
    let job = Job {
        step: 0,
        name: name.to_owned(),
        program: PathBuf::new(),
        arguments: Vec::new(),
        folder: PathBuf::new(),
        variables: Vec::new(),
        again: String::new(),
        limit: Duration::ZERO,
    };
    Done { job, outcome, output: output.to_owned(), took: Duration::from_secs(seconds) }
}

#[test]
fn the_table_has_a_row_for_each_test_that_failed() {
    let failed = || Outcome::Failed("exit status: 101".to_owned());
    let output = "\nfailures:\n    one::fails\n\ntest result: FAILED.";
    let mut findings = Findings::default();
    findings.count(1, &done("low suite", Outcome::Passed, "", 7));
    findings.count(1, &done("high suite", failed(), output, 1));
    findings.count(2, &done("high suite", Outcome::Ended, "", 1));
    assert_eq!(findings.failed(), 1);
    findings.count(2, &done("low suite", Outcome::Hung, "", 90));
    findings.count(3, &done("high suite", failed(), output, 2));
    assert_eq!(findings.failed(), 2);
    let table = findings.table();
    assert!(table.contains("| high suite | one::fails | 2 | 1, 3 |"), "{table}");
    assert!(table.contains("| low suite | (Hung) | 1 | 2 |"), "{table}");
    assert!(table.contains("4 runs, 2 tests failed; the longest: low suite 90 s, high suite 2 s"), "{table}");
}
