//! Bulk changes, which do not pass through memtables: extents come in (`ingest/`) and go (`drop_extents.rs`)
//! whole; `estimate.rs` says how much lies in a range.

pub(crate) mod drop_extents;
pub(crate) mod estimate;
pub(crate) mod ingest;
