//! Snapshots.

use super::Database;

/// A handle of a snapshot. Options of reads that it was set in hold the snapshot itself.
pub(crate) struct SnapshotHandle {
    pub(crate) snapshot: terrane::Snapshot,
}

export! {
    fn rocksdb_create_snapshot(database: Option<&Database>) -> Option<Box<SnapshotHandle>> {
        Some(Box::new(SnapshotHandle { snapshot: database?.db.snapshot() }))
    }

    fn rocksdb_release_snapshot(_database: Option<&Database>, snapshot: Option<Box<SnapshotHandle>>) {
        drop(snapshot);
    }

    fn rocksdb_snapshot_get_sequence_number(snapshot: Option<&SnapshotHandle>) -> u64 {
        snapshot.map_or(0, |snapshot| snapshot.snapshot.seq().0)
    }

    fn rocksdb_get_latest_sequence_number(database: Option<&Database>) -> u64 {
        database.map_or(0, |database| database.db.snapshot().seq().0)
    }
}
