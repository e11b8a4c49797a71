//! Point reads: active memtable → frozen → generations → overflow runs → levels, newest first, until a version
//! is found. Readers take no lock; on a hit they write no shared cache line but a clear reference bit.
//!
//! The picture is loaded before the visible number: whatever background work finished before that dropped only
//! versions that a newer visible one hides.

use std::sync::Arc;

use terrane_base::counters::{add, count};
use terrane_base::{Result, SeqKind, SeqNo, key};
use terrane_format::filter::hash as key_hash;
use terrane_levels::Metasnapshot;
use terrane_table::{Extent, Probe};

use crate::engine::Engine;
use crate::table::{Picture, Table};

/// How point reads are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadMode {
    /// A snapshot's number; `None` for what is visible when the read begins.
    pub at: Option<SeqNo>,
    /// Whether the filters of extents are asked before their blocks.
    pub filters: bool,
}

impl Default for ReadMode {
    fn default() -> Self {
        ReadMode { at: None, filters: true }
    }
}

impl ReadMode {
    /// Reads at a snapshot's number.
    #[must_use]
    pub fn at(seq: SeqNo) -> Self {
        ReadMode { at: Some(seq), ..Self::default() }
    }

    #[inline]
    fn hash(self, key: &[u8]) -> Option<u64> {
        self.filters.then(|| key_hash(key))
    }
}

impl Engine {
    /// Appends the value of `key` to `value`; returns whether there is one.
    ///
    /// # Errors
    /// `Invalid` for a key beyond the limit, `Io` or `Corrupt` from the store.
    pub fn get(&self, table: &Table, key: &[u8], mode: ReadMode, value: &mut Vec<u8>) -> Result<bool> {
        key::check_key(key)?;
        let _held = terrane_base::planted!(ReadWaitsForInstall).then(|| table.installing.lock());
        let hash;
        let mut runs;
        let (tree, seq, level) = {
            let guard = terrane_base::epoch::pin();
            let picture = table.picture(&guard);
            let seq = mode.at.unwrap_or_else(|| self.journal.visible());
            if let Some(found) = get_from_memory(picture, key, seq, value) {
                return Ok(found);
            }
            runs = memory_runs(picture);
            hash = mode.hash(key);
            match get_cached(&picture.tree, key, hash, seq, value, &mut runs) {
                Walk::Done(found) => {
                    count_read(runs);
                    return Ok(found);
                }
                Walk::Missing(level) => (picture.tree.clone(), seq, level),
            }
        };
        count_read(runs);
        // The epoch is left before the store is asked; the tree is kept by its count instead.
        self.get_from_store(&tree, level, key, hash, seq, value)
    }

    /// Reads several keys of one snapshot or moment; `found[i]` and `values[i]` answer `keys[i]`.
    ///
    /// Sorted and without duplicates inside, so that keys of one block are looked up together.
    ///
    /// # Errors
    /// As [`Engine::get`].
    pub fn multi_get(&self, table: &Table, keys: &[&[u8]], mode: ReadMode) -> Result<Vec<Option<Vec<u8>>>> {
        for key in keys {
            key::check_key(key)?;
        }
        // One number for all: the answers are of one moment. It is read after the picture, as for `get`, and the
        // picture is kept, so nothing that the number sees can go.
        let picture = table.pinned();
        let seq = mode.at.unwrap_or_else(|| self.journal.visible());
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_unstable_by_key(|&index| keys[index]);
        let mut answers: Vec<Option<Vec<u8>>> = vec![None; keys.len()];
        let mut last: Option<usize> = None;
        for index in order {
            if let Some(same) = last.filter(|&same| keys[same] == keys[index]) {
                answers[index] = answers[same].clone();
                continue;
            }
            let mut value = Vec::new();
            let key = keys[index];
            let found = match get_from_memory(&picture, key, seq, &mut value) {
                Some(found) => found,
                None => {
                    count_read(memory_runs(&picture));
                    self.get_from_store(&picture.tree, 0, key, mode.hash(key), seq, &mut value)?
                }
            };
            answers[index] = found.then_some(value);
            last = Some(index);
        }
        Ok(answers)
    }

    /// The walk through overflow runs and levels from the `first`-th on, fetching blocks that are not cached.
    fn get_from_store(
        &self,
        tree: &Metasnapshot,
        first: usize,
        key: &[u8],
        hash: Option<u64>,
        seq: SeqNo,
        value: &mut Vec<u8>,
    ) -> Result<bool> {
        for level in first..tree_len(tree) {
            let Some(extent) = find_extent(tree, level, key) else { continue };
            count(|cells| add(&cells.runs_searched, 1));
            if let Some(kind) = extent.get_hashed(&self.cache, key, hash, seq, value)? {
                return Ok(!kind.is_delete());
            }
        }
        Ok(false)
    }
}

/// How far a walk got without leaving memory.
enum Walk {
    /// Whether there is a value; it was appended.
    Done(bool),
    /// Something of this sorted run is not cached.
    Missing(usize),
}

/// The walk through overflow runs and levels as far as everything it needs is cached.
/// Adds what it searched to `runs`; what is missing is searched again.
#[inline]
fn get_cached(
    tree: &Metasnapshot,
    key: &[u8],
    hash: Option<u64>,
    seq: SeqNo,
    value: &mut Vec<u8>,
    runs: &mut u64,
) -> Walk {
    for level in 0..tree_len(tree) {
        let Some(extent) = find_extent(tree, level, key) else { continue };
        match extent.probe(key, hash, seq, value) {
            Probe::Found(kind) => {
                *runs += 1;
                return Walk::Done(!kind.is_delete());
            }
            Probe::Absent => *runs += 1,
            Probe::Unknown => return Walk::Missing(level),
        }
    }
    Walk::Done(false)
}

/// The newest version in the memory tier: `Some(true)` for a value, which is appended, `Some(false)` for a delete.
/// Counts the read where it ends here.
#[inline]
fn get_from_memory(picture: &Picture, key: &[u8], seq: SeqNo, value: &mut Vec<u8>) -> Option<bool> {
    let mut take = |runs: usize, kind: SeqKind, bytes: &[u8]| {
        count_read(runs as u64);
        if kind.is_delete() {
            return false;
        }
        value.extend_from_slice(bytes);
        true
    };
    // Apart from the others, so that the shortest read counts with constants.
    if let Some(version) = picture.active.get(key, seq) {
        return Some(take(1, version.seq_kind, version.value));
    }
    for (index, memtable) in picture.frozen.iter().enumerate() {
        if let Some(version) = memtable.get(key, seq) {
            return Some(take(2 + index, version.seq_kind, version.value));
        }
    }
    for (index, generation) in picture.generations.iter().enumerate() {
        if let Some(version) = generation.get(key, seq) {
            return Some(take(2 + picture.frozen.len() + index, version.seq_kind, version.value));
        }
    }
    None
}

/// Sorted runs in memory that a read has looked into when it goes on to the levels.
#[inline]
fn memory_runs(picture: &Picture) -> u64 {
    (1 + picture.frozen.len() + picture.generations.len()) as u64
}

/// Counts a point read and the sorted runs it looked into.
#[inline]
fn count_read(runs: u64) {
    count(|cells| {
        add(&cells.reads, 1);
        add(&cells.runs_searched, runs);
    });
}

fn tree_len(tree: &Metasnapshot) -> usize {
    tree.runs.len() + tree.levels.len()
}

/// The extent of the index-th sorted run (overflow runs first) that may hold `key`.
#[inline]
fn find_extent<'t>(tree: &'t Metasnapshot, index: usize, key: &[u8]) -> Option<&'t Arc<Extent>> {
    let runs = tree.runs.len();
    if terrane_base::planted!(SkipLevelInRead) && index + 1 == tree_len(tree) {
        return None;
    }
    let level = if index < runs { &tree.runs[index].level } else { &tree.levels[index - runs] };
    level.covering(key)
}
