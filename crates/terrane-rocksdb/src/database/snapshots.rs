//! Snapshots.

use super::Database;
use crate::border::Lent;

/// A handle of a snapshot. Options of reads that it was set in hold the snapshot itself.
pub(crate) enum SnapshotHandle {
    /// One by itself.
    Own(terrane::Snapshot),
    /// That of a transaction, if it has one; callers free the handle as plain memory.
    Lent(Option<Lent<terrane::Snapshot>>),
}

impl SnapshotHandle {
    /// The snapshot.
    pub(crate) fn snapshot(&self) -> Option<terrane::Snapshot> {
        match self {
            SnapshotHandle::Own(snapshot) => Some(snapshot.clone()),
            SnapshotHandle::Lent(lent) => lent.as_ref().map(|lent| lent.held().as_ref().clone()),
        }
    }
}

export! {
    fn rocksdb_create_snapshot(database: Option<&Database>) -> Option<Box<SnapshotHandle>> {
        Some(Box::new(SnapshotHandle::Own(database?.view().snapshot())))
    }

    fn rocksdb_release_snapshot(_database: Option<&Database>, snapshot: Option<Box<SnapshotHandle>>) {
        drop(snapshot);
    }

    fn rocksdb_snapshot_get_sequence_number(snapshot: Option<&SnapshotHandle>) -> u64 {
        snapshot.and_then(SnapshotHandle::snapshot).map_or(0, |snapshot| snapshot.seq().0)
    }

    fn rocksdb_get_latest_sequence_number(database: Option<&Database>) -> u64 {
        database.map_or(0, |database| database.view().snapshot().seq().0)
    }
}
