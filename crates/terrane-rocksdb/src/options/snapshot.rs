//! Handles of snapshots, which read options hold.

use crate::ffi::types::Lent;

/// A handle of a snapshot. Options of reads that it was set in hold the snapshot itself.
pub(crate) enum SnapshotHandle<'a> {
    /// One by itself.
    Own(terrane::Snapshot),
    /// That of a transaction, if it has one; callers free the handle as plain memory.
    Lent(Option<Lent<'a, terrane::Snapshot>>),
}

impl SnapshotHandle<'_> {
    /// The snapshot.
    pub(crate) fn snapshot(&self) -> Option<terrane::Snapshot> {
        match self {
            SnapshotHandle::Own(snapshot) => Some(snapshot.clone()),
            SnapshotHandle::Lent(lent) => lent.as_ref().map(|lent| lent.held().as_ref().clone()),
        }
    }
}
