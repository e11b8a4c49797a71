//! Write memory for a batch: reserved before a large batch is written, and for every batch at the ceiling.

use std::time::Duration;

use terrane_base::options::Options;
use terrane_base::{Batch, Error, Kind, Result};

use crate::observe::events::StallCause;
use crate::pace::token_bucket::PAUSE_MIN;
use crate::table::settings::long_segment_bytes;
use crate::throttle::control::WriteControl;

/// How long the background must have had no job that can free memory before a writer that waits for memory
/// stops waiting, ..
const IDLE_MAX: Duration = Duration::from_millis(500);
/// .. and how often the writer must have looked meanwhile: on a busy machine it may have no turn for as long,
/// and what readers hold comes back between two looks.
const IDLE_LOOKS_MIN: u32 = 8;

/// The write memory that a batch of `bytes` takes. One that fits no ordinary segment gets a longer one,
/// and the segment that is prepared after it may be as long as long segments are.
fn room_for(bytes: u64, options: &Options) -> u64 {
    let is_oversized = bytes >= options.segment_bytes;
    if is_oversized { bytes + long_segment_bytes(options) } else { bytes }
}

/// A writer that waits for room.
pub(super) struct RoomWait<'e> {
    pub(super) control: WriteControl<'e>,
    bytes: u64,
    until: Option<Duration>,
    /// The newest piece of background work when the wait began.
    seen: u64,
    /// Since when the background has had no job that can free memory, and how many looks have found that.
    idle_since: Option<Duration>,
    idle_looks: u32,
}

impl<'e> RoomWait<'e> {
    /// A wait for `bytes`, until `until` at most.
    pub(super) fn new(control: WriteControl<'e>, bytes: u64, until: Option<Duration>) -> RoomWait<'e> {
        let seen = control.background.newest_piece();
        RoomWait { control, bytes, until, seen, idle_since: None, idle_looks: 0 }
    }

    /// Checks whether the wait is over: the memory is reserved, or an error says why none will be free.
    fn look(&mut self) -> Option<Result<()>> {
        debug_assert!(self.bytes > 0, "a writer that takes nothing waits for memory");
        if self.control.try_reserve(self.bytes) {
            return Some(Ok(()));
        }
        if let Some(error) = self.given_up() {
            return Some(Err(error));
        }
        (self.is_stuck() && self.control.throttle.try_reserve_alone(self.bytes)).then_some(Ok(()))
    }

    /// Why the writer, which has found no room, should wait no longer, if that is so.
    pub(super) fn given_up(&mut self) -> Option<Error> {
        // Memory that is out of use may still wait for its epoch.
        terrane_base::epoch::forget_garbage();
        let now = self.control.env.clock.now();
        self.note_idle(now);
        let refused = self.refusal(now);
        // The journal knows best why nothing can be written any more.
        self.control.journal.check().err().or(refused)
    }

    /// Returns true if the background has had no job that can free memory for so long that none will come.
    pub(super) fn is_stuck(&self) -> bool {
        let now = self.control.env.clock.now();
        let is_long = self.idle_since.is_some_and(|since| now.saturating_sub(since) > IDLE_MAX);
        is_long && self.idle_looks >= IDLE_LOOKS_MIN
    }

    fn note_idle(&mut self, now: Duration) {
        let is_idle = self.control.background.frees_nothing();
        self.idle_since = if is_idle { self.idle_since.or(Some(now)) } else { None };
        self.idle_looks = if is_idle { self.idle_looks.saturating_add(1) } else { 0 };
        debug_assert!(
            self.idle_since.is_some() == (self.idle_looks > 0),
            "an idle background is seen at a look"
        );
    }

    /// Why the writer should wait no longer, if it should not.
    fn refusal(&self, now: Duration) -> Option<Error> {
        if self.control.is_closing() {
            return Some(Error::new(Kind::Cancelled, "the database is closing"));
        }
        if self.until.is_some_and(|until| now >= until) {
            return Some(Error::new(Kind::Busy, "write memory is full"));
        }
        let cause = self.control.background.memory_failure(self.seen)?;
        let kind = cause.kind();
        Some(cause.context("write memory is full and cannot be flushed").with_kind(kind))
    }
}

impl WriteControl<'_> {
    /// Waits while the write memory has no room for `batch`, then reserves it; fails if the background cannot
    /// free memory, or has not by `until`. Returns how many bytes are reserved, and adds how long it waited.
    #[cold]
    pub(super) fn reserve(
        &self,
        batch: &Batch,
        until: Option<Duration>,
        waited: &mut Duration,
    ) -> Result<u64> {
        let bytes = room_for(batch.bytes().len() as u64, &self.options);
        self.background.give_up_adapting();
        let mut wait = RoomWait::new(*self, bytes, until);
        let (reserved, took) = self.throttle.pressure.wait_for_memory(&self.env, until, || wait.look());
        if took >= PAUSE_MIN {
            self.note_stall(took, || StallCause::Memory);
        }
        let counted = || self.throttle.reserved_bytes();
        debug_assert!(reserved.is_err() || counted() >= bytes, "a reservation counts until it is given back");
        *waited += took;
        reserved.map(|()| bytes)
    }

    /// Reserves `bytes` of the write memory if they are free.
    fn try_reserve(&self, bytes: u64) -> bool {
        self.throttle.try_reserve(bytes, |reserved| self.memory.has_room_for(reserved))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_fits_no_segment_has_room_for_the_long_one_behind_it() {
        let options = Options { segment_bytes: 2 << 20, write_memory_bytes: 32 << 20, ..Options::default() };
        assert_eq!(room_for(1 << 20, &options), 1 << 20, "in a segment that is counted already");
        assert_eq!(room_for(3 << 20, &options), (3 + 4) << 20, "an eighth of the write memory behind it");
        let short = Options { write_memory_bytes: 8 << 20, ..options };
        assert_eq!(room_for(2 << 20, &short), (2 + 2) << 20, "no long segments, an ordinary one");
    }
}
