//! The write way: admit (limits, pacing) → commit (the journal numbers, places and persists) → index (each
//! writer its own records, in parallel) → publish in order → switch a memtable that is full.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;
use terrane_base::sync::atomic::Ordering;

use terrane_base::epoch::Guard;
use terrane_base::record::Header;
use terrane_base::timing::{self, Part};
use terrane_base::{Batch, Error, Kind, Result, SeqNo};
use terrane_journal::Placed;

use crate::background::scheduler::Schedule;
use crate::engine::Engine;
use crate::observe::events::StallCause;
use crate::observe::job_kind::JobKinds;
use crate::observe::stats::add;
use crate::table::Table;
use crate::write::index;
use crate::write::throttle::charge::Paid;
use crate::write::throttle::token_bucket::PAUSE_MIN;

/// Of the write memory, the share that one batch may take.
const BATCH_SHARE: u64 = 4;
/// Bytes written between two looks at what memory is in use.
const DEBT_QUANTUM_BYTES: u64 = 256 * 1024;

/// How long a write that is no part of a transaction and has no deadline waits for locks of transactions.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// How long the background must have had nothing to do before a writer that waits for memory stops waiting.
const IDLE_MAX: Duration = Duration::from_millis(500);

/// Bytes of the write memory that are reserved for a batch; given back with the value, also where its commit panics.
struct Admitted<'e> {
    engine: &'e Engine,
    bytes: u64,
}

impl Drop for Admitted<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.engine.admitted.fetch_sub(self.bytes, Ordering::AcqRel);
        }
    }
}

/// What a batch was let in with.
pub(crate) struct LetIn {
    /// What of the write memory is reserved for it.
    pub(crate) bytes: u64,
    /// What it paid, as far as that comes back if it is refused behind it.
    pub(crate) paid: Paid,
}

impl LetIn {
    /// Nothing is reserved or comes back.
    pub(crate) const FREE: LetIn = LetIn::reserved(0);

    const fn reserved(bytes: u64) -> LetIn {
        LetIn { bytes, paid: Paid::NOTHING }
    }
}

impl Engine {
    /// Commits `batch`. On return it is visible to every later read; with `sync` it is also durable.
    ///
    /// # Errors
    /// `Invalid` for a batch beyond the limits or for an unknown table, `Full`, `Poisoned`, `Io`.
    pub fn write(&self, batch: &Batch, sync: bool) -> Result<SeqNo> {
        self.commit_admitted(batch, sync, None, |engine| engine.admit(batch))
    }

    /// As [`Engine::write`], but does not wait for locks of transactions: for who has waited for them already.
    ///
    /// # Errors
    /// `TimedOut` if there is one on a key of the batch; otherwise as [`Engine::write`].
    pub fn write_unless_locked(&self, batch: &Batch, sync: bool) -> Result<SeqNo> {
        self.commit_admitted(batch, sync, Some(Duration::ZERO), |engine| engine.admit(batch))
    }

    /// Commits `batch` once `admit` has let it in; it says with what. Where a transaction has a
    /// lock of one of its keys, it waits until this moment of the clock, or as long as any write does.
    #[inline]
    pub(crate) fn commit_admitted(
        &self,
        batch: &Batch,
        sync: bool,
        until: Option<Duration>,
        admit: impl FnOnce(&Engine) -> Result<LetIn>,
    ) -> Result<SeqNo> {
        if batch.is_empty() {
            if sync {
                self.journal.sync()?;
            }
            return Ok(self.journal.visible());
        }
        let _held = terrane_base::planted!(WriteWaitsForTrim).then(|| self.trimming.lock());
        let let_in_by = self.write_wait_max().map(|longest| self.env.clock.now().saturating_add(longest));
        self.write_by(batch, admit, || match self.txn.watch.pass() {
            Some(_unseen) => self.commit_batch(batch, sync),
            None => self.commit_watched(batch, sync, until, let_in_by),
        })
    }

    /// Has `admit` let `batch` in, which is not empty, and `commit` commit it; counts it.
    #[inline]
    pub(crate) fn write_by(
        &self,
        batch: &Batch,
        admit: impl FnOnce(&Engine) -> Result<LetIn>,
        commit: impl FnOnce() -> Result<SeqNo>,
    ) -> Result<SeqNo> {
        if self.options.slow_write_micros > 0 {
            let size = (batch.record_count(), batch.bytes().len());
            return self.watched_write(size, |time| {
                let commit = || {
                    let start = self.env.clock.now();
                    let committed = commit();
                    time.0 = self.env.clock.now().saturating_sub(start);
                    committed
                };
                self.write_unwatched(batch, admit, commit)
            });
        }
        self.write_unwatched(batch, admit, commit)
    }

    #[inline]
    fn write_unwatched(
        &self,
        batch: &Batch,
        admit: impl FnOnce(&Engine) -> Result<LetIn>,
        commit: impl FnOnce() -> Result<SeqNo>,
    ) -> Result<SeqNo> {
        let LetIn { bytes, paid } = admit(self)?;
        let admitted = Admitted { engine: self, bytes };
        let committed = commit();
        drop(admitted);
        let seq = match committed {
            // Locks, or extents that come in, kept it out.
            Err(error) if matches!(error.kind(), Kind::Busy | Kind::TimedOut) => {
                paid.give_back(self);
                return Err(error);
            }
            committed => committed?,
        };
        let count = u64::from(batch.record_count());
        add(&self.counters.batches_written, 1);
        add(&self.counters.records_written, count);
        self.count_bytes(batch.bytes().len() as u64);
        Ok(seq)
    }

    /// Commits an admitted batch.
    #[inline]
    pub(crate) fn commit_batch(&self, batch: &Batch, sync: bool) -> Result<SeqNo> {
        let seq = self.journal.commit(batch, sync, &mut |placed| self.index(placed))?;
        self.feeds.wake_if_waiting();
        Ok(seq)
    }

    /// Counts bytes written; each time a quantum of them has come together, the debt is computed anew.
    #[inline]
    fn count_bytes(&self, bytes: u64) {
        let before = self.counters.bytes_written.fetch_add(bytes, Ordering::Relaxed);
        if before / DEBT_QUANTUM_BYTES != (before + bytes) / DEBT_QUANTUM_BYTES {
            self.refresh_debt();
        }
    }

    /// Refuses what cannot be committed and holds back what the background cannot follow. Returns among others how
    /// many bytes were reserved for the batch: all of a large one, whose room must be there before it comes.
    pub(crate) fn admit(&self, batch: &Batch) -> Result<LetIn> {
        if let Some(longest) = self.write_wait_max() {
            return self.admit_within(batch, longest, None);
        }
        let bytes = self.check_batch(batch)?;
        self.let_in(batch, bytes)
    }

    /// As [`Engine::admit`], but for a batch that was prepared: it is not too large, whatever the ceiling is by now.
    pub(crate) fn admit_prepared(&self, batch: &Batch) -> Result<LetIn> {
        self.check_open()?;
        self.let_in(batch, batch.bytes().len() as u64)
    }

    /// Holds a batch of `bytes` back for what is owed, and for memory.
    fn let_in(&self, batch: &Batch, bytes: u64) -> Result<LetIn> {
        let mut waited = self.pay(batch);
        let reserved = if self.needs_room(bytes) { self.reserve(bytes, None, &mut waited) } else { Ok(0) };
        self.note_held_back(waited);
        reserved.map(LetIn::reserved)
    }

    /// Notes how long pacing and the wait for memory held one write back.
    #[inline]
    pub(crate) fn note_held_back(&self, waited: Duration) {
        // What is less than the shortest pause is the look at what is owed.
        if waited >= PAUSE_MIN {
            self.histograms.write_wait_micros.observe(waited.as_micros() as u64);
            timing::add(Part::HeldBack, waited);
        }
    }

    /// Refuses what cannot be committed; returns the bytes of the batch.
    pub(crate) fn check_batch(&self, batch: &Batch) -> Result<u64> {
        let bytes = batch.bytes().len() as u64;
        let limit = self.memory.budget().write_bytes() / BATCH_SHARE;
        if bytes > limit {
            return Err(Error::invalid(format!(
                "batch of {bytes} bytes: with memory_bytes={} the limit is {limit} bytes; split the batch or raise \
                 memory_bytes",
                self.memory.budget().memory_bytes()
            )));
        }
        self.check_open()?;
        Ok(bytes)
    }

    fn check_open(&self) -> Result<()> {
        self.refuse_if_read_only()?;
        if self.is_closing() {
            return Err(Error::new(Kind::Cancelled, "the database is closing"));
        }
        Ok(())
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Whether room is reserved for a batch of `bytes` before it comes.
    pub(crate) fn needs_room(&self, bytes: u64) -> bool {
        bytes > DEBT_QUANTUM_BYTES || self.pressure.debt() >= 1.0
    }

    /// What a batch of `bytes` takes of the write memory.
    pub(crate) fn room_for(&self, bytes: u64) -> u64 {
        // A batch that fits no ordinary segment gets one of its own, beside the one that was kept ready.
        let is_oversized = bytes >= self.options.segment_bytes;
        if is_oversized { bytes + self.options.segment_bytes } else { bytes }
    }

    /// Waits while the write memory has no room for a batch of `bytes`, then reserves it; fails when the background cannot
    /// bring memory back, or has not `until` then. Returns what was reserved, and adds how long it waited.
    #[cold]
    pub(crate) fn reserve(&self, bytes: u64, until: Option<Duration>, waited: &mut Duration) -> Result<u64> {
        let bytes = self.room_for(bytes);
        self.give_up_adapting();
        let is_reserved = Cell::new(false);
        let fits = || {
            is_reserved.set(is_reserved.get() || self.try_reserve(bytes));
            is_reserved.get()
        };
        let (idle_since, is_alone, is_late) = (Cell::new(None), Cell::new(false), Cell::new(false));
        // Kept: by the time it is told, the work may have begun again.
        let (failure, seen) = (Cell::new(None), self.scheduler.inspect(Schedule::newest_piece));
        let has_failed = || {
            let failed = |schedule: &Schedule| self.lasting_failure(schedule, JobKinds::MEMORY, None, seen);
            let found = self.scheduler.inspect(failed);
            let is_there = found.is_some();
            failure.set(found);
            is_there
        };
        let gives_up = || {
            // Memory that nobody needs any more may still wait for its epoch.
            terrane_base::epoch::pin().flush();
            let is_idle = self.scheduler.inspect(|schedule| self.has_nothing_to_do(schedule));
            let now = self.env.clock.now();
            idle_since.set(if is_idle { idle_since.get().or(Some(now)) } else { None });
            is_late.set(until.is_some_and(|until| now >= until));
            is_late.get()
                || self.closing.load(Ordering::Relaxed)
                || has_failed()
                || self.journal.check().is_err()
                || {
                    let is_stuck = idle_since.get().is_some_and(|since| now - since > IDLE_MAX);
                    is_alone.set(is_stuck && self.try_reserve_alone(bytes));
                    is_alone.get()
                }
        };
        let took = self.pressure.wait_for_memory(&self.env, until, &fits, &gives_up);
        if took >= PAUSE_MIN {
            self.note_stall(took, || StallCause::Memory);
        }
        *waited += took;
        if is_reserved.get() || is_alone.get() {
            return Ok(bytes);
        }
        self.journal.check()?;
        if is_late.get() && !self.is_closing() {
            return Err(Error::new(Kind::Busy, "write memory is full"));
        }
        Err(match failure.take() {
            Some(cause) => {
                let kind = cause.kind();
                cause.context("write memory is full and cannot be flushed").with_kind(kind)
            }
            None => Error::new(Kind::Cancelled, "the database is closing"),
        })
    }

    /// Reserves `bytes` beyond the ceiling unless somebody else has. For when nothing is left to flush: what is in use
    /// is pinned by readers or is the least there can be, and one batch too many is better than a wait without end.
    fn try_reserve_alone(&self, bytes: u64) -> bool {
        self.admitted.compare_exchange(0, bytes, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Reserves `bytes` of the write memory if they are free.
    pub(crate) fn try_reserve(&self, bytes: u64) -> bool {
        let reserved = self.admitted.fetch_add(bytes, Ordering::AcqRel) + bytes;
        let fits = self.memory.has_room_for(reserved);
        if !fits {
            self.admitted.fetch_sub(bytes, Ordering::AcqRel);
        }
        fits
    }

    /// Indexes the records of one committed batch where they lie. Called by the journal, once per batch.
    fn index(&self, placed: &Placed<'_>) {
        let guard = terrane_base::epoch::pin();
        let bytes = index::placed_bytes(placed);
        let mut at = 0;
        let mut seq = placed.first_seq;
        let mut last: Option<&Arc<Table>> = None;
        while at < bytes.len() {
            let header = Header::decode(&bytes[at..]).expect("a batch holds whole records");
            // A table that was dropped meanwhile takes no record; recovery leaves it out as well.
            if let Some(table) = self.catalog.get(header.table, &guard) {
                match table.picture(&guard).memtable_for(seq) {
                    Some(memtable) => index::insert(memtable, placed.segment, placed.offset + at, seq),
                    None => assert!(table.is_dropped(), "memtables are kept until their numbers are visible"),
                }
                if let Some(before) = last.filter(|before| !Arc::ptr_eq(before, table)) {
                    self.note_if_full(before, &guard);
                }
                last = Some(table);
            }
            at += header.record_len();
            seq = SeqNo(seq.0 + 1);
        }
        if let Some(table) = last {
            self.note_if_full(table, &guard);
        }
    }

    #[inline]
    fn note_if_full(&self, table: &Table, guard: &Guard) {
        let active = &table.picture(guard).active;
        if active.record_bytes() + active.index_bytes() >= self.memory.memtable_limit() {
            self.note_full(table);
        }
    }
}
