//! Ordered maps against a `BTreeMap` of encoded keys, and under comparators that contradict themselves.
#![allow(clippy::unwrap_used, reason = "a test says by panicking that it failed")]

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicU32};

use proptest::prelude::*;
use terrane_base::ordered_map::is_empty;
use terrane_base::{Collation, Comparator, KeyOrders, OrderedMap};

/// Shorter keys first, then by bytes.
#[derive(Debug)]
struct Length;

impl Comparator for Length {
    fn name(&self) -> &str {
        "length"
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        left.len().cmp(&right.len()).then_with(|| left.cmp(right))
    }
}

/// Answers that follow no order, and are others the next time.
#[derive(Debug)]
struct Odd(AtomicU32);

impl Comparator for Odd {
    fn name(&self) -> &str {
        "odd"
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        let mix = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        let asked = self.0.fetch_add(1, atomic::Ordering::Relaxed).to_be_bytes();
        let hash = left.iter().chain(right).chain(&asked).fold(0x811c_9dc5, mix);
        if hash >> 7 & 1 == 0 { Ordering::Less } else { Ordering::Greater }
    }
}

fn collation(comparator: Arc<dyn Comparator>) -> Collation {
    let name = comparator.name().to_owned();
    KeyOrders::new().with_comparator(comparator).unwrap().collation(&name)
}

/// A key as it is kept under a comparator: with a mark behind it.
fn kept(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

/// A kept key as the model orders it: as bytes.
fn encode(collation: &Collation, key: &[u8]) -> Vec<u8> {
    if collation.is_bytes() { key.to_vec() } else { [&[key.len() as u8], key].concat() }
}

#[derive(Clone, Debug)]
enum Op {
    Insert(Vec<u8>, u32),
    Remove(Vec<u8>),
    Change(Vec<u8>),
    Last(Bound<Vec<u8>>),
    /// A range, read from the back where a bit is set.
    Range(Bound<Vec<u8>>, Bound<Vec<u8>>, u64),
}

fn keys() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(vec![0_u8, 1, b'a', 0xff]), 0..4).prop_map(|key| kept(&key))
}

fn bounds() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![Just(Bound::Unbounded), keys().prop_map(Bound::Included), keys().prop_map(Bound::Excluded)]
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        4 => (keys(), any::<u32>()).prop_map(|(key, value)| Op::Insert(key, value)),
        2 => keys().prop_map(Op::Remove),
        1 => keys().prop_map(Op::Change),
        1 => bounds().prop_map(Op::Last),
        2 => (bounds(), bounds(), any::<u64>()).prop_map(|(lower, upper, turns)| Op::Range(lower, upper, turns)),
    ];
    prop::collection::vec(op, 1..120)
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

/// The rows of a range, read from the back for each set bit of `turns`.
fn taken<T>(mut rows: impl DoubleEndedIterator<Item = T>, turns: u64) -> Vec<T> {
    let step = |at: u32| {
        let next = if turns >> (at % 64) & 1 == 0 { rows.next() } else { rows.next_back() };
        next.map(|row| (row, at + 1))
    };
    let mut at = 0;
    let mut step = step;
    std::iter::from_fn(|| {
        let (row, next) = step(at)?;
        at = next;
        Some(row)
    })
    .collect()
}

fn run(collation: &Collation, ops: Vec<Op>) {
    let mut map: OrderedMap<u32> = OrderedMap::new(collation);
    // By the encoded key: the key and its value.
    let mut model: BTreeMap<Vec<u8>, (Vec<u8>, u32)> = BTreeMap::new();
    let place = |key: &Vec<u8>| encode(collation, key);
    for op in ops {
        match op {
            Op::Insert(key, value) => {
                let before = model.insert(place(&key), (key.clone(), value)).map(|(_, value)| value);
                assert_eq!(map.insert(key, value), before);
            }
            Op::Remove(key) => {
                assert_eq!(map.remove(&key), model.remove(&place(&key)).map(|(_, value)| value));
            }
            Op::Change(key) => {
                let (of_map, of_model) = (map.get_mut(&key), model.get_mut(&place(&key)));
                assert_eq!(of_map.as_deref().copied(), of_model.as_ref().map(|(_, value)| *value));
                if let Some((of_map, (_, of_model))) = of_map.zip(of_model) {
                    (*of_map, *of_model) = (7, 7);
                }
                assert_eq!(map.get(&key), model.get(&place(&key)).map(|(_, value)| value));
            }
            Op::Last(upper) => {
                let expected = model.range((Bound::Unbounded, upper.as_ref().map(place))).next_back();
                let expected = expected.map(|(_, (key, value))| (key, value));
                assert_eq!(map.last_within(as_slice(&upper)), expected);
            }
            Op::Range(lower, upper, turns) => {
                let (lower, upper) = (as_slice(&lower), as_slice(&upper));
                let within = |key: &[u8]| collation.is_above(key, lower) && collation.is_below(key, upper);
                let rows = model.values().filter(|(key, _)| within(key)).map(|(key, value)| (key, value));
                let expected = taken(rows, turns);
                assert!(expected.is_empty() || !is_empty(collation, lower, upper));
                assert_eq!(taken(map.range(lower, upper), turns), expected);
            }
        }
        assert_eq!(map.len(), model.len());
        assert_eq!(map.is_empty(), model.is_empty());
    }
    assert!(map.iter().eq(model.values().map(|(key, value)| (key, value))));
}

proptest! {
    #[test]
    fn a_map_by_bytes_is_a_map(ops in ops()) {
        run(&Collation::BYTES, ops);
    }

    #[test]
    fn a_map_under_a_comparator_is_a_map_in_its_order(ops in ops()) {
        run(&collation(Arc::new(Length)), ops);
    }
}

#[test]
fn a_comparator_that_contradicts_itself_gives_rows_and_no_panic() {
    let order = collation(Arc::new(Odd(AtomicU32::new(0))));
    let mut map = OrderedMap::new(&order);
    let key = |number: u32| kept(&number.to_be_bytes());
    for number in 0..600 {
        map.insert(key(number), number);
    }
    let mut found = 0;
    for number in 0..600 {
        let [lower, upper] = [number * 7919 % 600, number * 104_729 % 600].map(key);
        for lower in [Bound::Included(&lower[..]), Bound::Excluded(&lower[..])] {
            found += map.range(lower, Bound::Excluded(&upper)).rev().count();
        }
        // Whatever it finds.
        let _ = map.last_within(Bound::Included(&key(number)));
    }
    assert!(found > 0 && map.iter().count() == 600);
}

#[test]
fn keys_may_be_shared_with_others() {
    let order = collation(Arc::new(Length));
    let mut map: OrderedMap<u32, Arc<[u8]>> = OrderedMap::new(&order);
    let shared: Arc<[u8]> = Arc::from(kept(b"bb"));
    map.insert(shared.clone(), 2);
    map.insert(Arc::from(kept(b"c")), 1);
    let found: Vec<_> = map.range(Bound::Excluded(&kept(b"c")), Bound::Unbounded).collect();
    assert!(matches!(found[..], [(key, 2)] if Arc::ptr_eq(key, &shared)), "the key is not copied");
}
