//! Levels and metasnapshots of which extents are left out, whatever the order of their keys does.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Memory};

use common::{key, numbered};
use proptest::prelude::*;
use terrane_base::{Comparator, KeyOrders};
use terrane_format::extent::ExtentMeta;
use terrane_format::manifest::Place;
use terrane_levels::{Change, Level, Metasnapshot};

type Extents = Arc<ExtentMeta>;

/// Extents whose keys lie apart.
fn extents(count: u32) -> Vec<Extents> {
    (0..count).map(|number| numbered(number, u64::from(number) * 10, u64::from(number) * 10 + 4)).collect()
}

fn check(count: u32, hidden: &[usize]) {
    let level = Level::from_extents(extents(count)).unwrap();
    let seen = level.without(hidden);
    seen.check().unwrap();
    let stays = extents(count).into_iter().enumerate().filter(|(index, _)| !hidden.contains(index));
    let stays: Vec<Extents> = stays.map(|(_, extent)| extent).collect();
    assert!(seen.iter().eq(stays.iter()));
    for number in 0..u64::from(count) * 10 + 2 {
        let key = key(number);
        assert_eq!(seen.find(&key), stays.partition_point(|meta| meta.largest < key), "{number}");
    }
    assert_eq!(level.len(), count as usize, "the level stays as it is");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn remaining_extents_are_found_and_hidden_ones_are_not(
        count in 1u32..700,
        hidden in prop::collection::btree_set(0usize..700, 0..300),
    ) {
        let hidden: Vec<usize> = hidden.into_iter().filter(|index| *index < count as usize).collect();
        check(count, &hidden);
    }
}

#[test]
fn whole_chunks_and_whole_levels_go() {
    for count in [1, 128, 129, 600] {
        let all: Vec<usize> = (0..count as usize).collect();
        check(count, &all);
        check(count, &all[1..]);
        check(count, &all[..all.len() - 1]);
        check(count, &all[count as usize / 3..count as usize / 2]);
        check(count, &[]);
    }
}

#[test]
fn a_metasnapshot_drops_empty_runs_deepest_levels_and_slots() {
    let add = |place, extent: &Extents| Change::Add { place, extent: extent.clone() };
    let all = extents(5);
    let places = [Place::Run(1), Place::Run(2), Place::Level(1), Place::Level(3), Place::Level(3)];
    let changes = places.iter().zip(&all).map(|(place, extent)| add(*place, extent)).collect();
    let snapshot = Metasnapshot::<Extents>::new().apply(changes).unwrap();
    let hide = |place| match place {
        Place::Run(2) => vec![0],
        Place::Level(3) => vec![0, 1],
        _ => Vec::new(),
    };
    let seen = snapshot.without(|place, _| hide(place));
    seen.check().unwrap();
    let left: Vec<Place> = seen.places().map(|(place, _)| place).collect();
    assert_eq!(left, [Place::Run(1), Place::Level(1)]);
    assert_eq!(snapshot.totals().extents, 5, "the metasnapshot stays as it is");
    // The slots of hidden extents are free, the others are not.
    assert!(seen.apply(vec![add(Place::Level(2), &all[1])]).is_ok());
    assert!(seen.apply(vec![add(Place::Level(2), &all[0])]).is_err());
    assert_eq!(snapshot.without(|_, _| Vec::new()), snapshot);
}

/// Orders as bytes do and counts how often it is asked.
#[derive(Debug, Default)]
struct Counting(AtomicU64);

impl Comparator for Counting {
    fn name(&self) -> &str {
        "counting"
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        self.0.fetch_add(1, Memory::Relaxed);
        left.cmp(right)
    }
}

#[test]
fn a_comparator_is_not_called() {
    let comparator = Arc::new(Counting::default());
    let orders = KeyOrders::new().with_comparator(comparator.clone()).unwrap();
    let collation = orders.collation("counting");
    let of = |meta: Extents| ExtentMeta { collation: collation.clone(), ..ExtentMeta::clone(&meta) };
    let level =
        Level::from_extents(extents(300).into_iter().map(|meta| Arc::new(of(meta))).collect()).unwrap();
    let before = comparator.0.load(Memory::Relaxed);
    assert!(before > 0, "it orders the level");
    assert_eq!(level.without(&[0, 7, 130, 131, 299]).len(), 295);
    assert_eq!(comparator.0.load(Memory::Relaxed), before);
}
