//! Observation of a running database: metrics (`stats/`), listeners (`events/`), slow operations
//! (`slow_log.rs`), bytes to and from the device (`io_accounting.rs`), the page for other processes
//! (`metrics_page.rs`); and the words for it: kinds of jobs, extents, findings. `ticker.rs`: the thread that
//! does something once in an interval.

pub(crate) mod events;
pub(crate) mod extent_summary;
pub(crate) mod findings;
pub(crate) mod io_accounting;
pub(crate) mod job_kind;
pub(crate) mod metrics_page;
pub(crate) mod slow_log;
pub(crate) mod stats;
pub(crate) mod ticker;
