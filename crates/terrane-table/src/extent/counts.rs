//! Counters of lookups in extents.

use terrane_base::counters::{add, count};

/// Counts a filter that excluded a key.
#[inline]
pub(crate) fn count_refusal() {
    count(|cells| add(&cells.filter_negatives, 1));
}

/// Counts a search in an index block and `blocks` data blocks, with or without a filter.
#[inline]
pub(crate) fn count_search(is_filtered: bool, blocks: u64, is_found: bool) {
    count(|cells| {
        add(&cells.filter_probes, u64::from(is_filtered));
        add(&cells.filter_positives_false, u64::from(is_filtered && !is_found));
        add(&cells.index_blocks_searched, 1);
        add(&cells.data_blocks_searched, blocks);
    });
}
