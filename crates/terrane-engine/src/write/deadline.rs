//! Writes that are not held back for longer than their caller says, or not at all.
//!
//! Whoever waits pays first and then writes ([`crate::write::throttle`]). Whoever may not wait is let in at once if what was let
//! in so before is paid by now, and what it brings has to be paid by the time that follows: so impatient writers come at
//! the rate that is allowed, too, and none is refused without end. What cannot be let in by the deadline is refused at
//! once, before anything was written.

use std::time::Duration;

use terrane_base::{Batch, Error, Kind, Result, SeqNo};

use crate::engine::Engine;
use crate::write::commit::LetIn;

impl Engine {
    /// As [`Engine::write`], but held back until `patience` is over at most; with none, not at all. Bounds how long
    /// pacing, memory and locks hold the batch back together, of which the first two have no more than
    /// `write_wait_max_ms` either; a sync takes as long as the device.
    ///
    /// # Errors
    /// `Busy` if that was not enough, `TimedOut` if a transaction kept a lock of one of its keys until then: nothing is
    /// written. Otherwise as [`Engine::write`].
    pub fn write_within(&self, batch: &Batch, sync: bool, patience: Duration) -> Result<SeqNo> {
        let until = self.env.clock.now().saturating_add(patience);
        self.commit_admitted(batch, sync, Some(until), |engine| match engine.write_wait_max() {
            Some(longest) if longest < patience => engine.admit_within(batch, longest, None),
            _ => engine.admit_within(batch, patience, Some(until)),
        })
    }

    /// How long any write may be held back, where that is bounded.
    pub(crate) fn write_wait_max(&self) -> Option<Duration> {
        let millis = self.options.write_wait_max_ms;
        (millis > 0).then(|| Duration::from_millis(millis))
    }

    /// Lets the batch in by `until`, or if that is not given by the end of its patience, which begins now.
    pub(crate) fn admit_within(
        &self,
        batch: &Batch,
        patience: Duration,
        until: Option<Duration>,
    ) -> Result<LetIn> {
        let bytes = self.check_batch(batch)?;
        if !self.pressure.is_slowing() && !self.needs_room(bytes) {
            return Ok(LetIn::FREE);
        }
        let start = self.env.clock.now();
        let until = until.unwrap_or_else(|| start.saturating_add(patience));
        let admitted = self.admit_until(batch, bytes, patience, until);
        self.note_held_back(self.env.clock.now().saturating_sub(start));
        admitted
    }

    #[cold]
    fn admit_until(&self, batch: &Batch, bytes: u64, patience: Duration, until: Duration) -> Result<LetIn> {
        let Some(paid) = self.pay_within(batch, until) else {
            return Err(self.held_back(patience, "the background has to catch up"));
        };
        if !self.needs_room(bytes) {
            return Ok(LetIn { bytes: 0, paid });
        }
        let mut waited = Duration::ZERO;
        let error = match self.reserve(bytes, Some(until), &mut waited) {
            Err(error) if error.kind() == Kind::Busy && terrane_base::planted!(WriteThoughHeldBack) => {
                return Ok(LetIn { bytes: 0, paid });
            }
            Err(error) if error.kind() == Kind::Busy => self.held_back(patience, error.message()),
            Err(error) => error,
            Ok(bytes) => return Ok(LetIn { bytes, paid }),
        };
        paid.give_back(self);
        Err(error)
    }

    #[cold]
    pub(crate) fn held_back(&self, patience: Duration, why: &str) -> Error {
        let message = format!(
            "{why}: the write was not admitted within {patience:?} and nothing is written; try again later (pressure {:.2})",
            self.debt()
        );
        Error::new(Kind::Busy, message)
    }
}

#[cfg(test)]
mod tests;
