//! Options of compactions of ranges.

use crate::generated::compact_range_options::CompactRangeOptionsFields;

/// Options of a compaction of a range.
#[derive(Clone, Debug, Default)]
pub(crate) struct CompactRangeOptions {
    pub(crate) fields: CompactRangeOptionsFields,
    /// Versions of keys below this timestamp are not read any more.
    pub(crate) history_low: Option<Vec<u8>>,
}

export! {
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
