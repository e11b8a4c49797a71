//! Search in a block whose keys a comparator orders. The comparator gets whole keys; common prefixes say
//! nothing about the order.
//!
//! 1. A binary search over the first entries of the intervals finds the last one before the target.
//! 2. From there entries are compared one after the other.

use std::cmp::Ordering;
use std::ops::Range;

use terrane_base::{Collation, SeqKind, SeqNo};

use super::entry_pos::{EntryPos, Intervals};

/// Goes to the first entry at or after (`key`, `seq`) in internal order; removes the position if there is
/// none.
pub(super) fn seek<'a>(
    block: impl Intervals<'a>,
    pos: &mut EntryPos,
    collation: &Collation,
    key: &[u8],
    seq: SeqNo,
) {
    let is_before = |pos: &EntryPos| match collation.cmp(pos.key.key(), key) {
        Ordering::Less => true,
        Ordering::Equal => SeqKind(pos.seq_kind).seq() > seq,
        Ordering::Greater => false,
    };
    let (mut low, mut high) = (0, block.count());
    while low < high {
        let middle = low.midpoint(high);
        block.move_first(pos, middle);
        if pos.is_placed && is_before(pos) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    block.move_first(pos, low.saturating_sub(1));
    while pos.is_placed && is_before(pos) {
        block.move_next(pos);
    }
}

/// The newest version of `key` with a number up to `seq`, and the offset of its value.
pub(super) fn find<'a>(
    block: impl Intervals<'a>,
    collation: &Collation,
    key: &[u8],
    seq: SeqNo,
) -> Option<(SeqKind, Range<usize>)> {
    let mut pos = EntryPos::default();
    seek(block, &mut pos, collation, key, seq);
    let is_found = pos.is_placed && pos.key.key() == key;
    is_found.then_some((SeqKind(pos.seq_kind), pos.value_at..pos.end))
}
