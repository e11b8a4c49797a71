//! A write that the device has no room for.
//!
//! Much of the space may be the journal's, which leaves as much free as a flush of it needs. The writer:
//!
//! 1. has an attempt to give space back begun, unless one is under way, or the last one has freed nothing and
//!    nothing has changed since ([`crate::background::space`]). Everything is flushed by it and the journal
//!    trimmed, on threads of the background,
//! 2. waits for it, and writes again; at once where it asks for none, because another writer's may have ended
//!    since it was refused. A writer that waits for a limited time only asks for the attempt as others do,
//!    and does not wait for it: while one is under way it is refused, and may find it ended when it comes
//!    again,
//! 3. may take of the room for flushes where the attempt has freed too little, if its batch only removes
//!    keys: a user of a full device makes room by that.
//!
//! Requires: the writer holds no permit, which others may need to go on. It may hold locks of keys: no flush
//! and no trim takes these.

use terrane_base::{Batch, Error, RecordKind, Result, SeqNo};
use terrane_journal::Journal;

use crate::background::state::space_attempts::{Answer, Outcome};
use crate::write::WritePath;

impl WritePath {
    /// Writes `batch` by `write` once more, after an attempt to give space back, where the device had no
    /// room for it, as `full` says. With `is_bounded` the writer waits for a limited time only: it has the
    /// attempt begun, too, and is refused instead of waiting for it.
    ///
    /// # Errors
    /// Those of `write`; `full` if no room can be made.
    #[cold]
    pub(crate) fn behind_attempt<T>(
        &self,
        batch: &Batch,
        is_bounded: bool,
        full: Error,
        write: &dyn Fn() -> Result<T>,
    ) -> Result<T> {
        debug_assert!(full.lacks_space(), "{full}");
        let removes = removes_only(batch);
        let may_use_kept = removes && !(is_bounded && terrane_base::planted!(KeepRoomFromDeadlines));
        let outcome = match self.ask_for_space(removes) {
            Answer::Unchanged(outcome) => outcome,
            Answer::UnderWay(_) if is_bounded => return Err(full),
            Answer::UnderWay(number) => self.wait_for_space(number),
        };
        if outcome == Outcome::Failed {
            // The kept room is for the flush that has failed: nothing else may take of it.
            return Err(full);
        }
        let refused = match write() {
            Err(error) if error.lacks_space() => error,
            done => return done,
        };
        match outcome {
            Outcome::Trimmed(flushed) if may_use_kept => {
                let _may = KeptRoom::used(&*self.journal, flushed);
                write()
            }
            _ => Err(refused),
        }
    }
}

/// While it lives, the next segment may take of the room that is kept for flushes. Not any longer, for the
/// puts after it, where this batch needed no segment.
struct KeptRoom<'j>(&'j dyn Journal);

impl KeptRoom<'_> {
    fn used(journal: &dyn Journal, flushed: SeqNo) -> KeptRoom<'_> {
        journal.use_kept_room(Some(flushed));
        KeptRoom(journal)
    }
}

impl Drop for KeptRoom<'_> {
    fn drop(&mut self) {
        self.0.use_kept_room(None);
    }
}

/// Returns true if every record of the batch removes keys.
fn removes_only(batch: &Batch) -> bool {
    let removes =
        |kind| matches!(kind, RecordKind::Delete | RecordKind::SingleDelete | RecordKind::RangeDelete);
    batch.records().all(|record| removes(record.kind))
}
