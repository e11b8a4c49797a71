//! Fragments of range deletes under a comparator without an order.

use std::cmp::Ordering;
use std::sync::Arc;

use terrane_base::{Collation, Comparator, KeyOrders, SeqNo};
use terrane_compaction::fragments::fragmented;
use terrane_format::range_deletes::Fragment;

/// A comparator whose answers follow no order.
#[derive(Debug)]
struct Odd;

impl Comparator for Odd {
    fn name(&self) -> &str {
        "odd"
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        let mix = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        if left.iter().chain(right).fold(0x811c_9dc5, mix) >> 7 & 1 == 0 {
            Ordering::Less
        } else {
            Ordering::Greater
        }
    }
}

fn odd() -> Collation {
    let orders = KeyOrders::new().with_comparator(Arc::new(Odd)).expect("a free name");
    orders.collation("odd")
}

#[test]
fn a_comparator_that_contradicts_itself_ends_in_no_panic() {
    let key = |n: u32| [&n.to_be_bytes()[..], &[0]].concat();
    for count in 1..400 {
        let piece = |n: u32| Fragment {
            start: key(n * 7919 % count),
            end: key(n * 104_729 % count),
            seqs: vec![SeqNo(u64::from(n % 5))],
        };
        let pieces: Vec<_> = (0..count).map(piece).collect();
        let fragments = fragmented(&pieces, &[], &odd());
        // A number without a piece would hide keys that were not deleted.
        assert!(fragments.iter().all(|fragment| fragment.seqs.len() == 1 && fragment.seqs[0] < SeqNo(5)));
    }
}
