//! Attempts to give space back to a full device, as writers and jobs see them.

use std::sync::Arc;
use std::time::Duration;

use terrane_base::sync::Mutex;
use terrane_base::sync::atomic::{AtomicU64, Ordering};
use terrane_base::{SegmentId, SeqNo};

use crate::observe::job_kind::{JobKind, JobKinds};
use crate::shared::Shared;
use crate::table::Table;

/// Jobs after which space may be free that was not before.
const FREEING: JobKinds = JobKinds::of(&[JobKind::Flush, JobKind::Compact, JobKind::Adapt, JobKind::Trim]);

/// The attempts of a database.
#[derive(Default)]
pub(crate) struct SpaceAttempts {
    pub(in crate::background) state: Mutex<State>,
    /// Jobs that have ended and may have freed space.
    pub(in crate::background) freeing: AtomicU64,
}

#[derive(Default)]
pub(in crate::background) struct State {
    /// The number of the newest attempt.
    pub(in crate::background) newest: u64,
    pub(in crate::background) under_way: Option<Phase>,
    pub(in crate::background) last: Option<Ended>,
    /// How long no attempt begins after the last one if nothing changes.
    pub(in crate::background) pause: Duration,
    /// Writers that wait for an attempt.
    pub(in crate::background) waiting: u64,
    /// Bytes that were free on the device after the last job.
    pub(in crate::background) room_bytes: Option<u64>,
}

pub(in crate::background) enum Phase {
    Asked,
    Flushing(Flushing),
    /// A job of the pool is at it.
    AtWork,
}

/// A flush of these tables up to a number.
#[derive(Clone)]
pub(in crate::background) struct Flushing {
    pub(in crate::background) tables: Arc<[Arc<Table>]>,
    pub(in crate::background) upto: SeqNo,
    /// The newest piece of work when it was asked for.
    pub(in crate::background) seen: u64,
    /// True if a trim follows.
    pub(in crate::background) is_last: bool,
}

/// How an attempt has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The flush found no room, or does not run: the background is paused, or the database closes.
    Failed,
    /// All is flushed, and segments that are not needed any more may still be there.
    Flushed,
    /// All up to this number is flushed, and the journal is trimmed.
    Trimmed(SeqNo),
}

pub(in crate::background) struct Ended {
    pub(in crate::background) outcome: Outcome,
    pub(in crate::background) at: Duration,
    pub(in crate::background) seen: SpaceSeen,
}

/// The answer to a refused writer.
pub(crate) enum Answer {
    /// An attempt is under way, with this number.
    UnderWay(u64),
    /// Nothing has changed since the last one, which ended so.
    Unchanged(Outcome),
}

/// State that changes when space may have become free.
#[derive(Clone, Debug)]
pub(in crate::background) struct SpaceSeen {
    /// Jobs that had ended.
    pub(in crate::background) freeing: u64,
    /// The segment of the last commit: a newer one has records that were not flushed, and the next attempt
    /// trims the ones before it.
    pub(in crate::background) newest_segment: Option<SegmentId>,
    /// Snapshots, and the oldest of them.
    pub(in crate::background) pins: u64,
    pub(in crate::background) oldest_pin: Option<SeqNo>,
    /// Bytes of slots with extents: fewer when a reader or a checkpoint has let go of some.
    pub(in crate::background) taken_bytes: u64,
    /// Bytes of slots that wait to be used again, or to be given back.
    pub(in crate::background) idle_bytes: u64,
    /// Bytes that are free on the device.
    pub(in crate::background) device_free: u64,
    /// A trim had to wait, and still has to.
    pub(in crate::background) waits_for_trim: bool,
}

impl SpaceSeen {
    /// Returns true if there may be space now, as `self` says, that there was not `before`. Both are looks
    /// without a lock: one that saw too little begins no attempt, and the next refused writer looks again.
    pub(in crate::background) fn may_have_freed_since(&self, before: &SpaceSeen) -> bool {
        self.freeing > before.freeing
            || self.newest_segment > before.newest_segment
            || self.pins < before.pins
            || before.oldest_pin.is_some_and(|oldest| self.oldest_pin.is_none_or(|now| now > oldest))
            || self.taken_bytes < before.taken_bytes
            || self.idle_bytes > before.idle_bytes
            || self.device_free > before.device_free
            || before.waits_for_trim && !self.waits_for_trim
    }
}

impl SpaceAttempts {
    /// Notes that a job of this kind has done its work.
    pub(crate) fn note_done(&self, kind: JobKind) {
        if FREEING.has(kind) {
            // Relaxed: that something may have changed is all it says.
            self.freeing.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Asks the device how many bytes are free for extents; `u64::MAX` where it does not say, and where
    /// extents do not lie in the directory.
    pub(crate) fn look_at_room(&self, shared: &Shared) -> u64 {
        let is_here = !shared.opening.is_elsewhere();
        let asked = is_here.then(|| shared.disk().free_bytes(shared.dir()).ok()).flatten();
        let free = asked.unwrap_or(u64::MAX);
        self.state.lock().room_bytes = Some(free);
        free
    }

    /// As [`SpaceAttempts::look_at_room`], at the last look: pickers look often, and what each job took and
    /// freed is known after it.
    pub(crate) fn room_bytes(&self, shared: &Shared) -> u64 {
        let known = self.state.lock().room_bytes;
        known.unwrap_or_else(|| self.look_at_room(shared))
    }

    /// The outcome of the attempt with this number, or of a later one, once it has ended.
    pub(in crate::background) fn outcome_of(&self, number: u64) -> Option<Outcome> {
        let state = self.state.lock();
        assert!(number <= state.newest, "a writer waits for attempt {number} of {}", state.newest);
        let has_ended = state.under_way.is_none() || state.newest > number;
        has_ended.then(|| state.last.as_ref().map_or(Outcome::Failed, |last| last.outcome))
    }

    pub(in crate::background) fn wait(&self, turn: impl FnOnce(u64) -> u64) {
        let mut state = self.state.lock();
        state.waiting = turn(state.waiting);
        debug_assert!(state.newest > 0, "a writer waits, and there was no attempt");
    }
}
