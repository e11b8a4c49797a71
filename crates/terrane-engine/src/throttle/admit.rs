//! The admission of a batch: checks its limits, charges it for the debt of the background, and waits for
//! memory.
//!
//! A batch without a deadline pauses first and is then admitted ([`super::charge`]). A batch with a deadline
//! is admitted at once on credit, if earlier credit is repaid; time repays its credit afterwards. So batches
//! that do not wait also keep to the allowed rate, and no batch is refused for ever. A batch that cannot be
//! admitted by its deadline is refused at once, before anything is written.
//!
//! A batch that is larger than its share of the write memory goes another way ([`super::large`]).

use std::time::Duration;

use terrane_base::timing::{self, Part};
use terrane_base::{Batch, Error, Kind, Result};

use crate::pace::token_bucket::PAUSE_MIN;
use crate::throttle::Throttle;
use crate::throttle::control::WriteControl;
use crate::throttle::deadline::Deadline;
use crate::throttle::debt::DEBT_QUANTUM_BYTES;
use crate::throttle::permit::{GivenBack, WritePermit};

/// A batch that takes more than one part in this many of the write memory is large.
const BATCH_SHARE: u64 = 4;

impl<'e> WriteControl<'e> {
    /// Refuses a batch that cannot be committed, and holds it back while the background is behind: until
    /// `deadline`, or as long as needed without one. The permit holds the write memory that is reserved for a
    /// large batch.
    ///
    /// # Errors
    /// `Invalid` for a batch beyond the limits, `Busy` if the deadline was too soon, `Cancelled` while the
    /// database closes; the error of the background if no memory is freed.
    #[inline(always)]
    pub(crate) fn admit(self, batch: &Batch, deadline: Option<Deadline>) -> Result<WritePermit<'e>> {
        debug_assert!(!batch.is_empty(), "what brings nothing would take a turn and room");
        self.check_open()?;
        if self.is_large(batch) {
            return self.admit_large(batch, deadline, false);
        }
        self.admit_checked(batch, deadline)
    }

    /// As [`WriteControl::admit`], for a batch that was prepared: it is not too large, whatever the ceiling
    /// is by now.
    pub(crate) fn admit_prepared(self, batch: &Batch) -> Result<WritePermit<'e>> {
        debug_assert!(!batch.is_empty(), "what brings nothing would take a turn and room");
        self.check_open()?;
        if self.is_large(batch) {
            return self.admit_large(batch, None, true);
        }
        self.admit_checked(batch, None)
    }

    /// As a rule nothing holds a batch back. Part of each caller as far as that is decided: the permit is
    /// made where it stays.
    #[inline(always)]
    fn admit_checked(self, batch: &Batch, deadline: Option<Deadline>) -> Result<WritePermit<'e>> {
        let throttle = self.throttle;
        if !throttle.is_slowing() && !needs_room(throttle, batch) {
            return Ok(WritePermit::new(throttle));
        }
        match deadline {
            Some(deadline) => self.admit_until(batch, deadline),
            None => self.admit_paused(batch),
        }
    }

    /// Holds a batch back as long as needed.
    #[cold]
    fn admit_paused(self, batch: &Batch) -> Result<WritePermit<'e>> {
        let mut waited = self.wait_for_turns(None)?;
        waited += self.charge(batch);
        let mut permit = WritePermit::new(self.throttle);
        let reserved = match needs_room(self.throttle, batch) {
            true => self.reserve(batch, None, &mut waited).map(|bytes| permit.take_reservation(bytes)),
            false => Ok(()),
        };
        self.note_held_back(waited);
        reserved.map(|()| permit)
    }

    /// Admits a batch by its deadline or not at all.
    #[cold]
    fn admit_until(self, batch: &Batch, deadline: Deadline) -> Result<WritePermit<'e>> {
        let start = self.env.clock.now();
        let admitted = self.admit_on_credit(batch, deadline);
        self.note_held_back(self.env.clock.now().saturating_sub(start));
        admitted
    }

    fn admit_on_credit(self, batch: &Batch, deadline: Deadline) -> Result<WritePermit<'e>> {
        self.wait_for_turns(Some(deadline))?;
        let Some(mut permit) = self.charge_by(batch, deadline.at) else {
            return Err(self.throttle.held_back(deadline.wait_max, "the background has to catch up"));
        };
        if !needs_room(self.throttle, batch) {
            return Ok(permit);
        }
        let mut waited = Duration::ZERO;
        match self.reserve(batch, Some(deadline.at), &mut waited) {
            Err(error) if error.kind() == Kind::Busy && terrane_base::planted!(WriteThoughHeldBack) => {
                Ok(permit)
            }
            Err(error) => Err(self.held_back_by(Some(deadline), error)),
            Ok(bytes) => {
                permit.take_reservation(bytes);
                Ok(permit)
            }
        }
    }

    /// The batch has all locks and is committed next. Takes its room again if it was given back while the
    /// writer waited for locks.
    ///
    /// # Errors
    /// As [`WriteControl::admit`]: nothing is written then.
    #[inline]
    pub(crate) fn begin_commit(
        self,
        permit: &mut WritePermit<'e>,
        batch: &Batch,
        deadline: Option<Deadline>,
    ) -> Result<()> {
        if let Some(given_back) = permit.given_back() {
            self.take_room_again(permit, (batch, given_back), deadline)?;
        }
        debug_assert!(permit.given_back().is_none(), "a batch is committed without its room");
        permit.note_commit();
        Ok(())
    }

    /// Its charges stay.
    #[cold]
    fn take_room_again(
        self,
        permit: &mut WritePermit<'e>,
        (batch, given_back): (&Batch, GivenBack),
        deadline: Option<Deadline>,
    ) -> Result<()> {
        let start = self.env.clock.now();
        let until = deadline.map(|deadline| deadline.at);
        let mut waited = Duration::ZERO;
        let taken = match given_back {
            GivenBack::Turn(is_prepared) => self.take_turn_again(permit, batch, until, is_prepared),
            GivenBack::Reservation => {
                self.reserve(batch, until, &mut waited).map(|bytes| permit.take_reservation(bytes))
            }
        };
        self.note_held_back(self.env.clock.now().saturating_sub(start));
        debug_assert!(taken.is_err() || permit.has_room(), "the batch has its room again");
        taken.map_err(|error| self.held_back_by(deadline, error))
    }

    /// The error of a wait; that of one that a deadline has ended says so.
    pub(super) fn held_back_by(self, deadline: Option<Deadline>, error: Error) -> Error {
        match deadline {
            Some(deadline) if error.kind() == Kind::Busy => {
                self.throttle.held_back(deadline.wait_max, error.message())
            }
            _ => error,
        }
    }

    /// Notes how long pacing and the wait for memory held one write back.
    pub(super) fn note_held_back(self, waited: Duration) {
        // A time below the shortest pause is only the cost of this check.
        if waited >= PAUSE_MIN {
            self.histograms.write_wait_micros.observe(waited.as_micros() as u64);
            timing::add(Part::HeldBack, waited);
        }
    }

    /// Returns true if a batch is larger than its share of the write memory.
    #[inline]
    fn is_large(self, batch: &Batch) -> bool {
        batch.bytes().len() as u64 > self.memory.budget().write_bytes() / BATCH_SHARE
    }

    #[inline]
    fn check_open(self) -> Result<()> {
        self.refuse_if_read_only()?;
        if self.is_closing() {
            return Err(Error::new(Kind::Cancelled, "the database is closing"));
        }
        Ok(())
    }
}

/// Returns true if room is reserved for a batch before it comes.
#[inline]
fn needs_room(throttle: &Throttle, batch: &Batch) -> bool {
    batch.bytes().len() as u64 > DEBT_QUANTUM_BYTES || throttle.debt() >= 1.0
}

impl Throttle {
    /// The error of a write that was held back until its deadline.
    #[cold]
    pub(crate) fn held_back(&self, wait_max: Duration, why: &str) -> Error {
        let message = format!(
            "{why}: the write was not admitted within {wait_max:?} and nothing is written; try again later (pressure {:.2})",
            self.debt()
        );
        Error::new(Kind::Busy, message)
    }
}
