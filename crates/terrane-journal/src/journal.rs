//! The steps of a commit.
//!
//! 1. Submit: take a ticket, fill the slot.
//! 2. Lead, if no thread leads: form the next group ([`crate::log`]), release the lead, tell the members.
//! 3. Index, on the committing thread.
//! 4. Arrive: publish in ticket order ([`crate::ring`]).
//! 5. Help: lead the next group if no thread leads, so that no filled ticket is left waiting.
//! 6. Wait until the own ticket is published, return the slot.
//!
//! The lead is held during the persist step: tickets gather meanwhile and form the next group.
#![expect(unsafe_code, reason = "only the leader uses the log, and only the owner its entry")]

mod persist;
mod publish;

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use terrane_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use terrane_base::sync::thread;
use terrane_base::{Batch, Error, Kind, Result, SegmentId, SeqNo};

use crate::log::{Log, copy_batch};
use crate::medium::Medium;
use crate::poison::Poison;
use crate::ring::{Ring, phase};
use crate::{Appended, Excerpt, Journal, JournalSettings, JournalStart, Placed, SegmentInfo, SegmentState};

/// How often the leader of a persist step yields the processor, so that the returning members of the previous
/// step join this one. Without it two writers pay for a sync each. All yields together cost less than a sync
/// if no other thread wants the processor; after a step that waited in vain fewer tickets are expected.
const GATHER_TURNS: u32 = if cfg!(feature = "shuttle") { 1 } else { 192 };

/// A journal over any [`Medium`].
pub struct RingJournal<M: Medium> {
    ring: Ring,
    log: UnsafeCell<Log>,
    medium: M,
    poison: Arc<Poison>,
    group_bytes_max: usize,
    is_closed: AtomicBool,
    /// A persist step made everything up to this number durable.
    durable: AtomicU64,
}

// SAFETY: `log` is the only non-`Sync` part; only the leader touches it (rule 5 of the ring), and the lead
// passes on by exchanges that release and acquire.
unsafe impl<M: Medium> Sync for RingJournal<M> {}
// SAFETY: as above; no part is tied to a thread.
unsafe impl<M: Medium> Send for RingJournal<M> {}

impl<M: Medium> RingJournal<M> {
    /// A journal that continues at `start` with segments of `medium`, which sets `poison` if background work
    /// fails.
    ///
    /// # Errors
    /// `Invalid` if a setting is out of range.
    pub fn new(
        medium: M,
        poison: Arc<Poison>,
        settings: &JournalSettings,
        start: &JournalStart,
    ) -> Result<RingJournal<M>> {
        settings.check()?;
        if start.next_seq.0 == 0 || start.next_segment.0 == 0 || start.previous.last_seq >= start.next_seq {
            return Err(Error::invalid(
                "a journal must start at numbers and segments above all earlier ones",
            ));
        }
        Ok(RingJournal {
            ring: Ring::new(settings.ring_slots, SeqNo(start.next_seq.0 - 1)),
            log: UnsafeCell::new(Log::new(settings, start)),
            medium,
            poison,
            // A group lies in one segment and must not waste much of a nearly full one.
            group_bytes_max: settings.group_bytes_max.min(settings.segment_bytes as usize / 4),
            is_closed: AtomicBool::new(false),
            durable: AtomicU64::new(start.next_seq.0 - 1),
        })
    }

    /// The medium.
    pub fn medium(&self) -> &M {
        &self.medium
    }

    /// Forms groups while tickets wait: until the own ticket is in a group; without one, at most one group.
    #[inline]
    fn lead(&self, own: Option<u64>) {
        if own.is_none() && !self.ring.is_head_filled() {
            return;
        }
        while self.ring.try_lead() {
            // SAFETY: this thread leads.
            let log = unsafe { &mut *self.log.get() };
            log.note_durable(SeqNo(self.durable.load(Ordering::Relaxed)));
            self.gather(log);
            let tickets = self.ring.collect(self.group_bytes_max);
            let formed = log.form(&self.ring, &tickets, own, &self.medium, &self.poison);
            self.note_durable(log.durable());
            debug_assert!(
                formed.is_err() || log.durable() < log.next_seq(),
                "only what has a number is durable"
            );
            self.ring.set_head(tickets.end);
            self.ring.release_lead();
            self.give_outcomes(&tickets, own, formed);
            // The members of a group look for the next one themselves, but an empty group has no members.
            let is_done = !tickets.is_empty() && own.is_none_or(|own| own < tickets.end);
            if is_done || !self.ring.is_head_filled() {
                return;
            }
        }
    }

    /// Lets the members of the previous persist step return before the next one starts.
    #[inline]
    fn gather(&self, log: &Log) {
        let expected = log.expected();
        if expected > 1 {
            for _ in 0..GATHER_TURNS {
                if self.ring.gathered() >= expected || !self.is_sync_at_head() {
                    break;
                }
                thread::yield_now();
            }
        }
    }

    fn is_sync_at_head(&self) -> bool {
        // SAFETY: this thread leads, and the entry at the head is filled.
        self.ring.is_head_filled() && unsafe { (*self.ring.entry(self.ring.head())).sync() }
    }

    #[inline]
    fn give_outcomes(&self, tickets: &std::ops::Range<u64>, own: Option<u64>, formed: Result<()>) {
        for ticket in tickets.clone() {
            let outcome = match &formed {
                Ok(()) => phase::PLACED,
                Err(error) => {
                    // SAFETY: rule 2 of the ring; the owner still waits.
                    let entry = unsafe { &mut *self.ring.entry(ticket) };
                    debug_assert!(entry.error.is_none(), "ticket {ticket} fails twice");
                    entry.last_seq = SeqNo(0);
                    entry.error = Some(error.clone());
                    phase::FAILED
                }
            };
            if Some(ticket) == own {
                self.ring.advance_own(ticket, outcome);
            } else {
                self.ring.advance(ticket, outcome);
            }
        }
    }

    /// Waits until the ticket is in a group and helps to form it; returns the group's error if it failed.
    #[inline]
    fn await_group(&self, ticket: u64) -> Result<()> {
        let mut reached = phase::FILLED;
        while reached == phase::FILLED {
            self.lead(Some(ticket));
            reached = self.ring.wait_while(ticket, phase::FILLED);
            if reached == phase::FILLED {
                self.ring.answer(ticket);
            }
        }
        if reached == phase::COPY {
            // SAFETY: in COPY the owner may read the entry, and the range was reserved for its batch.
            unsafe { copy_batch(&*self.ring.entry(ticket)) };
            self.ring.copy_done();
            reached = self.ring.wait_while(ticket, phase::COPY);
        }
        if reached == phase::PLACED {
            return Ok(());
        }
        debug_assert_eq!(reached, phase::FAILED);
        // SAFETY: rule 3 of the ring.
        let error = unsafe { (*self.ring.entry(ticket)).error.take() };
        Err(error.expect("a failed ticket has an error"))
    }

    /// Runs `f` with the log, while no group is formed.
    fn with_log<T>(&self, f: impl FnOnce(&mut Log) -> T) -> T {
        struct Resume<'a, M: Medium>(&'a RingJournal<M>);
        impl<M: Medium> Drop for Resume<'_, M> {
            fn drop(&mut self) {
                self.0.ring.resume();
                if !terrane_base::planted!(ForgetPausedTickets) {
                    self.0.lead(None);
                }
            }
        }
        self.ring.pause();
        let _resume = Resume(self);
        // SAFETY: this thread leads until `_resume` is dropped.
        f(unsafe { &mut *self.log.get() })
    }
}

impl<M: Medium> Journal for RingJournal<M> {
    fn commit(&self, batch: &Batch, sync: bool, index: &mut dyn FnMut(&Placed<'_>)) -> Result<SeqNo> {
        if batch.is_empty() {
            return if sync { self.sync() } else { self.poison.check() }.map(|()| self.visible());
        }
        let ticket = self.ring.submit(Some(batch), sync);
        // A step that is cheap is not worth waking its next leader for.
        let wakes = sync && !self.medium.persists_groups();
        if let Err(error) = self.await_group(ticket) {
            self.publish(ticket, phase::FAILED, true, wakes);
            return Err(error);
        }
        // SAFETY: rule 3 of the ring; the log keeps the segment until the ticket is published.
        let (last_seq, placed) = unsafe {
            let entry = &*self.ring.entry(ticket);
            debug_assert!(
                entry.last_seq.0 >= u64::from(batch.record_count()),
                "a placed batch has its numbers"
            );
            debug_assert_eq!(entry.len(), batch.bytes().len(), "the entry of another ticket");
            let first_seq = SeqNo(entry.last_seq.0 + 1 - u64::from(batch.record_count()));
            let (offset, len) = (entry.offset as usize, entry.len());
            (entry.last_seq, Placed { first_seq, segment: &*entry.segment, offset, len })
        };
        // A panic must not leave the ticket unpublished, or every later commit would wait for it.
        let indexed = catch_unwind(AssertUnwindSafe(|| index(&placed)));
        if indexed.is_err() {
            self.poison.set(Error::new(Kind::Poisoned, format!("indexing batch {last_seq} panicked")));
        }
        let counts = self.publish(ticket, phase::PLACED, indexed.is_ok(), wakes);
        match indexed {
            Err(panic) => resume_unwind(panic),
            Ok(()) if counts => {
                debug_assert!(last_seq <= self.visible(), "a commit returns once its records are visible");
                Ok(last_seq)
            }
            Ok(()) => Err(self.halted()),
        }
    }

    fn visible(&self) -> SeqNo {
        self.ring.visible()
    }

    fn between_groups(&self, f: &mut dyn FnMut(SeqNo)) {
        self.with_log(|log| f(log.next_seq()));
    }

    fn sync(&self) -> Result<()> {
        let ticket = self.ring.submit(None, true);
        let outcome = self.await_group(ticket);
        let reached = if outcome.is_ok() { phase::PLACED } else { phase::FAILED };
        self.publish(ticket, reached, true, true);
        outcome
    }

    fn sync_through(&self, seq: SeqNo) -> Result<()> {
        self.persist_through(seq)
    }

    fn refuse_commits(&self) {
        self.with_log(crate::log::Log::refuse_records);
    }

    fn poison(&self, cause: Error) {
        self.poison.set(cause);
    }

    fn check(&self) -> Result<()> {
        self.poison.check()
    }

    fn complete_segments(&self) -> Vec<SegmentInfo> {
        let mut segments = self.medium.segments();
        // There may be segments after the active one that were too small. They are removed with it, in order.
        let active = segments.iter().position(|segment| segment.state == SegmentState::Active);
        segments.truncate(active.unwrap_or(segments.len()));
        debug_assert!(segments.is_sorted_by(|a, b| a.id < b.id), "a trim takes the oldest ones first");
        segments
    }

    fn unused_segments(&self) -> Vec<SegmentInfo> {
        self.medium.unused_segments()
    }

    fn remove_unused(&self, ids: &[SegmentId]) -> Result<()> {
        self.medium.remove_unused(ids)
    }

    fn appended(&self) -> Appended {
        self.medium.appended()
    }

    fn memory_bytes(&self) -> u64 {
        self.medium.memory_bytes()
    }

    fn held_bytes(&self) -> u64 {
        self.medium.held_bytes()
    }

    fn seal_longer_than(&self, bytes: u64) -> Result<()> {
        self.with_log(|log| log.seal_longer_than(bytes, &self.ring, &self.medium, &self.poison))
    }

    fn segments(&self) -> Vec<SegmentInfo> {
        self.with_log(|log| {
            let mut segments = self.medium.segments();
            if let Some((id, used)) = log.active()
                && let Some(info) = segments.iter_mut().find(|info| info.id == id)
            {
                debug_assert!(info.used <= used && used <= info.bytes, "{info:?} uses {used} bytes");
                info.used = used;
                info.last_seq = SeqNo(log.next_seq().0 - 1);
            }
            segments
        })
    }

    fn excerpt(&self) -> Result<Excerpt> {
        self.check()?;
        Ok(self.with_log(|log| {
            let active = log.active();
            let used = |id, used| active.filter(|(active, _)| *active == id).map_or(used, |(_, used)| used);
            let live = self.medium.live_memory().into_iter();
            let segments = live.map(|(id, bytes, memory)| (memory, used(id, bytes))).collect();
            Excerpt::new(SeqNo(log.next_seq().0 - 1), segments)
        }))
    }

    fn trim_keeping(&self, upto: SegmentId, kept: &[SegmentId]) -> Result<Vec<SegmentId>> {
        self.medium.trim_keeping(upto, kept)
    }

    fn take_back(&self, files: &[(u32, u64)]) -> Result<()> {
        self.medium.take_back(files)
    }

    fn durable(&self) -> SeqNo {
        self.medium.durable().max(SeqNo(self.durable.load(Ordering::Relaxed)))
    }

    fn remove_spares(&self) -> Result<u64> {
        // Otherwise the former segment stays in use until the next rotation.
        self.with_log(|log| log.release_former(self.ring.published_tickets()));
        self.medium.remove_spares()
    }

    fn use_kept_room(&self, flushed: Option<SeqNo>) {
        self.medium.use_kept_room(flushed);
    }

    fn close(&self) -> Result<SeqNo> {
        // AcqRel: the first caller closes; the flag publishes no data.
        if self.is_closed.swap(true, Ordering::AcqRel) {
            return Ok(self.with_log(|log| SeqNo(log.next_seq().0 - 1)));
        }
        let closed = self.with_log(|log| {
            let closed = log.close(&self.ring, &self.medium, &self.poison);
            self.note_durable(log.durable());
            if let (Ok(_), Some(sealed)) = (&closed, log.active_end()) {
                self.medium.end(&sealed);
            }
            self.poison.set(Error::new(Kind::Cancelled, "the journal is closed"));
            closed
        });
        self.medium.stop();
        closed
    }
}

impl<M: Medium> Drop for RingJournal<M> {
    fn drop(&mut self) {
        self.medium.stop();
    }
}

impl<M: Medium> std::fmt::Debug for RingJournal<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RingJournal").field("visible", &self.visible()).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
