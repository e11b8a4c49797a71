//! Finds out that another writer has taken the database over, where no lock keeps others out.
//!
//! The manifest refuses a writer that was replaced anyway, at its next edit. A writer without edits would go
//! on to acknowledge commits that the new writer does not have: once in an interval this looks, and stops
//! the journal.

use std::sync::Arc;
use std::time::Duration;

use terrane_base::sync::atomic::{AtomicBool, Ordering};
use terrane_base::{Kind, Result};

use crate::engine::Engine;
use crate::observe::ticker::Turn;

impl Engine {
    /// Looks once in `interval` whether this is still the writer. A thread of its own does `upkeep` as often,
    /// as long as it is: upkeep takes what it takes, and the look must not wait for it. In a simulator,
    /// without threads, only edits find out.
    ///
    /// # Errors
    /// `Io` if the system refuses a thread.
    pub(crate) fn watch_writer(
        self: &Arc<Self>,
        interval: Duration,
        mut upkeep: impl FnMut() + Send + 'static,
    ) -> Result<()> {
        debug_assert!(!interval.is_zero(), "without a pause the thread would look all the time");
        if self.env.spawn.stepper().is_some() {
            return Ok(());
        }
        // As a worker, the thread holds the engine only while it looks.
        let engine = Arc::downgrade(self);
        let is_replaced = Arc::new(AtomicBool::new(false));
        let seen = is_replaced.clone();
        let look = move || match engine.upgrade().map(|engine| engine.check_writer()) {
            Some(Err(error)) if error.kind() == Kind::Poisoned => {
                seen.store(true, Ordering::Release);
                Turn::Ended
            }
            Some(_) => Turn::Done,
            None => Turn::Ended,
        };
        let work = move || {
            // Pairs with the store above. Upkeep asks again itself before it removes anything.
            if is_replaced.load(Ordering::Acquire) {
                return Turn::Ended;
            }
            upkeep();
            Turn::Done
        };
        let (spawn, instance) = (&*self.env.spawn, self.instance());
        self.background.writer_watch.start((spawn, "terrane-writer", instance), interval, look)?;
        self.background.upkeep.start((spawn, "terrane-upkeep", instance), interval, work)
    }

    /// Checks that no other writer has taken the database over. If one has, no commit succeeds from now on.
    /// Of a database in a directory the lock sees to that, and only a failed write of the manifest is
    /// reported.
    ///
    /// # Errors
    /// `Poisoned` if another writer has, or the manifest could not be written before; `Io` if that is not
    /// known now.
    pub fn check_writer(&self) -> Result<()> {
        let checked = self.manifest.check_writer();
        if let Err(error) = &checked
            && error.kind() == Kind::Poisoned
        {
            self.journal.poison(error.clone());
        }
        checked
    }
}
