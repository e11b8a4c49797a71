//! Which chunks are free: runs of adjacent ones, by place and by length.
//!
//! Invariant: runs neither overlap nor touch, and both maps have the same ones.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(super) struct FreeRuns {
    /// Length of each run by its first chunk.
    by_place: BTreeMap<u32, u32>,
    /// Length and first chunk.
    by_length: BTreeSet<(u32, u32)>,
    count: u32,
}

impl FreeRuns {
    /// Number of free chunks.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Takes adjacent chunks out of the shortest run that has as many; returns the first of them.
    pub(super) fn take(&mut self, chunks: u32) -> Option<u32> {
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
    pub(super) fn insert(&mut self, first: u32, chunks: u32) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_touch_become_one() {
        let mut free = FreeRuns::default();
        free.insert(0, 10);
        let taken: Vec<_> = (0..10).map(|_| free.take(1)).collect();
        assert_eq!(taken, (0..10).map(Some).collect::<Vec<_>>());
        assert_eq!((free.take(1), free.count()), (None, 0));
        for chunk in [3, 5, 4, 9, 0] {
            free.insert(chunk, 1);
        }
        assert_eq!(free.count(), 5);
        assert_eq!(free.take(2), Some(3), "of 3 to 5");
        assert_eq!(free.take(1), Some(0), "the shortest run with the smallest place");
        assert_eq!(free.take(2), None, "5 and 9 are not adjacent");
    }

    #[test]
    #[should_panic(expected = "became free twice")]
    fn a_chunk_cannot_become_free_twice() {
        let mut free = FreeRuns::default();
        free.insert(2, 4);
        free.insert(1, 2);
    }
}
