//! The tests of the crate, a module for each subject: one program, because linking many takes longer than
//! running them. What counts for a whole process, or needs a feature, is a program of its own beside it.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod common;
mod conformance;
mod crash;
mod faults;
mod full_device;
mod hostile;
mod pm;
mod rewrite;
mod sizes;
mod tickets;
