//! The tests of the crate, a module for each subject: one program, because linking many takes longer than
//! running them. What counts for a whole process, or needs a feature, is a program of its own beside it.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod adapt;
mod announced;
mod asked;
mod async_writes;
mod backup;
mod behind;
mod checkpoint;
mod concurrent;
mod deadlines;
mod degradation;
mod elsewhere;
mod faults;
mod follow;
mod footprint;
mod forged;
mod found;
mod hostile;
mod large_batches;
mod large_copies;
mod limits;
mod lost;
mod multi_get;
mod pacing;
mod pool_again;
mod power;
mod power_pm;
mod repair;
mod repair_origin;
mod repair_parts;
mod repair_table;
mod repair_unlisted;
mod replay_filter;
mod rest;
mod rot;
mod row_cache;
mod set_aside;
mod shared_page;
mod space;
mod spares;
mod standstill;
mod support;
mod threads;
mod trims;
mod warm;
