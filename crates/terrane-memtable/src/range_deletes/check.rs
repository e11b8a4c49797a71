//! The walk that checks the range deletes of a memtable.

use super::Chunks;

/// Walks all chunks and asserts invariant 1. The keys have the order of their bytes.
pub(super) fn check(chunks: &Chunks) -> bool {
    let mut last = None;
    for (first, chunk) in chunks {
        let numbers = || chunk.deletes.iter().map(|delete| delete.seq);
        assert!(numbers().next() == Some(*first) && numbers().is_sorted_by(|a, b| a < b), "chunk at {first}");
        assert!(last.is_none_or(|last| last < *first), "the chunk at {first} begins before {last:?}");
        last = numbers().next_back();
        let before = chunk.before.all();
        assert!(
            before.iter().all(|stretch| stretch.seq < *first),
            "the state before {first} has newer numbers"
        );
        assert!(before.iter().all(|stretch| stretch.start < stretch.end), "an empty stretch");
        let is_disjoint = before.windows(2).all(|pair| pair[0].end <= pair[1].start);
        assert!(is_disjoint, "stretches before {first} overlap");
    }
    true
}
