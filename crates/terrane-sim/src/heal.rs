//! After the last fault everything works again: the background comes to rest and a write succeeds. Or the
//! journal or the manifest is poisoned, and every write fails with that error until the next opening.
//!
//! From then on faults before that moment excuse no error: see `Runner::may_fail`.

use std::time::Duration;

use terrane::{Batch, Durability, Error, Kind, Result};
use terrane_base::env::Clock as _;

use crate::op::Value;
use crate::run::Runner;

/// How often a background that met a refusal is asked again once the device works: it waits up to 5 s after
/// each.
const RETRIES: u32 = 40;
/// Turns of the background after which it should have come to rest.
const STEPS_MAX: u32 = 20_000;
/// Bytes of the value that must be written: more than the rest of most segments.
const VALUE_BYTES: u64 = 40_000;

impl Runner {
    pub(crate) fn heal(&self) {
        self.disk().heal();
        self.expect_recovery();
    }

    pub(crate) fn set_room(&self, bytes: u64) {
        let disk = self.disk();
        let device = disk.device();
        let is_cramped = bytes != u64::MAX;
        device.set_capacity(if is_cramped { device.used_bytes() + bytes } else { u64::MAX });
        {
            let mut life = self.life.borrow_mut();
            life.was_cramped |= is_cramped;
            life.is_cramped = is_cramped;
        }
        if !is_cramped {
            self.expect_recovery();
        }
    }

    /// A device that refused calls, and refuses none any more, hinders nothing that is not poisoned.
    fn expect_recovery(&self) {
        if !self.is_recovery_due() {
            return;
        }
        let mut last = None;
        for _ in 0..RETRIES {
            self.world.begin_operation();
            // A batch in the middle of the awaited commits comes after the sync.
            let before = self.model.borrow().now();
            let asked = self.ask();
            if self.disk().has_crashed() {
                return;
            }
            match asked {
                Ok(()) => {
                    self.note_durable(before);
                    self.forgive();
                    return self.write_one();
                }
                Err(error) if error.kind() == Kind::Poisoned => {
                    self.forgive();
                    return self.expect_poisoned(&error);
                }
                Err(error) => last = Some(error),
            }
            self.world.sleep(Duration::from_secs(1));
            // The background retries what failed, not the caller.
            self.world.begin_operation();
            let is_at_rest = (0..STEPS_MAX).any(|_| !self.world.step());
            if !is_at_rest && !self.disk().has_crashed() {
                return self.fail("nothing is refused any more, and the background never comes to rest");
            }
        }
        if let Some(error) = last {
            self.fail(format!("nothing is refused any more, and still: {error}"));
        }
    }

    /// Returns true if calls were refused in this life, and nothing but that hinders it now.
    fn is_recovery_due(&self) -> bool {
        let (struck, life) = (self.struck(), self.life.borrow());
        let was_refused = struck.sum() > life.forgiven || life.was_cramped;
        let is_hindered = life.is_cramped || life.is_paused || !self.disk().faults().is_empty();
        let is_damaged = self.is_damaged.get() || struck.silent > 0;
        was_refused && !is_hindered && !is_damaged && !self.disk().has_crashed()
    }

    /// Jobs for which no caller waits, such as scrubbing, are also tried again, and then no longer reported
    /// as failing.
    fn ask(&self) -> Result<()> {
        let db = self.db();
        db.write(&Batch::new(), Durability::Synced)?;
        db.wait_until_quiescent()?;
        db.background_errors().into_iter().next().map_or(Ok(()), |finding| Err(finding.error))
    }

    fn forgive(&self) {
        let mut life = self.life.borrow_mut();
        life.forgiven = self.struck().sum();
        life.was_cramped = false;
    }

    fn write_one(&self) {
        let stamp = self.outcome.get().operations;
        self.put("default", 0, Some(Value { len: VALUE_BYTES, stamp }), true);
    }

    /// One of the two places that can be poisoned is, for a reason, and stays so. Asked by calls that change
    /// nothing that a crash in their middle could leave.
    fn expect_poisoned(&self, error: &Error) {
        if !self.struck().may_poison() {
            return self.fail(format!("nothing but space was refused, and: {error}"));
        }
        self.life.borrow_mut().is_stuck = true;
        let (db, before) = (self.db(), self.model.borrow().now());
        let synced = db.sync();
        let answers = if synced.is_err() {
            self.life.borrow_mut().is_poisoned = true;
            [("sync", synced), ("write", db.write(&Batch::new(), Durability::Synced).map(drop))]
        } else {
            self.note_durable(before);
            [("quiesce", db.wait_until_quiescent()), ("quiesce again", db.wait_until_quiescent())]
        };
        for (what, answer) in answers {
            match answer {
                _ if self.disk().has_crashed() => return,
                Err(error) if error.kind() == Kind::Poisoned => {}
                Err(error) => self.fail(format!("{what}: {error} ({:?}), and not poisoned", error.kind())),
                Ok(()) => self.fail(format!("{what} succeeds, and before it: {error}")),
            }
        }
    }
}
