//! Room in the write memory for a batch: reserved before a large batch comes, and for every batch at the
//! ceiling.

use std::time::Duration;
use terrane_base::sync::atomic::Ordering;

use terrane_base::{Batch, Error, Kind, Result};

use crate::background::scheduler::Schedule;
use crate::engine::Engine;
use crate::observe::events::StallCause;
use crate::observe::job_kind::JobKinds;
use crate::write::throttle::Throttle;
use crate::write::throttle::debt::DEBT_QUANTUM_BYTES;
use crate::write::throttle::token_bucket::PAUSE_MIN;

/// How long the background must have had nothing to do before a writer that waits for memory stops waiting.
const IDLE_MAX: Duration = Duration::from_millis(500);

/// Whether room is reserved for a batch before it comes.
#[inline]
pub(super) fn needs_room(throttle: &Throttle, batch: &Batch) -> bool {
    batch.bytes().len() as u64 > DEBT_QUANTUM_BYTES || throttle.debt() >= 1.0
}

/// A writer that waits for room.
struct RoomWait<'e> {
    engine: &'e Engine,
    bytes: u64,
    until: Option<Duration>,
    /// The newest piece of background work when the wait began.
    seen: u64,
    /// Since when the background has had nothing to do.
    idle_since: Option<Duration>,
}

impl RoomWait<'_> {
    /// Looks whether the wait is over: the room is reserved, or an error says why there will be none.
    fn look(&mut self) -> Option<Result<()>> {
        if self.engine.try_reserve(self.bytes) {
            return Some(Ok(()));
        }
        // Memory that is out of use may still wait for its epoch.
        terrane_base::epoch::pin().flush();
        let now = self.engine.env.clock.now();
        self.note_idle(now);
        let refused = self.refusal(now);
        if let Some(error) = refused {
            return Some(Err(self.engine.journal.check().err().unwrap_or(error)));
        }
        if let Err(error) = self.engine.journal.check() {
            return Some(Err(error));
        }
        let is_stuck = self.idle_since.is_some_and(|since| now.saturating_sub(since) > IDLE_MAX);
        (is_stuck && self.engine.throttle.try_reserve_alone(self.bytes)).then_some(Ok(()))
    }

    fn note_idle(&mut self, now: Duration) {
        let is_idle = self.engine.has_nothing_to_do(&self.engine.scheduler.copy_for([]));
        self.idle_since = if is_idle { self.idle_since.or(Some(now)) } else { None };
    }

    /// Why the writer should wait no longer, if it should not.
    fn refusal(&self, now: Duration) -> Option<Error> {
        let engine = self.engine;
        if engine.is_closing() {
            return Some(Error::new(Kind::Cancelled, "the database is closing"));
        }
        if self.until.is_some_and(|until| now >= until) {
            return Some(Error::new(Kind::Busy, "write memory is full"));
        }
        let schedule = engine.scheduler.copy_for([]);
        let cause = engine.lasting_failure(&schedule, JobKinds::MEMORY, None, self.seen)?;
        let kind = cause.kind();
        Some(cause.context("write memory is full and cannot be flushed").with_kind(kind))
    }
}

impl Engine {
    /// Waits while the write memory has no room for `batch`, then reserves it; fails when the background
    /// cannot bring memory back, or has not by `until`. Returns how many bytes are reserved, and adds how
    /// long it waited.
    #[cold]
    pub(super) fn reserve(
        &self,
        batch: &Batch,
        until: Option<Duration>,
        waited: &mut Duration,
    ) -> Result<u64> {
        let bytes = self.room_for(batch.bytes().len() as u64);
        self.give_up_adapting();
        let seen = self.scheduler.inspect(Schedule::newest_piece);
        let mut wait = RoomWait { engine: self, bytes, until, seen, idle_since: None };
        let (reserved, took) = self.throttle.pressure.wait_for_memory(&self.env, until, || wait.look());
        if took >= PAUSE_MIN {
            self.note_stall(took, || StallCause::Memory);
        }
        *waited += took;
        reserved.map(|()| bytes)
    }

    /// What a batch of `bytes` takes of the write memory.
    fn room_for(&self, bytes: u64) -> u64 {
        // A batch that fits no ordinary segment gets one of its own, beside the one that was kept ready.
        let is_oversized = bytes >= self.options.segment_bytes;
        if is_oversized { bytes + self.options.segment_bytes } else { bytes }
    }

    /// Reserves `bytes` of the write memory if they are free.
    fn try_reserve(&self, bytes: u64) -> bool {
        self.throttle.try_reserve(bytes, |reserved| self.memory.has_room_for(reserved))
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }
}
