//! Work that callers start or stop: flush and compaction, compaction of named files, pauses, changed options.

pub(crate) mod compact_files;
pub(crate) mod flush_compact;
pub(crate) mod manual_compaction;
pub(crate) mod set_options;
