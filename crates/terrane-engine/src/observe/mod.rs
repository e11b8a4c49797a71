//! What can be seen of a database: metrics (`stats/`), listeners (`events/`), background jobs (`job_trace.rs`,
//! `job_report.rs`), slow operations (`slow_log.rs`), bytes to and from the device (`io_accounting.rs`), the shape of the
//! trees (`shape.rs`, `extents.rs`), verification (`check.rs`).

pub(crate) mod check;
pub(crate) mod events;
pub(crate) mod extents;
pub(crate) mod io_accounting;
pub(crate) mod job_report;
pub(crate) mod job_trace;
pub(crate) mod shape;
pub(crate) mod slow_log;
pub(crate) mod stats;
