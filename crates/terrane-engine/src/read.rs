//! Point reads: active memtable → frozen → generations → overflow runs → levels, newest first, until a version
//! is found. Readers take no lock; on a hit they write no shared cache line but a clear reference bit.
//!
//! The picture is loaded before the visible number: whatever background work finished before that dropped only
//! versions that a newer visible one hides.

use std::sync::Arc;

use terrane_base::{Result, SeqKind, SeqNo, key};
use terrane_format::filter::hash as key_hash;
use terrane_levels::Metasnapshot;
use terrane_table::{Extent, Probe};

use crate::engine::Engine;
use crate::table::{Picture, Table};

impl Engine {
    /// Appends the value of `key` to `value`; returns whether there is one. `at` is a snapshot's number, or
    /// `None` for the newest.
    ///
    /// # Errors
    /// `Invalid` for a key beyond the limit, `Io` or `Corrupt` from the store.
    pub fn get(&self, table: &Table, key: &[u8], at: Option<SeqNo>, value: &mut Vec<u8>) -> Result<bool> {
        key::check_key(key)?;
        let hash;
        let (tree, seq, level) = {
            let guard = terrane_base::epoch::pin();
            let picture = table.picture(&guard);
            let seq = at.unwrap_or_else(|| self.journal.visible());
            if let Some(found) = get_from_memory(picture, key, seq, value) {
                return Ok(found);
            }
            hash = key_hash(key);
            match get_cached(&picture.tree, key, hash, seq, value) {
                Walk::Done(found) => return Ok(found),
                Walk::Missing(level) => (picture.tree.clone(), seq, level),
            }
        };
        // The epoch is left before the store is asked; the tree is kept by its count instead.
        self.get_from_store(&tree, level, key, hash, seq, value)
    }

    /// Reads several keys of one snapshot or moment; `found[i]` and `values[i]` answer `keys[i]`.
    ///
    /// Sorted and without duplicates inside, so that keys of one block are looked up together.
    ///
    /// # Errors
    /// As [`Engine::get`].
    pub fn multi_get(
        &self,
        table: &Table,
        keys: &[&[u8]],
        at: Option<SeqNo>,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        for key in keys {
            key::check_key(key)?;
        }
        // One number for all: the answers are of one moment. It is read after the picture, as for `get`, and the
        // picture is kept, so nothing that the number sees can go.
        let picture = table.pinned();
        let seq = at.unwrap_or_else(|| self.journal.visible());
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
                None => self.get_from_store(&picture.tree, 0, key, key_hash(key), seq, &mut value)?,
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
        hash: u64,
        seq: SeqNo,
        value: &mut Vec<u8>,
    ) -> Result<bool> {
        for level in first..tree_len(tree) {
            let Some(extent) = find_extent(tree, level, key) else { continue };
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
#[inline]
fn get_cached(tree: &Metasnapshot, key: &[u8], hash: u64, seq: SeqNo, value: &mut Vec<u8>) -> Walk {
    for level in 0..tree_len(tree) {
        let Some(extent) = find_extent(tree, level, key) else { continue };
        match extent.probe(key, hash, seq, value) {
            Probe::Found(kind) => return Walk::Done(!kind.is_delete()),
            Probe::Absent => {}
            Probe::Unknown => return Walk::Missing(level),
        }
    }
    Walk::Done(false)
}

/// The newest version in the memory tier: `Some(true)` for a value, which is appended, `Some(false)` for a delete.
#[inline]
fn get_from_memory(picture: &Picture, key: &[u8], seq: SeqNo, value: &mut Vec<u8>) -> Option<bool> {
    let mut take = |kind: SeqKind, bytes: &[u8]| {
        if kind.is_delete() {
            return false;
        }
        value.extend_from_slice(bytes);
        true
    };
    let memtables = std::iter::once(&picture.active).chain(&picture.frozen);
    for memtable in memtables {
        if let Some(version) = memtable.get(key, seq) {
            return Some(take(version.seq_kind, version.value));
        }
    }
    for generation in &picture.generations {
        if let Some(version) = generation.get(key, seq) {
            return Some(take(version.seq_kind, version.value));
        }
    }
    None
}

fn tree_len(tree: &Metasnapshot) -> usize {
    tree.runs.len() + tree.levels.len()
}

/// The extent of the index-th sorted run (overflow runs first) that may hold `key`.
#[inline]
fn find_extent<'t>(tree: &'t Metasnapshot, index: usize, key: &[u8]) -> Option<&'t Arc<Extent>> {
    let runs = tree.runs.len();
    let level = if index < runs { &tree.runs[index].level } else { &tree.levels[index - runs] };
    level.covering(key)
}
