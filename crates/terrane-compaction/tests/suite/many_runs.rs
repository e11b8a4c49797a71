//! More overflow runs than one job may take: the oldest runs move down first, and reads give the same rows.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use crate::support;

use std::ops::Range;

use support::{Row, World};
use terrane_compaction::pick::RUNS_MAX;
use terrane_compaction::{Claims, JobKind, JobSpec, KeyRange, RangeRequest, RangeStep, pick_range};
use terrane_format::manifest::Place;

const RUNS: u64 = 600;

/// So many runs over the same keys, each with a few of them.
fn runs(keys: Range<u64>) -> World {
    let mut world = World::new();
    let count = keys.end - keys.start;
    for run in 0..RUNS {
        let row = |at: u64| {
            let number = keys.start + (run * 7 + at * 13) % count;
            let (key, seq) = (format!("key-{number:06}"), run * 10 + at + 1);
            if at == 1 { Row::delete(key, seq) } else { Row::put(key, seq, vec![run as u8; 20]) }
        };
        // Each reaches from the first key to the last.
        let ends = [keys.start, keys.end].map(|number| format!("key-{number:06}"));
        let mut rows: Vec<Row> =
            ends.iter().zip([8, 9]).map(|(key, at)| Row::put(key, run * 10 + at, "end")).collect();
        rows.extend(
            (0..4).map(row).filter(|row| !ends.contains(&String::from_utf8_lossy(&row.key).into_owned())),
        );
        world.remember(&rows);
        world.dump(&rows);
    }
    assert_eq!(world.metasnapshot.runs.len() as u64, RUNS);
    world
}

/// Checks the size of a job, and that it leaves nothing older above what it takes.
fn check(world: &World, spec: &JobSpec) -> usize {
    let taken: Vec<_> = spec.inputs.iter().filter(|input| matches!(input.place, Place::Run(_))).collect();
    assert!((1..=RUNS_MAX).contains(&taken.len()), "{} runs in one job", taken.len());
    let oldest = world.metasnapshot.runs.iter().rev().take(taken.len()).map(|run| Place::Run(run.id));
    assert!(taken.iter().rev().map(|input| input.place).eq(oldest), "the oldest sink first");
    taken.len()
}

fn next(world: &World, request: &RangeRequest) -> Option<Box<JobSpec>> {
    match pick_range(&world.shape(), &world.limits, &Claims::new(), request) {
        RangeStep::Job(spec) => Some(spec),
        RangeStep::Done => None,
        RangeStep::Busy => panic!("nothing is claimed"),
    }
}

#[test]
fn requested_compactions_take_at_most_runs_max_at_once() {
    let mut world = runs(0..100);
    world.limits.automatic = false;
    assert!(world.pick().is_none());
    let mut request = RangeRequest::new(KeyRange::all(), 0..=u8::MAX, false);
    let mut sizes = Vec::new();
    while let Some(spec) = next(&world, &request) {
        assert_eq!(spec.kind, JobKind::Manual);
        sizes.push(check(&world, &spec));
        world.run(&spec);
        request.advance(&spec);
        world.check_content();
    }
    assert_eq!(sizes, [RUNS_MAX, RUNS_MAX, RUNS as usize - 2 * RUNS_MAX], "as few jobs as it takes");
    assert!(world.metasnapshot.runs.is_empty());
}

#[test]
fn a_part_of_the_keys_takes_so_many_at_once() {
    let mut world = runs(0..100);
    let range = KeyRange::closed(b"key-000020", b"key-000030");
    let mut request = RangeRequest::new(range, 0..=1, false);
    while let Some(spec) = next(&world, &request) {
        check(&world, &spec);
        world.run(&spec);
        request.advance(&spec);
    }
    world.check_content();
    assert!(world.metasnapshot.runs.is_empty());
}

#[test]
fn the_background_takes_so_many_at_once() {
    for merge_through in [false, true] {
        let mut world = runs(0..100);
        world.limits.merge_through = merge_through;
        let mut jobs = 0;
        while let Some(spec) = world.pick() {
            if spec.kind == JobKind::Runs {
                check(&world, &spec);
                jobs += 1;
            }
            world.run(&spec);
            world.check_content();
        }
        assert!(jobs >= 3, "{jobs} jobs");
        assert!(world.metasnapshot.runs.is_empty());
    }
}
