//! Background work: `scheduler.rs` hands the most urgent job (`job.rs`) to a free worker (`workers.rs`).
//!
//! Jobs: flushes (`flush/`), compactions (`compaction/`), journal segments (`journal/`), work for idle times (`idle.rs`),
//! scrubbing (`scrub.rs`). `retry.rs` remembers failures, `quarantine.rs` damaged inputs.

pub(crate) mod compaction;
pub(crate) mod flush;
pub(crate) mod idle;
pub(crate) mod job;
pub(crate) mod job_report;
pub(crate) mod job_trace;
pub(crate) mod journal;
pub(crate) mod quarantine;
pub(crate) mod retry;
pub(crate) mod scheduler;
pub(crate) mod scrub;
pub(crate) mod workers;
