//! Running sums over the tables of a catalog: what all tables have only in memory, and which of them changed,
//! without a walk over them. [`crate::table::totals`] has the sums that follow each piece of memory; these
//! follow records, which come with every write, and are noted by grains.
//!
//! Steps: 1. a table notes its part when its view is replaced, and its writers note it again when the active
//! memtable has grown by a grain; 2. the difference goes into the sums of the catalog; 3. a reader of a sum
//! loads one number. A table whose levels or options changed is also listed once, for the next look at what
//! its levels owe. The sets of tables in which work may be due ([`crate::table::due`]) are noted by the same
//! steps.
//!
//! Invariants: a sum is the sum of the parts that were noted last, over the tables of the catalog. A part is
//! less than a grain behind the table: writers note growth before their write ends, and a new view is noted
//! by the step that installs it. No write waits here as a rule: a number that seldom changes says whether
//! there is anything to note.

use std::sync::Arc;
use terrane_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use terrane_base::TableId;
use terrane_base::sync::Mutex;
use terrane_memtable::Memtable;

use crate::table::Table;
use crate::table::due::{DueTables, InMemory};
use crate::table::read_view::ReadView;

/// Growth of the records of the active memtable that is noted.
const RECORD_GRAIN_BYTES: u64 = 16 << 10;

/// What one table has, or all tables have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amounts {
    /// Bytes of records in memory and their indexes; 0 for a table without records in memory.
    pub(crate) filled_bytes: u64,
    /// Tables that have records in memory.
    pub(crate) filled_tables: u64,
    /// Bytes of memory behind the oldest generation of a table, which is being flushed or has room for more.
    pub(crate) behind_bytes: u64,
}

impl Amounts {
    /// What a table with this view has.
    fn of(view: &ReadView) -> Amounts {
        let is_filled = !view.memory_is_empty();
        Amounts {
            filled_bytes: if is_filled { view.memory_bytes() } else { 0 },
            filled_tables: u64::from(is_filled),
            behind_bytes: view.behind_bytes(),
        }
    }
}

/// Sums over the tables of a catalog, and the tables whose levels changed.
#[derive(Debug, Default)]
pub(crate) struct TableSums {
    filled_bytes: AtomicU64,
    filled_tables: AtomicU64,
    behind_bytes: AtomicU64,
    /// Tables whose levels or options changed since the last look, each once.
    changed: Mutex<Vec<TableId>>,
    has_changed: AtomicBool,
    due: DueTables,
}

impl TableSums {
    /// The sums now. Each by itself is exact; a table that is noted meanwhile may be in some of them only.
    pub(crate) fn now(&self) -> Amounts {
        // Relaxed, here and below: measures.
        let load = |sum: &AtomicU64| sum.load(Ordering::Relaxed);
        Amounts {
            filled_bytes: load(&self.filled_bytes),
            filled_tables: load(&self.filled_tables),
            behind_bytes: load(&self.behind_bytes),
        }
    }

    /// The tables in which work may be due.
    pub(crate) fn due(&self) -> &DueTables {
        &self.due
    }

    /// The tables whose levels or options changed since the last call.
    pub(crate) fn take_changed(&self) -> Vec<TableId> {
        // Acquire: pairs with the release in `list`; a table is listed after its view was replaced.
        if !self.has_changed.swap(false, Ordering::Acquire) {
            return Vec::new();
        }
        std::mem::take(&mut *self.changed.lock())
    }

    fn list(&self, table: TableId) {
        self.changed.lock().push(table);
        self.has_changed.store(true, Ordering::Release);
        self.due.note_levels(table);
    }

    /// Puts `new` in the place of `old`, the part of a table.
    fn turn(&self, old: &Amounts, new: &Amounts) {
        let turn = |sum: &AtomicU64, old: u64, new: u64| {
            if old != new {
                let before = sum.fetch_add(new.wrapping_sub(old), Ordering::Relaxed);
                debug_assert!(before >= old, "a sum of {before} has no part of {old}");
            }
        };
        turn(&self.filled_bytes, old.filled_bytes, new.filled_bytes);
        turn(&self.filled_tables, old.filled_tables, new.filled_tables);
        turn(&self.behind_bytes, old.behind_bytes, new.behind_bytes);
    }
}

/// The part of one table in the sums of its catalog.
#[derive(Debug, Default)]
pub(crate) struct TablePart {
    noted: Mutex<Noted>,
    /// Bytes of the active memtable's records at which the table is noted again.
    record_look: AtomicU64,
    /// What was noted of [`Amounts::filled_bytes`], for writers.
    filled_bytes: AtomicU64,
}

#[derive(Debug, Default)]
struct Noted {
    /// The sums of the catalog that the table is in.
    sums: Option<Arc<TableSums>>,
    amounts: Amounts,
    in_memory: InMemory,
}

impl Table {
    /// Adds the table to the sums of its catalog.
    pub(crate) fn join_sums(&self, sums: &Arc<TableSums>) {
        let mut noted = self.part.noted.lock();
        assert!(noted.sums.is_none(), "a table is in one catalog");
        noted.sums = Some(sums.clone());
        self.passed.join(sums, self.id);
        self.note_locked(&mut noted);
        drop(noted);
        sums.list(self.id);
    }

    /// Takes the table out of the sums.
    pub(crate) fn leave_sums(&self) {
        let mut noted = self.part.noted.lock();
        let Some(sums) = noted.sums.take() else { return };
        sums.turn(&std::mem::take(&mut noted.amounts), &Amounts::default());
        sums.due.turn(self.id, &std::mem::take(&mut noted.in_memory), &InMemory::default());
        sums.list(self.id);
        sums.due.forget(self.id);
    }

    /// Notes something of the table in the sets of its catalog.
    pub(crate) fn note_due(&self, note: impl FnOnce(&DueTables, TableId)) {
        if let Some(sums) = &self.part.noted.lock().sums {
            note(&sums.due, self.id);
        }
    }

    /// Has the next look for work look at the levels.
    pub(crate) fn note_levels(&self) {
        self.note_due(DueTables::note_levels);
    }

    /// Lists the table for the next look at what its levels owe.
    pub(crate) fn note_changed(&self) {
        if let Some(sums) = &self.part.noted.lock().sums {
            sums.list(self.id);
        }
    }

    /// Notes anew what the table has.
    pub(crate) fn note_part(&self) {
        self.note_part_again();
        self.note_used();
    }

    /// The same, though nothing has changed by this call's caller.
    pub(crate) fn note_part_again(&self) {
        self.note_locked(&mut self.part.noted.lock());
    }

    /// Lists the table for the next look at the loads.
    #[inline]
    pub(crate) fn note_used(&self) {
        if self.load.enter_list() {
            self.note_due(DueTables::note_used);
        }
    }

    /// Notes anew what the table has, if the active memtable has grown enough. Called by writers behind their
    /// records.
    #[inline]
    pub(crate) fn note_growth(&self, record_bytes: u64) {
        if self.has_grown(record_bytes) {
            self.note_grown();
        }
    }

    #[inline]
    fn has_grown(&self, record_bytes: u64) -> bool {
        record_bytes >= self.part.record_look.load(Ordering::Relaxed)
    }

    #[cold]
    fn note_grown(&self) {
        let mut noted = self.part.noted.lock();
        let has_grown = {
            let guard = terrane_base::epoch::pin();
            let active = &self.picture(&guard).active;
            self.has_grown(active.record_bytes())
        };
        // Another writer may have noted it.
        if has_grown {
            self.note_locked(&mut noted);
        }
        drop(noted);
        self.note_used();
    }

    fn note_locked(&self, noted: &mut Noted) {
        let Some(sums) = &noted.sums else { return };
        let guard = terrane_base::epoch::pin();
        let view = self.picture(&guard);
        self.set_looks(&view.active);
        let amounts = Amounts::of(view);
        sums.turn(&noted.amounts, &amounts);
        noted.amounts = amounts;
        let now = InMemory::of(view, self.is_full());
        sums.due.turn(self.id, &noted.in_memory, &now);
        noted.in_memory = now;
        self.part.filled_bytes.store(amounts.filled_bytes, Ordering::Relaxed);
    }

    /// Sets when the table is noted again. Before its amounts are taken: growth after that is noted by its
    /// writer.
    fn set_looks(&self, active: &Memtable) {
        let record_bytes = active.record_bytes();
        let grain = if record_bytes == 0 { 1 } else { RECORD_GRAIN_BYTES };
        self.part.record_look.store(record_bytes + grain, Ordering::Relaxed);
    }

    /// What was noted last of the bytes of its records in memory and their indexes.
    pub(crate) fn filled_bytes(&self) -> u64 {
        self.part.filled_bytes.load(Ordering::Relaxed)
    }

    /// Whether what was noted last is what the table has, but for growth within a grain. Requires: no writer,
    /// no job.
    pub(crate) fn is_noted(&self) -> bool {
        let noted = self.part.noted.lock();
        let guard = terrane_base::epoch::pin();
        let view = self.picture(&guard);
        let now = Amounts::of(view);
        // Records come with an index, which grows by chunks. A writer with a number from before a freeze may
        // still add to the frozen memtable behind the last note.
        let grain = RECORD_GRAIN_BYTES + view.active.index_bytes();
        let left_out = now.filled_bytes.checked_sub(noted.amounts.filled_bytes);
        let is_near = left_out.is_some_and(|bytes| bytes <= grain || !view.frozen.is_empty());
        let are_equal = noted.amounts.filled_tables == now.filled_tables
            && noted.amounts.behind_bytes <= now.behind_bytes
            && noted.in_memory.finds(&InMemory::of(view, self.is_full()));
        noted.sums.is_none() || is_near && are_equal
    }
}
