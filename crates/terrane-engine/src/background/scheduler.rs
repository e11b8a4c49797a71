//! The scheduler: the state of the pool of workers (`schedule.rs`), its callers and jobs (`pool.rs`), claims
//! on levels (`claiming.rs`), flushes and compactions of ranges that are held off (`flush_hold.rs`,
//! `range_pause.rs`). It knows no job: workers (`workers.rs`) look for them and run them.

pub(crate) use claiming::Choice;
pub(crate) use pool::Scheduler;
pub(crate) use schedule::{Running, Schedule};

mod claiming;
pub(crate) mod flush_hold;
mod pool;
mod range_pause;
mod schedule;
#[cfg(test)]
mod tests;
