//! Inputs of the memory arbiter beside memory itself: the bytes of writers, and the tables.

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
}
