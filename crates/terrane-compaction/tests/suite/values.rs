//! Which values move: the ceiling of space under overwrites, and what scans have marked.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::collections::BTreeSet;

use terrane_base::{Rng, Stored, ValuePointer, ValueTableId};
use terrane_compaction::{JobKind, JobResult, KeyRange};

use crate::support::values::rows_of;
use crate::support::{Row, World};

const KEYS: u64 = 3000;
const VALUE_BYTES: usize = 4000;
/// Rows of a flush.
const FLUSHED: u64 = 75;

fn key(number: u64) -> String {
    format!("key-{number:06}")
}

/// A world in which all values are separated and stored as they are.
fn world() -> World {
    let mut world = World::new();
    world.limits.separate_from = 64;
    world
}

/// Puts of these keys, with numbers from `seq` on.
fn puts(keys: impl IntoIterator<Item = u64>, seq: &mut u64) -> Vec<Row> {
    let mut numbers: Vec<u64> = keys.into_iter().collect();
    numbers.sort_unstable();
    numbers.dedup();
    let row = |number: u64| {
        *seq += 1;
        Row::put(key(number), *seq, vec![*seq as u8; VALUE_BYTES])
    };
    numbers.into_iter().map(row).collect()
}

/// Stored bytes of the value tables above what they may take.
fn bytes_above(world: &World) -> u64 {
    let values = &world.metasnapshot.values;
    let allowed = values.live_stored_bytes() * world.limits.value_space_permille / 1000;
    values.totals().bytes.saturating_sub(allowed)
}

/// Overwrites 20 times the data, of keys that `draw` draws; the ceiling holds after each flush and job but
/// for what one flush makes dead. Returns the stored bytes of values that were written by those of the puts.
fn overwrite(world: &mut World, runs: u64, mut draw: impl FnMut(&mut Rng) -> u64) -> f64 {
    let (mut seq, mut rng, mut written, mut put) = (0, Rng::new(7), 0u64, 0u64);
    for first in (0..KEYS).step_by(FLUSHED as usize) {
        world.flush(&puts(first..first + FLUSHED, &mut seq));
    }
    let slack = FLUSHED * VALUE_BYTES as u64 * 5 / 4;
    for round in 0..20 * KEYS / FLUSHED {
        let rows = puts((0..FLUSHED).map(|_| draw(&mut rng)), &mut seq);
        put += rows.len() as u64 * VALUE_BYTES as u64;
        if runs > 0 && round % runs != 0 {
            world.remember(&rows);
            written += world.dump(&rows).work.value_bytes_written;
        } else {
            written += world.flush(&rows).iter().map(|step| step.work.value_bytes_written).sum::<u64>();
        }
        let above = bytes_above(world);
        assert!(above <= slack, "round {round}: {above} bytes above the ceiling after a flush");
        while let Some(spec) = world.pick() {
            written += world.run(&spec).work.value_bytes_written;
            let above = bytes_above(world);
            assert!(above <= slack, "round {round}: {above} bytes above after a job {}", spec.kind);
        }
        assert_eq!(bytes_above(world), 0, "round {round}: nothing is due, so nothing is above the limit");
    }
    world.check_content();
    written as f64 / put as f64
}

#[test]
fn twenty_times_the_data_is_overwritten_below_the_ceiling() {
    let evenly = overwrite(&mut world(), 0, |rng| rng.below(KEYS));
    // Greedy collection at a fifth of dead values, all of them equally likely to die, writes 2.7 times.
    assert!(evenly < 3.5, "{evenly} bytes of values are written by byte");
    let few =
        overwrite(&mut world(), 0, |rng| if rng.below(10) < 9 { rng.below(100) } else { rng.below(KEYS) });
    assert!(few < 2.0, "{few} bytes of values are written by byte where most puts are to few keys");
}

#[test]
fn the_ceiling_holds_where_memory_comes_as_runs() {
    let mut world = world();
    let ratio = overwrite(&mut world, 4, |rng| rng.below(KEYS));
    assert!(ratio < 3.6, "{ratio} bytes of values are written by byte");
}

#[test]
fn values_that_runs_hide_are_few_before_the_runs_are_many() {
    let mut world = world();
    world.limits.overflow_runs_trigger = 1000;
    // Only due jobs.
    world.puts_off = true;
    let mut seq = 0;
    for first in (0..KEYS).step_by(FLUSHED as usize) {
        world.flush(&puts(first..first + FLUSHED, &mut seq));
    }
    let (mut most, mut jobs) = (0, 0);
    for round in 0..120 {
        let first = round * FLUSHED % KEYS;
        let rows = puts(first..first + FLUSHED, &mut seq);
        world.remember(&rows);
        world.dump(&rows);
        while let Some(spec) = world.pick() {
            world.run(&spec);
            jobs += 1;
        }
        let hidden = world.metasnapshot.values.live_entries() - KEYS;
        // A quarter of the quarter that the ceiling allows.
        assert!(hidden <= KEYS / 16, "round {round}: {hidden} values are hidden");
        assert!(bytes_above(&world) <= FLUSHED * VALUE_BYTES as u64 * 5 / 4, "round {round}");
        most = most.max(hidden);
    }
    assert!(most > KEYS / 40 && jobs > 10, "the runs wait as long as they may: {most} hidden, {jobs} jobs");
    world.check_content();
}

#[test]
fn jobs_of_their_own_keep_the_ceiling_where_no_other_job_collects() {
    let mut world = world();
    world.limits.value_collect_riding = false;
    let mut seq = 0;
    for first in (0..KEYS).step_by(FLUSHED as usize) {
        world.flush(&puts(first..first + FLUSHED, &mut seq));
    }
    let mut rng = Rng::new(3);
    let mut collections = 0;
    for round in 0..100 {
        world.flush(&puts((0..FLUSHED).map(|_| rng.below(KEYS)), &mut seq));
        collections += world.compact_until_done().len();
        assert_eq!(bytes_above(&world), 0, "round {round}");
    }
    assert!(collections > 5, "{collections} jobs");
    world.check_content();
}

/// Blocks of pointers end early, and are as good as full: those that meet nothing are copied undecoded.
#[test]
fn blocks_of_pointers_are_copied() {
    let mut world = world();
    let mut seq = 0;
    world.flush(&puts(0..1024, &mut seq));
    let extents = world.extents().into_iter().filter(|(_, extent)| extent.meta.value_table.is_none());
    let blocks: u64 = extents.map(|(_, extent)| u64::from(extent.meta.blocks)).sum();
    assert_eq!(blocks, 8, "1024 pointers in blocks of 128");
    let copied = |steps: Vec<JobResult>| steps.iter().map(|step| step.work.blocks_copied).sum::<u64>();
    assert_eq!(copied(world.flush(&puts([10], &mut seq))), 7, "all but the one that the key meets");
    world.check_content();
}

/// The value tables that the values of keys `from` to `to` lie in.
fn tables_of(world: &World, from: u64, to: u64) -> BTreeSet<ValueTableId> {
    let rows = world.extents().into_iter().flat_map(|(_, extent)| rows_of(&extent));
    let (from, to) = (key(from).into_bytes(), key(to).into_bytes());
    let pointers = rows.filter(|row| row.seq_kind.is_pointer() && row.key >= from && row.key <= to);
    let table = |row: Row| {
        ValuePointer::decode(Stored::of_entry(row.seq_kind, &row.value).unwrap().value).unwrap().table
    };
    pointers.map(table).collect()
}

#[test]
fn only_the_ranges_that_scans_marked_are_rewritten() {
    let mut world = world();
    world.limits.value_groups_max = 4;
    let mut seq = 0;
    for group in 0..15u64 {
        world.flush(&puts((group..KEYS).step_by(15), &mut seq));
    }
    world.compact_until_done();
    let before = tables_of(&world, 1500, KEYS);
    assert!(tables_of(&world, 100, 400).len() > 10, "groups over all keys");
    world.scanned = vec![KeyRange::closed(key(100).as_bytes(), key(400).as_bytes())];
    world.puts_off = true;
    assert!(world.pick().is_none(), "writers go first");
    world.puts_off = false;
    let spec = world.pick().expect("a range is marked");
    assert!(spec.kind == JobKind::Collect && spec.mended.is_some(), "{:?}", spec.kind);
    let moved = world.run(&spec).work.values_moved;
    assert_eq!(moved, 301, "the values of the range");
    assert!(tables_of(&world, 100, 400).len() <= 2, "they lie together");
    assert_eq!(tables_of(&world, 1500, KEYS), before, "others stay where they are");
    assert!(world.scanned.is_empty() && world.pick().is_none(), "nothing is left to do");
    world.check_content();
}
