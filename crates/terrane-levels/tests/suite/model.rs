//! Levels and metasnapshots against a sorted map.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use common::{extent, key, numbered};
use proptest::prelude::*;
use terrane_base::{Collation, Comparator, KeyOrders, Kind};
use terrane_format::extent::ExtentMeta;
use terrane_format::manifest::Place;
use terrane_levels::{Change, HasMeta, Level, Metasnapshot, Removal, Totals};

type Extents = Arc<ExtentMeta>;
type Model = BTreeMap<Vec<u8>, Extents>;

fn removal(meta: &ExtentMeta) -> Removal<'_> {
    Removal { id: meta.id, smallest: &meta.smallest }
}

fn level_of(count: u32) -> Level<Extents> {
    Level::from_extents((0..count).map(|i| numbered(i, u64::from(i) * 10, u64::from(i) * 10 + 9)).collect())
        .unwrap()
}

/// Compares a level with the model at every boundary and next to it, and a part of the ranges between them.
fn compare(level: &Level<Extents>, model: &Model) {
    level.check().unwrap();
    let expected: Vec<&Extents> = model.values().collect();
    assert!(level.iter().eq(expected.iter().copied()));
    assert!(level.iter().rev().eq(expected.iter().rev().copied()));
    let totals = expected.iter().fold(Totals::default(), |sum, meta| sum.plus(Totals::of(meta)));
    assert_eq!(level.totals(), totals);
    let mut keys: Vec<Vec<u8>> = vec![Vec::new(), vec![0xff; 9]];
    for meta in &expected {
        for bound in [&meta.smallest, &meta.largest] {
            let mut shorter = bound.clone();
            shorter.pop();
            keys.extend([bound.clone(), [bound.as_slice(), b"\0"].concat(), shorter]);
        }
    }
    for key in &keys {
        let found = expected.iter().position(|meta| meta.largest >= *key).unwrap_or(expected.len());
        assert_eq!(level.find(key), found, "find {key:?}");
        let covering = expected.iter().find(|meta| meta.smallest <= *key && *key <= meta.largest);
        assert_eq!(level.covering(key), covering.copied());
    }
    for (lower, upper) in keys.iter().zip(keys.iter().skip(3).step_by(2)).step_by(1 + keys.len() / 64) {
        for lower in [Bound::Unbounded, Bound::Included(lower), Bound::Excluded(lower)] {
            for upper in [Bound::Unbounded, Bound::Included(upper), Bound::Excluded(upper)] {
                check_overlapping(level, &expected, lower.map(Vec::as_slice), upper.map(Vec::as_slice));
            }
        }
    }
}

fn check_overlapping(
    level: &Level<Extents>,
    expected: &[&Extents],
    lower: Bound<&[u8]>,
    upper: Bound<&[u8]>,
) {
    let above = |meta: &ExtentMeta| match lower {
        Bound::Unbounded => true,
        Bound::Included(key) => meta.largest.as_slice() >= key,
        Bound::Excluded(key) => meta.largest.as_slice() > key,
    };
    let below = |meta: &ExtentMeta| match upper {
        Bound::Unbounded => true,
        Bound::Included(key) => meta.smallest.as_slice() <= key,
        Bound::Excluded(key) => meta.smallest.as_slice() < key,
    };
    let overlapping: Vec<&Extents> =
        expected.iter().copied().filter(|meta| above(meta) && below(meta)).collect();
    let range = level.overlapping(lower, upper);
    assert!(level.range(range.clone()).eq(overlapping), "{lower:?} to {upper:?} gave {range:?}");
}

/// A step: positions (modulo the length) to remove and key ranges to try to add.
type Step = (Vec<usize>, Vec<(u16, u8)>);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step =
        (prop::collection::vec(any::<usize>(), 0..40), prop::collection::vec((any::<u16>(), 0u8..3), 0..120));
    prop::collection::vec(step, 1..12)
}

/// Keys with long common fronts, short keys, and keys of which one is the front of another.
fn odd_key(number: u16) -> Vec<u8> {
    match number % 3 {
        0 => vec![number as u8; usize::from(number >> 12)],
        1 => format!("a rather long common front {number:05}").into_bytes(),
        _ => number.to_be_bytes().to_vec(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn level_is_a_sorted_map(steps in steps()) {
        let mut level = Level::<Extents>::new();
        let mut model = Model::new();
        let mut slot = 0;
        for (removed, added) in steps {
            let mut next = model.clone();
            for position in removed.iter().filter(|_| !model.is_empty()) {
                let key = model.keys().nth(position % model.len()).unwrap();
                next.remove(key);
            }
            let removed: Vec<_> = model.iter().filter(|(key, _)| !next.contains_key(*key)).map(|(_, m)| m.clone()).collect();
            let mut extents = Vec::new();
            for (number, width) in added {
                let bounds = [odd_key(number), odd_key(number.wrapping_add(u16::from(width) * 3))];
                let (smallest, largest) = (bounds.iter().min().unwrap(), bounds.iter().max().unwrap());
                let clash = next.values().any(|m| m.smallest <= *largest && *smallest <= m.largest);
                if !clash {
                    let meta = extent(slot, smallest, largest);
                    slot += 1;
                    next.insert(smallest.clone(), meta.clone());
                    extents.push(meta);
                }
            }
            let removals: Vec<_> = removed.iter().map(|meta| removal(meta)).collect();
            let replaced = level.replace(&removals, extents).unwrap();
            compare(&level, &model);
            compare(&replaced, &next);
            (level, model) = (replaced, next);
        }
    }

    /// Whatever is asked for, a level stays sorted and disjoint, and a refusal changes nothing.
    #[test]
    fn level_refuses_overlap(ranges in prop::collection::vec((0u64..60, 0u64..3), 1..40)) {
        let mut level = Level::<Extents>::new();
        let mut model = Model::new();
        for (slot, (first, width)) in ranges.into_iter().enumerate() {
            let meta = numbered(slot as u32, first, first + width);
            let clash = model.values().any(|m| m.smallest <= meta.largest && meta.smallest <= m.largest);
            match level.replace(&[], vec![meta.clone()]) {
                Ok(next) => {
                    prop_assert!(!clash);
                    model.insert(meta.smallest.clone(), meta);
                    level = next;
                }
                Err(error) => {
                    prop_assert!(clash);
                    prop_assert_eq!(error.kind(), Kind::Invalid);
                }
            }
            compare(&level, &model);
        }
    }
}

#[test]
fn replacing_10_of_500_000_copies_a_few_chunks() {
    let level = level_of(500_000);
    let removed: Vec<_> = (0..10).map(|i| level.get(i * 50_000 + 7).clone()).collect();
    let added = (0..10).map(|i| {
        let first = (i * 50_000 + 7) * 10;
        numbered(500_000 + i as u32, first, first + 5)
    });
    let removals: Vec<_> = removed.iter().map(|meta| removal(meta)).collect();
    let replaced = level.replace(&removals, added.collect()).unwrap();
    assert_eq!(replaced.len(), level.len());
    assert!(level.chunk_count() > 3900);
    let copied = replaced.chunk_count() - replaced.shared_chunk_count(&level);
    assert!(copied <= 10, "{copied} chunks copied");
    replaced.check().unwrap();
}

#[test]
fn chunks_stay_filled_while_extents_go() {
    let mut level = level_of(10_000);
    let all: Vec<Extents> = level.iter().cloned().collect();
    for group in all.chunks(7).step_by(2).chain(all.chunks(7).skip(1).step_by(2)).take(1420) {
        let removals: Vec<_> = group.iter().map(|meta| removal(meta)).collect();
        level = level.replace(&removals, Vec::new()).unwrap();
        assert!(level.chunk_count() <= level.len() / 32 + 1, "{} in {}", level.len(), level.chunk_count());
    }
    level.check().unwrap();
}

#[test]
fn removals_must_name_present_extents() {
    let level = level_of(300);
    let here = level.get(5).clone();
    let other = numbered(999, 50, 59);
    for removals in [
        vec![removal(&other)],
        vec![removal(&here), removal(&here)],
        vec![Removal { id: here.id, smallest: b"zzz" }],
        vec![Removal { id: here.id, smallest: &here.largest }],
    ] {
        let error = level.replace(&removals, Vec::new()).unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid);
        assert!(error.message().contains(&removals[0].id.to_string()), "{error}");
    }
}

/// Metasnapshot against a map of places; ids are unique over all of them.
mod metasnapshot {
    use super::*;

    fn place() -> impl Strategy<Value = Place> {
        prop_oneof![(1u8..5).prop_map(Place::Level), (0u64..4).prop_map(Place::Run)]
    }

    #[derive(Clone, Debug)]
    enum Op {
        Add(Place, u32, u64, u64),
        Remove(usize),
        Move(usize, Place),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            4 => (place(), 0u32..64, 0u64..100, 0u64..4).prop_map(|(p, slot, first, width)| Op::Add(p, slot, first, first + width)),
            2 => any::<usize>().prop_map(Op::Remove),
            1 => (any::<usize>(), place()).prop_map(|(i, p)| Op::Move(i, p)),
        ]
    }

    type Places = BTreeMap<Place, Model>;

    /// The expected places after the changes, or `None` if they break an invariant.
    fn expect(places: &Places, changes: &[Change<Extents>]) -> Option<Places> {
        let mut next = places.clone();
        for change in changes {
            if let Change::Remove { place, smallest, .. } = change {
                next.get_mut(place)?.remove(smallest)?;
            }
        }
        for change in changes {
            if let Change::Add { place, extent } = change {
                let newest = places.keys().filter(|place| matches!(place, Place::Run(_))).max();
                if matches!(place, Place::Run(_)) && !places.contains_key(place) && Some(place) < newest {
                    return None;
                }
                let id_taken = next.values().flat_map(|m| m.values()).any(|m| m.id == extent.id);
                let level = next.entry(*place).or_default();
                let clash =
                    level.values().any(|m| m.smallest <= extent.largest && extent.smallest <= m.largest);
                if id_taken || clash {
                    return None;
                }
                level.insert(extent.smallest.clone(), extent.clone());
            }
        }
        next.retain(|_, level| !level.is_empty());
        Some(next)
    }

    fn changes(ops: &[Op], places: &Places) -> Vec<Change<Extents>> {
        let all: Vec<(Place, &Extents)> =
            places.iter().flat_map(|(p, m)| m.values().map(|e| (*p, e))).collect();
        let pick = |index: usize| all.get(index % all.len().max(1)).copied();
        let change = |op: &Op| match *op {
            Op::Add(place, slot, first, last) => {
                vec![Change::Add { place, extent: numbered(slot, first, last) }]
            }
            Op::Remove(i) => pick(i).map(|(place, e)| Change::remove(place, e)).into_iter().collect(),
            Op::Move(i, to) => pick(i).map_or(Vec::new(), |(from, e)| {
                // The addition first: the order within an edit does not count.
                vec![Change::Add { place: to, extent: e.clone() }, Change::remove(from, e)]
            }),
        };
        ops.iter().flat_map(change).collect()
    }

    fn check(snapshot: &Metasnapshot<Extents>, places: &Places) {
        snapshot.check().unwrap();
        let filled = snapshot.places().filter(|(_, level)| !level.is_empty());
        let found: Places = filled
            .map(|(place, level)| (place, level.iter().map(|m| (m.smallest.clone(), m.clone())).collect()))
            .collect();
        assert_eq!(&found, places);
        let extents: usize = places.values().map(Model::len).sum();
        assert_eq!(snapshot.totals().extents as usize, extents);
        let summed = snapshot.summary().iter().map(|(_, totals)| totals.extents).sum::<u64>();
        assert_eq!(summed as usize, extents);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn metasnapshot_is_a_map_of_maps(edits in prop::collection::vec(prop::collection::vec(op(), 1..5), 1..40)) {
            let mut snapshot = Metasnapshot::<Extents>::new();
            let mut places = Places::new();
            for ops in edits {
                let changes = changes(&ops, &places);
                let before = snapshot.clone();
                match (snapshot.apply(changes.clone()), expect(&places, &changes)) {
                    (Ok(next), Some(expected)) => {
                        check(&next, &expected);
                        check(&before, &places);
                        (snapshot, places) = (next, expected);
                    }
                    (Err(error), None) => prop_assert_eq!(error.kind(), Kind::Invalid),
                    (result, expected) => panic!("{changes:?}: got {result:?}, expected {expected:?}"),
                }
            }
        }
    }

    #[test]
    fn mapping_keeps_the_shape() {
        let adds = (0..1000).map(|i| Change::Add {
            place: if i < 500 { Place::Level(2) } else { Place::Run(3) },
            extent: numbered(i, u64::from(i) * 10, u64::from(i) * 10 + 9),
        });
        let snapshot = Metasnapshot::<Extents>::new().apply(adds.collect()).unwrap();
        let mapped = snapshot.try_map(|meta| Ok(Arc::new(ExtentMeta::clone(meta)))).unwrap();
        mapped.check().unwrap();
        assert!(mapped == snapshot);
        let level = mapped.level(Place::Level(2)).unwrap();
        assert_eq!(level.get(level.find(&key(1234))).meta().id.slot, 123);
        assert_eq!(mapped.summary()[0].0, Place::Run(3));
    }
}

/// A level of open extents is what the table crate's cursors walk.
#[test]
fn a_level_is_a_list_of_extents() {
    use terrane_device::{Disk, MemDisk};
    use terrane_storage::{LocalStore, Store, StoreSettings};
    use terrane_table::{Extent, ExtentList};

    let disk = MemDisk::new();
    disk.create_dir("/data".as_ref()).unwrap();
    let settings = StoreSettings::default();
    let store: Arc<dyn Store> =
        Arc::new(LocalStore::open(Arc::new(disk), "/data".as_ref(), settings).unwrap());
    let open = |meta: &Extents| Ok(Extent::new(ExtentMeta::clone(meta), store.clone()));
    let level: Arc<dyn ExtentList> = Arc::new(level_of(1000).try_map(open).unwrap());
    assert_eq!(level.len(), 1000);
    for index in 0..1000 {
        let meta = &level.extent(index).meta;
        assert_eq!(meta.id.slot as usize, index);
        assert_eq!((level.find(&meta.smallest), level.find(&meta.largest)), (index, index));
    }
    assert_eq!(level.find(b"zzz"), 1000);
}

/// Answers that depend on the bytes only and follow no order.
#[derive(Debug)]
struct Odd;

impl Comparator for Odd {
    fn name(&self) -> &str {
        "odd"
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        let mix = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        let hash = left.iter().chain(right).fold(0x811c_9dc5, mix);
        [Ordering::Less, Ordering::Greater][(hash >> 7 & 1) as usize]
    }
}

fn odd() -> Collation {
    let orders = KeyOrders::new().with_comparator(Arc::new(Odd)).unwrap();
    orders.collation("odd")
}

/// The order under such a comparator cannot be predicted: the change is refused, or wholly applied.
#[test]
fn a_comparator_that_contradicts_itself_ends_in_no_panic() {
    let odd = odd();
    let made = |number: u32| {
        let kept = [&(number.wrapping_mul(0x9e37_79b9)).to_be_bytes()[..], &[0]].concat();
        let meta = ExtentMeta::clone(&extent(number, &kept, &kept));
        Arc::new(ExtentMeta { collation: odd.clone(), ..meta })
    };
    let mut snapshot = Metasnapshot::<Extents>::new();
    for count in (1..40).chain([100, 300, 600]) {
        let add = |number| Change::Add { place: Place::Level(2), extent: made(number) };
        let many: Vec<_> = (0..count).map(add).collect();
        match Metasnapshot::<Extents>::new().apply(many) {
            Ok(next) => assert_eq!(next.level(Place::Level(2)).unwrap().len(), count as usize),
            Err(error) => assert_eq!(error.kind(), Kind::Invalid),
        }
    }
    for number in 0..3000 {
        let before = snapshot.level(Place::Level(2)).map_or(0, |level| level.len());
        match snapshot.apply(vec![Change::Add { place: Place::Level(2), extent: made(number) }]) {
            Ok(next) => {
                snapshot = next;
                assert_eq!(snapshot.level(Place::Level(2)).unwrap().len(), before + 1);
            }
            Err(error) => assert_eq!(error.kind(), Kind::Invalid),
        }
    }
}
