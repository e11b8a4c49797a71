//! The state of a database as the manifest knows it: a pure function of its edits.
//!
//! The same code applies an edit when it is appended and when it is read back, with the same checks, so an
//! accepted edit is always accepted again. Clones share everything large.

mod apply;
mod history;
mod image;
mod numbers;
mod snapshot;
mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rpds::RedBlackTreeMapSync;
use terrane_base::{Collation, Error, ExtentId, KeyOrders, Result, SegmentId, SeqNo, TableId};
use terrane_format::extent::ExtentMeta;
use terrane_format::manifest::file::FORMAT_VERSION_FIRST;
use terrane_format::manifest::{
    DatabaseId, Edit, EditOp, HistoryRule, Kept, NextIds, Seal, SegmentSpec, TableOptions,
};

use crate::metasnapshot::Metasnapshot;
use crate::slots::Slots;

pub use apply::Misfit;
pub(crate) use snapshot::Pieces;
pub use tables::Tables;

/// Name of the table that exists in every database.
pub const DEFAULT_TABLE_NAME: &str = "default";

/// A table, as the manifest knows it.
#[derive(Clone, Debug)]
pub struct Table {
    /// Which table.
    pub id: TableId,
    /// Its name; unique among the tables that are not dropped.
    pub name: String,
    /// Its options as stored: not validated.
    pub options: TableOptions,
    /// Every record up to this number is in the extents; [`State::flushed`] may say more.
    flushed: SeqNo,
    /// True if it was dropped: only extents to be removed are left of it.
    pub dropped: bool,
    /// Its extents.
    pub extents: Metasnapshot<Arc<ExtentMeta>>,
    /// Key order of the table.
    pub collation: Collation,
}

/// A live segment, as the manifest knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The segment.
    pub spec: SegmentSpec,
    /// Its end, if it was sealed.
    pub seal: Option<Seal>,
}

/// A segment of the history: no longer live, but kept for readers of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptSegment {
    /// The segment.
    pub spec: SegmentSpec,
    /// The part of it that is kept.
    pub kept: Kept,
}

/// Everything that the manifest knows. Different edits may lead to equal states.
#[derive(Clone, Debug)]
pub struct State {
    /// The database.
    pub database: DatabaseId,
    /// Format version of the manifest file that it was read from or is written to.
    pub format_version: u32,
    /// Tables, dropped ones included until their last extent is removed.
    pub tables: Tables,
    /// Live segments.
    pub segments: BTreeMap<SegmentId, Segment>,
    /// The segments of the history, with consecutive records.
    pub history: Arc<BTreeMap<SegmentId, KeptSegment>>,
    /// Every record up to this number, of whichever table, is in its extents.
    pub flushed_all: SeqNo,
    /// Limits of the history.
    pub history_rule: HistoryRule,
    /// Numbers under which the journal announces ingests that did not happen.
    pub void_marks: Arc<BTreeSet<SeqNo>>,
    /// The sealed segment with the highest number so far and its seal, live or not: the chain continues from
    /// it.
    pub last_sealed: Option<(SegmentSpec, Seal)>,
    /// The next free numbers.
    pub next: NextIds,
    /// Every commit up to here is durable.
    pub durable: SeqNo,
    /// Epoch of the journal; 0 before the first recovery.
    pub epoch: u64,
    /// Last sequence number in use when the database was closed cleanly; `None` while it is open and after a
    /// crash.
    pub clean_close: Option<SeqNo>,
    /// Slots of all tables.
    slots: Slots,
    /// The tables that are not dropped, by name, because a scan per created table would take quadratic time
    /// for a hostile file. Clones share what a created or dropped table does not change.
    names: RedBlackTreeMapSync<String, TableId>,
    /// Files of live and kept segments, for the same reason.
    segment_files: BTreeSet<u32>,
    /// Comparators that tables may name.
    orders: Arc<KeyOrders>,
}

impl State {
    /// The state before any edit: no tables.
    #[must_use]
    pub(crate) fn empty(database: DatabaseId, format_version: u32) -> Self {
        State {
            database,
            format_version,
            tables: Tables::default(),
            segments: BTreeMap::new(),
            history: Arc::default(),
            flushed_all: SeqNo::default(),
            history_rule: HistoryRule::default(),
            void_marks: Arc::default(),
            last_sealed: None,
            next: NextIds::default(),
            durable: SeqNo::default(),
            epoch: 0,
            clean_close: None,
            slots: Slots::default(),
            names: RedBlackTreeMapSync::new_sync(),
            segment_files: BTreeSet::new(),
            orders: Arc::default(),
        }
    }

    /// The state of a new database: the default table with `options`.
    ///
    /// # Errors
    /// `Invalid` if there are too many options or one is too long.
    pub fn new(database: DatabaseId, options: TableOptions) -> Result<Self> {
        let mut state = State::empty(database, FORMAT_VERSION_FIRST);
        let default = EditOp::CreateTable { id: TableId::DEFAULT, name: DEFAULT_TABLE_NAME.into(), options };
        state.apply_in_place(&Edit { ops: vec![default] })?;
        Ok(state)
    }

    /// The table with this name that is not dropped.
    #[must_use]
    pub fn table_named(&self, name: &str) -> Option<&Arc<Table>> {
        self.names.get(name).and_then(|id| self.tables.get(id))
    }

    /// Number up to which every record of a table of this state is in its extents.
    ///
    /// A table that was made later than [`State::flushed_all`] was said has no record up to that number.
    #[must_use]
    pub fn flushed(&self, table: &Table) -> SeqNo {
        table.flushed.max(self.flushed_all)
    }

    /// Every extent with its number of slots, dropped tables included: what the store must keep.
    pub fn extents(&self) -> impl Iterator<Item = (ExtentId, u32)> {
        self.metas().map(|meta| (meta.id, meta.slots))
    }

    /// The meta of every extent, dropped tables included.
    pub fn metas(&self) -> impl Iterator<Item = &Arc<ExtentMeta>> {
        self.tables.values().flat_map(|table| table.extents.extents()).map(|(_, meta)| meta)
    }

    /// The highest sequence number in the state; later commits have higher ones.
    #[must_use]
    pub fn last_seq(&self) -> SeqNo {
        let extents = self.tables.values().flat_map(|table| table.extents.places());
        let seqs = extents.flat_map(|(_, level)| level.iter()).map(|meta| meta.seq_max);
        let flushed = self.tables.values().map(|table| self.flushed(table));
        let seals = self.last_sealed.iter().map(|(_, seal)| seal.last_seq);
        let marks = [self.durable, self.flushed_all, self.clean_close.unwrap_or_default()];
        seqs.chain(flushed).chain(seals).chain(marks).max().unwrap_or_default()
    }

    /// Bytes of the files of the history.
    #[must_use]
    pub fn history_bytes(&self) -> u64 {
        self.history.values().map(|segment| segment.spec.bytes).sum()
    }

    /// The same tables and extents as a database of its own, whose journal is `segments`, oldest first, each
    /// with its end: these and the extents hold everything up to `last_seq`. It has no history, but the same
    /// limits.
    #[must_use]
    pub fn detached(&self, database: DatabaseId, segments: &[(SegmentSpec, Seal)], last_seq: SeqNo) -> State {
        debug_assert!(segments.is_sorted_by(|a, b| a.0.id < b.0.id), "segments come oldest first");
        let mut state = self.clone();
        state.database = database;
        state.history = Arc::default();
        state.segments = segments
            .iter()
            .map(|(spec, seal)| (spec.id, Segment { spec: *spec, seal: Some(*seal) }))
            .collect();
        state.segment_files = segments.iter().map(|(spec, _)| spec.file).collect();
        for (spec, seal) in segments {
            state.last_sealed = Some((*spec, *seal));
            state.next.segment = state.next.segment.max(SegmentId(spec.id.0 + 1));
            state.next.segment_file = state.next.segment_file.max(spec.file + 1);
        }
        state.durable = state.durable.max(last_seq);
        state.clean_close = None;
        state
    }

    /// Checks every invariant, and computes again all that edits maintain.
    ///
    /// # Errors
    /// `Invalid`, naming the broken invariant.
    pub fn check(&self) -> Result<()> {
        let mut slots = Slots::default();
        for table in self.tables.values() {
            table.extents.check().map_err(|error| error.context(format!("table {}", table.name)))?;
        }
        self.extents().try_for_each(|(id, count)| slots.take(id, count))?;
        let live = self.tables.values().filter(|table| !table.dropped);
        let names: RedBlackTreeMapSync<_, _> = live.map(|table| (table.name.clone(), table.id)).collect();
        let live = self.segments.values().map(|segment| segment.spec.file);
        let files: BTreeSet<_> = live.chain(self.history.values().map(|segment| segment.spec.file)).collect();
        if names != self.names || files != self.segment_files {
            return Err(Error::invalid("names of tables or files of segments differ from those in use"));
        }
        if !self.tables.contains_key(&TableId::DEFAULT) {
            return Err(Error::invalid("the default table is missing"));
        }
        Ok(())
    }
}

impl State {
    /// Compares the tables. A snapshot leaves out the number of a table that [`State::flushed_all`] covers.
    fn has_tables_of(&self, other: &State) -> bool {
        let is_same = |(one, two): (&Arc<Table>, &Arc<Table>)| {
            Arc::ptr_eq(one, two) && self.flushed_all == other.flushed_all
                || self.flushed(one) == other.flushed(two) && one.is_but_for_flushed(two)
        };
        self.tables.len() == other.tables.len()
            && self.tables.values().zip(other.tables.values()).all(is_same)
    }
}

impl Table {
    fn is_but_for_flushed(&self, other: &Table) -> bool {
        let Table { id, name, options, flushed: _, dropped, extents, collation } = self;
        (*id, name, options, *dropped) == (other.id, &other.name, &other.options, other.dropped)
            && (extents, collation) == (&other.extents, &other.collation)
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        let fields = |state: &State| {
            (state.database, state.last_sealed, state.next, state.durable, state.epoch, state.clean_close)
        };
        fields(self) == fields(other)
            && self.segments == other.segments
            && (&self.history, self.history_rule) == (&other.history, other.history_rule)
            && (&self.void_marks, self.flushed_all) == (&other.void_marks, other.flushed_all)
            && self.has_tables_of(other)
    }
}
