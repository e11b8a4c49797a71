//! The memory ceiling: one arbiter divides it between writers, the cache, and jobs.
//!
//! `budget.rs` has the sizes in force, `decide.rs` says what each part gets (a pure function), `arbiter.rs`
//! samples, decides and applies, `writers.rs` sums what writers use, `ceiling.rs` is what the engine asks of
//! the arbiter.

pub(crate) mod arbiter;
pub(crate) mod budget;
mod ceiling;
mod decide;
pub(crate) mod writers;
