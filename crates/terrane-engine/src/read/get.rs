//! Point reads: active memtable → frozen → generations → overflow runs → levels, newest first, until a
//! version is found. Readers take no lock; on a hit they write no shared cache line but a clear reference
//! bit. One epoch, one hash of the key and no allocation but the caller's buffer serve the whole way.
//!
//! A range delete hides every older version, so also every source behind the one that has the delete: a read
//! ends there (`docs/design/0019-range-deletes.md`).
//!
//! The read view is loaded before the visible number: whatever background work finished before that dropped
//! only versions that a newer visible one hides.

use std::sync::Arc;

use terrane_base::counters::{add, count};
use terrane_base::{Result, SeqKind, SeqNo, key};
use terrane_format::filter::hash as key_hash;
use terrane_levels::Metasnapshot;
use terrane_table::{Epoch, Extent, Need, Probe};

use crate::read::Reader;
use crate::read::hidden::{hidden_in, is_hidden};
use crate::read::memory::{count_read, get_from_memory, memory_runs};
use crate::read::merge_operands::Sources;
use crate::read::read_target::ReadTarget;
use crate::read::row_cache::Rows;
use crate::read::separated::{leads_to_value, replace_cached};
use crate::read::value_target::ValueTarget;
use crate::table::Table;
use crate::table::filter_policy::{Asking, FilterUse};
use crate::table::read_view::ReadView;
use crate::table::semantics::ReadClock;

/// How point reads are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadMode {
    /// A snapshot's number; `None` for the newest visible number when the read begins.
    pub at: Option<SeqNo>,
    /// True if the filters of extents are asked before their blocks.
    pub filters: bool,
    /// True if the value is wanted. A read that asks only whether there is one goes to no separated value,
    /// and what it appends means nothing.
    pub values: bool,
}

impl Default for ReadMode {
    fn default() -> Self {
        ReadMode { at: None, filters: true, values: true }
    }
}

impl ReadMode {
    /// Reads the newest visible state.
    #[inline(always)]
    #[must_use]
    pub fn newest(filters: bool) -> Self {
        ReadMode { at: None, filters, values: true }
    }

    /// Reads at a snapshot's number.
    #[must_use]
    pub fn at(seq: SeqNo) -> Self {
        ReadMode { at: Some(seq), ..Self::default() }
    }
}

/// One point read: what the steps need to know.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'r> {
    pub(crate) key: &'r [u8],
    /// Of the key, for every filter.
    pub(crate) hash: u64,
    pub(crate) seq: SeqNo,
    pub(crate) asking: Asking,
    pub(crate) filter_use: &'r FilterUse,
}

impl Reading<'_> {
    /// The hash with which the filters of a sorted run of `tree` are asked, if they are.
    #[inline]
    pub(crate) fn hash_for(&self, tree: &Metasnapshot, run: usize) -> Option<u64> {
        self.asking.asks(run.checked_sub(tree.runs.len())).then_some(self.hash)
    }

    /// Counts the answer of a filter of a sorted run, if this read is one of those that count.
    #[inline]
    pub(crate) fn count_answer(&self, tree: &Metasnapshot, run: usize, is_refused: bool) {
        if let Some(level) = run.checked_sub(tree.runs.len()).filter(|_| self.asking.counts) {
            debug_assert!(self.asking.asks(Some(level)), "a read that counts answers asks every filter");
            self.filter_use.count(level, is_refused);
        }
    }
}

/// A point read that memory does not end.
pub(crate) struct PointRead<'r> {
    table: &'r Table,
    key: &'r [u8],
    hash: u64,
    seq: SeqNo,
    mode: ReadMode,
    rows: Rows<'r>,
    /// Bytes in the buffer that are not of the read.
    start: usize,
}

/// The rest of a read, under no epoch.
pub(crate) enum Rest {
    /// Nothing: whether there is a value.
    Done(bool),
    /// All of it, with a newer read view.
    Again,
    /// Memory had a version that needs more: operands, a value elsewhere, an expiry.
    InMemory(ReadView, SeqKind),
    /// The same of a version that levels had.
    InTree(Arc<Metasnapshot>, SeqKind),
    /// The walk from this sorted run on, with the store.
    Missing(Arc<Metasnapshot>, usize),
}

impl PointRead<'_> {
    /// The rest where memory had a version that is not the value itself.
    #[cold]
    #[inline(never)]
    fn rest_of_memory(&self, epoch: &Epoch, view: &ReadView, kind: SeqKind) -> Rest {
        debug_assert!(kind.is_wrapped(), "any other version of memory ends the read");
        // An operand may be newer than extents that came in beneath it, which this read view lacks.
        if self.mode.at.is_none() && !std::ptr::eq(view, self.table.view(epoch.guard())) {
            return Rest::Again;
        }
        Rest::InMemory(view.clone(), kind)
    }
}

impl Reader<'_> {
    /// A point read that no log watches. An answer of memory is all in this function; the rest is in others,
    /// so that this one keeps what it has in registers.
    #[inline(always)]
    pub(crate) fn get_plainly(
        self,
        table: &Table,
        key: &[u8],
        mode: ReadMode,
        target: &mut impl ReadTarget,
    ) -> Result<bool> {
        key::check_key(key)?;
        let hash = key_hash(key);
        let _held = terrane_base::planted!(ReadWaitsForInstall).then(|| table.installing.lock());
        let rows = Rows::of(self.shared, mode);
        let epoch = terrane_table::enter();
        let view = table.view(epoch.guard());
        let seq = mode.at.unwrap_or_else(|| self.journal.visible());
        let start = target.begin();
        let found = get_from_memory(view, (key, hash, seq), target);
        if let Some(kind) = found.filter(|kind| !kind.is_wrapped()) {
            return Ok(!kind.is_delete());
        }
        let read = PointRead { table, key, hash, seq, mode, rows, start };
        let rest = match found {
            Some(kind) => read.rest_of_memory(&epoch, view, kind),
            None => target.get_from_levels(self, &read, &epoch, view)?,
        };
        if let Rest::Done(found) = rest {
            return Ok(found);
        }
        drop(epoch);
        target.get_rest(self, &read, rest)
    }

    /// [`ReadTarget::get_from_levels`].
    #[inline(always)]
    pub(crate) fn get_from_levels(
        self,
        read: &PointRead<'_>,
        epoch: &Epoch,
        view: &ReadView,
        target: &mut impl ValueTarget,
    ) -> Result<Rest> {
        debug_assert!(read.hash == key_hash(read.key), "filters are asked with the hash of the key");
        let reading = self.reading(read);
        let mut runs = memory_runs(view);
        // A read that asks no row cache may need no buffer.
        let row = match read.rows.may_have(read.hash) {
            true => read.rows.get(epoch, read.table.id, &reading, target.buffer()),
            false => None,
        };
        let walk = match row {
            Some(_) => Walk::Done(row),
            None => get_cached(epoch, &view.tree, 0, &reading, target, &mut runs),
        };
        count_read(runs);
        let kind = match walk {
            Walk::Done(Some(kind)) if kind.is_wrapped() => kind,
            Walk::Done(kind) => return Ok(Rest::Done(has_value(kind))),
            Walk::Missing(run, _) => return Ok(Rest::Missing(view.tree.clone(), run)),
        };
        if kind.is_pointer() {
            let (now, value) = (ReadClock::new(&read.table.semantics), target.buffer());
            if !read.mode.values {
                return leads_to_value(kind, &value[read.start..], &now).map(Rest::Done);
            }
            if replace_cached(epoch, &view.tree, (read.key, kind), &now, (value, read.start)) {
                return Ok(Rest::Done(true));
            }
        }
        Ok(Rest::InTree(view.tree.clone(), kind))
    }

    /// [`ReadTarget::get_rest`].
    #[inline(always)]
    pub(crate) fn get_rest(
        self,
        read: &PointRead<'_>,
        rest: Rest,
        target: &mut impl ReadTarget,
    ) -> Result<bool> {
        let (reading, now) = (self.reading(read), ReadClock::new(&read.table.semantics));
        let (value, start) = (target.buffer(), read.start);
        match rest {
            Rest::Done(found) => Ok(found),
            Rest::Again => {
                value.truncate(start);
                self.get_plainly(read.table, read.key, read.mode, target)
            }
            Rest::InMemory(view, kind) => {
                let sources = Sources { memory: Some(&view), tree: &view.tree };
                self.end_read(sources, &reading, Some(kind), &now, (value, start))
            }
            Rest::InTree(tree, kind) => {
                let sources = Sources { memory: None, tree: &tree };
                self.end_read(sources, &reading, Some(kind), &now, (value, start))
            }
            Rest::Missing(tree, run) => {
                debug_assert!(value.len() == start, "a walk that is not at its end has put nothing");
                let kind = self.get_from_store(&tree, run, &reading, value)?;
                if let Some(pointer) = kind.filter(|kind| kind.is_pointer() && !read.mode.values) {
                    return leads_to_value(pointer, &value[start..], &now);
                }
                let kind = self.follow(&tree, &reading, kind, &now, (value, start))?;
                read.rows.fill(&terrane_table::enter(), read.table.id, &reading, kind, &value[start..]);
                let sources = Sources { memory: None, tree: &tree };
                self.end_read(sources, &reading, kind, &now, (value, start))
            }
        }
    }

    /// The facts that the steps of a read need.
    #[inline]
    fn reading<'r>(self, read: &PointRead<'r>) -> Reading<'r> {
        let asking = self.asking(read.table, read.mode, read.hash);
        let PointRead { table, key, hash, seq, .. } = *read;
        Reading { key, hash, seq, asking, filter_use: &table.filter_use }
    }

    /// A read view and a number for several reads: nothing that the number sees has come in, beneath memory,
    /// after the read view.
    pub(crate) fn present<'g>(
        self,
        table: &'g Table,
        guard: &'g terrane_base::epoch::Guard,
        mode: ReadMode,
    ) -> (&'g ReadView, SeqNo) {
        loop {
            let view = table.view(guard);
            let seq = mode.at.unwrap_or_else(|| self.journal.visible());
            // A visible version is in a read view: if this one lacks it, the table has a newer one by now.
            if mode.at.is_some() || std::ptr::eq(view, table.view(guard)) {
                debug_assert!(seq <= self.journal.visible(), "a snapshot has a number that was visible");
                return (view, seq);
            }
        }
    }

    /// A read from a read view that the caller keeps.
    pub(crate) fn get_from(
        self,
        view: &ReadView,
        reading: &Reading<'_>,
        now: &ReadClock<'_>,
        value: &mut Vec<u8>,
    ) -> Result<bool> {
        debug_assert!(reading.hash == key_hash(reading.key), "filters are asked with the hash of the key");
        let start = value.len();
        let mut kind = get_from_memory(view, (reading.key, reading.hash, reading.seq), value);
        if kind.is_none() {
            count_read(memory_runs(view));
            kind = self.get_from_store(&view.tree, 0, reading, value)?;
        }
        let sources = Sources { memory: Some(view), tree: &view.tree };
        self.end_read(sources, reading, kind, now, (value, start))
    }

    /// Which filters a read of the key with this hash asks.
    #[inline]
    pub(crate) fn asking(self, table: &Table, mode: ReadMode, hash: u64) -> Asking {
        if !mode.filters {
            Asking::NONE
        } else if self.options.experiments.adaptive_filters {
            table.filter_use.asking(hash)
        } else {
            Asking::ALL
        }
    }

    /// The walk through overflow runs and levels from the `first`-th on, fetching blocks that are not cached.
    /// Appends the value of the version that it returns.
    pub(crate) fn get_from_store(
        self,
        tree: &Metasnapshot,
        first: usize,
        reading: &Reading<'_>,
        value: &mut Vec<u8>,
    ) -> Result<Option<SeqKind>> {
        debug_assert!(first <= tree_len(tree), "a walk begins at a sorted run of its tree");
        for run in first..tree_len(tree) {
            let Some(extent) = find_extent(tree, run, reading.key) else { continue };
            count(|cells| add(&cells.runs_searched, 1));
            let hash = reading.hash_for(tree, run);
            let start = value.len();
            let found = extent.get_hashed(&self.cache, reading.key, hash, reading.seq, value)?;
            let hidden = extent.hidden(&self.cache, reading.key, reading.seq)?;
            if is_hidden(found, hidden) {
                value.truncate(start);
                return Ok(None);
            }
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}

/// Returns true if a version that was looked for is there and has a value.
#[inline]
pub(crate) fn has_value(kind: Option<SeqKind>) -> bool {
    kind.is_some_and(|kind| !kind.is_delete())
}

/// How far a walk got without leaving memory.
pub(crate) enum Walk {
    /// The version found, if any; its value was put.
    Done(Option<SeqKind>),
    /// This of a sorted run is not cached.
    Missing(usize, Need),
}

/// The walk through overflow runs and levels from the `first`-th on, as far as everything it needs is cached.
/// Adds the number of sorted runs that it searched to `runs`; a run with a missing part is searched again.
#[inline(always)]
pub(crate) fn get_cached(
    epoch: &Epoch,
    tree: &Metasnapshot,
    first: usize,
    reading: &Reading<'_>,
    target: &mut impl ValueTarget,
    runs: &mut u64,
) -> Walk {
    debug_assert!(first <= tree_len(tree), "a walk begins at a sorted run of its tree");
    for run in first..tree_len(tree) {
        let Some(extent) = find_extent(tree, run, reading.key) else { continue };
        let hash = reading.hash_for(tree, run);
        let hidden = match hidden_in(epoch, extent, reading.key, reading.seq) {
            Ok(hidden) => hidden,
            Err(need) => return Walk::Missing(run, need),
        };
        let (probe, bytes) = extent.probe_bytes(epoch, reading.key, hash, reading.seq);
        if let Probe::Unknown(need) = probe {
            return Walk::Missing(run, need);
        }
        *runs += 1;
        reading.count_answer(tree, run, probe == Probe::Refused);
        let found = if let Probe::Found(kind) = probe { Some(kind) } else { None };
        if is_hidden(found, hidden) {
            return Walk::Done(None);
        }
        if let Some(kind) = found {
            target.put(kind, bytes);
            return Walk::Done(found);
        }
    }
    Walk::Done(None)
}

pub(crate) fn tree_len(tree: &Metasnapshot) -> usize {
    tree.runs.len() + tree.levels.len()
}

/// The extent of the index-th sorted run (overflow runs first) that may hold `key`.
#[inline]
pub(crate) fn find_extent<'t>(tree: &'t Metasnapshot, index: usize, key: &[u8]) -> Option<&'t Arc<Extent>> {
    let runs = tree.runs.len();
    if terrane_base::planted!(SkipLevelInRead) && index + 1 == tree_len(tree) {
        return None;
    }
    let level = if index < runs { &tree.runs[index].level } else { &tree.levels[index - runs] };
    level.covering(key)
}
