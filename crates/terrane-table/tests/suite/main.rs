//! The tests of the crate, a module for each subject: one program, because linking many takes longer than
//! running them. What counts for a whole process, or needs a feature, is a program of its own beside it.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod cache_transfer;
mod fresh;
mod hostile;
mod load_many;
mod merge;
mod model;
mod pointers;
mod probe_many;
mod row_cache;
mod support;
mod swip;
mod value_cursors;
mod writer;
