//! Range deletes over much data: they are cut into pieces, which concurrent jobs move down before the level
//! is due.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use crate::support;

use support::{Row, RowCursor, World};
use terrane_base::SeqNo;
use terrane_compaction::{JobKind, KeyRange, plan_dump};
use terrane_format::manifest::Place;
use terrane_format::range_deletes::Fragment;
use terrane_storage::SLOT_BYTES;

const KEYS: usize = 40_000;
const LEFT: usize = 10;

fn key(number: usize) -> Vec<u8> {
    format!("key-{number:08}").into_bytes()
}

/// Forty megabytes in level 2, and an overflow run of one range delete over all but a few keys.
fn world() -> World {
    let mut world = World::new();
    world.limits.level_base_bytes = 1 << 20;
    world.limits.level_fanout = 100;
    world.limits.grandparent_bytes_max = 4 * SLOT_BYTES as u64;
    world.limits.job_bytes_max = 8 * SLOT_BYTES as u64;
    let rows: Vec<Row> =
        (0..KEYS).map(|number| Row::put(key(number), 1 + number as u64, vec![b'v'; 1000])).collect();
    world.load(Place::Level(2), &rows);
    let spec = plan_dump(&world.shape(), &world.limits, 1);
    let range = Fragment { start: key(LEFT), end: key(KEYS - LEFT), seqs: vec![SeqNo(1_000_000)] };
    let mut nothing = RowCursor::new(Vec::new());
    let run = world.compactor.dump_run(&spec, &mut nothing, vec![range], &World::control()).unwrap();
    world.publish(&run);
    world
}

/// The range deletes of a place, in key order.
fn fragments(world: &World, wanted: Place) -> Vec<Fragment> {
    let extents = world.extents().into_iter().filter(|(place, _)| *place == wanted);
    let read = extents.filter_map(|(_, extent)| extent.read_range_deletes().unwrap());
    read.flat_map(|fragments| fragments.all().to_vec()).collect()
}

#[test]
fn a_wide_range_delete_is_cut_when_it_moves_down() {
    let mut world = world();
    world.puts_off = true;
    let spec = world.pick().expect("one run is not due, but it is worth it");
    assert_eq!((spec.kind, spec.target), (JobKind::Runs, Place::Level(1)));
    let result = world.run(&spec);
    assert!((3..=6).contains(&result.added.len()), "{} pieces", result.added.len());
    assert!(result.added.is_sorted_by(|left, right| left.largest < right.smallest));
    let pieces = fragments(&world, Place::Level(1));
    let is_over = |key: Vec<u8>| pieces.iter().any(|piece| piece.start <= key && key < piece.end);
    assert_eq!((0..KEYS).filter(|number| is_over(key(*number))).count(), KEYS - 2 * LEFT);
    assert!(!is_over(key(LEFT - 1)) && !is_over(key(KEYS - LEFT)));

    // Beside each other.
    world.start_job();
    world.start_job();
    assert_eq!(world.pending.len(), 2);
    assert!(world.pending.iter().all(|(_, spec)| spec.kind == JobKind::Deletes));
    world.finish_job(1);
    world.finish_job(0);
    world.puts_off = false;
    let done = world.compact_until_done();
    assert!(done.iter().all(|result| result.work.bytes_written < 8 * SLOT_BYTES as u64));
    let left: Vec<Vec<u8>> = world.rows(Place::Level(1)).into_iter().map(|row| row.key).collect();
    let deeper = world.rows(Place::Level(2)).into_iter().map(|row| row.key);
    let left: Vec<Vec<u8>> = left.into_iter().chain(deeper).collect();
    assert_eq!(left, (0..LEFT).chain(KEYS - LEFT..KEYS).map(key).collect::<Vec<_>>());
    assert_eq!(fragments(&world, Place::Level(1)).len() + fragments(&world, Place::Level(2)).len(), 0);
}

/// Where a job lists the extents below one by one, what survives has gaps between them, and pieces end there.
/// Over more than it lists a range delete has none: it is cut at borders of extents, and nothing of it is
/// lost behind them.
#[test]
fn a_range_delete_without_gaps_is_cut_and_stays_whole() {
    let mut world = world();
    world.puts_off = true;
    let mut spec = world.pick().expect("one run is not due, but it is worth it");
    spec.below = vec![KeyRange::closed(&key(0), &key(KEYS - 1))];
    let result = world.run(&spec);
    assert!((3..=6).contains(&result.added.len()), "{} pieces", result.added.len());
    let pieces = fragments(&world, Place::Level(1));
    let first = pieces.first().expect("there are some");
    assert_eq!((first.start.clone(), pieces.last().unwrap().end.clone()), (key(LEFT), key(KEYS - LEFT)));
    assert!(pieces.windows(2).all(|two| two[0].end == two[1].start), "each begins where the last one ends");
}

#[test]
fn a_snapshot_that_sees_deleted_rows_keeps_them() {
    let mut world = world();
    world.snapshots = vec![SeqNo(900_000)];
    world.puts_off = true;
    assert!(world.pick().is_none(), "nothing would come free");
    world.puts_off = false;
    world.compact_until_done();
    let kept = world.rows(Place::Level(1)).len() + world.rows(Place::Level(2)).len();
    assert_eq!(kept, KEYS);
    world.snapshots.clear();
    world.compact_until_done();
    let kept = world.rows(Place::Level(1)).len() + world.rows(Place::Level(2)).len();
    assert_eq!(kept, 2 * LEFT);
}

#[test]
fn no_range_delete_job_is_picked_early_when_switched_off() {
    let mut world = world();
    world.limits.early_range_deletes = false;
    world.puts_off = true;
    assert!(world.pick().is_none());
}
