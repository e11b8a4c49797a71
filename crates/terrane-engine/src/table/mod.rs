//! A table while the database is open: its identity and its current read view ([`crate::table::read_view`]).

pub(crate) mod catalog;
pub(crate) mod due;
pub(crate) mod filter_policy;
mod flush_overhead;
pub(crate) mod flushed;
pub(crate) mod ledger;
pub(crate) mod load;
pub(crate) mod read_view;
mod requests;
pub(crate) mod scan_marks;
pub(crate) mod semantics;
pub(crate) mod settings;
pub(crate) mod skipped_versions;
mod stats;
pub(crate) mod stopped;
pub(crate) mod sums;
pub(crate) mod tombstone_hint;
pub(crate) mod tree_shape;
pub(crate) mod values_shape;

use std::sync::Arc;
use terrane_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use terrane_base::epoch::{EpochCell, Guard};
use terrane_base::sync::{Mutex, RwLock};
use terrane_base::{CompactionFilter, SeqNo, TableId};
use terrane_levels::Metasnapshot;
use terrane_memtable::Memtable;

use crate::observe::stats::TableCounters;
use crate::pace::per_table::TablePressure;
use crate::table::catalog::Catalog;
use crate::table::filter_policy::FilterUse;
use crate::table::ledger::Ledger;
use crate::table::load::TableLoad;
use crate::table::read_view::ReadView;
use crate::table::requests::Requests;
use crate::table::scan_marks::ScanMarks;
use crate::table::semantics::TableSemantics;
use crate::table::settings::TableSettings;
use crate::table::skipped_versions::SkippedVersions;
use crate::table::stopped::Stopped;
use crate::table::sums::{TablePart, TableSums};
use crate::table::tombstone_hint::TombstoneHint;

/// A table of an open database.
pub struct Table {
    /// Identity; never reused.
    pub id: TableId,
    /// Name as the user gave it.
    pub name: String,
    /// Options in force for this table; they can change.
    pub(crate) settings: RwLock<Arc<TableSettings>>,
    /// The meaning of its records.
    pub semantics: Arc<TableSemantics>,
    view: EpochCell<ReadView>,
    /// Sums over the tables of its catalog.
    sums: Arc<TableSums>,
    /// The right to change the read view, and the debt of the table to its levels.
    edit: Mutex<Ledger>,
    dropped: AtomicBool,
    /// The error with which background work on it has stopped, if it has.
    pub(crate) stopped: Stopped,
    /// Number up to which every record is in the levels; that of all tables may be higher.
    flushed_seq: AtomicU64,
    /// Number up to which a caller or a trim wants the records flushed.
    flush_wanted: AtomicU64,
    /// Number below which a caller wants the records flushed as overflow runs; 0 if no caller does.
    run_wanted: AtomicU64,
    /// Set by a writer that filled the active memtable, cleared when it has been switched.
    pub(crate) full: AtomicBool,
    /// Held while a frozen memtable is merged into a generation, and while a flush closes one to merges:
    /// neither begins within the other.
    pub(crate) merging: Mutex<()>,
    /// Time writers had been held back at the table's last flush, in microseconds.
    pub(crate) paused_before: AtomicU64,
    /// Held while an edit that names the table's extents is appended: a drop and an install exclude each
    /// other.
    pub(crate) installing: Mutex<()>,
    /// Which filters reads ask.
    pub(crate) filter_use: FilterUse,
    /// Key ranges that callers want compacted.
    requests: Mutex<Requests>,
    /// Counts of its reads, by samples.
    pub(crate) load: TableLoad,
    /// Its counters.
    pub(crate) counters: TableCounters,
    /// Versions in memory that its scans stepped over.
    pub(crate) passed: Arc<SkippedVersions>,
    /// Where its scans met too many value tables.
    pub(crate) scan_marks: Arc<ScanMarks>,
    /// The compaction filter of its compactions.
    filter: Mutex<Option<Arc<dyn CompactionFilter>>>,
    /// Its part in the sums over all tables.
    part: TablePart,
    /// How far its writers are held back.
    pub(crate) pressure: TablePressure,
    /// The levels in which no range delete lies over much data.
    pub(crate) nothing_wide: Mutex<TombstoneHint>,
}

impl Table {
    /// A table whose memory tier is empty and takes records from `first_seq` on.
    pub(crate) fn new(
        (id, name): (TableId, String),
        settings: TableSettings,
        semantics: Arc<TableSemantics>,
        tree: Arc<Metasnapshot>,
        (flushed, first_seq): (SeqNo, SeqNo),
        sums: &Arc<TableSums>,
    ) -> Arc<Table> {
        let active = sums.new_memtable(first_seq, settings.memtable_filter, semantics.collation());
        let ledger = Ledger::new(&active);
        let view = ReadView { active, frozen: Vec::new(), generations: Vec::new(), tree };
        Arc::new(Table {
            id,
            name,
            settings: RwLock::new(Arc::new(settings)),
            semantics,
            view: EpochCell::new(view),
            sums: sums.clone(),
            edit: Mutex::new(ledger),
            dropped: AtomicBool::new(false),
            stopped: Stopped::default(),
            flushed_seq: AtomicU64::new(flushed.0),
            flush_wanted: AtomicU64::new(0),
            run_wanted: AtomicU64::new(0),
            full: AtomicBool::new(false),
            merging: Mutex::new(()),
            paused_before: AtomicU64::new(0),
            installing: Mutex::new(()),
            filter_use: FilterUse::default(),
            requests: Mutex::default(),
            load: TableLoad::default(),
            counters: TableCounters::default(),
            passed: Arc::default(),
            scan_marks: Arc::default(),
            filter: Mutex::default(),
            part: TablePart::default(),
            pressure: TablePressure::default(),
            nothing_wide: Mutex::default(),
        })
    }

    /// The options in force.
    #[must_use]
    pub fn settings(&self) -> Arc<TableSettings> {
        self.settings.read().clone()
    }

    /// An empty memtable for records from `first_seq` on.
    pub(crate) fn new_memtable(&self, first_seq: SeqNo) -> Arc<Memtable> {
        self.sums.new_memtable(first_seq, self.settings().memtable_filter, self.semantics.collation())
    }

    /// The current read view, alive while `guard` is.
    #[inline]
    pub fn view<'g>(&'g self, guard: &'g Guard) -> &'g ReadView {
        self.view.load(guard)
    }

    /// The current read view's parts, kept alive by the copy. For work that outlasts an epoch.
    pub fn pinned(&self) -> ReadView {
        self.view(&terrane_base::epoch::pin()).clone()
    }

    /// The current read view for a scan, which keeps what it reads.
    #[inline]
    pub(crate) fn shared(&self, guard: &Guard) -> Arc<ReadView> {
        self.view.share(guard)
    }

    /// Returns true if it is, or was, a table of this catalog: of no other database.
    pub(crate) fn is_of(&self, catalog: &Catalog) -> bool {
        Arc::ptr_eq(&self.sums, catalog.sums())
    }

    /// Returns true if the table was dropped while this handle lived.
    #[inline]
    pub fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    /// Marks the table as dropped.
    pub fn mark_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
    }

    /// Number up to which every record is in the levels.
    pub fn flushed_seq(&self) -> SeqNo {
        SeqNo(self.flushed_seq.load(Ordering::Acquire)).max(self.sums.flushed_all())
    }

    /// Asks for the flush of every record up to `seq`; returns false if that was asked for before.
    pub fn want_flush(&self, seq: SeqNo) -> bool {
        self.flush_wanted.fetch_max(seq.0, Ordering::AcqRel) < seq.0
    }

    /// Number up to which a caller or a trim wants the records flushed.
    pub fn flush_wanted(&self) -> SeqNo {
        SeqNo(self.flush_wanted.load(Ordering::Acquire))
    }

    /// Asks that every record up to `seq` that no flush merges into level 1 yet goes into an overflow run.
    pub fn want_run(&self, seq: SeqNo) {
        self.run_wanted.fetch_max(seq.0 + 1, Ordering::AcqRel);
    }

    /// Returns true if a caller wants the memtable that begins with `first_seq` in an overflow run.
    pub fn wants_run(&self, first_seq: SeqNo) -> bool {
        // 0 means "no request"; a request up to number n is stored as n + 1, since the first memtable of an
        // opening begins with number 0.
        first_seq.0 < self.run_wanted.load(Ordering::Acquire)
    }

    /// Returns true if no record numbered up to `seq` is only in memory.
    pub fn is_flushed(&self, seq: SeqNo) -> bool {
        // A memtable whose numbers begin at or below `seq` may have no record up to it; no flush would be due
        // for it then.
        if seq <= self.flushed_seq() && !terrane_base::planted!(FlushWaitsForNothing) {
            return true;
        }
        let guard = terrane_base::epoch::pin();
        let view = self.view(&guard);
        view.active.first_seq() > seq
            && view.frozen.iter().all(|memtable| memtable.first_seq() > seq)
            && view.generations.iter().all(|generation| generation.first_seq() > seq)
    }

    /// Returns true if the active memtable waits to be switched.
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Acquire)
    }

    /// The compaction filter of compactions that begin now.
    pub fn compaction_filter(&self) -> Option<Arc<dyn CompactionFilter>> {
        self.filter.lock().clone()
    }

    /// Makes compactions that begin from now on show rows to `filter`, or to no filter.
    pub fn set_compaction_filter(&self, filter: Option<Arc<dyn CompactionFilter>>) {
        *self.filter.lock() = filter;
    }

    /// Notes that every record up to `seq` is in the levels.
    pub fn set_flushed_seq(&self, seq: SeqNo) {
        self.flushed_seq.fetch_max(seq.0, Ordering::AcqRel);
    }
}
