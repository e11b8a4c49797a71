//! Attempts to give space back to a device that has refused a writer.
//!
//! One attempt serves all writers that wait for one. Its steps are jobs of the pool, so that no writer does
//! its work, and none of them waits for a flush or for a reader of segments:
//!
//! 1. *Asked for*, by a writer that was refused.
//! 2. *Flushing* what was committed until then. If that fails the attempt has failed.
//! 3. The active segment is sealed, unless it is short and has room; *flushing* what was committed meanwhile.
//! 4. The journal is trimmed, unless a check has the segments, and free slots and spare files are given back
//!    to the device.
//!
//! Behind an attempt no new one begins until something has changed that may free space ([`SpaceSeen`]), or a
//! pause is over that doubles with each attempt for no other reason. Writers that are refused meanwhile have
//! the outcome of the last attempt at once.

use std::sync::Arc;
use std::time::Duration;

use terrane_base::sync::Mutex;
use terrane_base::sync::atomic::{AtomicU64, Ordering};
use terrane_base::{SegmentId, SeqNo};
use terrane_journal::{SegmentInfo, SegmentState};

use crate::background::job::{Job, Look};
use crate::background::maintenance::Maintenance;
use crate::background::requests::refuse_if_paused;
use crate::background::scheduler::Schedule;
use crate::observe::job_kind::{JobKind, JobKinds};
use crate::shared::Shared;
use crate::table::Table;

/// An active segment of so many bytes is not worth another one.
pub(crate) const SHORT_SEGMENT_BYTES: u64 = 64 << 10;
/// A segment with less than one part in so many left is nearly full.
const FULL_SHARE: u64 = 32;
/// The first pause behind an attempt.
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// The longest one.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Jobs behind which space may be free that was not before.
const FREEING: JobKinds = JobKinds::of(&[JobKind::Flush, JobKind::Compact, JobKind::Adapt, JobKind::Trim]);

/// The attempts of a database.
#[derive(Default)]
pub(crate) struct SpaceAttempts {
    state: Mutex<State>,
    /// Jobs that have ended and may have freed space.
    freeing: AtomicU64,
}

#[derive(Default)]
struct State {
    /// The number of the newest attempt.
    newest: u64,
    under_way: Option<Phase>,
    last: Option<Ended>,
    /// How long no attempt begins behind the last one if nothing changes.
    pause: Duration,
    /// Writers that wait for an attempt.
    waiting: u64,
    /// Bytes that were free on the device behind the last job.
    room_bytes: Option<u64>,
}

enum Phase {
    Asked,
    Flushing(Flushing),
    /// A job of the pool is at it.
    AtWork,
}

/// A flush of these tables up to a number.
#[derive(Clone)]
struct Flushing {
    tables: Arc<[Arc<Table>]>,
    upto: SeqNo,
    /// The newest piece of work when it was asked for.
    seen: u64,
    /// True if a trim follows.
    is_last: bool,
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

struct Ended {
    outcome: Outcome,
    at: Duration,
    seen: SpaceSeen,
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
struct SpaceSeen {
    /// Jobs that had ended.
    freeing: u64,
    /// The segment of the last commit: a newer one has records that were not flushed, and the next attempt
    /// trims the ones before it.
    newest_segment: Option<SegmentId>,
    /// Snapshots, and the oldest of them.
    pins: u64,
    oldest_pin: Option<SeqNo>,
    /// Bytes of slots with extents: fewer when a reader or a checkpoint has let go of some.
    taken_bytes: u64,
    /// Bytes of slots that wait to be used again, or to be given back.
    idle_bytes: u64,
    /// Bytes that are free on the device.
    device_free: u64,
    /// A trim had to wait, and still has to.
    waits_for_trim: bool,
}

impl SpaceSeen {
    /// The present state of what may free space.
    fn of(engine: &Maintenance) -> SpaceSeen {
        // Extents that readers have let go of are free once no epoch is left that began before.
        engine.collect_epochs();
        let (usage, segments) = (engine.store.usage(), engine.journal.segments());
        SpaceSeen {
            freeing: engine.background.space.freeing.load(Ordering::Relaxed),
            newest_segment: segments.iter().rfind(|one| one.state != SegmentState::Unused).map(|one| one.id),
            pins: engine.pins.count(),
            oldest_pin: engine.pins.oldest(),
            taken_bytes: usage.live_bytes,
            idle_bytes: usage.free_bytes,
            device_free: engine.disk().free_bytes(engine.dir()).unwrap_or_default(),
            waits_for_trim: engine.trims.is_checked() && engine.is_trim_due(),
        }
    }

    /// Returns true if there may be space now, as `self` says, that there was not `before`. Both are looks
    /// without a lock: one that saw too little begins no attempt, and the next refused writer looks again.
    fn may_have_freed_since(&self, before: &SpaceSeen) -> bool {
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
    fn outcome_of(&self, number: u64) -> Option<Outcome> {
        let state = self.state.lock();
        assert!(number <= state.newest, "a writer waits for attempt {number} of {}", state.newest);
        let has_ended = state.under_way.is_none() || state.newest > number;
        has_ended.then(|| state.last.as_ref().map_or(Outcome::Failed, |last| last.outcome))
    }

    fn wait(&self, turn: impl FnOnce(u64) -> u64) {
        let mut state = self.state.lock();
        state.waiting = turn(state.waiting);
        debug_assert!(state.newest > 0, "a writer waits, and there was no attempt");
    }
}

impl Look<'_> {
    /// The next step of the attempt that is under way, if it is due and none runs.
    pub(crate) fn next_space_step(self) -> Option<Job> {
        let schedule = self.schedule;
        let flushing = match &self.background.space.state.lock().under_way {
            None | Some(Phase::AtWork) => return None,
            Some(Phase::Asked) => None,
            Some(Phase::Flushing(flushing)) => Some(flushing.clone()),
        };
        debug_assert!(!self.options.read_only, "a reader asks for no space");
        if schedule.is_running_anywhere(JobKind::Reclaim) {
            return None;
        }
        let Some(Flushing { tables, upto, seen, .. }) = flushing else {
            return Some(Job::GiveSpaceBack { is_flushed: false });
        };
        if seen > schedule.newest_piece() {
            // A copy from before the flush was asked for. A caller that has one looks again.
            return None;
        }
        match self.is_flush_done(&tables, upto, seen) {
            Ok(false) => None,
            done => Some(Job::GiveSpaceBack { is_flushed: done.is_ok() }),
        }
    }
}

impl Maintenance {
    /// For a writer that the device has refused: has an attempt begun, unless one is under way or nothing has
    /// changed since the last one. For a batch that only `removes` keys, another attempt is of use as soon as
    /// something was committed since.
    pub(crate) fn ask_for_space(&self, removes: bool) -> Answer {
        debug_assert!(!self.options.read_only, "a reader admits no batch");
        if self.background.scheduler.inspect(Schedule::is_paused) {
            return Answer::Unchanged(Outcome::Failed);
        }
        // Without the lock: it asks the device.
        let (now, seen, visible) = (self.env.clock.now(), SpaceSeen::of(self), self.journal.visible());
        let mut state = self.background.space.state.lock();
        let mut pause = PAUSE_MIN;
        if let Some(last) = &state.last {
            let trimmed = match last.outcome {
                Outcome::Trimmed(seq) => Some(seq),
                Outcome::Failed | Outcome::Flushed => None,
            };
            let is_all_flushed = trimmed.is_some_and(|trimmed| trimmed >= visible);
            // What a merge has freed since lies in the files of extents until an attempt gives it back.
            if removes && is_all_flushed && !seen.may_have_freed_since(&last.seen) {
                return Answer::Unchanged(last.outcome);
            }
            let has_more = removes && trimmed.is_some();
            if state.under_way.is_none()
                && !has_more
                && !seen.may_have_freed_since(&last.seen)
                && !terrane_base::planted!(AttemptForEachWriter)
            {
                if now < last.at.saturating_add(state.pause) {
                    return Answer::Unchanged(last.outcome);
                }
                pause = (state.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX);
            }
        }
        if state.under_way.is_none() {
            state.newest += 1;
            state.under_way = Some(Phase::Asked);
            state.pause = pause;
        }
        let number = state.newest;
        drop(state);
        self.background.scheduler.wake();
        Answer::UnderWay(number)
    }

    /// Waits for an attempt. Requires: the caller holds nothing that a flush or a trim needs.
    pub(crate) fn wait_for_space(&self, number: u64) -> Outcome {
        debug_assert!(number > 0, "0 names no attempt: nothing would end the wait");
        let space = &self.background.space;
        space.wait(|waiting| waiting + 1);
        let mut outcome = Outcome::Failed;
        let waited = self.background.scheduler.wait_for(|schedule| {
            refuse_if_paused(schedule)?;
            let ended = space.outcome_of(number);
            outcome = ended.unwrap_or(outcome);
            Ok(ended.is_some())
        });
        space.wait(|waiting| waiting - 1);
        // Paused or closing: the refusal of the device says best what to do.
        if waited.is_ok() { outcome } else { Outcome::Failed }
    }
}

/// A step that runs. Whatever happens in it, the attempt goes on with the next one or ends: writers wait for
/// that.
pub(crate) struct StepOfSpace<'e> {
    engine: &'e Maintenance,
    next: Option<Flushing>,
    outcome: Outcome,
}

impl StepOfSpace<'_> {
    /// Does the step of the attempt that is due; `is_flushed` says whether the flush that it waited for, if
    /// it did, has succeeded.
    pub(crate) fn take(engine: &Maintenance, is_flushed: bool) {
        let phase = {
            let mut state = engine.background.space.state.lock();
            // Before anything changes: writers would wait for ever for a step that nothing takes.
            let is_due = matches!(state.under_way, Some(Phase::Asked | Phase::Flushing(_)));
            assert!(is_due, "one job at a time takes a step that is due");
            state.under_way.replace(Phase::AtWork)
        };
        let mut step = StepOfSpace { engine, next: None, outcome: Outcome::Failed };
        match phase {
            Some(Phase::Asked) => step.next = Some(flush_for_space(engine, false)),
            Some(Phase::Flushing(_)) if !is_flushed => {}
            Some(Phase::Flushing(flushing)) if flushing.is_last => {
                step.outcome = end_of_attempt(engine, flushing.upto)
            }
            Some(Phase::Flushing(_)) => {
                // The next commit makes a segment of its own, so that a trim takes this one. Not before a
                // flush has found room: small batches would have only the rest of this one.
                let _ = engine.journal.seal_longer_than(longest_left(&engine.journal.segments()));
                step.next = Some(flush_for_space(engine, true));
            }
            None | Some(Phase::AtWork) => {}
        }
    }
}

/// The bytes of an active segment that is left. One that is nearly full is not: few batches fit, and its
/// space is of more use.
fn longest_left(segments: &[SegmentInfo]) -> u64 {
    let active = segments.iter().rfind(|one| one.state == SegmentState::Active);
    debug_assert!(active.is_none_or(|one| one.used <= one.bytes), "a segment has what fits: {active:?}");
    let is_full = active.is_some_and(|one| one.bytes.saturating_sub(one.used) < one.bytes / FULL_SHARE);
    if is_full { 0 } else { SHORT_SEGMENT_BYTES }
}

/// The last step, behind a flush up to `flushed`.
fn end_of_attempt(engine: &Maintenance, flushed: SeqNo) -> Outcome {
    debug_assert!(flushed <= engine.journal.visible(), "{flushed} is flushed before readers see it");
    let trimmed = engine.trim_unless_held();
    // Otherwise free slots and spare files wait for the next rest. A failure here frees nothing, and the
    // write that follows says why.
    let _ = engine.reclaim_idle();
    if matches!(trimmed, Ok(true)) { Outcome::Trimmed(flushed) } else { Outcome::Flushed }
}

/// Has everything flushed that readers see by now, and so all that callers know to be committed. Looks at
/// tables with records that are not in the levels only.
fn flush_for_space(engine: &Maintenance, is_last: bool) -> Flushing {
    // The number is read first, as in [`Maintenance::trimmable`]: what it counts lies in tables that are
    // noted, or in the levels. Those whose work has stopped are among them: the flush fails by them.
    let upto = engine.journal.visible();
    let mut tables = engine.catalog.unflushed();
    let asked = engine.request_flush(&tables);
    debug_assert!(upto <= asked, "readers see {upto}, and the flush is asked for up to {asked}");
    tables.retain(|table| !table.is_flushed(upto));
    let seen = engine.background.scheduler.ask(JobKinds::MEMORY, &tables);
    Flushing { tables: tables.into(), upto, seen, is_last }
}

impl Drop for StepOfSpace<'_> {
    fn drop(&mut self) {
        let space = &self.engine.background.space;
        let (next, outcome) = (self.next.take(), self.outcome);
        let ended = next.is_none().then(|| {
            let (at, seen) = (self.engine.env.clock.now(), SpaceSeen::of(self.engine));
            Ended { outcome, at, seen }
        });
        let mut state = space.state.lock();
        debug_assert!(matches!(state.under_way, Some(Phase::AtWork)), "a step is of the attempt under way");
        state.under_way = next.map(Phase::Flushing);
        state.last = ended.or(state.last.take());
    }
}

#[cfg(test)]
mod tests;
