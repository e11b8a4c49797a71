//! Merges on a device that is nearly full.

use crate::ended_parts::{key_of, row, seen};
use crate::support;

use std::sync::Arc;

use support::{Row, World};
use terrane_base::merge_operator::built_in;
use terrane_base::{CompactionFilter, FilterDecision, RecordKind, SeqNo};
use terrane_compaction::{CancelCause, Compactor, JobResult, JobSpec};
use terrane_format::manifest::Place;

const ROWS: u64 = 6000;
const KIB: u64 = 1 << 10;

fn key(number: u64) -> String {
    format!("key-{number:06}")
}

/// Level 1 with rows of 100 bytes, and a run that deletes every second one of them.
fn half_deleted(room_bytes: u64) -> World {
    let mut world = World::new();
    world.room_bytes = room_bytes;
    let rows: Vec<Row> = (0..ROWS).map(|number| Row::put(key(number), number + 1, vec![7; 100])).collect();
    world.load(Place::Level(1), &rows);
    let delete = |number: u64| Row::delete(key(number), ROWS + number + 1);
    let deletes: Vec<Row> = (0..ROWS).step_by(2).map(delete).collect();
    world.remember(&deletes);
    world.dump(&deletes);
    world
}

#[test]
fn extents_are_short_where_the_device_has_little_room() {
    let longest = |room_bytes: u64| {
        let world = half_deleted(room_bytes);
        let level = world.metasnapshot.level(Place::Level(1)).unwrap();
        level.iter().map(|extent| u64::from(extent.meta.bytes)).max().unwrap()
    };
    assert!(longest(u64::MAX) > 500 * KIB);
    assert!(longest(0) <= 64 * KIB, "{} bytes", longest(0));
    assert!((200 * KIB..=256 * KIB).contains(&longest(4096 * KIB)), "{} bytes", longest(4096 * KIB));
}

/// All of the output would take three times the room that there is.
#[test]
fn a_merge_publishes_parts_that_have_room_and_takes_the_room_that_they_free() {
    let mut world = half_deleted(0);
    world.disk.set_capacity(world.disk.used_bytes() + 112 * KIB);
    let spec = world.pick().unwrap();
    world.run(&spec);
    assert!(world.parts > 4, "{} parts", world.parts);
    assert!(world.pick().is_none());
    world.check_content();
}

/// A table of rows in level 1, and a run with an operand for each.
fn merged_rows(count: u64, operand_len: u64) -> World {
    let mut world = World::new();
    world.room_bytes = 0;
    world.limits.overflow_runs_trigger = 1;
    let rows: Vec<Row> = (0..count).map(|n| row(&key_of(n), n + 1, RecordKind::Put, 100)).collect();
    world.load(Place::Level(1), &rows);
    let operands: Vec<Row> =
        (0..count).map(|n| row(&key_of(n), count + n + 1, RecordKind::Merge, operand_len)).collect();
    world.dump_with(&operands, Vec::new());
    world
}

/// Removes rows with odd numbers. If it removed all, nothing would be written, and no part would end.
#[derive(Debug)]
struct EvenRows;

impl CompactionFilter for EvenRows {
    fn name(&self) -> &str {
        "even-rows"
    }

    fn filter(&self, key: &[u8], _value: &[u8]) -> FilterDecision {
        if key[key.len() - 1].is_multiple_of(2) { FilterDecision::Keep } else { FilterDecision::Remove }
    }
}

/// Operands that stayed above a row that the filter has removed would make a row that no caller wrote.
#[test]
fn a_job_with_a_filter_that_ends_early_leaves_each_row_or_removes_it() {
    const ROWS: u64 = 4000;
    let mut world = merged_rows(ROWS, 4);
    let contents = |world: &World| {
        let rows: Vec<Row> =
            world.extents().iter().flat_map(|(_, extent)| support::rows_of(extent)).collect();
        seen(&rows, &[], SeqNo::MAX)
    };
    let (before, spec) = (contents(&world), world.pick().expect("the run is merged"));
    assert!(spec.is_in_parts() && before.len() as u64 == ROWS);
    let control = World::control();
    control.fold_with(built_in("append").expect("it is built in"));
    control.filter_with(Arc::new(EvenRows), SeqNo(0));
    let (filtered, compactor) = (spec.filtered_by(&EvenRows), world.compactor.clone());
    let ended = compactor.run_in_parts(&filtered, &control, &mut |part: JobResult| {
        world.publish(&part);
        control.cancel(CancelCause::Asked);
        Ok(())
    });
    if let Ok(result) = &ended {
        world.publish(result);
    }
    let behind = contents(&world);
    let made = behind.iter().find(|(key, value)| before.get(*key) != Some(value));
    assert!(made.is_none(), "no caller wrote {made:?}");
    let left = behind.len() as u64;
    assert!(ended.is_ok() && left == ROWS / 2, "no part ends the job: {left} rows");
}

/// A job that is run again begins behind the parts that it has published.
#[test]
fn a_job_that_ended_early_begins_behind_its_parts() {
    const ROWS: u64 = 8000;
    let parts_of = |ends_behind: usize| {
        let mut world = merged_rows(ROWS, 100);
        let (mut parts, mut specs) = (Vec::new(), Vec::new());
        loop {
            let Some(spec) = world.pick() else { return (specs, parts) };
            let control = World::control();
            control.fold_with(built_in("append").expect("it is built in"));
            let (compactor, mut published) = (world.compactor.clone(), 0);
            let ended = compactor.run_in_parts(&spec, &control, &mut |part| {
                world.publish(&part);
                published += 1;
                if specs.is_empty() && published == ends_behind {
                    control.cancel(CancelCause::Asked);
                }
                Ok(())
            });
            ended.iter().for_each(|result| world.publish(result));
            parts.push(published);
            specs.push(spec);
        }
    };
    let (specs, parts) = parts_of(usize::MAX);
    assert!(specs.len() == 1 && parts[0] > 6, "{parts:?}");
    let (specs, ended) = parts_of(parts[0] - 2);
    assert!(specs.len() == 2, "{ended:?}");
    let first = |spec: &JobSpec| spec.inputs[0].extents[0].smallest.clone();
    assert!(first(&specs[1]) > first(&specs[0]), "it begins with the first key again");
    assert!(ended[1] < parts[0], "{ended:?} parts, of {parts:?}");
    let extents = |spec: &JobSpec| spec.inputs.iter().map(|input| input.extents.len()).sum::<usize>();
    assert!(extents(&specs[1]) * 2 < extents(&specs[0]), "most of its inputs are merged");
}
