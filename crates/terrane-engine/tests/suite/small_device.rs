//! A database on a device of one megabyte, where a journal could take all the space there is. Its background
//! runs in steps: while a writer waits, and where a test says so.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{DIR, get, number_from_env, rows, until};
use terrane_base::env::{Clock, Env, SleepClock, SteppedSpawn};
use terrane_base::options::Options;
use terrane_base::{Batch, Error, Kind, Result, Rng};
use terrane_device::{Disk, MemDisk};
use terrane_engine::{Bounds, Engine, Table, Transaction, TransactionOptions};

const MIB: u64 = 1 << 20;
const KIB: u64 = 1 << 10;
/// So many rows, with their keys, are two thirds of a device of one megabyte.
const ROWS: u64 = 6000;

/// A database with its device and its background.
struct Small {
    disk: MemDisk,
    clock: Arc<SleepClock>,
    spawn: Arc<SteppedSpawn>,
    engine: Arc<Engine>,
}

impl Small {
    fn new(capacity: u64) -> Small {
        let disk = MemDisk::new();
        disk.set_capacity(capacity);
        Small::open(disk).unwrap()
    }

    fn open(disk: MemDisk) -> Result<Small> {
        Small::open_with(disk, &Options::default())
    }

    fn open_with(disk: MemDisk, options: &Options) -> Result<Small> {
        let clock = Arc::new(SleepClock::default());
        let spawn = Arc::new(SteppedSpawn::new(clock.clone()));
        let env = Env { clock: clock.clone(), spawn: spawn.clone(), ..Env::real() };
        let engine = Engine::open_on(Arc::new(disk.clone()), Path::new(DIR), options, env)?;
        Ok(Small { disk, clock, spawn, engine })
    }

    fn reopened(self) -> Small {
        self.engine.close().unwrap();
        let disk = self.disk.clone();
        drop(self);
        Small::open(disk).unwrap()
    }

    fn table(&self) -> Arc<Table> {
        self.engine.catalog().require("default").unwrap()
    }

    fn put(&self, number: u64, round: u64) -> Result<()> {
        self.engine.put(self.table().id, &key(number), &noise(number, round), false)
    }

    fn delete(&self, number: u64) -> Result<()> {
        self.engine.delete(self.table().id, &key(number), false)
    }

    fn delete_range(&self, numbers: Range<u64>) -> Result<()> {
        self.engine.delete_range(self.table().id, &key(numbers.start), &key(numbers.end), false)
    }

    fn compact(&self) -> Result<()> {
        self.engine.compact_range(&self.table(), &Bounds::all())
    }

    /// Bytes that are free on the device.
    fn free(&self) -> u64 {
        self.disk.free_bytes(Path::new(DIR)).unwrap()
    }

    /// The device has so many bytes free from now on.
    fn set_free(&self, bytes: u64) {
        self.disk.set_capacity(self.disk.used_bytes() + bytes);
    }

    /// Tries until there is room, while the background goes on. Extents that a merge has replaced are gone
    /// once no reader of the process is left that began before, of other tests, too.
    fn until_room(&self, attempt: impl Fn() -> Result<()>) {
        until("there is room", || match attempt() {
            Err(full) if full.kind() == Kind::Full => {
                self.go_on();
                false
            }
            done => {
                done.unwrap();
                true
            }
        });
    }

    /// One step of the background.
    fn go_on(&self) {
        if !self.spawn.run(|_| true) {
            // Work that has failed is tried again then.
            self.clock.sleep(Duration::from_millis(50));
        }
    }

    fn put_all(&self, numbers: Range<u64>, round: u64) {
        numbers.for_each(|number| self.until_room(|| self.put(number, round)));
    }

    /// Puts row after row from `first` on until the device refuses; returns which was refused, and how.
    fn fill(&self, first: u64) -> (u64, Error) {
        let refused = |number| Some((number, self.put(number, 0).err()?));
        let (number, error) = (first..100_000).find_map(refused).expect("it takes more than the device has");
        assert_eq!(error.kind(), Kind::Full, "{error}");
        (number, error)
    }

    #[track_caller]
    fn assert_rows(&self, expected: Range<u64>, round: u64) {
        let found = rows(&self.engine, &self.table()).unwrap();
        assert!(found.iter().map(|row| row.0.clone()).eq(expected.clone().map(key)), "{} rows", found.len());
        for number in expected {
            let value = get(&self.engine, &self.table(), &key(number)).unwrap();
            assert_eq!(value, Some(noise(number, round)), "row {number}");
        }
    }
}

fn key(number: u64) -> Vec<u8> {
    format!("key{number:08}").into_bytes()
}

/// Bytes that no compression makes fewer.
fn noise(number: u64, round: u64) -> Vec<u8> {
    let mut rng = Rng::new(number * 1000 + round);
    (0..100).map(|_| rng.next_u64() as u8).collect()
}

#[test]
fn a_full_device_has_rows_in_extents_and_no_journal_that_cannot_be_flushed() {
    let small = Small::new(MIB);
    small.put_all(0..ROWS, 0);
    let (count, error) = small.fill(ROWS);
    assert!(error.to_string().contains("free some on the device, or delete rows"), "{error}");
    small.engine.flush().unwrap();
    small.assert_rows(0..count, 0);
    let small = small.reopened();
    small.assert_rows(0..count, 0);
    assert_eq!(small.fill(count).1.kind(), Kind::Full);
}

#[test]
fn overwrites_go_on_within_the_room_that_there_is() {
    let small = Small::new(MIB);
    (0..50).for_each(|round| small.put_all(0..1500, round));
    small.assert_rows(0..1500, 49);
}

#[test]
fn a_range_delete_on_a_full_device_makes_room_without_a_reopening() {
    let small = Small::new(MIB);
    for round in 0..4 {
        small.put_all(0..ROWS, round);
        let count = small.fill(ROWS).0;
        small.until_room(|| small.delete_range(0..count));
        small.assert_rows(0..0, 0);
        small.until_room(|| small.engine.flush());
        // Whole extents that it hides go without a merge.
        until("the extents are gone", || {
            small.engine.wait_until_quiescent().unwrap();
            terrane_base::epoch::pin().flush();
            small.engine.shape().store_live_bytes == 0
        });
    }
}

#[test]
fn deletes_of_single_rows_on_a_full_device_make_room() {
    let small = Small::new(MIB);
    small.put_all(0..ROWS, 0);
    let count = small.fill(ROWS).0;
    let kept = count - count / 8;
    (0..kept).for_each(|number| small.until_room(|| small.delete(number)));
    small.until_room(|| small.compact());
    small.assert_rows(kept..count, 0);
    let more = count + ROWS / 2;
    small.put_all(count..more, 0);
    small.reopened().assert_rows(kept..more, 0);
}

/// So little is free that all of it is kept for flushes and merges.
#[test]
fn deletes_with_a_deadline_have_room_of_their_own_behind_a_flush() {
    let disk = MemDisk::new();
    disk.set_capacity(MIB);
    let small = Small::open_with(disk, &Options { write_wait_max_ms: 1000, ..Options::default() }).unwrap();
    small.put_all(0..ROWS, 0);
    let count = small.fill(ROWS).0;
    until("nothing is due", || !small.spawn.run(|_| true));
    small.set_free(180 * KIB);
    let refused = (0..count).find(|number| small.delete(*number).is_err()).expect("the segment ends");
    let is_written = (0..1000).any(|_| {
        small.go_on();
        small.delete(refused).is_ok()
    });
    assert!(is_written, "the room that flushes have is not theirs");
    assert_eq!(get(&small.engine, &small.table(), &key(refused)).unwrap(), None);
}

/// A batch that does not fit comes again and again, while short ones find room in the rest of a segment.
#[test]
fn a_batch_that_is_refused_again_has_nothing_flushed_until_something_changes() {
    let small = Small::new(MIB);
    let table = small.table().id;
    let put_long = |number: u64| {
        let value: Vec<u8> = (0..300).flat_map(|part| noise(number, part)).collect();
        small.engine.put(table, &key(number), &value, false)
    };
    let refused = |number: u64| assert_eq!(put_long(number).map_err(|error| error.kind()), Err(Kind::Full));
    let count = (0..100).find(|number| put_long(*number).is_err()).expect("the device becomes full");
    refused(count);
    let flushes = || small.engine.stats().flushes;
    let before = flushes();
    for number in 1000..1020 {
        small.put(number, 0).unwrap();
        refused(count);
    }
    assert_eq!(flushes(), before, "nothing has changed since the last attempt");
    // The pause is over.
    small.clock.sleep(Duration::from_secs(1));
    refused(count);
    assert_eq!(flushes(), before + 1);
    small.put(1020, 0).unwrap();
    small.set_free(small.free() + 4 * KIB);
    refused(count);
    assert_eq!(flushes(), before + 2, "the device has more room than it had");
}

/// Each table's flush takes blocks of its own.
#[test]
fn many_small_tables_on_a_full_device_can_be_flushed() {
    let small = Small::new(6 * MIB);
    let tables: Vec<_> =
        (0..250).map(|number| small.engine.create_table(&format!("t{number}"), &[]).unwrap()).collect();
    let table_of = |number: u64| &tables[number as usize % tables.len()];
    let put = |number: u64| small.engine.put(table_of(number).id, &key(number), &noise(number, 0), false);
    let before = small.disk.used_bytes();
    (0..250).for_each(|number| put(number).unwrap());
    small.engine.flush().unwrap();
    let each = (small.disk.used_bytes() - before) / 250;
    assert!(each <= 12 * KIB, "{each} bytes for a table with one row, more than are kept for it");
    let count = (250..100_000).find(|number| put(*number).is_err()).expect("the device becomes full");
    small.engine.flush().unwrap();
    for number in 0..count {
        let value = get(&small.engine, table_of(number), &key(number)).unwrap();
        assert_eq!(value, Some(noise(number, 0)), "row {number}");
    }
    for table in &tables {
        small.until_room(|| small.engine.delete_range(table.id, &key(0), &key(count), false));
        assert_eq!(rows(&small.engine, table).unwrap().len(), 0);
    }
    small.until_room(|| put(count));
}

/// Rows 0..5000 in level 1, and the first 1000 of them again in memory: a merge needs more than is free.
fn with_no_room_for_a_merge() -> Small {
    let small = Small::new(u64::MAX);
    (0..5000).for_each(|number| small.put(number, 0).unwrap());
    small.compact().unwrap();
    until("level 1 is one extent, and there is nothing else", || {
        terrane_base::epoch::pin().flush();
        small.engine.shape().store_live_bytes == 2 * MIB
    });
    // Gives back what was replaced.
    small.engine.wait_until_quiescent().unwrap();
    (0..1000).for_each(|number| small.put(number, 1).unwrap());
    small.set_free(200 * KIB);
    small
}

#[track_caller]
fn assert_overwritten(small: &Small) {
    let table = small.table();
    for number in 0..5000 {
        let value = get(&small.engine, &table, &key(number)).unwrap();
        assert_eq!(value, Some(noise(number, u64::from(number < 1000))), "row {number}");
    }
    assert_eq!(rows(&small.engine, &table).unwrap().len(), 5000);
}

#[test]
fn a_flush_without_room_for_a_merge_becomes_a_run() {
    let small = with_no_room_for_a_merge();
    small.engine.flush().unwrap();
    assert_eq!(small.engine.stats().overflow_runs_written, 1);
    assert_overwritten(&small);
    // The merge of the run lacks room in the same way. It is tried again until it has some.
    assert_eq!(small.engine.wait_until_quiescent().map_err(|error| error.kind()), Err(Kind::Full));
    small.set_free(MIB);
    small.engine.wait_until_quiescent().unwrap();
    assert_overwritten(&small);
    assert_overwritten(&small.reopened());
}

#[test]
fn a_flush_without_any_room_keeps_all_data_and_goes_on_with_room() {
    let small = with_no_room_for_a_merge();
    small.set_free(60 * KIB);
    let error = small.engine.flush().unwrap_err();
    assert_eq!(error.kind(), Kind::Full, "{error}");
    let said = error.to_string();
    assert!(said.contains("\"default\" lacks space for its 1") && said.contains("free some"), "{said}");
    let count = small.fill(5000).0;
    assert!(count > 5000, "the rest of the segment is room for small commits");
    let refused = (0..100_000).find_map(|number| small.delete(number).err()).expect("segments end");
    assert_eq!(refused.kind(), Kind::Full, "the flush needs the room that is kept: {refused}");
    assert!(small.free() >= 60 * KIB, "nothing takes of it: {} bytes", small.free());
    assert!(small.engine.flush().is_err());
    let small = small.reopened();
    small.set_free(MIB);
    small.engine.flush().unwrap();
    small.engine.wait_until_quiescent().unwrap();
    small.until_room(|| small.put(5000, 5));
    assert_eq!(get(&small.engine, &small.table(), &key(5000)).unwrap(), Some(noise(5000, 5)));
}

#[test]
fn a_commit_of_a_transaction_has_everything_flushed_as_well() {
    let small = Small::new(MIB);
    let table = small.table().id;
    let commit = |number: u64, round: u64| {
        let mut transaction = Transaction::begin(small.engine.clone(), TransactionOptions::default())?;
        let mut batch = Batch::new();
        batch.put(table, &key(number), &noise(number, round))?;
        transaction.before_write(table, &key(number))?;
        transaction.commit(&batch, false).map(drop)
    };
    let flushes = small.engine.stats().flushes;
    // The background runs only while a writer waits for it: the first refusal is behind a flush of all.
    let refused = (0..100_000).find_map(|number| commit(number, 0).err()).expect("the device becomes full");
    assert_eq!(refused.kind(), Kind::Full, "{refused}");
    assert!(small.engine.stats().flushes > flushes, "nothing was flushed for a commit");
    small.until_room(|| small.delete_range(0..100_000));
    for round in 0..10 {
        (0..1500).for_each(|number| small.until_room(|| commit(number, round)));
    }
    small.assert_rows(0..1500, 9);
}

/// A writer that may not be held back does not wait for a flush; the background runs it.
#[test]
fn a_writer_with_a_deadline_has_the_flush_begun() {
    let small = Small::new(MIB);
    let table = small.table().id;
    let (refusals, flushed) = (Cell::new(0), || small.engine.stats().flushes);
    for number in 0..20_000 {
        let mut batch = Batch::new();
        batch.put(table, &key(number % 1500), &noise(number % 1500, number / 1500)).unwrap();
        small.until_room(|| {
            let before = flushed();
            let written = small.engine.write_within(&batch, false, Duration::ZERO);
            assert_eq!(flushed(), before, "it waits for a flush");
            refusals.set(refusals.get() + u64::from(written.is_err()));
            written.map(drop)
        });
    }
    assert!(refusals.get() > 0, "the device was never full");
}

/// Where the background is at each write follows from a seed.
#[test]
fn whatever_the_background_does_meanwhile_no_row_is_lost_and_deletes_make_room() {
    for seed in 0..number_from_env("TERRANE_SMALL_SEEDS", 3) {
        let small = Small::new(MIB);
        let mut rng = Rng::new(seed);
        let steps = rng.below(4) + 1;
        for cycle in 0..3 {
            let mut expected = BTreeMap::new();
            for turn in 0.. {
                (0..rng.below(steps)).for_each(|_| small.go_on());
                let number = rng.below(20_000);
                if turn < ROWS / 2 {
                    small.until_room(|| small.put(number, turn));
                } else if let Err(error) = small.put(number, turn) {
                    assert_eq!(error.kind(), Kind::Full, "seed {seed}, cycle {cycle}: {error}");
                    break;
                }
                expected.insert(key(number), noise(number, turn));
            }
            let found = rows(&small.engine, &small.table()).unwrap();
            assert!(found.into_iter().eq(expected), "seed {seed}, cycle {cycle}");
            small.until_room(|| small.delete_range(0..20_000));
        }
    }
}
