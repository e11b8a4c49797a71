//! A fixed position in the commit order that keeps what it sees.

use std::sync::Arc;

use terrane_base::{Result, SeqNo};
use terrane_levels::Pin;

use crate::engine::Engine;
use crate::read::snapshots::{Held, Origin, ReaderKind, Since, Slot};

/// Keeps every version that is the newest at its number, until dropped, or until it has expired.
pub struct Snapshot {
    slot: Slot,
    kind: ReaderKind,
    since: Since,
    /// What the snapshot sees must not be closed under it in memory.
    engine: Arc<Engine>,
}

impl Snapshot {
    /// A snapshot of everything that is visible now.
    #[must_use]
    #[track_caller]
    pub fn new(engine: Arc<Engine>) -> Self {
        Snapshot::from(engine, Origin::here(ReaderKind::Snapshot))
    }

    /// As [`Snapshot::new`], listed as of this origin.
    #[must_use]
    pub fn from(engine: Arc<Engine>, origin: Origin) -> Self {
        let pin = engine.pins.pin(|| engine.journal.visible());
        Snapshot::listed(engine, pin, origin, None)
    }

    /// A snapshot of what is pinned, listed with the first thing that it holds.
    pub(crate) fn listed(engine: Arc<Engine>, pin: Pin, origin: Origin, held: Option<Held>) -> Self {
        let kind = origin.kind;
        let since = Since { seq: pin.seq(), time: engine.reader_time(kind) };
        Snapshot { slot: engine.readers.enter(since, pin, origin, held), kind, since, engine }
    }

    /// Moves the snapshot to everything that is visible now, also if it has expired.
    pub fn renew(&mut self) {
        self.since = self.engine.renew_reader(self.slot, self.kind, self.since);
    }

    /// What the snapshot is of.
    #[must_use]
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The position: records with this number and below are seen.
    #[inline]
    #[must_use]
    pub fn seq(&self) -> SeqNo {
        self.since.seq
    }

    /// What it sees, and since when.
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
        match self.engine.readers.age_max() {
            None => Ok(()),
            Some(age_max) => self.engine.check_reader(self, age_max),
        }
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.engine.readers.leave(self.slot);
    }
}
