//! Flags by which callers ask a compaction to stop.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::options::CompactFilesOptions;

/// A flag; callers may set it from any thread.
#[repr(transparent)]
#[derive(Debug, Default)]
pub(crate) struct Cancelled(AtomicU8);

export! {
    fn rocksdb_compaction_options_canceled_create() -> Option<Box<Cancelled>> {
        Some(Box::default())
    }

    fn rocksdb_compaction_options_canceled_destroy(flag: Option<Box<Cancelled>>) {
        drop(flag);
    }

    fn rocksdb_compaction_options_canceled_set(flag: Option<&Cancelled>, is_set: u8) {
        if let Some(flag) = flag {
            flag.0.store(is_set, Ordering::Relaxed);
        }
    }

    fn rocksdb_compaction_options_set_canceled(
        options: Option<&mut CompactFilesOptions>,
        flag: Option<&Cancelled>,
    ) {
        if let Some(options) = options {
            options.has_flag = flag.is_some();
        }
    }
}
