//! The commits that may disappear after lost and misdirected writes of journal and manifest, and the ones
//! that may not.
//!
//! Such faults show at a loss of power, or at the next opening. From then on an opening may be refused. An
//! opening that succeeds still has a prefix of the commits, and the prefix has a least length:
//!
//! * A sync of a segment that lost its writes leaves what was durable before it.
//! * A write that put a page elsewhere may have overwritten any group of the segment: commits in the levels
//!   remain, and so do commits that an opening found, because their end is in the manifest.
//! * A manifest without its last edits has an older state; the segments of that state exist or are reported
//!   as missing. Only tables may exist again, or not yet, if no later commit shows that there was an edit.

use crate::oracle::{Allowed, Event};
use crate::run::{Life, Runner};

impl Runner {
    /// Notes what was lost before more counts as durable.
    pub(crate) fn note_losses(&self) {
        let struck = self.struck();
        let mut life = self.life.borrow_mut();
        if struck.segments_lost > life.segments_lost {
            life.segments_lost = struck.segments_lost;
            // During an opening the floor stays: bytes that it writes again were durable before, or need not
            // be.
            if !self.is_opening.get() {
                life.kept = life.kept.min(life.durable);
            }
        }
        if struck.segments_mixed > 0 {
            life.kept = 0;
        }
        life.is_manifest_hurt |= struck.manifest > 0;
    }

    /// The power goes in the middle of an opening that put a page elsewhere.
    pub(crate) fn weaken_captured(&self) {
        self.note_losses();
        let mut life = self.life.borrow_mut();
        let left = life.kept.max(life.marked());
        if let Some(captured) = &mut life.captured {
            (captured.floor, captured.durable) = (captured.floor.min(left), captured.durable.min(left));
        }
    }

    /// Undoes, perhaps, what was done to tables in this life: `events` may have happened, and these may be
    /// gone.
    pub(crate) fn events(&self) -> Vec<Event> {
        let life = self.life.borrow();
        let undone = life.changed.iter().filter(|_| life.is_manifest_hurt);
        let undone =
            undone.map(|event| Event { is_created: !event.is_created, is_undone: true, ..event.clone() });
        life.events.iter().cloned().chain(undone).collect()
    }
}

impl Allowed {
    /// Returns true if a table was dropped and made again by edits that may both be lost: its old rows are
    /// not in the model any more.
    pub(crate) fn has_turned(&self) -> bool {
        let undone = |is_created| {
            self.events.iter().filter(move |event| event.is_undone && event.is_created == is_created)
        };
        undone(true).any(|one| undone(false).any(|other| one.table == other.table))
    }
}

impl Life {
    /// Commits that a loss of power leaves.
    pub(crate) fn durable(&self) -> u64 {
        self.durable.min(self.kept.max(self.marked()))
    }

    /// Commits that damage of the journal does not take.
    pub(crate) fn marked(&self) -> u64 {
        // An edit that was lost takes with it what it says of the levels.
        if self.is_manifest_hurt { self.found } else { self.marked }
    }
}
