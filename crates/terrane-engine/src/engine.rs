//! The parts of an open database, and what they know of each other.

use std::path::PathBuf;
use std::sync::Arc;
use terrane_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use terrane_base::env::Env;
use terrane_base::options::{JournalMode, Options};
use terrane_base::sync::Mutex;
use terrane_base::{Error, Functions, Result, SeqNo};
use terrane_compaction::{JobControl, LocalCompactor, RateLimiter, Work};
use terrane_device::{Disk, DiskLock};
use terrane_journal::Journal;
use terrane_levels::{Manifest, Pins};
use terrane_storage::Store;
use terrane_table::{Cache, RowCache};

use crate::background::compaction::read_heavy::ReadHeavy;
use crate::background::idle::IdleWatch;
use crate::background::scheduler::Scheduler;
use crate::background::scrub::Scrubber;
use crate::bulk::ingest::mark::Marks;
use crate::change_feed::Feeds;
use crate::memory::arbiter::MemoryArbiter;
use crate::observe::events::Events;
use crate::observe::io_accounting::Flows;
use crate::observe::stats::written::Written;
use crate::observe::stats::{Counters, Histograms, Stats, add};
use crate::read::snapshots::Readers;
use crate::table::Table;
use crate::table::catalog::Catalog;
use crate::txn::Transactions;
use crate::write::throttle::Throttle;

/// An open database. Everything is reached through shared references.
pub struct Engine {
    /// Tells it from every other engine of this process, at any time; from 1.
    pub(crate) instance: u64,
    /// The doors.
    pub(crate) env: Env,
    /// The device under everything.
    pub(crate) disk: Arc<dyn Disk>,
    /// Directory of the database.
    pub(crate) dir: PathBuf,
    /// Options in force, resolved.
    pub(crate) options: Options,
    /// The memory ceiling, and how it is divided.
    pub(crate) memory: MemoryArbiter,
    /// Where extents live; reads through it are those of users.
    pub(crate) store: Arc<dyn Store>,
    /// Blocks in memory.
    pub(crate) cache: Arc<Cache>,
    /// Values of single keys in memory.
    pub(crate) rows: Option<RowCache>,
    /// The durable log of what the tree looks like.
    pub(crate) manifest: Arc<Manifest>,
    /// How long there were no writes.
    pub(crate) idle_watch: IdleWatch,
    /// Segments and the order of commits.
    pub(crate) journal: Arc<dyn Journal>,
    /// The moments that live snapshots see.
    pub(crate) pins: Pins,
    /// The live readers, which see these moments.
    pub(crate) readers: Readers,
    /// The tables.
    pub(crate) catalog: Catalog,
    /// Transactions that live.
    pub(crate) txn: Transactions,
    /// Functions that the program registered at opening, for tables to name.
    pub(crate) functions: Functions,
    /// The write throttle.
    pub(crate) throttle: Throttle,
    /// The queue of events, and the listeners.
    pub(crate) events: Arc<Events>,
    /// Counters of the statistics.
    pub(crate) counters: Counters,
    /// Counts of committed batches and bytes.
    pub(crate) written: Written,
    /// Histograms of the statistics.
    pub(crate) histograms: Histograms,
    /// Background work.
    pub(crate) scheduler: Arc<Scheduler>,
    /// The state of jobs that only reads gain by: when they begin and stop.
    pub(crate) adapting: ReadHeavy,
    /// How far scrubbing is.
    pub(crate) scrubber: Scrubber,
    /// What passes between the engine and its device.
    pub(crate) flows: Flows,
    /// Runs compaction jobs.
    pub(crate) compactor: LocalCompactor,
    /// Runs the jobs that bring memory into the levels.
    pub(crate) flusher: LocalCompactor,
    /// Bounds the bytes per second of background work.
    pub(crate) limiter: Arc<RateLimiter>,
    /// Number of the next overflow run.
    pub(crate) next_run: AtomicU64,
    /// Only one thread trims at a time.
    pub(crate) trimming: Mutex<()>,
    /// Readers of changes that wait.
    pub(crate) feeds: Feeds,
    /// Ingest marks whose edit failed.
    pub(crate) marks: Marks,
    /// Set when the database begins to close.
    pub(crate) closing: AtomicBool,
    /// Refuses a second opener while it lives; readers share it.
    pub(crate) lock: Mutex<Option<Box<dyn DiskLock>>>,
}

impl Engine {
    /// The options in force, with derived sizes filled in.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Its doors to clock, randomness and threads.
    #[must_use]
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// Directory of the database.
    #[must_use]
    pub fn dir(&self) -> &PathBuf {
        &self.dir
    }

    /// A number from 1 that no other engine of this process has or had: what belongs to one open database can
    /// say so.
    #[must_use]
    pub fn instance(&self) -> u64 {
        self.instance
    }

    /// The tables.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Every record with this number or below is visible to reads.
    #[must_use]
    pub fn visible(&self) -> SeqNo {
        self.journal.visible()
    }

    /// How far the background is behind: 0 is not at all, at 1 writers wait for memory; below, they are
    /// slowed from about half on.
    #[must_use]
    pub fn debt(&self) -> f64 {
        self.throttle.debt()
    }

    /// What was counted since the open.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = self.counters.snapshot();
        stats.batches_written = self.written.batches();
        stats.records_written = self.written.records();
        stats.bytes_written = self.written.bytes();
        let cache = self.cache.usage();
        stats.cache_bytes = cache.used_bytes;
        stats.cache_books_bytes = cache.books_bytes;
        stats.cache_misses = cache.kinds.iter().map(|kind| kind.misses).sum();
        stats.writes_paused_micros = self.throttle.paused().as_micros() as u64;
        self.flows.show(self.journal.appended(), &mut stats);
        stats.device_ring_reads = self.disk.ring_reads();
        self.txn.show(&mut stats);
        let state = self.manifest.state();
        (stats.history_segments, stats.history_bytes) = (state.history.len() as u64, state.history_bytes());
        self.show_readers(&mut stats);
        (stats.events_dropped, stats.listener_panics) = self.events.counts();
        stats.memory_bytes = self.memory_in_use();
        stats.memory_limit_bytes = self.memory.budget().memory_bytes();
        stats.memory_bytes_max = self.note_memory(stats.memory_bytes);
        let store = self.store.usage();
        (stats.store_bytes, stats.store_live_bytes) = (store.file_bytes, store.live_bytes);
        stats.pressure_permille = (self.throttle.debt() * 1000.0) as u64;
        stats
    }

    /// Makes every commit so far durable.
    ///
    /// # Errors
    /// `Poisoned` or `Io` from the journal.
    pub fn sync(&self) -> Result<()> {
        self.refuse_if_read_only()?;
        self.journal.sync()?;
        self.feeds.wake_if_waiting();
        Ok(())
    }

    pub(crate) fn refuse_if_read_only(&self) -> Result<()> {
        crate::reentrancy::refuse(self.instance)?;
        if self.options.read_only {
            return Err(Error::invalid(
                "the database was opened read_only: open it for writing to change it",
            ));
        }
        Ok(())
    }

    /// Control for one piece of background work.
    pub(crate) fn new_control(&self) -> JobControl {
        JobControl::new(self.env.clock.clone(), Some(self.limiter.clone()))
    }

    /// Gives a job the functions of its table: what folds operands, and what extracts prefixes.
    pub(crate) fn give_functions(&self, table: &Table, control: &JobControl) {
        if let Some(extractor) = table.sense.extractor() {
            control.filter_prefixes(extractor);
        }
        if let Some(operator) = table.sense.operator().filter(|_| self.options.experiments.operand_folding) {
            control.fold_with(operator.clone());
        }
    }

    /// Counts what a flush of `table` wrote.
    pub(crate) fn count_flushed(&self, table: &Table, bytes: u64) {
        add(&self.counters.flush_bytes_written, bytes);
        add(&table.counters.table_flush_bytes_written, bytes);
    }

    /// Counts what a job did with operands and with what had expired.
    pub(crate) fn count_settled(&self, work: &Work) {
        add(&self.counters.operands_folded, work.operands_folded);
        add(&self.counters.folds_failed, work.folds_failed);
        add(&self.counters.entries_expired, work.entries_expired);
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
        // With the journal off, what is only in memory would be lost.
        let is_unsafe = self.options.journal == JournalMode::Off && !self.options.read_only;
        let flushed = match self.closing.load(Ordering::Acquire) {
            false if is_unsafe => self.drain(),
            false => {
                self.flush_before_close();
                Ok(())
            }
            true => Ok(()),
        };
        flushed.and(self.shut())
    }

    /// [`Engine::close`] without a flush: what is only in memory stays in the journal.
    pub(crate) fn shut(&self) -> Result<()> {
        if self.closing.swap(true, Ordering::AcqRel) {
            // Another caller closes it. A flush that its close has cancelled is an error of that call, too.
            return Ok(());
        }
        self.throttle.wake();
        self.feeds.wake();
        self.scheduler.close();
        self.events.close(self.instance);
        let closed = if self.options.read_only { Ok(()) } else { self.close_journal() };
        if terrane_base::assertion::VERIFY || cfg!(debug_assertions) {
            self.recount_tables();
        }
        self.lock.lock().take();
        forget_garbage();
        closed
    }

    /// Flushes everything that was ever acknowledged: commits that come meanwhile are refused, or they would
    /// be acknowledged behind the flush and lost.
    fn drain(&self) -> Result<()> {
        if !terrane_base::planted!(AcceptWhileClosing) {
            self.journal.refuse_commits();
        }
        // A background that is paused would refuse.
        self.scheduler.drain();
        self.events.look_again();
        // Not by `flush`, which refuses the thread of listeners: a listener may close its database, and no
        // worker waits for one.
        self.flush_and_wait(&self.catalog.all())
    }
}

/// Destroys what replaced pictures leave to their epoch, unless a reader is in it now: a closed database
/// should not keep files mapped until some other database of the process moves the epoch on.
pub(crate) fn forget_garbage() {
    // Garbage of an epoch may be destroyed two epochs later; each turn advances by one.
    for _ in 0..4 {
        terrane_base::epoch::pin().flush();
    }
}
