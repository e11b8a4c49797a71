//! The tests of the crate, a module for each subject: one program, because linking many takes longer than
//! running them.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod chunks;
mod debt;
mod divide;
mod ended_parts;
mod failure;
mod folding;
mod fragments;
mod hostile;
mod many_runs;
mod merge;
mod model;
mod origin_reads;
mod requests;
mod room;
mod script;
mod scripts;
mod support;
mod values;
mod versions;
