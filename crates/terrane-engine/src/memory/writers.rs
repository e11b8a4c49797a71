//! The memory of writers: segments, the indexes over them, and the commits that are kept for transactions.
//!
//! Each part is a running sum, so the cost of a look does not depend on the number of tables.

use std::sync::Arc;
use terrane_base::sync::atomic::{AtomicU64, Ordering};

use terrane_journal::Journal;

use crate::table::sums::TableSums;

/// See the [module](self).
pub(crate) struct WriterMemory {
    /// Its segments.
    pub(crate) journal: Arc<dyn Journal>,
    /// The indexes over them.
    pub(crate) tables: Arc<TableSums>,
    /// Bytes of the window in which transactions look for conflicts.
    pub(crate) window_bytes: Arc<AtomicU64>,
}

impl WriterMemory {
    /// The bytes in use.
    pub(crate) fn bytes(&self) -> u64 {
        let window = self.window_bytes.load(Ordering::Relaxed);
        debug_assert!(window < 1 << 62, "{window} bytes: more left the window than came in");
        self.journal.memory_bytes() + self.tables.index_bytes() + window
    }

    /// Bytes that only readers keep: indexes that left their tables, and segments that were trimmed and do
    /// not come back.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.tables.held_bytes() + self.journal.held_bytes()
    }
}
