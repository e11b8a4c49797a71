//! Every example of the tour runs to its end.
#![allow(clippy::unwrap_used, reason = "an example that fails ends the test")]

#[path = "../examples/bulk.rs"]
mod bulk;

#[path = "../examples/checkpoint.rs"]
mod checkpoint;

#[path = "../examples/key_orders.rs"]
mod key_orders;

#[path = "../examples/prefixes.rs"]
mod prefixes;

#[path = "../examples/pressure.rs"]
mod pressure;

#[path = "../examples/statistics.rs"]
mod statistics;

#[test]
fn statistics_runs() {
    statistics::main().unwrap();
}

#[test]
fn pressure_runs() {
    pressure::main().unwrap();
}

#[test]
fn key_orders_runs() {
    key_orders::main().unwrap();
}

#[test]
fn prefixes_runs() {
    prefixes::main().unwrap();
}

#[test]
fn checkpoint_runs() {
    checkpoint::main().unwrap();
}

#[test]
fn bulk_runs() {
    bulk::main().unwrap();
}
