//! What all tables of a database hold together, as running sums: nothing that asks for them looks at the
//! tables.
//!
//! A table enters the sums when it is made. They follow each change of its read view
//! ([`TableEdit::replace_behind_edit`]): an index that is no longer in the view leaves the sum, and the bytes
//! of the levels are exchanged.
//!
//! [`TableEdit::replace_behind_edit`]: crate::table::TableEdit::replace_behind_edit

use std::sync::Arc;
use terrane_base::sync::atomic::{AtomicU64, Ordering};

use terrane_base::Collation;
use terrane_base::SeqNo;
use terrane_memtable::{IndexMemory, Memtable};

use crate::table::read_view::ReadView;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct TableTotals {
    index: Arc<IndexMemory>,
    level_bytes: AtomicU64,
}

impl TableTotals {
    /// Bytes of memory that the indexes in all read views take.
    #[inline]
    pub(crate) fn index_bytes(&self) -> u64 {
        self.index.bytes()
    }

    /// Bytes of the extents of all tables.
    pub(crate) fn level_bytes(&self) -> u64 {
        self.level_bytes.load(Ordering::Relaxed)
    }

    /// An empty memtable whose index is in the sum as long as a read view has it.
    pub(crate) fn new_memtable(
        &self,
        first_seq: SeqNo,
        has_filter: bool,
        collation: &Collation,
    ) -> Arc<Memtable> {
        Memtable::counted(first_seq, has_filter, collation, &self.index)
    }

    /// Takes in the levels of a table that is made.
    pub(crate) fn enter(&self, view: &ReadView) {
        self.level_bytes.fetch_add(view.tree.totals().bytes, Ordering::Relaxed);
    }

    /// Follows a change of a table from `before` to `after`. Requires: the table's edit is held.
    pub(crate) fn follow(&self, before: &ReadView, after: &ReadView) {
        for index in before.indexes() {
            if !after.indexes().any(|one| Arc::ptr_eq(one, index)) {
                index.leave_sum();
            }
        }
        let (gone, come) = (before.tree.totals().bytes, after.tree.totals().bytes);
        self.level_bytes.fetch_add(come, Ordering::Relaxed);
        let sum = self.level_bytes.fetch_sub(gone, Ordering::Relaxed);
        assert!(sum >= gone, "{gone} bytes of levels are given back of {sum}");
    }
}
