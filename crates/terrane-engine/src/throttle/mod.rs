//! The write throttle slows writers in proportion to the debt of the background, so that their rate falls
//! steadily and never reaches zero while space is left. All its state is private; it admits a batch with a
//! [`permit::WritePermit`].
//!
//! There are two debts, each 0 without debt and 1 at its limit ([`debt`]):
//!
//! * *Memory* is freed by whole generations, its limit is hard, and all tables share it. While flushes run or
//!   wait, writers get the rate at which free memory lasts until those flushes end ([`flush_progress`]).
//!   Without such flushes writers are free below [`pressure::FREE_DEBT`]; above it their rate falls linearly
//!   from twice the measured rate of flushes to zero at the limit, where they wait for memory ([`room`]). A
//!   table with less than half of its share of the used memory is not charged for it: its writers go on until
//!   the limit, which the slowed writers of other tables rarely reach.
//! * The *backlog* of the levels is soft, and each table has its own. From its start on the writers of the
//!   table get the rate at which its overflow runs are merged into level 1, averaged over seconds, a little
//!   more at its start and a little less at its end (`pace/per_table.rs`). Between start and end the rate
//!   is never below half of its average. Beyond the end the rate falls further; before the start it rises
//!   until there are no runs. If writers were free up to the start, they would bring more there than a merge
//!   can take, and the rate would oscillate.
//!
//! A batch is charged for its bytes at the rate of each table that it changes, and for bytes of tables with
//! memory debt also at the rate of memory (`pace/token_bucket.rs`). The time of one charge counts as work
//! between two charges of the other bucket, so both together take as long as the slower one.

pub(crate) mod admit;
mod charge;
pub(crate) mod compaction_debt;
pub(crate) mod control;
pub(crate) mod deadline;
pub(crate) mod debt;
pub(crate) mod flush_progress;
mod ingest_rate;
mod large;
pub(crate) mod permit;
mod pressure;
mod room;
mod stall_events;
mod table_debts;
mod turns;

use std::time::Duration;
use terrane_base::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use terrane_journal::Placed;

use crate::throttle::compaction_debt::CompactionDebt;
use crate::throttle::debt::DEBT_QUANTUM_BYTES;
use crate::throttle::flush_progress::FlushProgress;
use crate::throttle::ingest_rate::IngestRate;
use crate::throttle::pressure::Pressure;
use crate::throttle::stall_events::StallEvents;
use crate::throttle::table_debts::TableDebts;
use crate::throttle::turns::Turns;

/// Where a batch ends in the journal. Places of later batches are larger, also in later segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct JournalPlace(u64);

impl JournalPlace {
    /// The end of a batch.
    #[inline]
    pub(crate) fn end_of(placed: &Placed<'_>) -> JournalPlace {
        let offset = (placed.offset + placed.len) as u64;
        debug_assert!(
            offset < 1 << 32 && placed.segment.id.0 < 1 << 32,
            "a segment has at most 1 GiB and a batch"
        );
        JournalPlace((placed.segment.id.0 << 32) + offset)
    }
}

/// The write throttle. It admits a batch with a [`permit::WritePermit`] ([`admit`]).
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    /// The debt of memory, and the gate at which writers wait for memory.
    pressure: Pressure,
    /// The stall of writers, if they are held back.
    stalls: StallEvents,
    /// The debt of the levels.
    compaction_debt: CompactionDebt,
    /// Tables with debt, ordered by their debt.
    table_debts: TableDebts,
    /// Progress of running flushes.
    flush_progress: FlushProgress,
    /// The order of batches that are larger than their share.
    turns: Turns,
    /// The rate at which writers bring bytes.
    ingest_rate: IngestRate,
    /// Bytes of write memory that are reserved for large batches which are not yet counted as memory in use.
    reserved_bytes: AtomicU64,
    /// Place in the journal at which the debt is computed next. Every write reads it and few change it.
    next_look: CachePadded<AtomicU64>,
}

impl Throttle {
    /// Returns true if a batch that ends at this place of the journal completes a quantum of bytes: its
    /// writer computes the debt again.
    #[inline]
    pub(crate) fn is_look_due(&self, end: JournalPlace) -> bool {
        // Relaxed: one writer takes the turn, and reads fresh samples.
        let next = self.next_look.load(Ordering::Relaxed);
        end.0 >= next && self.take_look(end, next)
    }

    #[cold]
    fn take_look(&self, end: JournalPlace, next: u64) -> bool {
        let after = end.0 + DEBT_QUANTUM_BYTES;
        let is_taken =
            self.next_look.compare_exchange(next, after, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        debug_assert!(after > next, "the next look comes later");
        // Before the first batch there is nothing to look at.
        is_taken && next > 0
    }

    /// The debt of memory or of the levels, the larger one; from 1 on writers wait.
    pub(crate) fn debt(&self) -> f64 {
        self.pressure.debt()
    }

    /// Returns true if any writer is slowed.
    #[inline]
    pub(crate) fn is_slowing(&self) -> bool {
        self.pressure.is_slowing()
    }

    /// Returns true while room is made for a batch that is larger than its share of the write memory.
    pub(crate) fn is_making_room(&self) -> bool {
        self.pressure.is_held()
    }

    /// Total time that writers were held back.
    pub(crate) fn paused(&self) -> Duration {
        self.pressure.paused()
    }

    /// Wakes writers that wait for memory: there may be some, or there will be none.
    pub(crate) fn wake(&self) {
        self.pressure.wake();
    }

    /// Notes that a flush freed `bytes` of memory in `took`.
    pub(crate) fn note_flush(&self, bytes: u64, took: Duration) {
        self.pressure.drained(bytes, took);
    }

    /// Runs `wait`, during which no optional job is deferred for heavy writing.
    pub(crate) fn without_delay<R>(&self, wait: impl FnOnce() -> R) -> R {
        self.ingest_rate.without_delay(wait)
    }

    /// Reserves `bytes` of write memory if `has_room` says that all that is reserved then finds room. A look
    /// that fails reserves nothing at any time: another batch would be refused because of it.
    fn try_reserve(&self, bytes: u64, has_room: impl Fn(u64) -> bool) -> bool {
        let mut reserved = self.reserved_bytes.load(Ordering::Acquire);
        debug_assert!(
            reserved < u64::MAX / 4,
            "{reserved} bytes are reserved: more was given back than taken"
        );
        while has_room(reserved + bytes) {
            let after = reserved + bytes;
            match self.reserved_bytes.compare_exchange(reserved, after, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(now) => reserved = now,
            }
        }
        false
    }

    /// Reserves `bytes` beyond the ceiling unless another batch has a reservation. For when no flush can free
    /// more: readers pin the memory in use, or it is the least possible, and one batch too many is better
    /// than a wait without end.
    fn try_reserve_alone(&self, bytes: u64) -> bool {
        self.reserved_bytes.compare_exchange(0, bytes, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Bytes that are reserved.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.reserved_bytes.load(Ordering::Acquire)
    }

    /// Ends a reservation.
    pub(crate) fn give_back(&self, bytes: u64) {
        let before = self.reserved_bytes.fetch_sub(bytes, Ordering::AcqRel);
        assert!(
            before >= bytes,
            "a reservation of {bytes} bytes is given back of {before} that are reserved"
        );
    }
}

/// For tests of writers that are held back.
#[cfg(test)]
impl Throttle {
    /// Reserves `bytes`, whether there is room or not.
    pub(crate) fn take_room(&self, bytes: u64) {
        self.reserved_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Sets the memory debt to its limit, until it is computed again.
    pub(crate) fn fill_memory_debt(&self) {
        self.pressure.set_debt(1.0, None, -1.0, false);
    }
}

#[cfg(test)]
mod tests;
