//! A manifest of a table with a comparator: opened without the comparator, with it, and with extents that
//! contradict it.
#![allow(clippy::unwrap_used, reason = "a test")]

use crate::common;

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use common::{dir, env, extent, still};
use terrane_base::{Comparator, KeyOrders, Kind, TableId};
use terrane_device::{Disk, MemDisk};
use terrane_format::manifest::{Edit, EditOp, Place};
use terrane_levels::{Manifest, State};

/// By length, then as bytes.
#[derive(Debug)]
struct Shortest;

impl Comparator for Shortest {
    fn name(&self) -> &str {
        "shortest"
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        left.len().cmp(&right.len()).then_with(|| left.cmp(right))
    }
}

fn kept(number: u32) -> Vec<u8> {
    [number.to_string().as_bytes(), &[0]].concat()
}

/// Extents of ten numbers each; as bytes most of them overlap.
fn add(slot: u32) -> EditOp {
    EditOp::add(TableId::DEFAULT, Place::Level(1), extent(slot, &kept(slot * 10), &kept(slot * 10 + 9)))
}

fn numbers(state: &State) -> Vec<u32> {
    let level = state.tables[&TableId::DEFAULT].extents.level(Place::Level(1)).unwrap();
    level.iter().map(|meta| meta.id.slot).collect()
}

#[test]
fn a_manifest_sorts_extents_once_the_comparator_is_registered() {
    let disk = MemDisk::new();
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let options = vec![("comparator".to_owned(), "shortest".to_owned())];
    let orders = KeyOrders::new().with_comparator(Arc::new(Shortest)).unwrap();
    let (manifest, _) = Manifest::create_with(shared.clone(), dir(), &env(), options, still()).unwrap();
    manifest.set_orders(&orders).unwrap();
    let slots: Vec<u32> = (0..700).map(|at| at * 271 % 700).collect();
    manifest.append(&Edit { ops: slots.iter().map(|slot| add(*slot)).collect() }).unwrap();
    let overlapping =
        Edit { ops: vec![EditOp::add(TableId::DEFAULT, Place::Level(1), extent(900, &kept(45), &kept(46)))] };
    assert_eq!(manifest.append(&overlapping).unwrap_err().kind(), Kind::Invalid);
    let gone = [5, 77, 699].map(|slot| {
        EditOp::remove(
            TableId::DEFAULT,
            Place::Level(1),
            &extent(slot, &kept(slot * 10), &kept(slot * 10 + 9)),
        )
    });
    manifest.append(&Edit { ops: gone.to_vec() }).unwrap();
    let wanted: Vec<u32> = (0..700).filter(|slot| ![5, 77, 699].contains(slot)).collect();
    assert_eq!(numbers(&manifest.state()), wanted);
    manifest.close().unwrap();
    drop(manifest);

    // Without the comparator the order of the extents is unknown, but they can be read and named.
    let (manifest, state) = Manifest::open(shared.clone(), dir()).unwrap();
    state.check().unwrap();
    let mut found = numbers(&state);
    found.sort_unstable();
    assert_eq!(found, wanted);
    let again = State::from_image(&state.to_image().unwrap()).unwrap();
    assert_eq!(again, state);
    let state = manifest.set_orders(&orders).unwrap();
    assert_eq!(numbers(&state), wanted);
    state.check().unwrap();
    let level = state.tables[&TableId::DEFAULT].extents.level(Place::Level(1)).unwrap();
    for number in 0..7100 {
        let slot = number / 10;
        let covering = level.covering(&kept(number)).map(|meta| meta.id.slot);
        assert_eq!(covering, wanted.contains(&slot).then_some(slot), "{number}");
        assert_eq!(level.find(&kept(number)), wanted.partition_point(|own| *own < slot), "{number}");
    }
    let (from, to) = (kept(95), kept(1203));
    let over = level.overlapping(Bound::Included(&from), Bound::Excluded(&to));
    let over: Vec<u32> = level.range(over).map(|meta| meta.id.slot).collect();
    assert_eq!(over, wanted.iter().copied().filter(|slot| (9..=120).contains(slot)).collect::<Vec<_>>());
    let other = Edit { ops: vec![EditOp::SetOptions { id: TableId::DEFAULT, options: Vec::new() }] };
    assert_eq!(manifest.append(&other).unwrap_err().kind(), Kind::Invalid, "a table keeps its comparator");
}

#[test]
fn extents_out_of_the_comparators_order_are_damage() {
    #[derive(Debug)]
    struct Turned;
    impl Comparator for Turned {
        fn name(&self) -> &str {
            "shortest"
        }
        fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
            right.cmp(left)
        }
    }
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let options = vec![("comparator".to_owned(), "shortest".to_owned())];
    let (manifest, _) = Manifest::create_with(disk, dir(), &env(), options, still()).unwrap();
    manifest.set_orders(&KeyOrders::new().with_comparator(Arc::new(Shortest)).unwrap()).unwrap();
    manifest.append(&Edit { ops: vec![add(1), add(2)] }).unwrap();
    let turned = KeyOrders::new().with_comparator(Arc::new(Turned)).unwrap();
    let state = State::clone(&manifest.state());
    assert!(state.with_orders(&turned).is_err());
}
