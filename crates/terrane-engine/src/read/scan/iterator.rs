//! Ranges: a scan over a merge of everything a read view holds, and the double-ended iterator on top of it.

use std::ops::Bound;
use std::sync::Arc;

use terrane_base::{Collation, Cursor, Entry, Result, SeqNo};
use terrane_levels::Level;
use terrane_memtable::MemtableCursor;
use terrane_table::{Cache, CursorOptions, LevelCursor, MergeCursor, Scope};

mod refresh;

use crate::read::Reader;
use crate::read::scan::range_tombstones::{RangeTombstoneIter, Ranges};
use crate::read::scan::value_groups::ValueGroups;
use crate::read::scan::values::ScanValues;
use crate::read::scan::{Bounds, Scan};
use crate::shared::Shared;
use crate::table::Table;
use crate::table::read_view::ReadView;
use crate::table::skipped_versions::SkippedVersions;

pub use refresh::{ExtentFilter, RenewableScan};

/// So many sorted runs of a scan read ahead as far as the options allow; more share what these may have.
const READ_AHEAD_RUNS: u64 = 32;
/// The least that a run reads ahead, as by the range of the option.
const READ_AHEAD_BYTES_MIN: u64 = 16 << 10;

/// One sorted source of a read view. A scan has few, and a box for each would be an allocation.
#[derive(Debug)]
pub enum Source {
    /// A memtable or a generation of the global index.
    Memory(MemtableCursor),
    /// An overflow run or a level.
    Level(LevelCursor),
    /// One of these, behind range deletes.
    RangeTombstoneIter(Box<RangeTombstoneIter>),
}

macro_rules! forward {
    ($self:ident, $cursor:ident => $call:expr) => {
        match $self {
            Source::Memory($cursor) => $call,
            Source::Level($cursor) => $call,
            Source::RangeTombstoneIter($cursor) => $call,
        }
    };
}

impl Cursor for Source {
    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        forward!(self, cursor => cursor.entry())
    }

    fn seek(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        forward!(self, cursor => cursor.seek(key, seq))
    }

    fn prepare_seek(&mut self, key: &[u8]) {
        forward!(self, cursor => cursor.prepare_seek(key));
    }

    fn begin_seek(&mut self, key: &[u8], seq: SeqNo) -> Result<bool> {
        forward!(self, cursor => cursor.begin_seek(key, seq))
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        forward!(self, cursor => cursor.seek_before(key))
    }

    fn seek_first(&mut self) -> Result<()> {
        forward!(self, cursor => cursor.seek_first())
    }

    fn seek_last(&mut self) -> Result<()> {
        forward!(self, cursor => cursor.seek_last())
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        forward!(self, cursor => cursor.next())
    }

    #[inline]
    fn next_key(&mut self) -> Result<()> {
        forward!(self, cursor => cursor.next_key())
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        forward!(self, cursor => cursor.prev())
    }
}

/// A position among the visible keys of a table: seek, next, prev, without copies where possible.
pub type TableScan = Scan<MergeCursor<Source>>;

impl Shared {
    /// The rows of `table` within `bounds` at number `seq`, from both ends.
    #[must_use]
    pub fn range(&self, table: &Table, bounds: Bounds, seq: SeqNo) -> RangeIter {
        debug_assert!(seq <= self.journal.visible(), "a scan reads at a number that was visible");
        // Both ends read the same read view; the second end is opened only if it is used.
        let view = table.shared(&terrane_base::epoch::pin());
        let shown = shown_memory(&view, seq);
        Reader::of(self).sample_scan(table, &view, shown.count_ones());
        let kept = view.clone();
        let (semantics, scope) = (table.semantics.clone(), scope_of(table, &bounds));
        let passed = table.passed.clone();
        let groups = ValueGroups::of(table, &view.tree);
        let (cache, read_ahead_bytes) = (self.cache.clone(), self.options.read_ahead_bytes);
        let open = move || {
            let opener = Opener { cache: &cache, read_ahead_bytes };
            let sources = opener.sources(&view, &passed, shown, seq, scope.as_ref());
            let sources = MergeCursor::new(sources).ordered(semantics.collation());
            let separated = ScanValues::of(&view.tree, &cache, read_ahead_bytes);
            let mut scan = Scan::new(sources, seq, bounds.clone(), semantics.clone()).following(separated);
            scan.count_groups(groups.clone());
            scan
        };
        RangeIter {
            front: open(),
            back: None,
            open_back: Box::new(open),
            view: kept,
            collation: table.semantics.collation().clone(),
            ends: Ends::default(),
            leaves_values: false,
        }
    }
}

/// Opens the sources of a scan.
#[derive(Clone, Copy)]
struct Opener<'c> {
    cache: &'c Arc<Cache>,
    /// The option of this name.
    read_ahead_bytes: u64,
}

impl<'c> Opener<'c> {
    fn of(shared: &'c Shared) -> Opener<'c> {
        Opener { cache: &shared.cache, read_ahead_bytes: shared.options.read_ahead_bytes }
    }

    /// The sources of a read view for a scan at `seq`, newest first; of those in memory the `shown` ones.
    /// Those on disk stay within `scope`, if there is one.
    fn sources(
        &self,
        view: &ReadView,
        passed: &Arc<SkippedVersions>,
        shown: u64,
        seq: SeqNo,
        scope: Option<&Arc<Scope>>,
    ) -> Vec<Source> {
        debug_assert!(is_mask_of(shown, view), "a bit of the mask stands for no source");
        if view.is_ranged() {
            return self.veiled_sources(view, passed, shown, seq, scope);
        }
        let is_shown = |at: usize| at >= MASKED || shown & (1 << at) != 0;
        let memtables = std::iter::once(&view.active).chain(&view.frozen).enumerate();
        let memtables = memtables.filter(|(at, _)| is_shown(*at)).map(|(_, memtable)| memtable.cursor());
        let generations = view.generations.iter().enumerate();
        let before = 1 + view.frozen.len();
        let generations = generations.filter(move |(at, _)| is_shown(before + *at));
        let generations = generations.map(|(_, generation)| generation.cursor());
        let levels = view.tree.places().filter(|(_, level)| !level.is_empty());
        let read_ahead_bytes = self.share_of_read_ahead(view);
        let levels = levels.map(|(_, level)| self.level_cursor(level, read_ahead_bytes, scope));
        memtables.chain(generations).map(Source::Memory).chain(levels.map(Source::Level)).collect()
    }

    /// The largest window of each sorted run of a read view. With hundreds of overflow runs they share what
    /// few may have.
    fn share_of_read_ahead(&self, view: &ReadView) -> u32 {
        let runs = (view.tree.runs.len() + view.tree.levels.len()) as u64;
        let asked = self.read_ahead_bytes;
        debug_assert!(asked <= u64::from(u32::MAX), "the range of the option fits the window of a cursor");
        let share = asked * READ_AHEAD_RUNS / runs.max(READ_AHEAD_RUNS);
        // At most 4 MiB by its range.
        share.max(READ_AHEAD_BYTES_MIN).min(asked) as u32
    }

    fn level_cursor(
        &self,
        level: &Arc<Level>,
        read_ahead_bytes: u32,
        scope: Option<&Arc<Scope>>,
    ) -> LevelCursor {
        debug_assert!(!level.is_empty(), "a level without extents is not a source");
        let options = CursorOptions { fill_cache: true, read_ahead_bytes };
        let cursor = LevelCursor::new(level.clone(), self.cache.clone(), options);
        match scope {
            Some(scope) => cursor.within(scope.clone()),
            None => cursor,
        }
    }

    /// As [`Opener::sources`], where some have range deletes: those and all behind them are veiled.
    #[cold]
    fn veiled_sources(
        &self,
        view: &ReadView,
        passed: &Arc<SkippedVersions>,
        shown: u64,
        seq: SeqNo,
        scope: Option<&Arc<Scope>>,
    ) -> Vec<Source> {
        debug_assert!(view.is_ranged(), "a source is veiled by range deletes of its read view");
        let is_shown = |at: usize| at >= MASKED || shown & (1 << at) != 0;
        let memory = std::iter::once(&view.active).chain(&view.frozen);
        let memory = memory.chain(view.generations.iter().map(|generation| generation.index()));
        let memory = memory
            .enumerate()
            .filter(|(at, _)| is_shown(*at))
            .map(|(_, memtable)| (Source::Memory(memtable.cursor()), Ranges::of_memory(memtable, seq)));
        let levels = view.tree.places().filter(|(_, level)| !level.is_empty());
        let read_ahead_bytes = self.share_of_read_ahead(view);
        let levels = levels.map(|(_, level)| {
            let cursor = self.level_cursor(level, read_ahead_bytes, scope);
            (Source::Level(cursor), Ranges::of_level(level, seq, self.cache))
        });
        let mut newer: Vec<Ranges> = Vec::new();
        let veil = |(source, own): (Source, Option<Ranges>)| {
            if newer.is_empty() && own.is_none() {
                return source;
            }
            let veiled =
                RangeTombstoneIter::new(source, newer.clone(), own.clone(), passed, view.active.collation());
            newer.extend(own);
            Source::RangeTombstoneIter(Box::new(veiled))
        };
        memory.chain(levels).map(veil).collect()
    }
}

/// Returns the scope of a scan within `bounds`, if all keys within them have one prefix that filters may
/// know.
fn scope_of(table: &Table, bounds: &Bounds) -> Option<Arc<Scope>> {
    if !table.semantics.collation().is_bytes() {
        // Keys with one prefix lie anywhere.
        return None;
    }
    let extractor = table.semantics.extractor()?;
    let (Bound::Included(start) | Bound::Excluded(start)) = &bounds.lower else { return None };
    let prefix = extractor.prefix_over(start).filter(|prefix| bounds.are_within(prefix))?;
    Some(Arc::new(Scope::new(&extractor, prefix)))
}

/// Sources in memory that a mask covers; those behind are always shown.
const MASKED: usize = 64;

/// Which memtables and generations may hold a record up to `seq`, as bits in the order of the sources.
/// Requires: `seq` was visible before the call, so that everything up to it has been indexed and counted.
fn shown_memory(view: &ReadView, seq: SeqNo) -> u64 {
    let memtables = std::iter::once(&view.active).chain(&view.frozen);
    let memtables = memtables.map(|memtable| memtable.first_seq() <= seq && !memtable.is_empty());
    let generations = view.generations.iter().map(|generation| !generation.is_empty());
    let shown = memtables.chain(generations).take(MASKED).enumerate();
    shown.fold(0, |mask, (at, is_shown)| mask | u64::from(is_shown) << at)
}

/// Returns true if every bit of a mask stands for a source in memory of the read view.
fn is_mask_of(shown: u64, view: &ReadView) -> bool {
    let sources = 1 + view.frozen.len() + view.generations.len();
    sources >= MASKED || shown >> sources == 0
}

/// Keys and values of a range in key order, from both ends. Owns what it needs.
///
/// After an error the iterator ends.
pub struct RangeIter {
    front: TableScan,
    back: Option<TableScan>,
    open_back: Box<dyn Fn() -> TableScan + Send>,
    view: Arc<ReadView>,
    collation: Collation,
    ends: Ends,
    /// True if rows have empty values, and separated ones are left where they are.
    leaves_values: bool,
}

/// How far the two ends have come.
#[derive(Default)]
struct Ends {
    front_placed: bool,
    front_key: Option<Vec<u8>>,
    back_key: Option<Vec<u8>>,
    finished: bool,
}

/// A key and its value.
pub type Row = (Vec<u8>, Vec<u8>);

impl RangeIter {
    /// The view that its sources are taken from.
    pub(crate) fn view(&self) -> &Arc<ReadView> {
        &self.view
    }

    /// The key at the position of one end.
    pub(crate) fn last_key(&self, of_front: bool) -> Option<&[u8]> {
        let end = if of_front { Some(&self.front) } else { self.back.as_ref() };
        end.and_then(TableScan::key)
    }

    /// Sets whether the next rows have empty values: then separated ones are left where they are.
    pub fn leave_values(&mut self, leaves_values: bool) {
        self.leaves_values = leaves_values;
        self.front.leave_values(leaves_values);
        if let Some(back) = &mut self.back {
            back.leave_values(leaves_values);
        }
    }

    /// The order of its rows is not asserted, here and going back: a forged block behind a right checksum may
    /// break it.
    fn advance(&mut self) -> Result<Option<Row>> {
        debug_assert!(!self.ends.finished, "an iterator that has ended is not moved");
        if self.ends.front_placed {
            self.front.next()?;
        } else {
            self.front.seek_first()?;
            self.ends.front_placed = true;
        }
        let Some((key, value)) = shown(&self.front, self.leaves_values) else { return Ok(None) };
        if self.ends.back_key.as_deref().is_some_and(|back| self.collation.le(back, key)) {
            return Ok(None);
        }
        let row = (key.to_vec(), value.to_vec());
        if self.back.is_some() {
            self.ends.front_key = Some(row.0.clone());
        }
        Ok(Some(row))
    }

    fn advance_back(&mut self) -> Result<Option<Row>> {
        debug_assert!(!self.ends.finished, "an iterator that has ended is not moved");
        let back = match &mut self.back {
            Some(back) => {
                back.prev()?;
                back
            }
            None => {
                self.ends.front_key = self.front.key().map(<[u8]>::to_vec);
                let back = self.back.insert((self.open_back)());
                back.leave_values(self.leaves_values);
                back.seek_last()?;
                back
            }
        };
        let Some((key, value)) = shown(back, self.leaves_values) else { return Ok(None) };
        if self.ends.front_key.as_deref().is_some_and(|front| self.collation.le(key, front)) {
            return Ok(None);
        }
        let row = (key.to_vec(), value.to_vec());
        self.ends.back_key = Some(row.0.clone());
        Ok(Some(row))
    }

    fn finish(&mut self, step: Result<Option<Row>>) -> Option<Result<Row>> {
        debug_assert!(!self.ends.finished, "an iterator that has ended shows no further row");
        let row = step.transpose();
        self.ends.finished = !matches!(row, Some(Ok(_)));
        row
    }
}

/// The row at the position of a scan; with an empty value if values are left.
#[inline]
fn shown(scan: &TableScan, leaves_values: bool) -> Option<(&[u8], &[u8])> {
    if leaves_values { Some((scan.key()?, &[])) } else { scan.entry() }
}

impl Iterator for RangeIter {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ends.finished {
            return None;
        }
        let step = self.advance();
        self.finish(step)
    }
}

impl DoubleEndedIterator for RangeIter {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.ends.finished {
            return None;
        }
        let step = self.advance_back();
        self.finish(step)
    }
}
