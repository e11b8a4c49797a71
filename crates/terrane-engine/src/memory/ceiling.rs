//! What the memory arbiter looks at beyond memory itself: what writers brought, and the tables.

use terrane_base::options::Options;
use terrane_base::sync::atomic::Ordering;

use crate::memory::arbiter::{Balance, Counted, MemoryArbiter};
use crate::shared::Shared;

impl MemoryArbiter {
    /// The tick of memory after a quantum of bytes, and whenever memory came back.
    pub(crate) fn balance(&self, shared: &Shared) -> Balance {
        // Relaxed: measures.
        self.tick_of_writer(Counted {
            written: shared.written.bytes(),
            replaced: shared.counters.blocks_replaced.load(Ordering::Relaxed),
        })
    }

    /// Gives freed memory back to the system if the cache gave up enough of it. For the background: takes
    /// milliseconds.
    pub(crate) fn return_freed(&self, options: &Options) {
        if options.experiments.return_freed_memory && self.takes_trim() {
            terrane_device::return_freed_memory();
        }
    }

    /// Memory of writers and of the cache. What moves between them while this looks is counted once, or not
    /// at all, as long as it does not move back as well.
    pub(crate) fn in_use(&self) -> u64 {
        let before = self.use_of_writers();
        let cache_bytes = self.cache().usage().used_bytes;
        before.min(self.use_of_writers()) + cache_bytes
    }

    /// Counts the running sums over the tables again, table by table. Requires: no work runs in the
    /// background.
    ///
    /// # Panics
    /// If a sum differs from the count.
    pub(crate) fn recount_tables(&self, shared: &Shared, finds_all_levels: impl Fn() -> bool) {
        let catalog = &shared.catalog;
        let _change = catalog.change();
        let totals = self.table_totals();
        let count = || {
            let views: Vec<_> = catalog.all().iter().map(|table| table.pinned()).collect();
            let index_bytes: u64 = views.iter().map(|view| view.index_bytes()).sum();
            let level_bytes: u64 = views.iter().map(|view| view.tree.totals().bytes).sum();
            (index_bytes, level_bytes)
        };
        let sums = || (totals.index_bytes(), totals.level_bytes());
        // A writer that is refused by now may still be in the middle of a memtable.
        let agree = (0..RECOUNTS).any(|turn| {
            let agree = count() == sums() && catalog.is_noted() && finds_all_levels();
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
            catalog.is_noted()
        );
        // A follower is behind the manifest.
        if !shared.options.read_only {
            let difference = catalog.difference(&shared.manifest.state());
            assert!(difference.is_none(), "{difference:?}");
        }
    }
}

/// Looks until a recount must agree.
const RECOUNTS: u32 = 100_000;
