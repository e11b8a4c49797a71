//! The tests of the crate, a module for each subject: one program, because linking many takes longer than
//! running them.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod adopt;
mod conformance;
mod copy;
mod local;
mod model;
