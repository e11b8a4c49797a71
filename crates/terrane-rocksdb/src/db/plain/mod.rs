//! Operations on keys outside transactions: get, multi-get, writes, sizes, and the same with user timestamps.

pub(crate) mod get;
pub(crate) mod multi_get;
pub(crate) mod pinned;
pub(crate) mod pinned_multi_get;
pub(crate) mod sizes;
pub(crate) mod timestamped;
pub(crate) mod write;
