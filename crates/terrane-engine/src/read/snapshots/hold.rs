//! A snapshot together with the note of what one scan through it holds.

use std::sync::Arc;

use crate::read::scan::iterator::RenewableScan;
use crate::read::snapshots::snapshot::Snapshot;
use crate::readers::{Held, Origin, ReaderKind};
use crate::table::Table;

/// The moment that a scan reads at, and its note of what it holds, until dropped.
pub struct Hold {
    snapshot: Arc<Snapshot>,
    number: Option<u64>,
    /// True if a step checks neither the age of the reader nor the time that it takes. Kept here because a
    /// step is short.
    is_plain: bool,
}

impl Hold {
    /// Notes what a scan of `table` at the snapshot holds.
    #[must_use]
    pub fn new(snapshot: Arc<Snapshot>, table: &Table, scan: &RenewableScan) -> Hold {
        let mut hold = Hold::with(snapshot, None);
        hold.note(table, scan);
        hold
    }

    fn with(snapshot: Arc<Snapshot>, number: Option<u64>) -> Hold {
        let shared = snapshot.shared();
        let is_plain = shared.readers.age_max().is_none() && !shared.slow_log.watches_scans();
        Hold { snapshot, number, is_plain }
    }

    /// As [`Hold::new`], for whatever scan.
    pub(super) fn of(snapshot: Arc<Snapshot>, held: Held) -> Hold {
        let number = snapshot.shared().readers.with(snapshot.slot(), |entry| entry.hold(held));
        Hold::with(snapshot, Some(number))
    }

    /// The note that a reader was listed with.
    pub(super) fn first(snapshot: Arc<Snapshot>) -> Hold {
        Hold::with(snapshot, Some(0))
    }

    /// The moment.
    #[inline]
    #[must_use]
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    /// Returns true if steps of the scan need neither [`Snapshot::check`] nor
    /// [`Shared::watched_scan`](crate::Shared::watched_scan).
    #[inline]
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Moves to the newest visible number; others that share the snapshot keep theirs. Returns true if the
    /// scan has to note again which read view it holds.
    #[track_caller]
    pub fn renew(&mut self) -> bool {
        if let Some(snapshot) = Arc::get_mut(&mut self.snapshot) {
            snapshot.renew();
            return false;
        }
        let origin = Origin::here(ReaderKind::Scan);
        let snapshot = Arc::new(Snapshot::from(self.snapshot.shared_ref(), origin));
        debug_assert!(snapshot.seq() >= self.snapshot.seq(), "a scan is renewed to an older moment");
        *self = Hold::with(snapshot, None);
        true
    }

    /// Notes again what the scan holds.
    pub fn note(&mut self, table: &Table, scan: &RenewableScan) {
        let held = Held::new(table.id, scan.view(), None);
        let before = self.number;
        let snapshot = &self.snapshot;
        let number = snapshot.shared().readers.with(snapshot.slot(), |entry| {
            before.into_iter().for_each(|number| entry.let_go(number));
            entry.hold(held)
        });
        debug_assert!(before != Some(number), "each note of a reader has a number of its own");
        self.number = Some(number);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // The last one of a reader leaves all notes to it.
        if let Some(number) = self.number
            && Arc::strong_count(&self.snapshot) > 1
        {
            let snapshot = &self.snapshot;
            snapshot.shared().readers.with(snapshot.slot(), |entry| entry.let_go(number));
        }
    }
}
