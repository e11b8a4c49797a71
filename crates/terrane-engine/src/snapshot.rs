//! A fixed position in the commit order that keeps what it sees.

use std::sync::Arc;

use terrane_base::SeqNo;
use terrane_levels::Pin;

use crate::engine::Engine;

/// Keeps every version that is the newest at its number, until dropped.
pub struct Snapshot {
    pin: Pin,
    /// What the snapshot sees must not be closed under it in memory.
    engine: Arc<Engine>,
}

impl Snapshot {
    /// A snapshot of everything that is visible now.
    #[must_use]
    pub fn new(engine: Arc<Engine>) -> Self {
        Snapshot { pin: engine.pins.pin(|| engine.journal.visible()), engine }
    }

    /// Moves the snapshot to everything that is visible now.
    pub fn renew(&mut self) {
        let journal = &self.engine.journal;
        self.pin.renew(|| journal.visible());
    }

    /// What the snapshot is of.
    #[must_use]
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The position: records with this number and below are seen.
    #[must_use]
    pub fn seq(&self) -> SeqNo {
        self.pin.seq()
    }
}
