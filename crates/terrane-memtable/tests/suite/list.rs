//! Memtables whose keys a comparator orders: in its order, by many writers at once, and what range deletes
//! hide there.
#![cfg(not(feature = "shuttle"))]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use crate::support::{Segments, rows_backward, rows_forward};
use proptest::prelude::*;
use terrane_base::{Collation, Comparator, Cursor, KeyOrders, Rng, SeqNo};
use terrane_memtable::{Around, GlobalIndex, Memtable, RangeDeletes};

/// By length, then from the greatest to the least.
#[derive(Debug)]
struct ShortestFirst;

impl Comparator for ShortestFirst {
    fn name(&self) -> &str {
        "shortest first"
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        left.len().cmp(&right.len()).then_with(|| right.cmp(left))
    }
}

fn collation() -> Collation {
    KeyOrders::new().with_comparator(Arc::new(ShortestFirst)).unwrap().collation("shortest first")
}

fn kept(number: u64) -> Vec<u8> {
    [format!("{number:x}").as_bytes(), &[0]].concat()
}

#[test]
fn writers_side_by_side_make_one_list_in_the_comparators_order() {
    const EACH: u64 = 4000;
    let (memtable, collation) = (Memtable::ordered(SeqNo(1), true, &collation()), collation());
    let mut segments = Segments::new(1 << 16);
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let mut records: Vec<_> = (0..EACH)
                .map(|number| {
                    // Half of the keys are written by all of them.
                    let own = if number % 2 == 0 { number } else { number * 4 + writer };
                    segments.put(number * 4 + writer + 1, &kept(own), b"v")
                })
                .collect();
            Rng::new(writer + 1).shuffle(&mut records);
            let memtable = &memtable;
            scope.spawn(move || {
                for record in records {
                    record.insert_into(memtable);
                    assert!(memtable.get(&record.key, SeqNo::MAX).is_some());
                }
            });
        }
    });
    let mut rows = rows_forward(&mut memtable.cursor());
    assert_eq!(rows.len() as u64, 4 * EACH);
    assert!(rows.is_sorted_by(|left, right| {
        collation.cmp(&left.0, &right.0).then_with(|| right.1.seq().cmp(&left.1.seq())) == Ordering::Less
    }));
    let all = rows.clone();
    rows.reverse();
    assert_eq!(rows_backward(&mut memtable.cursor()), rows);
    let global = GlobalIndex::from_frozen(Memtable::ordered(SeqNo(1), false, &collation));
    assert!(global.merge(&memtable, &[SeqNo::MAX], &mut |_| true));
    let newest: Vec<_> =
        all.chunk_by(|left, right| left.0 == right.0).map(|versions| versions[0].clone()).collect();
    assert_eq!(rows_forward(&mut global.cursor()), newest);
    assert!(memtable.index_bytes() > 64 * newest.len() as u64, "posts count");
}

#[test]
fn places_are_found_by_the_comparator() {
    let (memtable, collation) = (Memtable::ordered(SeqNo(1), false, &collation()), collation());
    let mut segments = Segments::new(1 << 16);
    let mut keys: Vec<_> = (0..600).step_by(3).map(kept).collect();
    for (seq, key) in (1..).zip(&keys) {
        segments.put(seq, key, b"v").insert_into(&memtable);
    }
    keys.sort_by(|left, right| collation.cmp(left, right));
    let mut cursor = memtable.cursor();
    let bounds = [Vec::new(), vec![0], kept(u64::MAX)];
    for probe in
        (0..600).map(kept).chain((0..600).map(|number| collation.successor(&kept(number)))).chain(bounds)
    {
        let at = keys.partition_point(|key| collation.lt(key, &probe));
        cursor.seek(&probe, SeqNo::MAX).unwrap();
        assert_eq!(cursor.entry().map(|entry| entry.key), keys.get(at).map(Vec::as_slice), "{probe:?}");
        cursor.seek_before(&probe).unwrap();
        let before = at.checked_sub(1).map(|at| keys[at].as_slice());
        assert_eq!(cursor.entry().map(|entry| entry.key), before, "before {probe:?}");
        assert_eq!(memtable.get(&probe, SeqNo::MAX).is_some(), keys.contains(&probe));
    }
    let mut versions = Vec::new();
    memtable.get_many(&[&keys[7], &collation.successor(&keys[7]), &keys[0]], SeqNo::MAX, &mut versions);
    assert_eq!(versions.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, true]);
    assert!(memtable.touches(&keys[3], &keys[4]));
    assert!(!memtable.touches(&collation.successor(&keys[3]), &collation.successor(&keys[3])));
}

/// As [`ShortestFirst`]; counts comparisons, and runs a given closure once in the middle of one.
#[derive(Default)]
struct Watched {
    count: AtomicU64,
    then: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watched")
    }
}

impl Comparator for Watched {
    fn name(&self) -> &str {
        "watched"
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        self.count.fetch_add(1, Relaxed);
        let then = self.then.lock().unwrap().take();
        if let Some(then) = then {
            then();
        }
        ShortestFirst.compare(left, right)
    }
}

impl Watched {
    fn collation() -> (Arc<Watched>, Collation) {
        let watched = Arc::new(Watched::default());
        let orders = KeyOrders::new().with_comparator(watched.clone()).unwrap();
        (watched, orders.collation("watched"))
    }
}

#[test]
fn a_seek_does_not_land_before_its_key_where_another_is_inserted_meanwhile() {
    let (watched, collation) = Watched::collation();
    let memtable = Memtable::ordered(SeqNo(1), false, &collation);
    let mut segments = Segments::new(1 << 16);
    let [front, behind] = [b"3\0", b"1\0"];
    segments.put(1, behind, b"v").insert_into(&memtable);
    let (late, target) = (segments.put(2, front, b"v"), memtable.clone());
    *watched.then.lock().unwrap() = Some(Box::new(move || late.insert_into(&target)));
    let mut cursor = memtable.cursor();
    cursor.seek(b"2\0", SeqNo::MAX).unwrap();
    assert_eq!(cursor.entry().map(|entry| entry.key), Some(&behind[..]));
    assert!(memtable.get(front, SeqNo::MAX).is_some(), "it was inserted in the middle of the search");
}

#[test]
fn an_insertion_compares_as_few_keys_as_a_search() {
    let (watched, collation) = Watched::collation();
    let memtable = Memtable::ordered(SeqNo(1), false, &collation);
    let mut segments = Segments::new(1 << 16);
    for number in 0..500u64 {
        let record = segments.put(number + 1, &kept(number * 7919 % 500), b"v");
        watched.count.store(0, Relaxed);
        assert!(memtable.get(&record.key, SeqNo::MAX).is_none());
        let searched = watched.count.swap(0, Relaxed);
        record.insert_into(&memtable);
        assert_eq!(watched.count.load(Relaxed), searched, "insertion {number}");
    }
}

#[test]
fn memory_for_more_keys_is_there_before_it_is_needed() {
    let (memtable, mut segments) = (Memtable::ordered(SeqNo(1), false, &collation()), Segments::new(1 << 16));
    let mut bytes = vec![memtable.index_bytes()];
    for number in 0..80u64 {
        segments.put(number + 1, &kept(number), b"v").insert_into(&memtable);
        bytes.push(memtable.index_bytes());
    }
    // The first 63 keys lie in one piece of memory, the next 128 in another.
    let grown = |range: Range<usize>| bytes[range.end] - bytes[range.start];
    assert!(grown(40..60) >= 128 * 64, "{bytes:?}");
    assert!(grown(60..66) < 128 * 64, "{bytes:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn range_deletes_reach_over_keys_in_the_comparators_order(
        deletes in proptest::collection::vec((0u64..400, 0u64..400), 0..60),
        probes in proptest::collection::vec(0u64..400, 1..20),
    ) {
        let (tree, collation) = (RangeDeletes::ordered(&collation()), collation());
        let deletes: Vec<_> = (1u64..).zip(&deletes).map(|(seq, (start, end))| (seq, kept(*start), kept(*end))).collect();
        for (seq, start, end) in &deletes {
            prop_assert_eq!(tree.insert(start, end, SeqNo(*seq)), collation.lt(start, end));
        }
        for at in [0, 7, 16, 30, 100] {
            for key in probes.iter().map(|probe| kept(*probe)) {
                let over = deletes.iter().filter(|(seq, start, end)| {
                    *seq <= at && collation.le(start, &key) && collation.lt(&key, end)
                });
                let newest = over.map(|(seq, ..)| *seq).max();
                prop_assert_eq!(tree.covering(&key, SeqNo(at)).map(|seq| seq.0), newest);
                let around = match tree.view(SeqNo(at)).around(&key) {
                    Around::Hidden(by) => {
                        prop_assert!(collation.le(&by.start, &key) && collation.lt(&key, &by.end));
                        Some(by.seq.0)
                    }
                    Around::Clear(from, to) => {
                        prop_assert!(from.is_none_or(|from| collation.le(&from, &key)));
                        prop_assert!(to.is_none_or(|to| collation.lt(&key, &to)));
                        None
                    }
                };
                prop_assert_eq!(around, newest);
            }
            let stretches = tree.stretches(SeqNo(at));
            prop_assert!(stretches.windows(2).all(|pair| collation.le(&pair[0].end, &pair[1].start)));
        }
    }
}
