//! A fixed position in the commit order that keeps what it sees.

use std::time::Duration;

use terrane_base::{Result, SeqNo};
use terrane_levels::Pin;

use crate::readers::{Held, Origin, ReaderKind, Since, Slot};
use crate::shared::{Shared, SharedRef};

/// Keeps every version that is the newest at its number, until dropped, or until it has expired.
pub struct Snapshot {
    slot: Slot,
    kind: ReaderKind,
    since: Since,
    /// How old it may get; `None` is any.
    age_max: Option<Duration>,
    /// The data that the snapshot sees must not be closed under it in memory.
    shared: SharedRef,
}

impl Snapshot {
    /// A snapshot of everything that is visible now.
    #[must_use]
    #[track_caller]
    pub fn new(shared: SharedRef) -> Self {
        Snapshot::from(shared, Origin::here(ReaderKind::Snapshot))
    }

    /// As [`Snapshot::new`], listed as of this origin.
    #[must_use]
    pub fn from(shared: SharedRef, origin: Origin) -> Self {
        let pin = shared.pins.pin(|| shared.journal.visible());
        Snapshot::listed(shared, pin, origin, None)
    }

    /// A snapshot at a pinned number, listed with the first thing that it holds.
    pub(crate) fn listed(shared: SharedRef, pin: Pin, origin: Origin, held: Option<Held>) -> Self {
        let (kind, age_max) = (origin.kind, shared.readers.age_max());
        let since = Since { seq: pin.seq(), time: shared.reader_time(kind) };
        Snapshot { slot: shared.readers.enter(since, pin, origin, held), kind, since, age_max, shared }
    }

    /// Moves the snapshot to everything that is visible now, also if it has expired.
    pub fn renew(&mut self) {
        self.since = self.shared.renew_reader(self.slot, self.kind, self.since);
    }

    /// The database of the snapshot.
    #[must_use]
    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The same, kept open by the copy.
    pub(crate) fn shared_ref(&self) -> SharedRef {
        self.shared.clone()
    }

    /// The position: records with this number and below are seen.
    #[inline]
    #[must_use]
    pub fn seq(&self) -> SeqNo {
        self.since.seq
    }

    /// The moment that it sees, and since when.
    pub(crate) fn since(&self) -> Since {
        self.since
    }

    /// Where it is listed.
    pub(crate) fn slot(&self) -> Slot {
        self.slot
    }

    /// To be called after each read at [`Snapshot::seq`], before anybody sees what was read.
    ///
    /// # Errors
    /// `TooOld` if it is older than the option `reader_age_max_ms` allows: what was read may be wrong.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match self.age_max {
            None => Ok(()),
            Some(age_max) => self.shared.check_reader(self, age_max),
        }
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.shared.readers.leave(self.slot);
    }
}
