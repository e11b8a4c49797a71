//! The write path: permit (limits, throttle, memory) → gate (locks of transactions, ingests) → commit (the
//! journal numbers, places and persists) and index (each writer its own records, in parallel; published in
//! order) → account.
//!
//! Every write takes these steps in this order: plain batches here, transactions in `txn/transaction.rs` and
//! `txn/prepared.rs`, which validate at the gate. Memory that is reserved is given back before a wait at the
//! gate, and taken again after it: an owner of locks may need it.

use std::sync::Arc;
use std::time::Duration;

use terrane_base::epoch::Guard;
use terrane_base::record::Header;
use terrane_base::{Batch, Error, RecordKind, Result, SegmentId, SeqNo, sampling};
use terrane_journal::Placed;
use terrane_memtable::Memtable;

use crate::table::Table;
use crate::table::read_view::ReadView;
use crate::throttle::JournalPlace;
use crate::throttle::deadline::WriteWait;
use crate::write::WritePath;
use crate::write::index::{self, BatchRanges};

/// A batch that was committed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Committed {
    /// Its last number.
    pub(crate) seq: SeqNo,
    /// Where it ends in the journal.
    pub(crate) end: JournalPlace,
}

/// The present time, if the calling commit is sampled.
#[inline]
fn start_if_sampled(path: &WritePath) -> Option<Duration> {
    sampling::is_commit_due().then(|| path.env.clock.now())
}

/// Notes how long a sampled commit took that began at `start`; a refused one does not count.
#[cold]
fn note_commit_time(path: &WritePath, start: Duration, is_committed: bool) {
    let took = path.env.clock.now().saturating_sub(start);
    if is_committed {
        path.histograms.commit_nanos.observe(took.as_nanos() as u64);
    }
}

impl WritePath {
    /// Commits `batch`. On return it is visible to every later read; with `sync` it is also durable.
    ///
    /// # Errors
    /// `Invalid` for a batch beyond the limits or for an unknown table, `Full`, `Poisoned`, `Io`.
    pub fn write(&self, batch: &Batch, sync: bool) -> Result<SeqNo> {
        self.write_waiting(batch, sync, &WriteWait::by_options(self))
    }

    /// As [`WritePath::write`], but fails at once if a transaction locks a key of the batch. For callers that
    /// already waited.
    ///
    /// # Errors
    /// `TimedOut` if there is such a lock; otherwise as [`WritePath::write`].
    pub fn write_unless_locked(&self, batch: &Batch, sync: bool) -> Result<SeqNo> {
        self.write_waiting(batch, sync, &WriteWait::without_locks(self))
    }

    /// As [`WritePath::write`], but waits at most `wait_max` for throttle, memory and locks together; with 0,
    /// does not wait. Throttle and memory also keep to `write_wait_max_ms`. A sync takes as long as the
    /// device.
    ///
    /// # Errors
    /// `Busy` if that was not enough, `TimedOut` if a transaction kept a lock of one of its keys until then:
    /// nothing is written. Otherwise as [`WritePath::write`].
    pub fn write_within(&self, batch: &Batch, sync: bool, wait_max: Duration) -> Result<SeqNo> {
        self.write_waiting(batch, sync, &WriteWait::within(self, wait_max))
    }

    /// Commits a batch that belongs to no transaction, held back for as long as `wait` says.
    #[inline]
    pub(crate) fn write_waiting(&self, batch: &Batch, sync: bool, wait: &WriteWait) -> Result<SeqNo> {
        if batch.is_empty() {
            return self.write_nothing(sync);
        }
        let start = start_if_sampled(self);
        let done = match self.write_once(batch, sync, wait) {
            Err(full) if full.lacks_space() => self.write_once_more(batch, sync, wait, full),
            done => done,
        };
        if let Some(start) = start {
            note_commit_time(self, start, done.is_ok());
        }
        done
    }

    /// [`WritePath::behind_attempt`] of a batch that belongs to no transaction.
    #[cold]
    fn write_once_more(&self, batch: &Batch, sync: bool, wait: &WriteWait, full: Error) -> Result<SeqNo> {
        let write = || self.write_once(batch, sync, wait);
        self.behind_attempt(batch, wait.admission.is_some(), full, &write)
    }

    /// Runs `write`, which admits `batch` and commits it, and times a sample; once more, after an attempt to
    /// give space back, if the device has no room for it (`full.rs`). With `is_bounded` the writer waits for
    /// a limited time only: it asks for the attempt and is refused, unless none is under way.
    ///
    /// # Errors
    /// Those of `write`: a refused batch is not written, so that it can be written again.
    #[inline]
    pub(crate) fn with_space<T>(
        &self,
        batch: &Batch,
        is_bounded: bool,
        write: impl Fn() -> Result<T>,
    ) -> Result<T> {
        let start = start_if_sampled(self);
        let done = match write() {
            Err(full) if full.lacks_space() => self.behind_attempt(batch, is_bounded, full, &write),
            done => done,
        };
        if let Some(start) = start {
            note_commit_time(self, start, done.is_ok());
        }
        done
    }

    /// The steps of the head. Part of its two callers, so that the first attempt of a write takes no call.
    #[inline(always)]
    fn write_once(&self, batch: &Batch, sync: bool, wait: &WriteWait) -> Result<SeqNo> {
        let _held = terrane_base::planted!(WriteWaitsForTrim).then(|| self.trims.hold());
        let mut probe = self.slow_log.probe_write(batch);
        let mut permit = self.write_control().admit(batch, wait.admission)?;
        probe.note_admitted();
        let gate = self.txn.pass_gate((self, &permit), batch, wait)?;
        self.write_control().begin_commit(&mut permit, batch, wait.admission)?;
        let committed = self.commit_batch(batch, sync)?;
        debug_assert!(
            committed.seq >= SeqNo(u64::from(batch.record_count())),
            "each record has a number of its own"
        );
        gate.leave(committed.seq);
        probe.note_committed();
        permit.spend();
        self.account(batch, committed);
        Ok(committed.seq)
    }

    #[cold]
    fn write_nothing(&self, sync: bool) -> Result<SeqNo> {
        if sync {
            self.sync_journal()?;
        }
        Ok(self.journal.visible())
    }

    /// Commits a batch that is admitted and past the gate: the journal numbers, places and persists it, this
    /// thread indexes its records, and they are published after all earlier ones.
    #[inline]
    pub(crate) fn commit_batch(&self, batch: &Batch, sync: bool) -> Result<Committed> {
        let mut end = JournalPlace::default();
        let seq = self.journal.commit(batch, sync, &mut |placed| {
            end = JournalPlace::end_of(placed);
            self.index(placed);
        })?;
        debug_assert!(seq <= self.journal.visible(), "a commit returns once every read sees it");
        self.readers.of_changes().wake_if_waiting();
        Ok(Committed { seq, end })
    }

    /// Counts a committed batch; after each quantum of bytes the debt is computed again.
    #[inline]
    pub(crate) fn account(&self, batch: &Batch, committed: Committed) {
        debug_assert!(batch.record_count() > 0, "an empty batch has no place in the journal");
        self.written.add(u64::from(batch.record_count()), batch.bytes().len() as u64);
        if self.throttle.is_look_due(committed.end) {
            self.refresh_debt();
        }
    }

    /// Indexes the records of one committed batch where they lie. Called by the journal, once per batch.
    fn index(&self, placed: &Placed<'_>) {
        let guard = terrane_base::epoch::pin();
        let bytes = index::placed_bytes(placed);
        let mut at = 0;
        let mut seq = placed.first_seq;
        let mut last: Option<&Arc<Table>> = None;
        // Whether `last` is to be noted: growth is looked for in active memtables that are noted.
        let mut is_unnoted = false;
        let mut ranges = BatchRanges::default();
        while at < bytes.len() {
            let header = Header::decode(&bytes[at..]).expect("a batch holds whole records");
            // A table that was dropped meanwhile takes no record; recovery leaves it out as well.
            if let Some(table) = self.catalog.get(header.table, &guard) {
                if let Some(before) = last.filter(|before| !Arc::ptr_eq(before, table)) {
                    self.note_written(before, std::mem::take(&mut is_unnoted), &guard);
                }
                last = Some(table);
                let view = table.view(&guard);
                match view.memtable_for(seq) {
                    Some(memtable) if header.kind == RecordKind::RangeDelete => {
                        ranges.push(table, memtable, placed.offset + at, seq);
                    }
                    Some(memtable) => {
                        index::insert(memtable, placed.segment, placed.offset + at, seq);
                        is_unnoted |= is_to_note(memtable, view, placed.segment.id);
                    }
                    None => assert!(table.is_dropped(), "memtables are kept until their numbers are visible"),
                }
            }
            at += header.record_len();
            seq = SeqNo(seq.0 + 1);
        }
        debug_assert!(at == bytes.len(), "the last record ends with its batch");
        if let Some(table) = last {
            self.note_written(table, is_unnoted, &guard);
        }
        if !ranges.is_empty() {
            ranges.insert(placed.segment, |table, memtable| {
                let is_unnoted = is_to_note(memtable, table.view(&guard), placed.segment.id);
                self.note_written(table, is_unnoted, &guard);
            });
        }
    }

    #[inline]
    fn note_written(&self, table: &Table, is_unnoted: bool, guard: &Guard) {
        debug_assert!(table.is_of(&self.catalog), "a record was indexed in the table of another database");
        if is_unnoted {
            table.note_part();
        }
        let active = &table.view(guard).active;
        let record_bytes = active.record_bytes();
        table.note_growth(record_bytes);
        if record_bytes + active.index_bytes() >= self.memory.memtable_limit() {
            self.note_full(table);
        }
    }
}

/// Returns true if the table is to be noted for records of this segment that its `memtable` got.
#[inline]
fn is_to_note(memtable: &Memtable, view: &ReadView, segment: SegmentId) -> bool {
    let is_noted = memtable.is_noted(segment) || terrane_base::planted!(MissFirstRecord);
    !is_noted || !std::ptr::eq(memtable, &*view.active)
}
