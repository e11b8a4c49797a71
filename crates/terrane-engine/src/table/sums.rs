//! Running sums over all tables of a catalog, and which tables changed: a caller that needs the sums looks at
//! no table.
//!
//! Bytes of the indexes in all read views: each piece of memory is added when an index takes it, and an index
//! that is no longer in its view leaves the sum.
//!
//! The part of each table (bytes of its levels, of its records in memory, and of what waits behind a flush):
//! 1. A table notes its part when its view is replaced, and its writers note it again when the active
//!    memtable has grown by a grain.
//! 2. The difference goes into the sums, and the table into the sets of tables in which work may be due
//!    ([`crate::table::due`]). A table whose levels or options changed is listed once, for the next look at
//!    the debt of its levels.
//! 3. A reader of a sum loads one number.
//!
//! Invariants: a sum is the sum of the parts that were noted last, over the tables of the catalog. A part is
//! less than a grain behind the table. It is not behind in whether the table has visible records in memory,
//! nor in their oldest segment: a writer that finds that its memtable was not noted with its segment or an
//! older one ([`Memtable::is_noted`]) notes the table before its records become visible. A memtable that was
//! noted stays noted, and the part covers it as long as the view has it, so it does not matter how old the
//! view of the writer is. No write waits here as a rule: numbers that seldom change say whether there is
//! anything to note.

use std::sync::Arc;
use terrane_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use terrane_base::sync::Mutex;
use terrane_base::{Collation, SegmentId, SeqNo, TableId, sampling};
use terrane_memtable::{IndexMemory, Memtable};

use crate::table::Table;
use crate::table::due::{DueTables, InMemory, Sizes};
use crate::table::read_view::ReadView;

/// Growth of the records of the active memtable that is noted, at most: one that has fewer bytes is noted
/// when it has twice as many, so that of many small tables the fullest one is found.
const RECORD_GRAIN_BYTES: u64 = 16 << 10;
const RECORD_GRAIN_BYTES_MIN: u64 = 512;

/// No table counts for more: a number from a hostile file does not make a sum overflow.
const TABLE_BYTES_MAX: u64 = 1 << 48;

/// The amounts of one table, or of all tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amounts {
    /// Bytes of records in memory and their indexes; 0 for a table without records in memory.
    pub(crate) filled_bytes: u64,
    /// Tables that have records in memory.
    pub(crate) filled_tables: u64,
    /// Bytes of memory behind the oldest generation of a table, which is being flushed or has room for more.
    pub(crate) behind_bytes: u64,
    /// Bytes of the extents.
    pub(crate) level_bytes: u64,
    /// Bytes of the blocks of runs and levels before compression.
    pub(crate) block_bytes: u64,
}

impl Amounts {
    /// The amounts of a table with this view.
    fn of(view: &ReadView) -> Amounts {
        let is_filled = !view.memory_is_empty();
        Amounts {
            filled_bytes: if is_filled { view.memory_bytes() } else { 0 },
            filled_tables: u64::from(is_filled),
            behind_bytes: view.behind_bytes(),
            level_bytes: view.tree.totals().bytes,
            block_bytes: view.tree.block_bytes().min(TABLE_BYTES_MAX),
        }
    }

    fn sizes(&self) -> Sizes {
        Sizes { in_memory: self.filled_bytes, total: self.filled_bytes + self.level_bytes }
    }

    fn plus(self, other: Amounts) -> Amounts {
        Amounts {
            filled_bytes: self.filled_bytes + other.filled_bytes,
            filled_tables: self.filled_tables + other.filled_tables,
            behind_bytes: self.behind_bytes + other.behind_bytes,
            level_bytes: self.level_bytes + other.level_bytes,
            block_bytes: self.block_bytes + other.block_bytes,
        }
    }
}

/// Sums over the tables of a catalog, and the tables whose levels changed.
#[derive(Debug, Default)]
pub(crate) struct TableSums {
    index: Arc<IndexMemory>,
    level_bytes: AtomicU64,
    block_bytes: AtomicU64,
    filled_bytes: AtomicU64,
    filled_tables: AtomicU64,
    behind_bytes: AtomicU64,
    /// Point reads and placed scans of all tables since the opening, by samples.
    reads: AtomicU64,
    seeks: AtomicU64,
    /// Tables whose levels or options changed since the last look, each once.
    changed: Mutex<Vec<TableId>>,
    has_changed: AtomicBool,
    due: DueTables,
    /// See [`TableSums::flushed_all`].
    flushed_all: AtomicU64,
    /// Memory of the database.
    memory_bytes: AtomicU64,
}

impl TableSums {
    /// Sums of no table, of a database with this memory.
    pub(crate) fn new(memory_bytes: u64) -> Arc<TableSums> {
        debug_assert!(memory_bytes > 0, "a database has memory");
        Arc::new(TableSums { memory_bytes: AtomicU64::new(memory_bytes), ..TableSums::default() })
    }

    /// Changes the memory to which the data are compared, for jobs that are picked from now on.
    pub(crate) fn set_memory_bytes(&self, memory_bytes: u64) {
        self.memory_bytes.store(memory_bytes, Ordering::Relaxed);
    }

    /// The sums now. Each by itself is exact; a table that is noted meanwhile may be in some of them only.
    pub(crate) fn now(&self) -> Amounts {
        // Relaxed, here and below: measures.
        let load = |sum: &AtomicU64| sum.load(Ordering::Relaxed);
        Amounts {
            filled_bytes: load(&self.filled_bytes),
            filled_tables: load(&self.filled_tables),
            behind_bytes: load(&self.behind_bytes),
            level_bytes: load(&self.level_bytes),
            block_bytes: load(&self.block_bytes),
        }
    }

    /// Counts point reads; `reads` stand for as many times [`sampling::EVERY`]. Called for a sample only.
    pub(crate) fn count_reads(&self, reads: u64) {
        self.reads.fetch_add(reads * sampling::EVERY, Ordering::Relaxed);
    }

    /// Counts the placing of a scan, which stands for [`sampling::EVERY`].
    pub(crate) fn count_seek(&self) {
        self.seeks.fetch_add(sampling::EVERY, Ordering::Relaxed);
    }

    /// Point reads and placed scans of all tables since the opening, those of dropped tables included.
    pub(crate) fn sampled(&self) -> [u64; 2] {
        [self.reads.load(Ordering::Relaxed), self.seeks.load(Ordering::Relaxed)]
    }

    /// Bytes of memory that the indexes in all read views take.
    #[inline]
    pub(crate) fn index_bytes(&self) -> u64 {
        self.index.bytes()
    }

    /// Bytes of memory of indexes that left their read view and that readers still hold.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.index.held_bytes()
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

    /// The tables in which work may be due.
    pub(crate) fn due(&self) -> &DueTables {
        &self.due
    }

    /// Number up to which every record, of whichever table, is in the levels.
    pub(crate) fn flushed_all(&self) -> SeqNo {
        SeqNo(self.flushed_all.load(Ordering::Acquire))
    }

    /// Notes that every record up to `seq`, of whichever table, is in the levels, and the manifest says so.
    pub(crate) fn raise_flushed_all(&self, seq: SeqNo) {
        self.flushed_all.fetch_max(seq.0, Ordering::AcqRel);
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
        turn(&self.level_bytes, old.level_bytes, new.level_bytes);
        turn(&self.block_bytes, old.block_bytes, new.block_bytes);
    }
}

/// The part of one table in the sums of its catalog.
#[derive(Debug, Default)]
pub(crate) struct TablePart {
    noted: Mutex<Noted>,
    /// Bytes of the active memtable's records at which the table is noted again.
    record_look: AtomicU64,
    /// The last noted [`Amounts::filled_bytes`], for writers.
    filled_bytes: AtomicU64,
}

#[derive(Debug, Default)]
struct Noted {
    /// True if the table is in its catalog, and so in the sums.
    is_listed: bool,
    amounts: Amounts,
    in_memory: InMemory,
}

impl Table {
    /// Adds the table to the sums of its catalog.
    pub(crate) fn join_sums(&self, sums: &Arc<TableSums>) {
        let mut noted = self.part.noted.lock();
        assert!(!noted.is_listed && Arc::ptr_eq(&self.sums, sums), "a table is in one catalog");
        noted.is_listed = true;
        self.passed.join(sums, self.id);
        self.scan_marks.join(sums, self.id);
        sums.due.list_size(self.id);
        self.note_locked(&mut noted);
        drop(noted);
        if self.is_stopped() {
            self.note_due(DueTables::note_stopped);
        }
        sums.list(self.id);
    }

    /// Takes the table out of the sums.
    pub(crate) fn leave_sums(&self) {
        let mut noted = self.part.noted.lock();
        if !std::mem::take(&mut noted.is_listed) {
            return;
        }
        let sums = &self.sums;
        let before = std::mem::take(&mut noted.amounts);
        sums.turn(&before, &Amounts::default());
        sums.due.turn_size(self.id, before.sizes(), Sizes::default());
        sums.due.unlist_size(self.id);
        sums.due.turn(self.id, &std::mem::take(&mut noted.in_memory), &InMemory::default());
        sums.list(self.id);
        sums.due.forget(self.id);
    }

    /// Notes something of the table in the sets of its catalog.
    pub(crate) fn note_due(&self, note: impl FnOnce(&DueTables, TableId)) {
        if self.part.noted.lock().is_listed {
            note(&self.sums.due, self.id);
        }
    }

    /// Has the next look for work look at the levels.
    pub(crate) fn note_levels(&self) {
        self.note_due(DueTables::note_levels);
    }

    /// Lists the table for the next look at the debt of its levels.
    pub(crate) fn note_changed(&self) {
        if self.part.noted.lock().is_listed {
            self.sums.list(self.id);
        }
    }

    /// Follows a change of the view from `before`: an index that is gone leaves the sum. Requires: the
    /// table's edit is held.
    pub(crate) fn follow_view(&self, before: &ReadView, after: &ReadView) {
        for index in before.indexes() {
            if !after.indexes().any(|one| Arc::ptr_eq(one, index)) {
                index.leave_sum();
            }
        }
        self.note_part();
    }

    /// Notes again what the table has.
    pub(crate) fn note_part(&self) {
        self.note_locked(&mut self.part.noted.lock());
        self.note_used();
    }

    /// Lists the table for the next look at the loads.
    #[inline]
    pub(crate) fn note_used(&self) {
        if self.load.enter_list() {
            self.note_due(DueTables::note_used);
        }
    }

    /// Notes again what the table has, if the active memtable has grown enough. Called by writers after
    /// their records.
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
            let active = &self.view(&guard).active;
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
        if !noted.is_listed {
            return;
        }
        let guard = terrane_base::epoch::pin();
        let view = self.view(&guard);
        // Both before the amounts are taken: growth after that is noted by its writer.
        let record_bytes = view.active.record_bytes();
        let grain = record_bytes.clamp(RECORD_GRAIN_BYTES_MIN, RECORD_GRAIN_BYTES);
        self.part.record_look.store(record_bytes + grain, Ordering::Relaxed);
        let taken_in = unnoted(view);
        let amounts = Amounts::of(view);
        debug_assert!(amounts.filled_tables <= 1, "the part of one table counts as several");
        self.sums.turn(&noted.amounts, &amounts);
        self.sums.due.turn_size(self.id, noted.amounts.sizes(), amounts.sizes());
        noted.amounts = amounts;
        let now = InMemory::of(view, self.is_full());
        self.sums.due.turn(self.id, &noted.in_memory, &now);
        noted.in_memory = now;
        self.part.filled_bytes.store(amounts.filled_bytes, Ordering::Relaxed);
        // A writer that finds its memtable noted relies on the sets.
        taken_in.into_iter().for_each(|(memtable, oldest)| memtable.set_noted(oldest));
    }

    /// Returns true if the blocks of all tables of its database before compression, without separated values,
    /// and `arriving` bytes of blocks beside them are larger than the memory.
    pub(crate) fn exceeds_memory(&self, arriving: u64) -> bool {
        let data_bytes = self.sums.block_bytes.load(Ordering::Relaxed);
        data_bytes.saturating_add(arriving) > self.sums.memory_bytes.load(Ordering::Relaxed)
    }

    /// The last noted bytes of its records in memory and their indexes.
    pub(crate) fn filled_bytes(&self) -> u64 {
        self.part.filled_bytes.load(Ordering::Relaxed)
    }
}

/// Memtables of a view that have records in an older segment than was noted of them, with that segment.
fn unnoted(view: &ReadView) -> Vec<(&Memtable, SegmentId)> {
    let memtables = std::iter::once(&view.active).chain(&view.frozen);
    let filled = memtables.filter(|memtable| memtable.entry_count() > 0);
    let with_oldest = filled.filter_map(|memtable| Some((&**memtable, memtable.oldest_segment()?)));
    with_oldest.filter(|(memtable, oldest)| !memtable.is_noted(*oldest)).collect()
}

mod recount;
#[cfg(test)]
mod tests;
