//! A picker's view of a table: borrowed views of its sorted lists of extents, never a copy.

use std::ops::{Bound, Range};

use terrane_base::{Collation, Moment, SeqNo, TableId, ValueTableId};
use terrane_format::extent::ExtentMeta;
use terrane_format::manifest::Place;
use terrane_levels::{HasMeta, Level, Metasnapshot, Totals, ValueTables};

use crate::pick::Heats;
use crate::range::KeyRange;

/// A sorted list of extents whose key ranges do not overlap: a level or an overflow run.
pub trait LevelView {
    /// Number of extents.
    fn len(&self) -> usize;

    /// Returns true if there is no extent.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The extent at `index`. Requires: `index < len()`.
    fn meta(&self, index: usize) -> &ExtentMeta;

    /// Index of the first extent whose largest key is not less than `key`, or `len()`.
    fn find(&self, key: &[u8]) -> usize;

    /// Sums over all extents, in constant time.
    fn totals(&self) -> Totals;

    /// Index of the first extent from `from` on that has range deletes.
    fn next_ranged(&self, from: usize) -> Option<usize>;

    /// Index of the first extent from `from` on that is `wanted`, among those with range deletes or with
    /// `permille` of their entries dead at `now`.
    fn next_decayed(
        &self,
        from: usize,
        permille: u64,
        now: Moment,
        wanted: &dyn Fn(&ExtentMeta) -> bool,
    ) -> Option<usize>;
}

impl<E: HasMeta> LevelView for Level<E> {
    fn len(&self) -> usize {
        Level::len(self)
    }

    fn meta(&self, index: usize) -> &ExtentMeta {
        self.get(index).meta()
    }

    fn find(&self, key: &[u8]) -> usize {
        Level::find(self, key)
    }

    fn totals(&self) -> Totals {
        Level::totals(self)
    }

    fn next_ranged(&self, from: usize) -> Option<usize> {
        Level::next_ranged(self, from)
    }

    fn next_decayed(
        &self,
        from: usize,
        permille: u64,
        now: Moment,
        wanted: &dyn Fn(&ExtentMeta) -> bool,
    ) -> Option<usize> {
        Level::next_decayed(self, from, permille, now, wanted)
    }
}

/// The value tables of a table, as a picker sees them.
pub trait ValuesView {
    /// The description of a value table, and how many of its entries are live.
    fn values(&self, number: ValueTableId) -> Option<(&ExtentMeta, u64)>;

    /// Calls `see` with each value table, by number, and with the number of its live entries.
    fn each(&self, see: &mut dyn FnMut(&ExtentMeta, u64));

    /// Sums over all value tables, in constant time; and the live entries.
    fn sums(&self) -> (Totals, u64);

    /// Bytes of the values that entries point to, before compression, in constant time.
    fn live_bytes(&self) -> u64;
}

impl<E: HasMeta> ValuesView for ValueTables<E> {
    fn values(&self, number: ValueTableId) -> Option<(&ExtentMeta, u64)> {
        self.get(number).map(|table| (table.extent.meta(), table.live_entries))
    }

    fn each(&self, see: &mut dyn FnMut(&ExtentMeta, u64)) {
        self.iter().for_each(|table| see(table.extent.meta(), table.live_entries));
    }

    fn sums(&self) -> (Totals, u64) {
        (self.totals(), self.live_entries())
    }

    fn live_bytes(&self) -> u64 {
        ValueTables::live_bytes(self)
    }
}

/// A level without extents, for levels that the table does not have yet.
pub(crate) struct EmptyLevel;

impl LevelView for EmptyLevel {
    fn len(&self) -> usize {
        0
    }

    fn meta(&self, index: usize) -> &ExtentMeta {
        unreachable!("index {index} of an empty level")
    }

    fn find(&self, _key: &[u8]) -> usize {
        0
    }

    fn totals(&self) -> Totals {
        Totals::default()
    }

    fn next_ranged(&self, _from: usize) -> Option<usize> {
        None
    }

    fn next_decayed(
        &self,
        _from: usize,
        _permille: u64,
        _now: Moment,
        _wanted: &dyn Fn(&ExtentMeta) -> bool,
    ) -> Option<usize> {
        None
    }
}

/// An overflow run.
#[derive(Clone, Copy)]
pub struct RunShape<'a> {
    /// Its number; a higher number is newer.
    pub id: u64,
    /// Its extents.
    pub level: &'a dyn LevelView,
}

/// The inputs of a picker.
#[derive(Clone)]
pub struct TableShape<'a> {
    /// Which table.
    pub table: TableId,
    /// Overflow runs (L0), newest first.
    pub runs: Vec<RunShape<'a>>,
    /// Levels; the first is L1.
    pub levels: Vec<&'a dyn LevelView>,
    /// The value tables that entries of runs and levels point into.
    pub values: &'a dyn ValuesView,
    /// Entries that have expired at this time are treated as absent; [`Moment`] 0 if none can have.
    pub now: Moment,
    /// Live snapshots, ascending.
    pub snapshots: &'a [SeqNo],
    /// Heat of the extents of each level, from L1 on; none for levels where it is unknown.
    pub heats: Vec<Heats>,
    /// Ranges of keys in which scans met too many value tables.
    pub scanned: Vec<KeyRange>,
    /// True if range deletes may cover much data: false once [`crate::has_wide`] has found none, as long as
    /// levels and snapshots stay the same.
    pub may_be_wide: bool,
    /// True while a caller waits for the compaction of a range: it moves extents down to the last level, so
    /// no other job moves them up.
    pub keeps_depth: bool,
    /// True if the data of the whole database are larger than its memory: most reads wait for the device.
    pub exceeds_memory: bool,
    /// Bytes that were free on the device at the last look; `u64::MAX` if that is unknown.
    pub room_bytes: u64,
    /// Key order of the table.
    pub collation: Collation,
}

impl<'a> TableShape<'a> {
    /// The shape of a metasnapshot.
    #[must_use]
    pub fn of<E: HasMeta>(table: TableId, metasnapshot: &'a Metasnapshot<E>, snapshots: &'a [SeqNo]) -> Self {
        TableShape {
            table,
            runs: metasnapshot.runs.iter().map(|run| RunShape { id: run.id, level: &*run.level }).collect(),
            levels: metasnapshot.levels.iter().map(|level| &**level as &dyn LevelView).collect(),
            values: &metasnapshot.values,
            now: Moment(0),
            snapshots,
            heats: Vec::new(),
            scanned: Vec::new(),
            may_be_wide: true,
            keeps_depth: false,
            exceeds_memory: false,
            room_bytes: u64::MAX,
            collation: Collation::BYTES,
        }
    }

    /// Sets the key order of the table.
    #[must_use]
    pub fn ordered(self, collation: &Collation) -> Self {
        TableShape { collation: collation.clone(), ..self }
    }

    /// Level `number`, which is at least 1; empty if the table does not have it.
    #[must_use]
    pub fn level(&self, number: u8) -> &'a dyn LevelView {
        let index = usize::from(number).checked_sub(1);
        index.and_then(|index| self.levels.get(index)).copied().unwrap_or(&EmptyLevel)
    }

    /// Number of the deepest level that has extents; 0 if none has.
    #[must_use]
    pub fn deepest(&self) -> u8 {
        self.levels.iter().rposition(|level| !level.is_empty()).map_or(0, |index| index as u8 + 1)
    }

    /// Returns true if a level deeper than `number` has an extent that overlaps keys `first` to `last`.
    #[must_use]
    pub fn is_occupied_below(&self, number: u8, first: &[u8], last: &[u8]) -> bool {
        self.levels.iter().skip(usize::from(number)).any(|level| !overlapping(*level, first, last).is_empty())
    }

    pub(crate) fn view(&self, place: Place) -> &'a dyn LevelView {
        match place {
            Place::Level(number) => self.level(number),
            Place::Run(id) => self.runs.iter().find(|run| run.id == id).map_or(&EmptyLevel, |run| run.level),
            Place::Values => &EmptyLevel,
        }
    }
}

/// Indexes of the extents that overlap keys `first` to `last`, both inclusive.
pub(crate) fn overlapping(level: &dyn LevelView, first: &[u8], last: &[u8]) -> Range<usize> {
    let start = level.find(first);
    let end = level.find(last);
    let starts_by = |meta: &ExtentMeta| meta.collation.le(&meta.smallest, last);
    let reaches = end < level.len() && starts_by(level.meta(end));
    debug_assert!(start <= level.len() && end <= level.len(), "places in the level: {start}..{end}");
    start..(end + usize::from(reaches)).max(start)
}

/// Indexes of the extents that overlap `range`.
pub(crate) fn overlapping_range(level: &dyn LevelView, range: &KeyRange) -> Range<usize> {
    let start = level.find(&range.start);
    let end = match &range.end {
        Bound::Unbounded => level.len(),
        Bound::Included(key) | Bound::Excluded(key) => {
            let found = level.find(key);
            let reaches = found < level.len() && !range.ends_before(&level.meta(found).smallest);
            found + usize::from(reaches)
        }
    };
    start..end.max(start)
}

/// Stored bytes of the extents at a range of indexes.
pub(crate) fn bytes_of(level: &dyn LevelView, range: Range<usize>) -> u64 {
    debug_assert!(range.is_empty() || range.end <= level.len(), "{range:?} of {} extents", level.len());
    range.map(|index| u64::from(level.meta(index).bytes)).sum()
}
