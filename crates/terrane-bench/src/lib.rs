//! Workloads and what they measured, for `terrane bench`.
//!
//! * [`workload`]: what is done, key by key, reproducible from a seed. [`mod@run`]: does it with some threads and
//!   measures. [`report`]: the figures as text.
#![forbid(unsafe_code)]

pub mod report;
pub mod run;
pub mod workload;

pub use report::Report;
pub use run::{Plan, run};
pub use workload::Workload;
