//! The tests of the crate, a module for each subject.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

#[path = "../support/mod.rs"]
mod support;

mod crash;
mod emulated;
mod free_runs;
mod hostile;
mod litmus;
mod model;
mod omissions;
mod zones;
