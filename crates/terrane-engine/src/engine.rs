//! The parts of an open database, and what they know of each other. What they show other processes is in
//! `engine/sharing.rs`; `engine/writer_watch.rs` finds that another writer has taken over.

mod sharing;
mod writer_watch;

use std::ops::Deref;
use std::sync::Arc;

use terrane_base::Result;
use terrane_base::options::JournalMode;
use terrane_base::sync::Mutex;
use terrane_device::DiskLock;
use terrane_format::manifest::EditOp;

use crate::background::job::Look;
use crate::background::maintenance::Maintenance;
use crate::background::scheduler::Schedule;
use crate::bulk::ingest::Loader;
use crate::inspect::shape::Shape;
use crate::observe::stats::{Statistics, Stats};
use crate::shared::{Holds, Shared};
use crate::table::Table;
use crate::write::WritePath;

/// An open database. Everything is reached through shared references.
///
/// It dereferences to its [`WritePath`], that to the [`Maintenance`], and that to [`Shared`], each of which
/// lies inline in it: the methods of a part need no part above, and callers of the engine find them here.
pub struct Engine {
    /// The parts.
    pub(crate) write_path: WritePath,
    /// Refuses a second opener while it lives; readers share it.
    pub(crate) lock: Mutex<Option<Box<dyn DiskLock>>>,
}

impl Deref for Engine {
    type Target = WritePath;

    #[inline]
    fn deref(&self) -> &WritePath {
        &self.write_path
    }
}

impl Holds<Shared> for Engine {
    fn part(&self) -> &Shared {
        self
    }
}

impl Holds<Maintenance> for Engine {
    fn part(&self) -> &Maintenance {
        self
    }
}

impl Holds<WritePath> for Engine {
    fn part(&self) -> &WritePath {
        self
    }
}

impl Engine {
    /// Counts since the open.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = self.counters.snapshot();
        stats.batches_written = self.written.batches();
        stats.records_written = self.written.records();
        stats.bytes_written = self.written.bytes();
        stats.slow_operations = self.slow_log.operations();
        let cache = self.cache.usage();
        stats.cache_bytes = cache.used_bytes;
        stats.cache_accounting_bytes = cache.accounting_bytes;
        stats.cache_misses = cache.kinds.iter().map(|kind| kind.misses).sum();
        stats.writes_paused_micros = self.throttle.paused().as_micros() as u64;
        self.files.flows().show(self.journal.appended(), &mut stats);
        stats.device_ring_reads = self.disk().ring_reads();
        self.txn.show(&mut stats);
        let state = self.manifest.state();
        (stats.history_segments, stats.history_bytes) = (state.history.len() as u64, state.history_bytes());
        self.readers.show(self.env.clock.now(), &mut stats);
        (stats.events_dropped, stats.listener_panics) = self.events.counts();
        stats.ticket_panics = self.async_writes.callback_panics();
        stats.memory_bytes = self.memory.in_use();
        stats.memory_journal_bytes = self.journal.memory_bytes();
        stats.memory_index_bytes = self.catalog.sums().index_bytes();
        stats.memory_held_bytes = self.catalog.sums().held_bytes() + self.journal.held_bytes();
        stats.memory_limit_bytes = self.memory.budget().memory_bytes();
        stats.memory_bytes_max = self.note_memory(stats.memory_bytes);
        debug_assert!(
            stats.memory_bytes_max >= stats.memory_bytes,
            "the highest value is no older than the present one"
        );
        let store = self.store.usage();
        (stats.store_bytes, stats.store_live_bytes) = (store.file_bytes, store.live_bytes);
        stats.show_remote_reads(&self.store.remote_reads());
        stats.show_requests(&self.files.requests());
        stats.process_cpu_micros = self.opening.processor_time().as_micros() as u64;
        stats.pressure_permille = (self.throttle.debt() * 1000.0) as u64;
        stats
    }

    /// All metrics of the database and of its tables.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.statistics_with(&self.stats())
    }

    /// The state of every tree now.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape_with(self.debt())
    }

    /// Changes the memory ceiling, and with it every size that was left to the engine. A lower ceiling is in
    /// force at once: when this returns, the cache has evicted its excess except for blocks that readers
    /// hold, and writers wait until their excess is flushed.
    ///
    /// # Errors
    /// `Invalid` where it contradicts other options, naming them, or the database was opened read-only.
    pub fn set_memory_bytes(&self, memory_bytes: u64) -> Result<()> {
        self.refuse_if_read_only()?;
        let options = self.memory.options_under(memory_bytes, &self.options)?;
        debug_assert!(
            options.memory_bytes == memory_bytes,
            "writers and the cache are divided under another ceiling"
        );
        self.txn.set_write_bytes(options.write_memory_bytes);
        self.memory.set_ceiling(&options);
        self.catalog.sums().set_memory_bytes(options.memory_bytes);
        for table in self.catalog.all() {
            let view = table.pinned();
            if view.active.record_bytes() + view.active.index_bytes() >= self.memory.memtable_limit() {
                self.note_full(&table);
            }
        }
        self.refresh_debt();
        self.background.scheduler.wake();
        Ok(())
    }

    /// Begins a bulk load of `table`.
    ///
    /// # Errors
    /// `Invalid` if the database was opened read-only, `NotFound` if the
    /// table was dropped, `Cancelled` if the database is closing, `Poisoned` if background work on the table
    /// has stopped.
    pub fn begin_load(self: &Arc<Self>, table: &Arc<Table>) -> Result<Loader> {
        Loader::begin(self.clone(), table)
    }

    /// Stops background work, makes every commit durable (with the journal off, by a flush) and releases the
    /// lock. Flushes before, where that costs little and the option `close_flush` is set, and gives back
    /// space that is not needed. Idempotent.
    ///
    /// # Errors
    /// `Io` or `Poisoned` from the last sync; the database is closed all the same. `Invalid` in a callback:
    /// nothing is done.
    pub fn close(&self) -> Result<()> {
        terrane_base::callback::refuse()?;
        // With the journal off, records that are only in memory would be lost.
        let is_unsafe = self.options.journal == JournalMode::Off && !self.options.read_only;
        let flushed = match self.is_closing() {
            false if is_unsafe => self.drain(),
            false => {
                self.flush_before_close();
                Ok(())
            }
            true => Ok(()),
        };
        flushed.and(self.shut())
    }

    /// [`Engine::close`] without a flush: records that are only in memory stay in the journal.
    pub(crate) fn shut(&self) -> Result<()> {
        if !self.opening.begin_close() {
            // Another caller closes it. A flush that its close has cancelled is an error of that call, too.
            return Ok(());
        }
        debug_assert!(self.is_closing(), "a writer that is woken now would wait again, for ever");
        self.throttle.wake();
        self.readers.of_changes().wake();
        self.background.scheduler.close();
        self.stop_sharing();
        self.background.writer_watch.close();
        self.background.upkeep.close();
        self.events.close(self.instance());
        self.async_writes.close(self.instance());
        let closed = if self.options.read_only { Ok(()) } else { self.close_journal() };
        if terrane_base::assertion::VERIFY || cfg!(debug_assertions) {
            let schedule = Schedule::default();
            self.shared.recount(|| Look { engine: self, schedule: &schedule }.finds_all_levels());
        }
        self.lock.lock().take();
        terrane_base::epoch::forget_garbage();
        closed
    }

    /// Makes every commit durable for an orderly close. With the journal off, records that were not flushed
    /// are lost.
    fn close_journal(&self) -> Result<()> {
        let last_seq = self.journal.close()?;
        assert!(last_seq >= self.visible(), "the journal ends at {last_seq}, before a visible commit");
        // Only space is at stake: what cannot be given back now is found at the next opening.
        let _ = self.give_back_space();
        self.append_edit(vec![EditOp::CleanClose { last_seq }])?;
        self.manifest.close()
    }

    /// Flushes everything that was ever acknowledged.
    fn drain(&self) -> Result<()> {
        self.begin_drain();
        // Not by `flush`, which refuses the thread of listeners: a listener may close its database, and no
        // worker waits for one.
        self.flush_and_wait(&self.catalog.all())
    }

    /// From now on commits are refused, or they would be acknowledged behind the last flush and lost.
    pub(crate) fn begin_drain(&self) {
        debug_assert!(
            self.options.journal == JournalMode::Off,
            "the journal keeps records that are only in memory"
        );
        if !terrane_base::planted!(AcceptWhileClosing) {
            self.journal.refuse_commits();
        }
        // A background that is paused would refuse.
        self.background.scheduler.drain();
        self.events.look_again();
    }
}
