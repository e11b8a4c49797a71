//! Point reads: active memtable → frozen → generations → overflow runs → levels, newest first, until a
//! version is found. Readers take no lock; on a hit they write no shared cache line but a clear reference
//! bit. One epoch, one hash of the key and no allocation but the caller's buffer serve the whole way.
//!
//! A range delete hides what is older, and every source behind the one that has it is: there a read ends
//! (`docs/design/0019-range-deletes.md`).
//!
//! The read view is loaded before the visible number: whatever background work finished before that dropped
//! only versions that a newer visible one hides.

use std::sync::Arc;

use terrane_base::counters::{add, count};
use terrane_base::{RecordKind, Result, SeqKind, SeqNo, key};
use terrane_format::filter::hash as key_hash;
use terrane_levels::Metasnapshot;
use terrane_memtable::Memtable;
use terrane_table::{Epoch, Extent, Need, Probe};

use crate::read::merge_operands::Sources;
use crate::read::separated::{leads_to_value, replace_cached};
use crate::shared::Shared;
use crate::table::Table;
use crate::table::filter_policy::{Asking, FilterUse};
use crate::table::read_view::ReadView;
use crate::table::semantics::ReadClock;

/// How point reads are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadMode {
    /// A snapshot's number; `None` for what is visible when the read begins.
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

impl Shared {
    /// Appends the value of `key` to `value`; returns whether there is one.
    ///
    /// # Errors
    /// `Invalid` for a key beyond the limit, `Io` or `Corrupt` from the store.
    pub fn get(&self, table: &Table, key: &[u8], mode: ReadMode, value: &mut Vec<u8>) -> Result<bool> {
        self.slow_log.read(&table.name, 1, || self.get_unwatched(table, key, mode, value))
    }

    #[inline]
    fn get_unwatched(&self, table: &Table, key: &[u8], mode: ReadMode, value: &mut Vec<u8>) -> Result<bool> {
        if self.samples_now() {
            return self.sampled(table, &[key], mode, || self.get_unsampled(table, key, mode, value));
        }
        self.get_unsampled(table, key, mode, value)
    }

    #[inline]
    fn get_unsampled(&self, table: &Table, key: &[u8], mode: ReadMode, value: &mut Vec<u8>) -> Result<bool> {
        key::check_key(key)?;
        let _held = terrane_base::planted!(ReadWaitsForInstall).then(|| table.installing.lock());
        let hash = key_hash(key);
        let asking = self.asking(table, mode, hash);
        let rows = self.rows_of(mode);
        let (start, now) = (value.len(), ReadClock::new(&table.semantics));
        let mut runs;
        let (tree, reading, run) = {
            let epoch = terrane_table::enter();
            let view = table.view(epoch.guard());
            let seq = mode.at.unwrap_or_else(|| self.journal.visible());
            let reading = Reading { key, hash, seq, asking, filter_use: &table.filter_use };
            if let Some(kind) = get_from_memory(view, &reading, value) {
                if !kind.is_wrapped() {
                    return Ok(!kind.is_delete());
                }
                // An operand may be newer than extents that came in beneath it, which this read view lacks.
                if mode.at.is_none() && !std::ptr::eq(view, table.view(epoch.guard())) {
                    drop(epoch);
                    value.truncate(start);
                    return self.get_unsampled(table, key, mode, value);
                }
                let view = view.clone();
                drop(epoch);
                let sources = Sources { memory: Some(&view), tree: &view.tree };
                return self.end_read(sources, &reading, Some(kind), &now, (value, start));
            }
            runs = memory_runs(view);
            let mut kind = rows.get(&epoch, table.id, &reading, value);
            let walk = match kind {
                Some(_) => Walk::Done(kind),
                None => get_cached(&epoch, &view.tree, 0, &reading, value, &mut runs),
            };
            match walk {
                Walk::Done(found) => {
                    count_read(runs);
                    kind = found;
                    debug_assert!(kind.is_some() || value.len() == start, "what is not found has no bytes");
                    if !kind.is_some_and(SeqKind::is_wrapped) {
                        return Ok(has_value(kind));
                    }
                    if let Some(pointer) = kind.filter(|kind| kind.is_pointer()) {
                        if !mode.values {
                            return leads_to_value(pointer, &value[start..], &now);
                        }
                        if replace_cached(&epoch, &view.tree, (key, pointer), &now, (value, start)) {
                            return Ok(true);
                        }
                    }
                    let tree = view.tree.clone();
                    drop(epoch);
                    let sources = Sources { memory: None, tree: &tree };
                    return self.end_read(sources, &reading, kind, &now, (value, start));
                }
                Walk::Missing(run, _) => (view.tree.clone(), reading, run),
            }
        };
        count_read(runs);
        // The epoch is left before the store is asked; the tree is kept by its count instead.
        let kind = self.get_from_store(&tree, run, &reading, value)?;
        if let Some(pointer) = kind.filter(|kind| kind.is_pointer() && !mode.values) {
            return leads_to_value(pointer, &value[start..], &now);
        }
        let kind = self.follow(&tree, &reading, kind, &now, (value, start))?;
        rows.fill(&terrane_table::enter(), table.id, &reading, kind, &value[start..]);
        self.end_read(Sources { memory: None, tree: &tree }, &reading, kind, &now, (value, start))
    }

    /// A read view and a number for several reads: nothing that the number sees has come in, beneath memory,
    /// after the read view.
    pub(crate) fn present<'g>(
        &self,
        table: &'g Table,
        guard: &'g terrane_base::epoch::Guard,
        mode: ReadMode,
    ) -> (&'g ReadView, SeqNo) {
        loop {
            let view = table.view(guard);
            let seq = mode.at.unwrap_or_else(|| self.journal.visible());
            // What is visible was in a read view before: if it was in none but a later one, there is one.
            if mode.at.is_some() || std::ptr::eq(view, table.view(guard)) {
                debug_assert!(seq <= self.journal.visible(), "a snapshot has a number that was visible");
                return (view, seq);
            }
        }
    }

    /// A read from a read view that the caller keeps.
    pub(crate) fn get_from(
        &self,
        view: &ReadView,
        reading: &Reading<'_>,
        now: &ReadClock<'_>,
        value: &mut Vec<u8>,
    ) -> Result<bool> {
        debug_assert!(reading.hash == key_hash(reading.key), "filters are asked with the hash of the key");
        let start = value.len();
        let mut kind = get_from_memory(view, reading, value);
        if kind.is_none() {
            count_read(memory_runs(view));
            kind = self.get_from_store(&view.tree, 0, reading, value)?;
        }
        let sources = Sources { memory: Some(view), tree: &view.tree };
        self.end_read(sources, reading, kind, now, (value, start))
    }

    /// Which filters a read of the key with this hash asks.
    #[inline]
    pub(crate) fn asking(&self, table: &Table, mode: ReadMode, hash: u64) -> Asking {
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
        &self,
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

/// Returns true if a source ends a read with nothing: its newest version, if any, is older than a range
/// delete over the key there.
#[inline]
pub(crate) fn is_hidden(found: Option<SeqKind>, hidden: Option<SeqNo>) -> bool {
    match (found, hidden) {
        (_, None) => false,
        (Some(found), Some(hidden)) => found.seq() < hidden && !terrane_base::planted!(ForgetRangeDelete),
        (None, Some(_)) => true,
    }
}

/// The range delete over the key of a read that an extent has, if that is known without its store.
#[inline]
pub(crate) fn hidden_in(
    epoch: &Epoch,
    extent: &Extent,
    key: &[u8],
    seq: SeqNo,
) -> std::result::Result<Option<SeqNo>, Need> {
    if !extent.is_ranged() {
        return Ok(None);
    }
    let fragments = extent.cached_range_deletes(epoch).ok_or(Need::RangeDeletes)?;
    Ok(fragments.covering(key).and_then(|fragment| fragment.newest(seq)))
}

/// How far a walk got without leaving memory.
pub(crate) enum Walk {
    /// The version found, if any; its value was appended.
    Done(Option<SeqKind>),
    /// This of a sorted run is not cached.
    Missing(usize, Need),
}

/// The walk through overflow runs and levels from the `first`-th on, as far as everything it needs is cached.
/// Adds what it searched to `runs`; what is missing is searched again.
#[inline]
pub(crate) fn get_cached(
    epoch: &Epoch,
    tree: &Metasnapshot,
    first: usize,
    reading: &Reading<'_>,
    value: &mut Vec<u8>,
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
        let start = value.len();
        let probe = extent.probe(epoch, reading.key, hash, reading.seq, value);
        if let Probe::Unknown(need) = probe {
            return Walk::Missing(run, need);
        }
        *runs += 1;
        reading.count_answer(tree, run, probe == Probe::Refused);
        let found = if let Probe::Found(kind) = probe { Some(kind) } else { None };
        if is_hidden(found, hidden) {
            value.truncate(start);
            return Walk::Done(None);
        }
        if found.is_some() {
            return Walk::Done(found);
        }
    }
    Walk::Done(None)
}

/// The newest version in the memory tier; its bytes are appended. Counts the read where it ends here.
#[inline]
fn get_from_memory(view: &ReadView, reading: &Reading<'_>, value: &mut Vec<u8>) -> Option<SeqKind> {
    // Apart from the others, so that the shortest read counts with constants.
    if let Some(found) = get_from_memtable(&view.active, reading, value) {
        count_read(1);
        return Some(found);
    }
    for (index, memtable) in view.frozen.iter().enumerate() {
        if let Some(found) = get_from_memtable(memtable, reading, value) {
            count_read(2 + index as u64);
            return Some(found);
        }
    }
    for (index, generation) in view.generations.iter().enumerate() {
        if let Some(found) = get_from_memtable(generation.index(), reading, value) {
            count_read((2 + view.frozen.len() + index) as u64);
            return Some(found);
        }
    }
    None
}

/// As [`get_from_memory`], of one source. Where a range delete hides what it has, that is the version, as a
/// delete.
#[inline]
fn get_from_memtable(memtable: &Memtable, reading: &Reading<'_>, value: &mut Vec<u8>) -> Option<SeqKind> {
    let Reading { key, hash, seq, .. } = *reading;
    let found = memtable.get_hashed(key, hash, seq);
    if memtable.range_deletes().is_some()
        && let Some(hidden) = memtable.hidden(key, seq)
        && is_hidden(found.map(|version| version.seq_kind), Some(hidden))
    {
        return Some(SeqKind::new(hidden, RecordKind::Delete));
    }
    let version = found?;
    value.extend_from_slice(version.value);
    Some(version.seq_kind)
}

/// Sorted runs in memory that a read has looked into when it goes on to the levels.
#[inline]
fn memory_runs(view: &ReadView) -> u64 {
    (1 + view.frozen.len() + view.generations.len()) as u64
}

/// Counts a point read and the sorted runs it looked into.
#[inline]
fn count_read(runs: u64) {
    count_reads(1, runs);
}

/// Counts point reads and the sorted runs they looked into.
#[inline]
pub(crate) fn count_reads(reads: u64, runs: u64) {
    count(|cells| {
        add(&cells.reads, reads);
        add(&cells.runs_searched, runs);
    });
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
