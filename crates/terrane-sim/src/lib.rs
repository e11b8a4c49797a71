//! The reference model of a database and random histories that hold the engine against it.
//!
//! * [`model`]: what a database should answer: sorted maps with versions. [`history`]: random operations, done on
//!   both, every answer compared. A failure names the seed and the step.
#![forbid(unsafe_code)]

pub mod history;
pub mod model;

pub use history::{History, Settings};
pub use model::Model;
