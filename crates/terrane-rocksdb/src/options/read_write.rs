//! Options of reads and writes.

use crate::ffi::failure::{Failure, Result};
use crate::ffi::option_fields::Changed;
use crate::generated::read_options::ReadOptionsFields;
use crate::generated::write_options::WriteOptionsFields;
use crate::options::ignored::IgnoredInCalls;
use crate::options::read_object_options::ReadObjectOptions;
use crate::options::snapshot::SnapshotHandle;

/// Options of reads. Bounds are copied when they are set.
#[derive(Clone, Default)]
pub(crate) struct ReadOptions {
    pub(crate) fields: ReadOptionsFields,
    pub(crate) snapshot: Option<terrane::Snapshot>,
    pub(crate) lower: Option<Vec<u8>>,
    pub(crate) upper: Option<Vec<u8>>,
    pub(crate) objects: ReadObjectOptions,
    /// The newest timestamp of the user that is seen.
    pub(crate) timestamp: Option<Vec<u8>>,
    /// For iterators: the oldest one, all versions from which on show.
    pub(crate) start_timestamp: Option<Vec<u8>>,
    /// The options that are set and have no effect, found when one is set.
    ignored: u64,
    /// The answer of [`ReadOptions::is_special`], found when an option is set: a read only looks here.
    is_special: bool,
}

impl Changed for ReadOptions {
    fn changed(&mut self) {
        self.ignored = self.ignored();
        self.is_special = self.asks_more();
    }
}

impl ReadOptions {
    /// The options that are set and have no effect.
    #[inline]
    pub(crate) fn kept_ignored(&self) -> u64 {
        debug_assert_eq!(self.ignored, self.ignored(), "a setter has not said that it changed the options");
        self.ignored
    }

    /// Returns true if a read is another one than of the present state, or something is to be said of its
    /// options.
    #[inline]
    pub(crate) fn is_special(&self) -> bool {
        debug_assert_eq!(
            self.is_special,
            self.asks_more(),
            "a setter has not said that it changed the options"
        );
        self.is_special
    }

    fn asks_more(&self) -> bool {
        self.is_of_the_past() || self.ignored != 0
    }

    /// Returns true if another state is asked for than the present one.
    pub(crate) fn is_of_the_past(&self) -> bool {
        self.snapshot.is_some() || self.timestamp.is_some()
    }

    /// Refuses the oldest timestamp that shows where an iterator would not obey it.
    pub(crate) fn refuse_start(&self) -> Result<()> {
        if self.start_timestamp.is_none() {
            return Ok(());
        }
        if self.timestamp.is_none() {
            return Err(Failure::invalid("iter_start_ts without a timestamp: set it too"));
        }
        if self.fields.tailing != 0 {
            return Err(Failure::not_implemented("tailing with iter_start_ts: refresh the iterator"));
        }
        Ok(())
    }
}

/// Options of writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteOptions {
    pub(crate) fields: WriteOptionsFields,
}

impl Changed for WriteOptions {}

export! {
    fn rocksdb_readoptions_create() -> Option<Box<ReadOptions>> {
        Some(Box::default())
    }

    fn rocksdb_readoptions_destroy(options: Option<Box<ReadOptions>>) {
        drop(options);
    }

    fn rocksdb_readoptions_set_snapshot(
        options: Option<&mut ReadOptions>,
        snapshot: Option<&SnapshotHandle<'_>>,
    ) {
        if let Some(options) = options {
            options.snapshot = snapshot.and_then(SnapshotHandle::snapshot);
            options.changed();
        }
    }

    fn rocksdb_readoptions_set_iterate_upper_bound(
        options: Option<&mut ReadOptions>,
        key: BytesOrNull<'_>,
        len: usize,
    ) {
        if let Some(options) = options {
            options.upper = key.map(<[u8]>::to_vec);
        }
    }

    fn rocksdb_readoptions_set_iterate_lower_bound(
        options: Option<&mut ReadOptions>,
        key: BytesOrNull<'_>,
        len: usize,
    ) {
        if let Some(options) = options {
            options.lower = key.map(<[u8]>::to_vec);
        }
    }

    fn rocksdb_readoptions_set_timestamp(
        options: Option<&mut ReadOptions>,
        timestamp: BytesOrNull<'_>,
        len: usize,
    ) {
        if let Some(options) = options {
            options.timestamp = timestamp.map(<[u8]>::to_vec);
            options.changed();
        }
    }

    fn rocksdb_readoptions_set_iter_start_ts(
        options: Option<&mut ReadOptions>,
        timestamp: BytesOrNull<'_>,
        len: usize,
    ) {
        if let Some(options) = options {
            options.start_timestamp = timestamp.map(<[u8]>::to_vec);
        }
    }

    fn rocksdb_writeoptions_create() -> Option<Box<WriteOptions>> {
        Some(Box::default())
    }

    fn rocksdb_writeoptions_destroy(options: Option<Box<WriteOptions>>) {
        drop(options);
    }

    fn rocksdb_writeoptions_disable_WAL(options: Option<&mut WriteOptions>, disable: i32) {
        if let Some(options) = options {
            options.fields.disable_wal = u8::from(disable != 0);
        }
    }
}
