//! Snapshots.

use crate::db::Database;
use crate::options::snapshot::SnapshotHandle;

export! {
    fn rocksdb_create_snapshot(database: Option<&Database>) -> Option<Box<SnapshotHandle<'static>>> {
        Some(Box::new(SnapshotHandle::Own(database?.view().snapshot())))
    }

    fn rocksdb_release_snapshot(_database: Option<&Database>, snapshot: Option<Box<SnapshotHandle<'_>>>) {
        drop(snapshot);
    }

    fn rocksdb_snapshot_get_sequence_number(snapshot: Option<&SnapshotHandle<'_>>) -> u64 {
        snapshot.and_then(SnapshotHandle::snapshot).map_or(0, |snapshot| snapshot.seq().0)
    }

    fn rocksdb_get_latest_sequence_number(database: Option<&Database>) -> u64 {
        database.map_or(0, |database| database.view().snapshot().seq().0)
    }
}
