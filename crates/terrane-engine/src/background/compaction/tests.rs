//! Requests for compactions of ranges, served by hand: the background is paused.

use terrane_compaction::{KeyRange, RangeRequest};
use terrane_format::manifest::LEVEL_MAX;

use super::*;
use crate::background::flush::FlushJob;
use crate::background::flush::merge_frozen::tests::{freeze, open, put};

fn request(table: &Table) -> u64 {
    table.request_compaction(RangeRequest::new(KeyRange::closed(b"a", b"z"), 0..=LEVEL_MAX, true))
}

/// Schedules of a caller that only asks, and of the worker that decides.
fn schedules() -> [Schedule; 2] {
    let mut deciding = Schedule::default();
    deciding.decides = true;
    [Schedule::default(), deciding]
}

/// A worker may have loaded the levels of a table before the caller's flush changed them.
#[test]
fn a_request_is_served_by_levels_that_are_no_older_than_it() {
    let (engine, table) = open();
    let candidate = Candidate { table: table.clone(), stamp: None, tree: table.pinned().tree };
    put(&engine, "k", 10);
    freeze(&engine, &table);
    let control = Arc::new(engine.new_control());
    engine.settle(&table, &control).expect("settles");
    FlushJob { engine: &engine, table: &table, control: &control }.run().expect("flushes");
    assert!(candidate.tree.levels.is_empty() && !table.pinned().tree.levels.is_empty());
    let number = request(&table);
    for schedule in schedules() {
        assert!(engine.pick_for(&candidate, &[], &schedule, false).is_some(), "level 1 has the key");
        assert!(!table.is_compacted(number));
    }
    table.withdraw_request(number);
    engine.close().expect("closes");
}

/// A caller that only asks may not know of the job for the request.
#[test]
fn only_the_worker_that_decides_takes_a_request_out() {
    let (engine, table) = open();
    let candidate = Candidate { table: table.clone(), stamp: None, tree: table.pinned().tree };
    let numbers = [request(&table), request(&table)];
    let [asking, deciding] = schedules();
    let is_compacted = || numbers.map(|number| table.is_compacted(number));
    assert!(engine.pick_for(&candidate, &[], &asking, false).is_none(), "there is no key");
    assert_eq!(is_compacted(), [false, false]);
    assert!(engine.pick_for(&candidate, &[], &deciding, false).is_none());
    assert_eq!(is_compacted(), [true, true]);
    engine.close().expect("closes");
}
