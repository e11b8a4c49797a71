//! The interface to either the real synchronisation primitives or those of schedule explorers.
//!
//! Product code imports its locks, its spin hints and the atomics that threads publish through from here and
//! from nowhere else, so that the same source runs under each of:
//! * `real`: `parking_lot` and `std`, re-exported. Every build for use.
//! * `shuttled` (feature `shuttle`): the primitives of the crate `shuttle`, for tests of single parts.
//! * `scheduled` (feature `schedule`): the real primitives behind points ([`points`]) at which an explorer
//!   chooses the thread that runs next, or at which threads are delayed at random. For the whole engine, and
//!   in `cargo xtask test` for all tests, most of which have no explorer.

pub mod points;
#[cfg(not(any(feature = "shuttle", feature = "schedule")))]
mod real;
#[cfg(all(feature = "schedule", not(feature = "shuttle")))]
mod scheduled;
#[cfg(feature = "shuttle")]
mod shuttled;
mod thread_number;

pub use thread_number::thread_number;

#[cfg(not(any(feature = "shuttle", feature = "schedule")))]
pub use real::*;
#[cfg(all(feature = "schedule", not(feature = "shuttle")))]
pub use scheduled::*;
#[cfg(feature = "shuttle")]
pub use shuttled::*;
