//! Searches for extents with dead entries: they find each one, and skip chunks that cannot have one yet.

use std::cell::Cell;
use std::sync::Arc;

use crate::common::numbered;
use terrane_base::Moment;
use terrane_format::extent::{Expiry, ExtentMeta};
use terrane_levels::Level;

const PERMILLE: u64 = 1000;

/// Entries of an extent, how many of them are deletes, how many expire, and when the first of these does.
type Entries = (u64, u64, u64, u64);

/// A level of these extents: so few are one chunk.
fn level<const N: usize>(extents: [Entries; N]) -> Level<Arc<ExtentMeta>> {
    let of = |(at, (entries, deletes, expiring, first)): (u32, Entries)| {
        let mut moments: Vec<_> = (0..expiring).map(|at| Moment(first + at * 10)).collect();
        let expiry = Expiry::of(&mut moments);
        let meta = numbered(at, u64::from(at) * 10, u64::from(at) * 10 + 9);
        Arc::new(ExtentMeta { entries, deletes, expiry, ..ExtentMeta::clone(&meta) })
    };
    let level = Level::from_extents((0..).zip(extents).map(of).collect()).unwrap();
    assert_eq!(level.chunk_count(), 1);
    level
}

/// Returns true if a search looks into the chunk.
fn may_reach(level: &Level<Arc<ExtentMeta>>, permille: u64, now: Moment) -> bool {
    let is_seen = Cell::new(false);
    let see = |_: &ExtentMeta| {
        is_seen.set(true);
        false
    };
    assert_eq!(level.next_decayed(0, permille, now, &see), None, "no extent is wanted");
    is_seen.get()
}

/// The condition of a picker for one extent.
fn reaches(meta: &ExtentMeta, permille: u64, now: Moment) -> bool {
    let dead = meta.deletes + meta.expiry.map_or(0, |expiry| expiry.expired(now));
    dead > 0 && dead * PERMILLE >= meta.entries * permille
}

#[test]
fn searches_find_every_dead_extent_and_skip_most_others() {
    let level = level([(100, 3, 40, 1000), (100, 0, 90, 5000), (3, 0, 1, 9000), (50, 20, 0, 0)]);
    let mut passed = 0;
    for permille in [1, 100, 125, 200, 250, 400, 430, 500, 875, 900, 1000, 2000] {
        for now in (0..10_000).step_by(50).map(Moment) {
            let first = level.iter().position(|meta| reaches(meta, permille, now));
            let found = level.next_decayed(0, permille, now, &|meta| reaches(meta, permille, now));
            assert_eq!(found, first, "{permille} at {now:?}");
            let is_passed = !may_reach(&level, permille, now);
            passed += u64::from(is_passed);
            // At a step it is exact.
            if permille % 125 == 0 {
                assert!(first.is_some() || is_passed, "{permille} at {now:?}");
            }
        }
    }
    assert!(passed > 700, "{passed}");
}

#[test]
fn extents_without_dead_entries_are_not_searched() {
    assert!(!may_reach(&level([(10, 0, 0, 0)]), 125, Moment(u64::MAX - 1)));
}

#[test]
fn extents_with_impossible_numbers_are_searched() {
    let full = level([(u64::MAX, u64::MAX, 0, 0)]);
    assert!(may_reach(&full, 1000, Moment(0)), "numbers of a hostile file");
}
