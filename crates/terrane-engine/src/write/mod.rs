//! The write way: a batch is admitted, committed, indexed, and accounted for.
//!
//! `commit.rs` has the steps; `throttle/` says how fast writers may go, `deadline.rs` how long one may be held back,
//! `reentrancy.rs` on which threads writes are refused, `index.rs` hands committed records to memtables.

pub(crate) mod commit;
pub(crate) mod deadline;
pub(crate) mod index;
pub(crate) mod throttle;
