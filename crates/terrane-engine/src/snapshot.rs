//! A fixed position in the commit order that keeps what it sees.

use std::sync::{Arc, Weak};

use terrane_base::{Result, SeqNo};

use crate::engine::Engine;
use crate::iterate::RenewableScan;
use crate::readers::{Entry, Hold, Origin, ReaderKind, Release};
use crate::table::{Picture, Table};

/// Keeps every version that is the newest at its number, until dropped, or until it has expired.
pub struct Snapshot {
    entry: Arc<Entry>,
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
        Snapshot { entry: engine.readers.enter(&engine, origin), engine }
    }

    /// Moves the snapshot to everything that is visible now, also if it has expired.
    pub fn renew(&mut self) {
        self.entry.renew(&self.engine);
    }

    /// What the snapshot is of.
    #[must_use]
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The position: records with this number and below are seen.
    #[must_use]
    pub fn seq(&self) -> SeqNo {
        self.entry.seq()
    }

    /// To be called after each read at [`Snapshot::seq`], before anybody sees what was read.
    ///
    /// # Errors
    /// `TooOld` if it is older than the option `reader_age_max_ms` allows: what was read may be wrong.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match self.engine.readers.age_max() {
            None => Ok(()),
            Some(age_max) => self.engine.check_reader(&self.entry, age_max),
        }
    }

    /// Notes what a scan at this position holds, until that is dropped.
    #[must_use]
    pub fn hold_scan(&self, table: &Arc<Table>, scan: &RenewableScan) -> Hold {
        self.hold(table, scan.picture(), None)
    }

    pub(crate) fn hold(
        &self,
        table: &Arc<Table>,
        picture: &Arc<Picture>,
        release: Option<Weak<dyn Release>>,
    ) -> Hold {
        self.entry.hold(table, picture, release)
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.engine.readers.leave(&self.entry);
    }
}
