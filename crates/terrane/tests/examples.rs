//! Every example of the tour runs to its end.
#![allow(clippy::unwrap_used, reason = "an example that fails ends the test")]

#[path = "../examples/changes.rs"]
mod changes;

#[path = "../examples/checkpoint.rs"]
mod checkpoint;

#[path = "../examples/pressure.rs"]
mod pressure;

#[test]
fn changes_runs() {
    changes::main().unwrap();
}

#[test]
fn pressure_runs() {
    pressure::main().unwrap();
}

#[test]
fn checkpoint_runs() {
    checkpoint::main().unwrap();
}
