//! The admission of a batch that is larger than its share of the write memory, up to all that writers and the
//! cache may hold together.
//!
//! 1. *Limit*: its bytes, and those of the index over its records, fit beside nothing else
//!    (`memory/decide.rs`).
//! 2. *Turn*: such batches go one at a time, in the order in which they came. Two that make room at once
//!    would each wait for the memory of the other.
//! 3. *Room*: if there is too little, all tables are flushed, the active segment is sealed, and segments are
//!    trimmed, before compactions. The cache gives up its blocks. Other writers wait meanwhile: small ones
//!    would take the room bit by bit.
//! 4. *Promise*: from there to the commit the cache leaves the room free, and others count it as taken.
//! 5. *Commit*: the journal counts the segment of the batch; the promise is over.
//! 6. *Behind it*: its segment is sealed and everything is flushed, so that the memory comes back at once.
//!
//! A writer that waits here holds its place in the queue and nothing that a flush or a trim needs. It may
//! hold locks of keys as well: no job takes these. A writer that waits for locks of keys gives turn and room
//! back first, and takes another turn once it has them: the owner of the locks may wait for its turn.

use std::time::Duration;

use terrane_base::options::Options;
use terrane_base::{Batch, Error, Kind, RecordKind, Result};

use crate::observe::events::StallCause;
use crate::pace::token_bucket::PAUSE_MIN;
use crate::table::settings::long_segment_bytes;
use crate::throttle::control::WriteControl;
use crate::throttle::deadline::Deadline;
use crate::throttle::permit::WritePermit;
use crate::throttle::room::RoomWait;
use crate::throttle::turns::{HeldTurn, Turn};

/// The index over one record, at most: a version, its share of nodes that branch at every key and of those
/// that they grew out of, and the filter.
const INDEX_BYTES: u64 = 96;
/// The index over one range delete, beside its keys: fragments with the numbers of what covers them.
const RANGE_INDEX_BYTES: u64 = 320;

/// How often a batch has everything flushed: the rest of memory is kept by readers.
const ASKED_MAX: u32 = 4;

/// The memory that a batch takes.
struct Needs {
    /// Its bytes in the segment.
    bytes: u64,
    records: u64,
    /// The index over its records.
    index_bytes: u64,
}

impl Needs {
    fn of(batch: &Batch) -> Needs {
        let mut index_bytes = u64::from(batch.record_count()) * INDEX_BYTES;
        for record in batch.records().filter(|record| record.kind == RecordKind::RangeDelete) {
            index_bytes += RANGE_INDEX_BYTES + 2 * (record.key.len() + record.value.len()) as u64;
        }
        Needs { bytes: batch.bytes().len() as u64, records: u64::from(batch.record_count()), index_bytes }
    }

    /// All of it.
    fn sum(&self) -> u64 {
        self.bytes + self.index_bytes
    }

    /// With the segment that is prepared after the batch: one may be as long as long segments are, unless
    /// the journal has short ones again to make room.
    fn room(&self, options: &Options, is_short: bool) -> u64 {
        self.sum() + if is_short { options.segment_bytes } else { long_segment_bytes(options) }
    }
}

impl<'e> WriteControl<'e> {
    /// Admits a batch that is larger than its share; see the head of the file. One that was prepared is never
    /// too large.
    ///
    /// # Errors
    /// As [`WriteControl::admit`]; `Busy` also where readers keep memory that it needs.
    #[cold]
    pub(super) fn admit_large(
        self,
        batch: &Batch,
        deadline: Option<Deadline>,
        is_prepared: bool,
    ) -> Result<WritePermit<'e>> {
        let start = self.env.clock.now();
        let admitted = self.admit_in_turn(batch, deadline, is_prepared);
        self.note_held_back(self.env.clock.now().saturating_sub(start));
        admitted.map_err(|error| self.held_back_by(deadline, error))
    }

    fn admit_in_turn(
        self,
        batch: &Batch,
        deadline: Option<Deadline>,
        is_prepared: bool,
    ) -> Result<WritePermit<'e>> {
        let needs = Needs::of(batch);
        let limit = self.memory.largest_batch();
        if needs.sum() > limit && !is_prepared {
            return Err(self.too_large(&needs, limit));
        }
        let until = deadline.map(|deadline| deadline.at);
        let turn = self.take_turn(&needs, until, is_prepared)?;
        let mut permit = match deadline {
            Some(deadline) => self
                .charge_by(batch, deadline.at)
                .ok_or_else(|| Error::new(Kind::Busy, "the background has to catch up"))?,
            None => {
                self.charge(batch);
                WritePermit::new(self.throttle)
            }
        };
        self.reserve_in_turn(&mut permit, turn, &needs, until)?;
        debug_assert!(permit.has_room(), "the room that was made for the batch is free for others");
        Ok(permit)
    }

    /// Waits for another turn of a batch that has given the first one back.
    pub(super) fn take_turn_again(
        self,
        permit: &mut WritePermit<'e>,
        batch: &Batch,
        until: Option<Duration>,
        is_prepared: bool,
    ) -> Result<()> {
        debug_assert!(!permit.has_room(), "a batch has one turn");
        let needs = Needs::of(batch);
        let turn = self.take_turn(&needs, until, is_prepared)?;
        self.reserve_in_turn(permit, turn, &needs, until)
    }

    fn too_large(self, needs: &Needs, limit: u64) -> Error {
        debug_assert!(needs.sum() > limit, "{} bytes are within the limit of {limit}", needs.sum());
        let memory_bytes = self.memory.budget().memory_bytes();
        // In proportion, and one more part of the limit: other sizes follow in steps.
        let enough = (memory_bytes / limit.max(1) + 1).saturating_mul(needs.sum()).next_multiple_of(1 << 20);
        let message = format!(
            "batch of {} bytes, {} with the index over its {} records: with memory_bytes={memory_bytes} the limit of \
             a batch is {limit} bytes; split the batch, or raise memory_bytes to {} MiB",
            needs.bytes,
            needs.sum(),
            needs.records,
            enough >> 20
        );
        Error::too_large(message, enough)
    }

    /// Waits until it is the turn of this batch.
    fn take_turn(self, needs: &Needs, until: Option<Duration>, is_prepared: bool) -> Result<Turn<'e>> {
        let turn = Turn::new(HeldTurn::enter(self, needs.index_bytes, is_prepared));
        self.wait_while(until, "another large batch is being written", || !turn.has_come())?;
        Ok(turn)
    }

    /// Waits while room is made for a batch that is larger than its share; returns for how long.
    #[inline]
    pub(super) fn wait_for_turns(self, deadline: Option<Deadline>) -> Result<Duration> {
        if !self.throttle.is_making_room() {
            return Ok(Duration::ZERO);
        }
        let (until, why) = (deadline.map(|deadline| deadline.at), "memory is freed for a large batch");
        let waited = self.wait_while(until, why, || self.throttle.is_making_room());
        waited.map_err(|error| self.held_back_by(deadline, error))
    }

    /// Waits while `is_so`; returns for how long.
    fn wait_while(self, until: Option<Duration>, why: &str, is_so: impl Fn() -> bool) -> Result<Duration> {
        let look = || {
            if !is_so() {
                return Some(Ok(()));
            }
            if self.is_closing() {
                return Some(Err(Error::new(Kind::Cancelled, "the database is closing")));
            }
            let is_late = until.is_some_and(|until| self.env.clock.now() >= until);
            let late = is_late.then(|| Error::new(Kind::Busy, why.to_owned()));
            self.journal.check().err().or(late).map(Err)
        };
        let (ended, took) = self.throttle.pressure.wait_for_memory(&self.env, until, look);
        if took >= PAUSE_MIN {
            self.note_stall(took, || StallCause::Memory);
        }
        ended.map(|()| took)
    }

    /// Reserves the room of the batch whose turn it is, and promises it. The permit has both then.
    fn reserve_in_turn(
        self,
        permit: &mut WritePermit<'e>,
        turn: Turn<'e>,
        needs: &Needs,
        until: Option<Duration>,
    ) -> Result<()> {
        self.background.give_up_adapting();
        let room = RoomWait::new(self, needs.sum(), until);
        let mut wait = LargeWait { room, needs, is_prepared: turn.is_prepared(), asked: 0 };
        let (reserved, took) = self.throttle.pressure.wait_for_memory(&self.env, until, || wait.look());
        if took >= PAUSE_MIN {
            self.note_stall(took, || StallCause::Memory);
        }
        let counted = || self.throttle.reserved_bytes();
        debug_assert!(
            reserved.as_ref().is_ok_and(|bytes| counted() >= *bytes) || reserved.is_err(),
            "a reservation counts until it is given back"
        );
        permit.take_reservation(reserved?);
        permit.take_turn(turn.keep());
        Ok(())
    }
}

/// The batch whose turn it is waits for room.
struct LargeWait<'e, 'n> {
    room: RoomWait<'e>,
    needs: &'n Needs,
    is_prepared: bool,
    /// How often room was asked for: the journal has short segments from the first time on.
    asked: u32,
}

impl LargeWait<'_, '_> {
    /// Checks whether the wait is over: the memory is reserved, or an error says why it will not be.
    fn look(&mut self) -> Option<Result<u64>> {
        debug_assert!(self.asked <= ASKED_MAX, "room was asked for {} times", self.asked);
        let control = self.room.control;
        let bytes = self.needs.room(&control.options, self.asked > 0);
        if control.throttle.try_reserve(bytes, |reserved| control.memory.has_room_for_large(reserved)) {
            return Some(Ok(self.have(bytes)));
        }
        // While flushes are paused only this batch waits: it would hold all others back for as long.
        let is_paused = control.background.is_paused();
        // Others wait for flushes and trims, not for compactions after these, which free no memory.
        let is_freeing = control.background.frees_memory();
        control.throttle.pressure.hold(!is_paused && (self.asked == 0 || is_freeing));
        control.memory.promise(if is_paused { 0 } else { bytes });
        // Again for what was committed meanwhile, and for the segment that took it.
        if !is_paused && (self.asked == 0 || !is_freeing && self.asked < ASKED_MAX) {
            self.asked += 1;
            control.background.make_room();
        }
        if let Some(error) = self.room.given_up() {
            return Some(Err(error));
        }
        self.room.is_stuck().then(|| self.alone(bytes))
    }

    fn have(&self, bytes: u64) -> u64 {
        debug_assert!(
            self.room.control.throttle.reserved_bytes() >= bytes,
            "at most the reserved bytes can be promised"
        );
        let control = self.room.control;
        control.memory.promise(bytes);
        control.throttle.pressure.hold(false);
        bytes
    }

    /// All is flushed, and there is too little room still. Prepared transactions have to be committed; others
    /// can be written again.
    fn alone(&self, bytes: u64) -> Result<u64> {
        if self.is_prepared && self.room.control.throttle.try_reserve_alone(bytes) {
            return Ok(self.have(bytes));
        }
        let memory = self.room.control.memory;
        let (writers, all) = (memory.use_of_writers(), memory.in_use());
        debug_assert!(bytes >= self.needs.sum(), "a batch of {} bytes takes them", self.needs.sum());
        Err(Error::new(
            Kind::Busy,
            format!(
                "a batch takes {bytes} bytes of memory, and readers or tables keep some that no flush frees ({writers} \
                 of writers, {} of the cache, {} of what readers hold): close iterators that are not needed, or \
                 split the batch",
                all.saturating_sub(writers),
                memory.held_bytes()
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_counts_with_the_index_over_its_records() {
        let mut batch = Batch::new();
        batch.put(terrane_base::TableId::DEFAULT, b"key", b"value").expect("within the limits");
        let put = Needs::of(&batch);
        assert_eq!(put.sum(), batch.bytes().len() as u64 + INDEX_BYTES);
        batch.delete_range(terrane_base::TableId::DEFAULT, b"a", b"b").expect("a range");
        assert!(Needs::of(&batch).index_bytes > 2 * put.index_bytes + RANGE_INDEX_BYTES - INDEX_BYTES);
        let options = Options { segment_bytes: 1 << 20, write_memory_bytes: 32 << 20, ..Options::default() };
        assert_eq!(put.room(&options, false) - put.sum(), 4 << 20);
        assert_eq!(put.room(&options, true) - put.sum(), 1 << 20, "the next segment is an ordinary one");
    }
}
