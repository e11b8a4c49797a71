//! Which chunks are free: runs of adjacent ones, by place and by length.
//!
//! Invariant: runs neither overlap nor touch, and both maps have the same ones.

use std::collections::{BTreeMap, BTreeSet};

/// Chunks of a region that are free.
#[derive(Debug, Default)]
pub struct FreeRuns {
    /// Length of each run by its first chunk.
    by_place: BTreeMap<u32, u32>,
    /// Length and first chunk.
    by_length: BTreeSet<(u32, u32)>,
    count: u32,
}

impl FreeRuns {
    /// Number of free chunks.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Takes adjacent chunks out of the shortest run that has as many; returns the first of them.
    ///
    /// # Panics
    /// If `chunks` is 0.
    pub fn take(&mut self, chunks: u32) -> Option<u32> {
        assert!(chunks > 0, "a zone has at least one chunk");
        let (length, first) = *self.by_length.range((chunks, 0)..).next()?;
        self.remove(first, length);
        if length > chunks {
            self.add(first + chunks, length - chunks);
        }
        self.count -= chunks;
        Some(first)
    }

    /// Adds chunks that became free.
    ///
    /// # Panics
    /// If one of them is free.
    pub fn insert(&mut self, first: u32, chunks: u32) {
        let (mut start, mut end) = (first, first + chunks);
        if let Some((&before, &length)) = self.by_place.range(..first).next_back() {
            assert!(before + length <= first, "chunk {first} became free twice");
            if before + length == first {
                self.remove(before, length);
                start = before;
            }
        }
        if let Some((&after, &length)) = self.by_place.range(first..).next() {
            assert!(end <= after, "chunk {after} became free twice");
            if end == after {
                self.remove(after, length);
                end = after + length;
            }
        }
        self.add(start, end - start);
        self.count += chunks;
    }

    fn add(&mut self, first: u32, length: u32) {
        self.by_place.insert(first, length);
        self.by_length.insert((length, first));
    }

    fn remove(&mut self, first: u32, length: u32) {
        let known = self.by_place.remove(&first) == Some(length) && self.by_length.remove(&(length, first));
        assert!(known, "the maps of free runs differ at chunk {first}");
    }
}
