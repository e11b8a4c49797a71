//! Search in a block whose keys a comparator orders: it is asked about whole keys, and nothing follows from their bytes.
//!
//! 1. A binary search over the first entries of the intervals finds the last one before the target.
//! 2. From there entries are walked in order.

use std::cmp::Ordering;
use std::ops::Range;

use terrane_base::{Collation, SeqKind, SeqNo};

use super::place::{Intervals, Place};

/// Goes to the first entry at or after (`key`, `seq`) in internal order; gives the place up if there is none.
pub(super) fn seek<'a>(
    block: impl Intervals<'a>,
    place: &mut Place,
    collation: &Collation,
    key: &[u8],
    seq: SeqNo,
) {
    let is_before = |place: &Place| match collation.cmp(place.key.key(), key) {
        Ordering::Less => true,
        Ordering::Equal => SeqKind(place.seq_kind).seq() > seq,
        Ordering::Greater => false,
    };
    let (mut low, mut high) = (0, block.count());
    while low < high {
        let middle = low.midpoint(high);
        block.place_first(place, middle);
        if place.is_placed && is_before(place) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    block.place_first(place, low.saturating_sub(1));
    while place.is_placed && is_before(place) {
        block.place_next(place);
    }
}

/// The newest version of `key` with a number up to `seq`, and where its value lies.
pub(super) fn find<'a>(
    block: impl Intervals<'a>,
    collation: &Collation,
    key: &[u8],
    seq: SeqNo,
) -> Option<(SeqKind, Range<usize>)> {
    let mut place = Place::default();
    seek(block, &mut place, collation, key, seq);
    let is_found = place.is_placed && place.key.key() == key;
    is_found.then_some((SeqKind(place.seq_kind), place.value_at..place.end))
}
