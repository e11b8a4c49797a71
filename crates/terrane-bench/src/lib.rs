//! The measuring bench: workloads, engines, measurement and reports, for `terrane bench`.
//!
//! The way of a run: a [`plan`] (flags or TOML) → for each scenario, repetition and engine in turns a `child` process →
//! [`engine`] opened, operations made by [`generate`] (or a `trace`) → done by the `drive` threads → measured → sent back
//! as [`report::model`] → table, JSON lines, HTML, comparison.

pub mod engine;
pub mod error;
pub mod generate;
pub mod plan;
pub mod report;
pub mod trace;

mod old_report;
mod old_run;
mod old_workload;

pub use error::{Error, Result};
pub use old_report::Report;
pub use old_run::{Plan, run};
pub use old_workload::Workload;
