//! The suites: which steps a tree has, and that a step cannot run for ever.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use xtask::suites::{self, run_within};
use xtask::tree::Tree;

#[test]
fn the_test_suite_finds_explorations_and_benches() {
    let tree = Tree::of([("crates/low/tests/shuttle.rs", ""), ("crates/low/benches/ring.rs", "")]);
    let commands: Vec<String> =
        suites::test_steps(&tree).iter().map(|step| step.arguments.join(" ")).collect();
    assert_eq!(
        commands,
        [
            "test --workspace",
            "test -p low --features shuttle --test shuttle",
            "test -p low --bench ring -- --test",
        ]
    );
}

#[test]
fn a_step_beyond_its_limit_is_ended_with_all_that_it_started() {
    let mut command = Command::new("sh");
    // The pipe closes when the last process that holds it has gone.
    let (mut reader, writer) = std::io::pipe().unwrap();
    command.args(["-c", "sleep 1000 & sleep 1000"]).stdout(writer).stdin(Stdio::null());
    let refused = run_within(&mut command, Duration::from_millis(100)).unwrap_err();
    assert!(refused.contains("its limit"), "{refused}");
    drop(command);
    assert_eq!(reader.read(&mut [0; 1]).unwrap(), 0);
}

#[test]
fn a_step_within_its_limit_gives_its_status() {
    let status =
        |script: &str| run_within(Command::new("sh").args(["-c", script]), Duration::from_secs(600)).unwrap();
    assert!(status("exit 0").success());
    assert_eq!(status("exit 3").code(), Some(3));
}
