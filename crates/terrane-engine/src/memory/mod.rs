//! The memory ceiling: `budget.rs` has the sizes in force, `arbiter.rs` divides what is shared between writers and the
//! cache, `job_lease.rs` lends the memory of jobs to the cache, `write_share.rs` shrinks the share of writers while reads
//! miss the cache, `trim.rs` gives freed memory back to the system.

pub(crate) mod arbiter;
pub(crate) mod budget;
pub(crate) mod job_lease;
pub(crate) mod trim;
pub(crate) mod write_share;
