//! A write that the device has no room for.
//!
//! Much of the space may be the journal's, which leaves as much free as a flush of it needs. The writer:
//!
//! 1. has everything flushed, the journal trimmed, and free slots and spare files given back
//!    ([`Maintenance::give_space_back`]),
//! 2. writes again,
//! 3. may take of the room for flushes then, if its batch only removes keys: a user of a full device makes
//!    room by that.
//!
//! Requires: the writer holds no permit, which others may need to go on. It may hold locks of keys: no flush
//! and no trim takes these.
//!
//! [`Maintenance::give_space_back`]: crate::background::maintenance::Maintenance::give_space_back

use terrane_base::{Batch, Error, Kind, RecordKind, Result};

use crate::write::WritePath;

impl WritePath {
    /// Writes `batch` by `write` once more, behind a flush, where the device had no room for it, as `full`
    /// says. A writer that waits for a limited time only, as `is_bounded` says, has the flush begun and free
    /// slots given back.
    ///
    /// # Errors
    /// Those of `write`; `full` if no room can be made.
    #[cold]
    pub(super) fn behind_flush<T>(
        &self,
        batch: &Batch,
        is_bounded: bool,
        full: Error,
        write: &dyn Fn() -> Result<T>,
    ) -> Result<T> {
        debug_assert!(full.kind() == Kind::Full, "{full}");
        if is_bounded {
            let _ = self.reclaim_idle();
            self.make_room();
            return Err(full);
        }
        if !self.give_space_back() {
            // The kept room is for the flush that has failed: nothing else may take of it.
            return Err(full);
        }
        match write() {
            Err(error) if error.kind() == Kind::Full && removes_only(batch) => {
                self.journal.use_kept_room(true);
                let done = write();
                // Not for the puts behind it, where this one needed no segment.
                self.journal.use_kept_room(false);
                done
            }
            done => done,
        }
    }
}

/// Returns true if every record of the batch removes keys.
fn removes_only(batch: &Batch) -> bool {
    let removes =
        |kind| matches!(kind, RecordKind::Delete | RecordKind::SingleDelete | RecordKind::RangeDelete);
    batch.records().all(|record| removes(record.kind))
}
