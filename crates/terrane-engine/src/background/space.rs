//! Attempts to give space back to a device that has refused a writer.
//!
//! One attempt serves all writers that wait for one. Its steps are jobs of the pool, so that no writer does
//! its work, and none of them waits for a flush or for a reader of segments:
//!
//! 1. *Asked for*, by a writer that was refused.
//! 2. *Flushing* what was committed until then. If that fails the attempt has failed.
//! 3. The active segment is sealed, unless it is short and has room; *flushing* what was committed meanwhile.
//! 4. When no flush runs any more: the journal is trimmed, unless a check has the segments, and free slots
//!    and spare files are given back to the device.
//!
//! After an attempt no new one begins until something has changed that may free space ([`SpaceSeen`]), or a
//! pause is over that doubles with each attempt for no other reason. Writers that are refused meanwhile have
//! the outcome of the last attempt at once.

use std::time::Duration;

use terrane_base::SeqNo;
use terrane_base::sync::atomic::Ordering;
use terrane_journal::{SegmentInfo, SegmentState};

use crate::background::job::{Job, Look};
use crate::background::maintenance::Maintenance;
use crate::background::scheduler::Schedule;
use crate::background::state::space_attempts::{Answer, Ended, Flushing, Outcome, Phase, SpaceSeen};
use crate::observe::job_kind::{JobKind, JobKinds};

/// An active segment of so many bytes is not worth another one.
pub(crate) const SHORT_SEGMENT_BYTES: u64 = 64 << 10;
/// A segment with less than one part in so many left is nearly full.
const FULL_SHARE: u64 = 32;
/// The first pause after an attempt.
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// The longest one.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The present state of what may free space.
fn seen_now(engine: &Maintenance) -> SpaceSeen {
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
        let Some(Flushing { tables, upto, seen, is_last }) = flushing else {
            return Some(Job::GiveSpaceBack { is_flushed: false });
        };
        if is_last && schedule.is_running_anywhere(JobKind::Flush) {
            // A flush holds its generation, and with it the segments, until the job has ended: the device
            // has their space only then, though all is in the levels.
            return None;
        }
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
        let (now, seen, visible) = (self.env.clock.now(), seen_now(self), self.journal.visible());
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
            schedule.refuse_if_paused()?;
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

/// The last step, after a flush up to `flushed`.
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
            let (at, seen) = (self.engine.env.clock.now(), seen_now(self.engine));
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
