//! Options of reads and writes.

use super::more_of_reads::MoreOfReads;
use crate::border::Bytes;
use crate::database::SnapshotHandle;
use crate::generated::read_options::ReadOptionsKnobs;
use crate::generated::write_options::WriteOptionsKnobs;

/// Options of reads. Bounds are copied when they are set.
#[derive(Clone, Default)]
pub(crate) struct ReadOptions {
    pub(crate) knobs: ReadOptionsKnobs,
    pub(crate) snapshot: Option<terrane::Snapshot>,
    pub(crate) lower: Option<Vec<u8>>,
    pub(crate) upper: Option<Vec<u8>>,
    pub(crate) more: MoreOfReads,
}

/// Options of writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteOptions {
    pub(crate) knobs: WriteOptionsKnobs,
}

/// A bound as it is set: none for null.
fn bound(key: Bytes<'_>, len: usize) -> Option<Vec<u8>> {
    (!key.is_null()).then(|| key.of(len).to_vec())
}

export! {
    fn rocksdb_readoptions_create() -> Option<Box<ReadOptions>> {
        Some(Box::default())
    }

    fn rocksdb_readoptions_destroy(options: Option<Box<ReadOptions>>) {
        drop(options);
    }

    fn rocksdb_readoptions_set_snapshot(
        options: Option<&mut ReadOptions>,
        snapshot: Option<&SnapshotHandle>,
    ) {
        if let Some(options) = options {
            options.snapshot = snapshot.and_then(SnapshotHandle::snapshot);
        }
    }

    fn rocksdb_readoptions_set_iterate_upper_bound(
        options: Option<&mut ReadOptions>,
        key: Bytes<'_>,
        len: usize,
    ) {
        if let Some(options) = options {
            options.upper = bound(key, len);
        }
    }

    fn rocksdb_readoptions_set_iterate_lower_bound(
        options: Option<&mut ReadOptions>,
        key: Bytes<'_>,
        len: usize,
    ) {
        if let Some(options) = options {
            options.lower = bound(key, len);
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
            options.knobs.disable_wal = u8::from(disable != 0);
        }
    }
}
