//! A moment of a database while commits go on: its levels and journal, kept until the value is dropped.
//!
//! The order is the invariant:
//! 1. Freed slots are held from now on: every extent of the following state stays.
//! 2. No segment is trimmed and no table comes or goes until the journal was looked at: what the state does
//!    not have in its levels is in it, and every table that a record names is in the state.
//! 3. The state. 4. The journal, whose last number is therefore not below any in the state.

use std::sync::Arc;

use terrane_base::{Error, Kind, Result};
use terrane_journal::Excerpt;
use terrane_levels::State;
use terrane_storage::Store;

use crate::shared::Shared;

/// See the head of the file.
pub(crate) struct Moment {
    state: Arc<State>,
    excerpt: Excerpt,
    held: Held,
}

impl Moment {
    /// Takes the present moment.
    ///
    /// # Errors
    /// `Poisoned` if a sync of the journal failed before; `Invalid` for an earlier state, whose journal has
    /// later commits as well.
    pub(crate) fn take(shared: &Shared) -> Result<Moment> {
        if shared.opening.shows_earlier_moment() {
            let message = "an earlier state of a database has no copies yet: export its tables";
            return Err(Error::invalid(message));
        }
        let held = Held::new(&shared.store);
        let _no_trim = shared.trims.hold();
        let _no_table = shared.catalog.change();
        let state = shared.trims.marks().noted_in(|| shared.manifest.state());
        let excerpt = shared.journal.excerpt()?;
        Ok(Moment { state, excerpt, held })
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    pub(super) fn excerpt(&self) -> &Excerpt {
        &self.excerpt
    }

    /// Its parts: a caller that has copied the journal can drop the excerpt and free its memory.
    pub(crate) fn split(self) -> (Arc<State>, Excerpt, Held) {
        (self.state, self.excerpt, self.held)
    }
}

/// Refuses to copy what a database that is only read may or may not have: the extents of an ingest whose
/// outcome only a writer can decide.
///
/// # Errors
/// `Busy`.
pub(crate) fn refuse_undecided(reader: &Shared) -> Result<()> {
    debug_assert!(reader.options.read_only, "a writer knows the outcome");
    if reader.trims.marks().void().is_empty() {
        return Ok(());
    }
    let message =
        "an ingest is under way, or was when the database was last closed: try again, or open it for writing";
    Err(Error::new(Kind::Busy, message))
}

/// Holds freed slots until it is dropped.
pub(crate) struct Held(Arc<dyn Store>);

impl Held {
    fn new(store: &Arc<dyn Store>) -> Held {
        store.hold();
        Held(store.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.release();
    }
}
