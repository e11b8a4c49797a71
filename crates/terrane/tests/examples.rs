//! Every example of the tour runs to its end.
#![allow(clippy::unwrap_used, reason = "an example that fails ends the test")]

#[path = "../examples/checkpoint.rs"]
mod checkpoint;

#[path = "../examples/pressure.rs"]
mod pressure;

#[test]
fn pressure_runs() {
    pressure::main().unwrap();
}

#[test]
fn checkpoint_runs() {
    checkpoint::main().unwrap();
}

#[path = "../examples/backup.rs"]
mod backup;

#[test]
fn backup_runs() {
    backup::main().unwrap();
}

#[path = "../examples/in_memory.rs"]
mod in_memory;

#[test]
fn in_memory_runs() {
    in_memory::main().unwrap();
}

#[path = "../examples/follower.rs"]
mod follower;

#[test]
fn follower_runs() {
    follower::main().unwrap();
}
