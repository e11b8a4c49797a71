//! The tests of the crate, a module for each subject: one program, because linking many takes longer than
//! running them.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod block;
mod codec;
mod collation;
mod common;
mod encryption;
mod external;
mod filter;
mod golden;
mod hostile;
mod mend;
mod metrics_page;
mod pmem_region;
mod pointers;
mod range_deletes;
mod rank;
mod segment;
