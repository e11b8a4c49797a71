//! Range deletes of a memtable against a list of them that is searched from end to end.

#![allow(clippy::unwrap_used, reason = "a test")]

use proptest::prelude::*;
use terrane_base::SeqNo;
use terrane_memtable::{Around, RangeDeletes};

/// Keys of zero to two letters, so that ends meet, prefixes occur and many ranges overlap.
fn key() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(b'a'..b'f', 0..3)
}

/// Range deletes with numbers from 1 on, in the order in which they come.
fn deletes() -> impl Strategy<Value = Vec<(Vec<u8>, Vec<u8>, u64)>> {
    let ranges = proptest::collection::vec((key(), key()), 0..60);
    ranges.prop_flat_map(|ranges| {
        let numbered = ranges.into_iter().zip(1..).map(|((start, end), seq)| (start, end, seq));
        Just(numbered.collect::<Vec<_>>()).prop_shuffle()
    })
}

/// The number of the newest range delete over `key` that a read at `at` sees.
fn newest(deletes: &[(Vec<u8>, Vec<u8>, u64)], key: &[u8], at: u64) -> Option<u64> {
    let over = |(start, end, seq): &&(Vec<u8>, Vec<u8>, u64)| {
        start.as_slice() <= key && key < end.as_slice() && *seq <= at
    };
    deletes.iter().filter(over).map(|(_, _, seq)| *seq).max()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_key_is_hidden_by_the_newest(deletes in deletes(), keys in proptest::collection::vec(key(), 1..20)) {
        let tree = RangeDeletes::new();
        for (done, (start, end, seq)) in deletes.iter().enumerate() {
            tree.insert(start, end, SeqNo(*seq));
            for at in [0, 1, *seq, seq + 3, 100] {
                for key in &keys {
                    let found = tree.covering(key, SeqNo(at));
                    let expected = newest(&deletes[..=done], key, at);
                    prop_assert_eq!(found.map(|seq| seq.0), expected);
                    // The answer to a scan about a key holds for all keys around it.
                    let around = tree.view(SeqNo(at)).around(key);
                    let (from, to) = match &around {
                        Around::Hidden(by) => {
                            prop_assert_eq!(Some(by.seq.0), expected);
                            (Some(by.start.clone()), Some(by.end.clone()))
                        }
                        Around::Clear(from, to) => {
                            prop_assert_eq!(None, expected);
                            (from.clone(), to.clone())
                        }
                    };
                    let is_within = |other: &[u8]| {
                        from.as_ref().is_none_or(|from| &**from <= other) && to.as_ref().is_none_or(|to| other < &**to)
                    };
                    prop_assert!(is_within(key), "{:?} around {:?}", around, key);
                    for other in keys.iter().filter(|other| is_within(other)) {
                        prop_assert_eq!(newest(&deletes[..=done], other, at), expected);
                    }
                }
            }
        }
    }

    #[test]
    fn fragments_are_disjoint_and_none_is_empty(deletes in deletes(), at in 0u64..30) {
        let tree = RangeDeletes::new();
        for (start, end, seq) in &deletes {
            tree.insert(start, end, SeqNo(*seq));
        }
        let stretches = tree.stretches(SeqNo(at));
        prop_assert!(stretches.iter().all(|stretch| stretch.start < stretch.end && stretch.seq.0 <= at));
        prop_assert!(stretches.windows(2).all(|pair| pair[0].end <= pair[1].start));
        let real = deletes.iter().filter(|(start, end, _)| start < end).count();
        prop_assert_eq!(tree.len(), real as u64);
        prop_assert_eq!(tree.is_empty(), real == 0);
    }
}

#[test]
fn readers_see_a_whole_range_delete_or_none_of_it() {
    let tree = RangeDeletes::new();
    let key = |number: u32| number.to_be_bytes();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..300u32 {
                tree.insert(&key(0), &key(1_000), SeqNo(u64::from(number)));
            }
        });
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = 0;
                while last < 299 {
                    let stretches = tree.stretches(SeqNo::MAX);
                    let Some(first) = stretches.first() else { continue };
                    assert!(first.seq.0 >= last, "what was hidden is not shown again");
                    last = first.seq.0;
                    let ends = (&*stretches[0].start, &*stretches[0].end);
                    assert_eq!((stretches.len(), ends), (1, (&key(0)[..], &key(1_000)[..])));
                    assert_eq!(tree.covering(&key(500), SeqNo(last)).unwrap().0, last);
                }
            });
        }
    });
}
