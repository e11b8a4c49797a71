//! Requests for compactions of ranges, served by hand: the background is paused.

use terrane_compaction::{KeyRange, RangeRequest};
use terrane_format::manifest::LEVEL_MAX;

use super::*;
use crate::background::flush::FlushJob;
use crate::background::flush::merge_frozen::tests::{freeze, open, put, settle};
use crate::background::scheduler::Schedule;
use crate::engine::Engine;

fn request(table: &Table) -> u64 {
    table.request_compaction(RangeRequest::new(KeyRange::closed(b"a", b"z"), 0..=LEVEL_MAX, true))
}

/// Schedules of a caller that only asks, and of the worker that decides.
fn schedules() -> [Schedule; 2] {
    let mut deciding = Schedule::default();
    deciding.decides = true;
    [Schedule::default(), deciding]
}

/// Flushes memory into level 1.
fn flush(engine: &Engine, table: &Table) {
    freeze(engine, table);
    let control = Arc::new(engine.new_control());
    settle(engine, table).expect("settles");
    FlushJob { engine, table, control: &control }.run().expect("flushes");
}

/// A worker may have loaded the levels of a table before the caller's flush changed them.
#[test]
fn a_request_is_served_by_levels_that_are_no_older_than_it() {
    let (engine, table) = open();
    let candidate = Candidate { table: table.clone(), stamp: None, tree: table.pinned().tree };
    put(&engine, "k", 10);
    flush(&engine, &table);
    assert!(candidate.tree.levels.is_empty() && !table.pinned().tree.levels.is_empty());
    let number = request(&table);
    for schedule in schedules() {
        assert!(
            Look { engine: &engine, schedule: &schedule }.pick_for(&candidate, &[], false).is_some(),
            "level 1 has the key"
        );
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
    assert!(
        Look { engine: &engine, schedule: &asking }.pick_for(&candidate, &[], false).is_none(),
        "there is no key"
    );
    assert_eq!(is_compacted(), [false, false]);
    assert!(Look { engine: &engine, schedule: &deciding }.pick_for(&candidate, &[], false).is_none());
    assert_eq!(is_compacted(), [true, true]);
    engine.close().expect("closes");
}

/// The caller of the first request gives it up while its job runs: that job has rewritten nothing for the
/// second request, which came later.
#[test]
fn a_job_of_a_withdrawn_request_is_not_progress_of_the_next_one() {
    let (engine, table) = open();
    put(&engine, "k", 10);
    flush(&engine, &table);
    let [_, deciding] = schedules();
    let next_job = || {
        let candidate = Candidate { table: table.clone(), stamp: None, tree: table.pinned().tree };
        Look { engine: &engine, schedule: &deciding }.pick_for(&candidate, &[], false)
    };
    let run = |spec: &JobSpec| {
        let control = Arc::new(engine.new_control());
        CompactionJob { engine: &engine, table: &table, spec, control: &control }.run().expect("compacts");
    };
    let (first, second) = (request(&table), request(&table));
    let of_first = next_job().expect("level 1 is to be rewritten");
    assert_eq!(of_first.request, Some(first));
    table.withdraw_request(first);
    run(&of_first);
    let of_second = next_job().expect("nothing was rewritten for this one");
    assert_eq!(of_second.request, Some(second));
    run(&of_second);
    assert_eq!(next_job(), None);
    assert!(table.is_compacted(second));
    engine.close().expect("closes");
}
