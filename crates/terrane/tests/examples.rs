//! Every example of the tour runs to its end.
#![allow(clippy::unwrap_used, reason = "an example that fails ends the test")]

#[path = "../examples/checkpoint.rs"]
mod checkpoint;

#[path = "../examples/pressure.rs"]
mod pressure;

#[path = "../examples/statistics.rs"]
mod statistics;

#[path = "../examples/live_readers.rs"]
mod live_readers;

#[path = "../examples/listeners.rs"]
mod listeners;

#[test]
fn listeners_runs() {
    listeners::main().unwrap();
}

#[test]
fn live_readers_runs() {
    live_readers::main().unwrap();
}

#[test]
fn statistics_runs() {
    statistics::main().unwrap();
}

#[test]
fn pressure_runs() {
    pressure::main().unwrap();
}

#[test]
fn checkpoint_runs() {
    checkpoint::main().unwrap();
}
