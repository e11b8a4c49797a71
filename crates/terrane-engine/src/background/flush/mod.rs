//! From memory to the levels: `switch.rs` freezes memtables, `merge_frozen.rs` makes generations of the
//! global index of them, `flush_job.rs` brings the oldest generation into the levels, and `durability.rs`
//! says whether the journal must be durable before. `request.rs` asks for a flush. `early.rs` and
//! `scan_trigger.rs` find memtables that are to go before they are full.

mod durability;
mod early;
mod flush_job;
pub(crate) mod merge_frozen;
mod request;
mod scan_trigger;
pub(crate) mod switch;

pub(crate) use flush_job::FlushJob;
