//! Options of compactions of ranges and of named files.

use crate::ffi::option_fields::Changed;
use crate::generated::compact_files_options::CompactFilesOptionsFields;
use crate::generated::compact_range_options::CompactRangeOptionsFields;

/// Options of a compaction of a range.
#[derive(Clone, Debug, Default)]
pub(crate) struct CompactRangeOptions {
    pub(crate) fields: CompactRangeOptionsFields,
    /// Versions of keys below this timestamp are not read any more.
    pub(crate) history_low: Option<Vec<u8>>,
}

impl Changed for CompactRangeOptions {}

/// Options of a compaction of named files.
#[derive(Clone, Debug, Default)]
pub(crate) struct CompactFilesOptions {
    pub(crate) fields: CompactFilesOptionsFields,
    /// True if there is a flag by which the caller would stop the compaction.
    pub(crate) has_flag: bool,
}

impl Changed for CompactFilesOptions {}

impl CompactFilesOptions {
    /// Returns true if `rocksdb_compactfilesoptions_set_canceled` was called, the one setter without a field.
    pub(crate) fn is_noted(&self, function: &str) -> bool {
        debug_assert!(function.ends_with("set_canceled"), "{function} has no note");
        self.has_flag
    }
}

export! {
    fn rocksdb_compaction_options_create() -> Option<Box<CompactFilesOptions>> {
        Some(Box::default())
    }

    fn rocksdb_compaction_options_destroy(options: Option<Box<CompactFilesOptions>>) {
        drop(options);
    }

    fn rocksdb_compactoptions_create() -> Option<Box<CompactRangeOptions>> {
        Some(Box::default())
    }

    fn rocksdb_compactoptions_destroy(options: Option<Box<CompactRangeOptions>>) {
        drop(options);
    }

    fn rocksdb_compactoptions_set_full_history_ts_low(
        options: Option<&mut CompactRangeOptions>,
        low: Bytes<'_>,
        len: usize,
    ) {
        if let Some(options) = options {
            options.history_low = (!low.is_empty()).then(|| low.to_vec());
        }
    }
}
