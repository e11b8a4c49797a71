//! The tests of the crate, a module for each subject: one program, because linking many takes longer than
//! running them. What counts for a whole process, or needs a feature, is a program of its own beside it.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod busy;
mod documents;
mod generators;
mod runner;
mod suites;
mod tidy;
mod words;
