//! The measuring bench: workloads, engines, measurement and reports, for `terrane bench`.
//!
//! The way of a run: a [`plan`] (flags or TOML) → [`mod@run`]: for each repetition, scenario and engine in
//! turns a [`child`] process → [`engine`] opened, operations made by [`generate`] (or a trace) → done by the
//! threads of [`drive`] → measured by [`measure`] → sent back as [`report::model`] → table, JSON lines, HTML,
//! comparison.

pub mod child;
pub mod drive;
pub mod engine;
pub mod error;
pub mod files;
pub mod generate;
pub mod measure;
pub mod plan;
pub mod report;
pub mod run;
pub mod trace;

pub use error::{Error, Result};
