//! Reports of a database about itself: properties, statistics text, memory use, counters of the calling
//! thread.

pub(crate) mod memory_usage;
pub(crate) mod perf_context;
pub(crate) mod properties;
pub(crate) mod stats_text;
