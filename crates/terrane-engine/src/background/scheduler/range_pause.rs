//! Manual compactions that are paused: none begins, those that run are cancelled, and callers that wait for
//! one get an error.

use terrane_base::{Error, Kind, Result, TableId};
use terrane_compaction::CancelCause;

use crate::background::scheduler::{Schedule, Scheduler};

/// Number of pauses of manual compactions: those in force, and all since the opening.
#[derive(Clone, Default)]
pub(super) struct RangeHolds {
    present: u64,
    ever: u64,
}

impl Schedule {
    /// Returns true while no compaction of a range begins for a caller.
    pub(crate) fn holds_ranges(&self) -> bool {
        self.ranges.present > 0
    }

    /// Returns true if a compaction that a caller asked for runs on this table.
    fn is_manual_running(&self, table: TableId) -> bool {
        self.running.iter().any(|running| running.is_manual && running.table == Some(table))
    }

    /// Returns true if ranges are held back, or were since `begun`, a number of [`Scheduler::begin_range`].
    pub(crate) fn was_held_since(&self, begun: u64) -> bool {
        debug_assert!(begun <= self.ranges.ever, "a range began in a state that is still to come");
        self.holds_ranges() || self.ranges.ever != begun
    }

    /// Ends the wait of a caller if ranges were held back since `begun`, once no compaction that a caller
    /// asked for runs on this table.
    ///
    /// # Errors
    /// `Cancelled`, which is what ends them.
    pub(crate) fn refuse_if_held_since(&self, begun: u64, table: TableId) -> Result<()> {
        if self.was_held_since(begun) && !self.is_manual_running(table) {
            let why = "compactions of ranges are held back: allow them again, then ask again";
            return Err(Error::new(Kind::Cancelled, why));
        }
        Ok(())
    }
}

impl Scheduler {
    /// How often compactions of ranges were held back so far: a request that begins now learns by it of later
    /// holds.
    pub(crate) fn begin_range(&self) -> u64 {
        self.inspect(|schedule| schedule.ranges.ever)
    }

    /// Holds compactions of ranges back and cancels those that run. Holds count: each is ended by one
    /// [`Scheduler::allow_ranges`].
    pub(crate) fn hold_ranges(&self) {
        let mut schedule = self.change();
        schedule.ranges.present += 1;
        schedule.ranges.ever += 1;
        debug_assert!(schedule.ranges.present <= schedule.ranges.ever, "each hold is counted twice");
        for running in schedule.running.iter().filter(|running| running.is_manual) {
            running.control.cancel(CancelCause::Held);
        }
        drop(schedule);
        self.wake();
    }

    /// Ends one hold; does nothing if none is in force.
    pub(crate) fn allow_ranges(&self) {
        let mut schedule = self.change();
        schedule.ranges.present = schedule.ranges.present.saturating_sub(1);
        debug_assert!(schedule.ranges.present <= schedule.ranges.ever, "a hold that is left was begun");
    }
}
