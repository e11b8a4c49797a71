//! What the engine asks of the memory arbiter.

use terrane_base::Result;
use terrane_base::sync::atomic::Ordering;

use crate::engine::Engine;
use crate::memory::arbiter::{Balance, Counted};

impl Engine {
    /// Changes the memory ceiling, and with it every size that was left to the engine. Less is in force at
    /// once: the cache has given up what is too much when this returns, but for what readers hold, and
    /// writers wait until what is too much of theirs is flushed.
    ///
    /// # Errors
    /// `Invalid` where it contradicts other options, naming them, or the database was opened read-only.
    pub fn set_memory_bytes(&self, memory_bytes: u64) -> Result<()> {
        self.refuse_if_read_only()?;
        let options = self.memory.options_under(memory_bytes, &self.options)?;
        self.txn.set_write_bytes(options.write_memory_bytes);
        self.memory.set_ceiling(&options);
        for table in self.catalog.all() {
            let picture = table.pinned();
            if picture.active.record_bytes() + picture.active.index_bytes() >= self.memory.memtable_limit() {
                self.note_full(&table);
            }
        }
        self.refresh_debt();
        self.scheduler.wake();
        Ok(())
    }

    /// The tick of memory after a quantum of bytes, and whenever memory came back.
    pub(crate) fn balance_memory(&self) -> Balance {
        // Relaxed: measures.
        self.memory.tick_of_writer(Counted {
            written: self.written.bytes(),
            replaced: self.counters.blocks_replaced.load(Ordering::Relaxed),
        })
    }

    /// Gives freed memory back to the system if the cache gave up enough of it. For the background: takes
    /// milliseconds.
    pub(crate) fn return_freed_memory(&self) {
        if self.options.experiments.return_freed_memory && self.memory.takes_trim() {
            terrane_device::return_freed_memory();
        }
    }

    /// Memory of writers and of the cache. What moves between them while this looks is counted once, or not
    /// at all, as long as it does not move back as well.
    pub(crate) fn memory_in_use(&self) -> u64 {
        let before = self.memory.use_of_writers();
        let cache_bytes = self.cache.usage().used_bytes;
        before.min(self.memory.use_of_writers()) + cache_bytes
    }

    /// Notes how much memory is in use; returns the most that ever was.
    pub(crate) fn note_memory(&self, bytes: u64) -> u64 {
        // Relaxed: a measure.
        self.counters.memory_bytes_max.fetch_max(bytes, Ordering::Relaxed).max(bytes)
    }

    /// Counts the running sums over the tables again, table by table. Requires: no work runs in the
    /// background.
    ///
    /// # Panics
    /// If a sum differs from the count.
    pub(crate) fn recount_tables(&self) {
        let _change = self.catalog.change();
        let totals = self.memory.table_totals();
        let count = || {
            let views: Vec<_> = self.catalog.all().iter().map(|table| table.pinned()).collect();
            let index_bytes: u64 = views.iter().map(|view| view.index_bytes()).sum();
            let level_bytes: u64 = views.iter().map(|view| view.tree.totals().bytes).sum();
            (index_bytes, level_bytes)
        };
        let sums = || (totals.index_bytes(), totals.level_bytes());
        // A writer that is refused by now may still be in the middle of a memtable.
        let agree = (0..RECOUNTS).any(|turn| {
            let agree = count() == sums() && self.catalog.is_noted();
            if !agree {
                terrane_base::sync::spin(turn);
            }
            agree
        });
        assert!(
            agree,
            "counted {:?}, bytes of indexes and of levels; the sums say {:?}; noted: {}",
            count(),
            sums(),
            self.catalog.is_noted()
        );
        // A follower is behind the manifest.
        if !self.options.read_only {
            let difference = self.catalog.difference(&self.manifest.state());
            assert!(difference.is_none(), "{difference:?}");
        }
    }
}

/// Looks until a recount must agree.
const RECOUNTS: u32 = 100_000;
