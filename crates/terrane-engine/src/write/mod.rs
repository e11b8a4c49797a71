//! The write way: a batch is admitted, committed, indexed, and accounted for.
//!
//! `commit.rs` has the steps, `point.rs` makes a batch of one record; `throttle/` says how fast writers may
//! go, `deadline.rs` how long one may be held back, `index.rs` hands committed records to memtables.

pub(crate) mod commit;
pub(crate) mod deadline;
pub(crate) mod index;
mod point;
pub(crate) mod throttle;
