//! The tests of the crate, a module for each subject: one program, because linking many takes longer than
//! running them.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod bench;
mod beside;
mod care;
mod clones;
mod command;
mod common;
#[cfg(feature = "grpc")]
mod compactors;
mod copy;
mod cost;
mod deployment;
mod exit_codes;
mod functions;
mod help;
mod import;
mod interchange;
mod kill_import;
#[cfg(feature = "grpc")]
mod kill_journal;
mod mended;
mod operands;
mod orders;
mod parsers;
mod progress;
#[cfg(feature = "grpc")]
mod serve;
mod shown;
mod signals;
mod text;
mod top;
