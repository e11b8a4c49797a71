//! Counters of commits, of each thread in a cache line of its own: a commit writes no line that
//! another thread writes, as a rule.

use crossbeam_utils::CachePadded;
use terrane_base::sync::atomic::{AtomicU64, Ordering};
use terrane_base::sync::thread_number;

/// Cells over which threads are spread; a power of two.
const CELLS: usize = 64;

/// Counts of commits since the open.
#[derive(Debug)]
pub(crate) struct Written(Box<[CachePadded<Cell>]>);

/// Counts of the commits of the threads of one cell.
#[derive(Debug, Default)]
struct Cell {
    batches: AtomicU64,
    records: AtomicU64,
    bytes: AtomicU64,
}

impl Default for Written {
    fn default() -> Self {
        Written((0..CELLS).map(|_| CachePadded::default()).collect())
    }
}

impl Written {
    /// Counts one batch.
    #[inline]
    pub(crate) fn add(&self, records: u64, bytes: u64) {
        debug_assert!(records > 0 && bytes > 0, "a batch that is committed has records");
        let cell = &self.0[thread_number() % CELLS];
        // Relaxed, here and below: measures.
        cell.batches.fetch_add(1, Ordering::Relaxed);
        cell.records.fetch_add(records, Ordering::Relaxed);
        cell.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Batches committed.
    pub(crate) fn batches(&self) -> u64 {
        self.sum(|cell| &cell.batches)
    }

    /// Records committed.
    pub(crate) fn records(&self) -> u64 {
        self.sum(|cell| &cell.records)
    }

    /// Encoded bytes of the records committed.
    pub(crate) fn bytes(&self) -> u64 {
        self.sum(|cell| &cell.bytes)
    }

    fn sum(&self, part: impl Fn(&Cell) -> &AtomicU64) -> u64 {
        self.0.iter().map(|cell| part(cell).load(Ordering::Relaxed)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_add_up() {
        let written = Written::default();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..1000).for_each(|_| written.add(2, 50)));
            }
        });
        assert_eq!((written.batches(), written.records(), written.bytes()), (8_000, 16_000, 400_000));
    }
}
