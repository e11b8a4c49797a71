//! The tests of the crate, a module for each subject: one program, because linking many takes longer than
//! running them.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod batch;
mod conformance;
mod damage;
mod faulty;
mod metered;
mod pm;
mod posix;
mod power;
mod sectors;
mod support;
