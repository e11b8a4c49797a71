//! Single merges: reused extents, dropped entries, cuts of the output, steps of flushes.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use crate::support;

use support::{Row, RowCursor, TABLE, World, rows_of};
use terrane_base::options::Compression;
use terrane_base::{Cursor, SeqNo};
use terrane_compaction::{
    Claims, Compactor, FlushPlan, JobKind, JobResult, JobSpec, KeyRange, RangeRequest, RangeStep, pick_range,
    plan_dump, plan_flush,
};
use terrane_format::manifest::Place;
use terrane_format::range_deletes::Fragment;
use terrane_storage::SLOT_BYTES;
use terrane_table::Extent;

fn key(number: usize) -> String {
    format!("key-{number:08}")
}

/// Puts of 1000 bytes under every `step`th key of a range.
fn puts(keys: std::ops::Range<usize>, step: usize, seq: u64) -> Vec<Row> {
    let numbered = keys.step_by(step).enumerate();
    numbered.map(|(index, number)| Row::put(key(number), seq + index as u64, vec![b'v'; 1000])).collect()
}

fn deletes(keys: std::ops::Range<usize>, seq: u64) -> Vec<Row> {
    keys.enumerate().map(|(index, number)| Row::delete(key(number), seq + index as u64)).collect()
}

/// A table with rows in L2 and then in L1, in limits as long as L1 has less than a megabyte.
fn two_levels(below: &[Row], above: &[Row]) -> World {
    let mut world = World::new();
    world.limits.level_base_bytes = 1 << 20;
    world.limits.level_fanout = 100;
    world.limits.job_bytes_max = 1 << 30;
    world.load(Place::Level(2), below);
    world.flush(above);
    world
}

/// The job that moves all of L1 into L2.
fn whole_level(world: &World) -> JobSpec {
    let request = RangeRequest::new(KeyRange::all(), 1..=2, false);
    let step = pick_range(&world.shape(), &world.limits, &Claims::new(), &request);
    let RangeStep::Job(spec) = step else { panic!("{step:?}") };
    assert_eq!((spec.kind, spec.target), (JobKind::Manual, Place::Level(2)));
    *spec
}

fn merge_levels(world: &mut World) -> JobResult {
    let spec = whole_level(world);
    let result = world.run(&spec);
    assert!(world.rows(Place::Level(1)).is_empty());
    result
}

#[test]
fn disjoint_extents_are_relinked_without_reading_them() {
    let mut world = World::new();
    world.limits.level_base_bytes = 1;
    world.flush(&puts(0..20_000, 1, 1));
    let before: Vec<_> = world.extents().iter().map(|(_, extent)| extent.meta.id).collect();
    let spec = world.pick().unwrap();
    assert!(spec.is_move());
    let result = world.run(&spec);
    assert_eq!(result.work.bytes_read + result.work.bytes_written, 0);
    assert_eq!(result.work.extents_relinked as usize, spec.inputs[0].extents.len());
    assert_eq!(result.written().count() + result.freed().count(), 0);
    let after: Vec<_> = world.extents().iter().map(|(_, extent)| extent.meta.id).collect();
    assert_eq!(before.len(), after.len());
    assert!(after.iter().all(|id| before.contains(id)));
    world.check_content();
}

#[test]
fn blocks_that_meet_nothing_are_copied() {
    // Every extent of L2 is met, but only by a few keys close to each other.
    let below = puts(0..20_000, 1, 1);
    let mut above = Vec::new();
    for start in (0..20_000).step_by(1500) {
        above.extend(puts(start + 700..start + 705, 1, 100_000 + start as u64));
    }
    let mut world = two_levels(&below, &above);
    let result = merge_levels(&mut world);
    let work = result.work;
    assert!(work.blocks_copied > 5 * work.blocks_decoded, "{work:?}");
    let replaced = above.iter().filter(|row| row.key < key(20_000).into_bytes()).count();
    assert_eq!(work.entries_dropped, replaced as u64);
    world.check_content();
}

#[test]
fn dense_merges_leave_full_extents() {
    let mut world = two_levels(&puts(0..20_000, 2, 1), &puts(1..20_000, 2, 50_000));
    let result = merge_levels(&mut world);
    assert_eq!(result.work.entries_dropped, 0);
    let (last, full) = result.added.split_last().unwrap();
    for meta in full {
        assert!(meta.bytes as usize > SLOT_BYTES / 10 * 9, "{} bytes", meta.bytes);
        assert_eq!(meta.slots, 1);
    }
    assert!(last.bytes > 0);
    world.check_content();
}

#[test]
fn a_small_rest_and_the_next_extent_are_shared_evenly() {
    // Few keys in front of L2's first extent, which must not end as an extent of their own, and one in its
    // fourth.
    let mut above = puts(10..20, 1, 50_000);
    above.push(Row::put(key(8000), 60_000, "v"));
    let mut world = two_levels(&puts(1000..20_000, 1, 1), &above);
    let result = merge_levels(&mut world);
    assert_eq!(
        result.work.extents_relinked, 2,
        "only the first and the fourth are taken apart: {:?}",
        result.work
    );
    // One of each level, and the short last blocks of the two extents.
    assert!((2..=4).contains(&result.work.blocks_decoded), "{:?}", result.work);
    for meta in &result.added {
        assert!(meta.bytes as usize >= SLOT_BYTES / 3, "{} bytes", meta.bytes);
    }
    world.check_content();
}

#[test]
fn deletes_vanish_in_the_bottom_with_what_they_hide() {
    let mut world = two_levels(&puts(0..4000, 1, 1), &deletes(0..4000, 50_000));
    let result = merge_levels(&mut world);
    assert_eq!(result.added.len(), 0, "nothing is left");
    assert_eq!(result.work.entries_dropped, 8000);
    assert!(world.extents().is_empty());
    world.check_content();
}

#[test]
fn deletes_stay_above_what_they_hide() {
    let mut world = two_levels(&puts(0..4000, 1, 1), &deletes(0..2000, 50_000));
    world.flush(&deletes(5000..6000, 60_000));
    let found = world.rows(Place::Level(1)).into_iter().filter(|row| row.seq_kind.is_delete()).count();
    assert_eq!(found, 2000, "those of absent keys go at once");
    world.check_content();
}

#[test]
fn a_snapshot_keeps_what_it_sees_until_it_is_gone() {
    let mut world = two_levels(&puts(0..3000, 1, 1), &deletes(0..3000, 50_000));
    world.snapshots = vec![SeqNo(40_000)];
    merge_levels(&mut world);
    let rows = world.rows(Place::Level(2));
    assert_eq!(rows.iter().filter(|row| row.seq_kind.is_delete()).count(), 3000);
    assert_eq!(rows.len(), 6000);
    world.check_content();
    assert_eq!(world.pick().map(|spec| spec.kind), None, "nothing to clean while it lives");
    world.snapshots.clear();
    let results = world.compact_until_done();
    assert!(results.iter().all(|result| result.target == Place::Level(2)) && !results.is_empty());
    assert!(world.extents().is_empty(), "everything was deleted");
    world.check_content();
}

#[test]
fn versions_of_a_key_stay_in_one_extent() {
    let mut world = World::new();
    // A key with more versions than a slot holds, between others.
    let mut rows = puts(0..500, 1, 1);
    rows.extend((0..300).map(|index| Row::put(key(250), 10_000 + index, vec![b'w'; 20_000])));
    rows.extend(puts(500..1500, 1, 20_000));
    world.snapshots = (0..300).map(|index| SeqNo(10_000 + index)).collect();
    world.flush(&rows);
    world.check_content();
    let holders = world
        .extents()
        .into_iter()
        .filter(|(_, extent)| rows_of(extent).iter().any(|row| row.key == key(250).as_bytes()));
    let holders: Vec<_> = holders.collect();
    assert_eq!(holders.len(), 1);
    assert!(holders[0].1.meta.slots > 2);
}

#[test]
fn versions_hidden_by_a_dropped_delete_are_not_reused_with_their_block() {
    // Versions of one key over several blocks, the newest a delete, all of them seen by someone once.
    let mut below = puts(0..500, 1, 1);
    below.extend((0..60).map(|index| Row::put(key(250), 10_000 + index, vec![b'w'; 2000])));
    below.push(Row::delete(key(250), 20_000));
    below.extend(puts(500..1000, 1, 30_000));
    let mut world = two_levels(&[], &[]);
    world.snapshots = (0..100).map(|index| SeqNo(10_000 + index)).collect();
    world.load(Place::Level(2), &below);
    let versions = |world: &World| {
        world.rows(Place::Level(2)).iter().filter(|row| row.key == key(250).as_bytes()).count()
    };
    assert_eq!(versions(&world), 61);
    world.snapshots.clear();
    world.flush(&[Row::put(key(10), 50_000, "v"), Row::put(key(990), 50_001, "v")]);
    let result = merge_levels(&mut world);
    assert!(result.work.blocks_copied > 10, "{:?}", result.work);
    assert_eq!(versions(&world), 0);
    world.check_content();
}

#[test]
fn values_larger_than_a_slot_pass() {
    let mut world = World::new();
    let mut rows = puts(0..100, 1, 1);
    rows.push(Row::put(key(50), 1000, vec![7; 5 << 20]));
    rows.push(Row::put(key(51), 1001, vec![8; 3 << 20]));
    world.flush(&rows);
    world.flush(&puts(40..60, 3, 5000));
    world.check_content();
}

#[test]
fn a_flush_goes_in_steps_that_cover_everything() {
    let mut world = World::new();
    world.flush(&puts(0..100_000, 3, 1));
    let rows = puts(0..100_000, 2, 100_000);
    let results = world.flush(&rows);
    assert!(results.len() >= 3, "{} steps", results.len());
    for result in &results[..results.len() - 1] {
        let written = result.written().count();
        assert!((8..=16).contains(&written), "a step wrote {written} extents");
    }
    world.check_content();
    assert!(world.metasnapshot.runs.is_empty());
}

#[test]
fn a_flush_into_an_empty_level_goes_in_steps_too() {
    let mut world = World::new();
    let results = world.flush(&puts(0..60_000, 1, 1));
    assert!(results.len() >= 2);
    assert!(results.iter().all(|result| result.added.len() <= 16));
    world.check_content();
}

#[test]
fn a_flush_touches_only_what_it_meets() {
    let mut world = World::new();
    world.flush(&puts(0..20_000, 1, 1));
    let before = world.extents().len();
    let results = world.flush(&puts(10_000..10_005, 1, 100_000));
    let written: usize = results.iter().map(|result| result.written().count()).sum();
    // The extent that it meets becomes two, and the second takes in neighbours until it is full.
    assert!(written <= 4, "{written} extents of {before} were written");
    world.check_content();
}

#[test]
fn a_flush_waits_for_runs_in_its_way() {
    let mut world = World::new();
    let rows = puts(0..3000, 1, 1);
    world.remember(&rows);
    world.dump(&rows);
    let plan = plan_flush(&world.shape(), &world.limits, &Claims::new(), &[], 1 << 20);
    assert_eq!(plan, FlushPlan::Runs);
}

#[test]
fn a_dump_keeps_every_delete() {
    let mut world = World::new();
    world.flush(&puts(0..1000, 1, 1));
    let rows = deletes(0..2000, 10_000);
    world.remember(&rows);
    let result = world.dump(&rows);
    assert_eq!(result.work.entries_out, 2000);
    world.check_content();
    world.compact_until_done();
    world.check_content();
    assert!(world.extents().is_empty());
}

#[test]
fn runs_sink_in_order() {
    let mut world = World::new();
    world.limits.overflow_runs_trigger = 2;
    world.limits.job_bytes_max = 6 << 20;
    world.flush(&puts(0..6000, 1, 1));
    for run in 1..5u64 {
        let rows = puts(run as usize..6000, 1 + run as usize, run * 100_000);
        world.remember(&rows);
        world.dump(&rows);
    }
    assert_eq!(world.metasnapshot.runs.len(), 4);
    while let Some(spec) = world.pick() {
        world.run(&spec);
        world.check_content();
    }
    assert!(world.metasnapshot.runs.is_empty());
}

#[test]
fn small_neighbours_are_gathered_without_decoding() {
    let mut world = World::new();
    for start in (0..400).step_by(100) {
        world.flush(&puts(start..start + 100, 1, 1 + start as u64));
    }
    // Flushes into a level rewrite their neighbours only where keys meet.
    let spec = world.pick().unwrap();
    assert_eq!(spec.kind, JobKind::Gather);
    let result = world.run(&spec);
    assert_eq!(result.added.len(), 1);
    assert!(result.work.blocks_copied > 0, "{:?}", result.work);
    assert!(world.compact_until_done().is_empty() || world.extents().len() == 1);
    world.check_content();
}

#[test]
fn output_ends_where_it_would_meet_too_much_below() {
    let mut world = two_levels(&puts(0..40_000, 1, 1), &[]);
    // Few keys over all of L2: one extent by size, several by what they meet.
    world.limits.grandparent_bytes_max = 4 << 20;
    let results = world.flush(&puts(0..40_000, 23, 100_000));
    let added: usize = results.iter().map(|result| result.added.len()).sum();
    assert!((2..=6).contains(&added), "{added} extents");
    world.check_content();
}

#[test]
fn another_compression_decodes() {
    let mut world = two_levels(&[Row::put("a", 1, "b")], &puts(0..3000, 1, 10));
    let mut spec = whole_level(&world);
    spec.output.compression = Compression::Lz4;
    assert!(!spec.is_move());
    let result = world.run(&spec);
    assert_eq!(result.work.blocks_copied + result.work.extents_relinked, 0, "{:?}", result.work);
    assert!(result.added.iter().all(|meta| meta.compression == Compression::Lz4));
    world.check_content();
}

#[test]
fn results_become_edits() {
    let mut world = two_levels(&puts(0..3000, 1, 1), &puts(0..3000, 5, 10_000));
    let result = merge_levels(&mut world);
    let ops = result.edit_ops();
    assert_eq!(ops.len(), result.removed.len() + result.added.len());
    assert_eq!(result.table, TABLE);
    assert!(result.added.is_sorted_by(|a, b| a.largest < b.smallest));
}

#[test]
fn a_compactor_refuses_what_needs_memory() {
    let world = World::new();
    let spec = plan_dump(&world.shape(), &world.limits, 1);
    let error = world.compactor.run(&spec, &World::control()).unwrap_err();
    assert_eq!(error.kind(), terrane_base::Kind::Invalid);
}

#[test]
fn an_empty_generation_flushes_to_nothing() {
    let mut world = World::new();
    world.flush(&puts(0..100, 1, 1));
    let before = world.extents().len();
    let results = world.flush(&[]);
    assert_eq!(results.len(), 1);
    assert!(results[0].added.is_empty() && results[0].removed.is_empty());
    assert_eq!(world.extents().len(), before);
    let mut cursor = RowCursor::new(Vec::new());
    cursor.seek_first().unwrap();
    assert!(cursor.entry().is_none());
}

/// Each is nearly half a mebibyte: of two that touch, none ends before the other begins as bounds of extents
/// go.
#[test]
fn long_fragments_that_touch_each_other_are_cut_and_come_to_an_end() {
    let world = World::new();
    let count = 60_000;
    let mut spec = plan_dump(&world.shape(), &world.limits, 1);
    spec.snapshots = (0..count).map(SeqNo).collect();
    spec.below = vec![KeyRange::all()];
    let key = |number: u64| format!("key{number}").into_bytes();
    let fragment = |number: u64| Fragment {
        start: key(number),
        end: key(number + 1),
        seqs: (number..count).rev().map(SeqNo).collect(),
    };
    let fragments: Vec<Fragment> = (1..6).map(fragment).collect();
    assert!(fragments.iter().all(|fragment| fragment.encoded_len() > 450_000));
    let mut cursor = RowCursor::new(Vec::new());
    let result = world.compactor.dump_run(&spec, &mut cursor, fragments.clone(), &World::control()).unwrap();
    assert!(result.added.len() <= fragments.len(), "{} extents", result.added.len());
    assert!(result.added.is_sorted_by(|left, right| left.largest < right.smallest));
    let mut pieces = Vec::new();
    for meta in &result.added {
        let extent = Extent::new((**meta).clone(), world.store.clone());
        pieces.extend(extent.read_range_deletes().unwrap().unwrap().all().iter().cloned());
    }
    assert!(pieces.windows(2).all(|pair| pair[0].end == pair[1].start), "nothing is left out");
    assert_eq!((&pieces[0].start, &pieces[pieces.len() - 1].end), (&key(1), &key(6)));
    for piece in &pieces {
        let whole = fragments.iter().find(|whole| whole.start <= piece.start && piece.end <= whole.end);
        assert_eq!(whole.unwrap().seqs, piece.seqs);
    }
}
