//! The tests of the crate, a module for each subject: one program, because linking many takes longer than
//! running them.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod beside;
mod collation;
mod common;
mod conformance;
mod current;
mod damage;
mod decay;
mod faults;
mod flushed_all;
mod golden;
mod limits;
mod manifest;
mod misread;
mod model;
mod pins;
mod values;
mod void_marks;
mod without;
