//! The bound of the chunks that the inputs of a merge have in memory.

use terrane_compaction::chunks::{CHUNK_BYTES_MIN, CHUNKS_BYTES_MAX, chunk_bytes_of};
use terrane_compaction::pick::RUNS_MAX;
use terrane_table::scanner::CHUNK_BYTES;

#[test]
fn many_inputs_share_what_few_may_read_at_once() {
    assert_eq!(chunk_bytes_of(0), CHUNK_BYTES);
    assert_eq!(chunk_bytes_of(12), CHUNK_BYTES, "as many as there are as a rule");
    assert!(chunk_bytes_of(300) * 300 <= CHUNKS_BYTES_MAX);
    assert_eq!(chunk_bytes_of(usize::MAX), CHUNK_BYTES_MIN);
    // With level 1 and the level below it.
    let most = RUNS_MAX + 2;
    assert!(chunk_bytes_of(most) as usize * most <= CHUNKS_BYTES_MAX as usize);
    assert!(chunk_bytes_of(most) > CHUNK_BYTES_MIN);
}
