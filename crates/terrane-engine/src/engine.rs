//! The parts of an open database, and what they know of each other. What they show other processes is in
//! `engine/sharing.rs`.

mod sharing;

use std::ops::Deref;

use terrane_base::options::JournalMode;
use terrane_base::sync::Mutex;
use terrane_base::sync::atomic::Ordering;
use terrane_base::{Error, Result};
use terrane_device::DiskLock;
use terrane_format::manifest::EditOp;

use crate::background::Background;
use crate::background::scheduler::Schedule;
use crate::inspect::shape::Shape;
use crate::memory::arbiter::MemoryArbiter;
use crate::observe::job_kind::JobKinds;
use crate::observe::stats::{Statistics, Stats};
use crate::shared::Shared;
use crate::txn::Transactions;
use crate::write::throttle::Throttle;
use crate::write::throttle::control::{Relief, WriteControl};

/// An open database. Everything is reached through shared references.
///
/// It dereferences to what its parts share: reads, and all that needs no other part, are methods of
/// [`Shared`], which callers of the engine find here.
pub struct Engine {
    /// What all parts stand on.
    pub(crate) shared: Shared,
    /// The memory ceiling, and how it is divided.
    pub(crate) memory: MemoryArbiter,
    /// Transactions that live.
    pub(crate) txn: Transactions,
    /// The write throttle.
    pub(crate) throttle: Throttle,
    /// Flushes, compactions, and all other background work.
    pub(crate) background: Background,
    /// Refuses a second opener while it lives; readers share it.
    pub(crate) lock: Mutex<Option<Box<dyn DiskLock>>>,
}

impl Deref for Engine {
    type Target = Shared;

    #[inline]
    fn deref(&self) -> &Shared {
        &self.shared
    }
}

impl Engine {
    /// How far the background is behind: 0 is not at all, at 1 writers wait for memory; below, they are
    /// slowed from about half on.
    #[must_use]
    pub fn debt(&self) -> f64 {
        self.throttle.debt()
    }

    /// The throttle with what it looks at.
    #[inline]
    pub(crate) fn write_control(&self) -> WriteControl<'_> {
        WriteControl {
            shared: &self.shared,
            memory: &self.memory,
            throttle: &self.throttle,
            background: self,
        }
    }

    /// Computes the debt anew and tells the writers.
    pub(crate) fn refresh_debt(&self) {
        self.write_control().refresh_debt();
    }

    /// What was counted since the open.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = self.counters.snapshot();
        stats.batches_written = self.written.batches();
        stats.records_written = self.written.records();
        stats.bytes_written = self.written.bytes();
        stats.slow_operations = self.slow_log.operations();
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
        self.readers.show(self.env.clock.now(), &mut stats);
        (stats.events_dropped, stats.listener_panics) = self.events.counts();
        stats.memory_bytes = self.memory.in_use();
        stats.memory_journal_bytes = self.journal.memory_bytes();
        stats.memory_index_bytes = self.catalog.sums().index_bytes();
        stats.memory_limit_bytes = self.memory.budget().memory_bytes();
        stats.memory_bytes_max = self.note_memory(stats.memory_bytes);
        let store = self.store.usage();
        (stats.store_bytes, stats.store_live_bytes) = (store.file_bytes, store.live_bytes);
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
        self.feed_waiters.wake();
        self.background.scheduler.close();
        self.stop_sharing();
        self.events.close(self.instance);
        let closed = if self.options.read_only { Ok(()) } else { self.close_journal() };
        if terrane_base::assertion::VERIFY || cfg!(debug_assertions) {
            self.shared.recount(|| self.finds_all_levels());
        }
        self.lock.lock().take();
        terrane_base::epoch::forget_garbage();
        closed
    }

    /// Makes every commit durable for an orderly close. With the journal off what was not flushed is lost.
    fn close_journal(&self) -> Result<()> {
        let last_seq = self.journal.close()?;
        assert!(last_seq >= self.visible(), "the journal ends at {last_seq}, before a visible commit");
        // Only space is at stake: what cannot be given back now is found at the next opening.
        let _ = self.give_back_space();
        self.append_edit(vec![EditOp::CleanClose { last_seq }])?;
        self.manifest.close()
    }

    /// Flushes everything that was ever acknowledged: commits that come meanwhile are refused, or they would
    /// be acknowledged behind the flush and lost.
    fn drain(&self) -> Result<()> {
        if !terrane_base::planted!(AcceptWhileClosing) {
            self.journal.refuse_commits();
        }
        // A background that is paused would refuse.
        self.background.scheduler.drain();
        self.events.look_again();
        // Not by `flush`, which refuses the thread of listeners: a listener may close its database, and no
        // worker waits for one.
        self.flush_and_wait(&self.catalog.all())
    }
}

impl Relief for Engine {
    fn stop_for_writers(&self) {
        Engine::stop_for_writers(self);
    }

    fn give_up_adapting(&self) {
        Engine::give_up_adapting(self);
    }

    fn newest_piece(&self) -> u64 {
        self.background.scheduler.inspect(Schedule::newest_piece)
    }

    fn frees_nothing(&self) -> bool {
        self.frees_no_memory(&self.background.scheduler.copy_for([]))
    }

    fn memory_failure(&self, seen: u64) -> Option<Error> {
        let schedule = self.background.scheduler.copy_for([]);
        self.lasting_failure(&schedule, JobKinds::MEMORY, None, seen)
    }
}
