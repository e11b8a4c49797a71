//! Batches that are larger than their share of the write memory: whole or not at all, one at a time, with all
//! memory under the ceiling, and no writer that waits for ever.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use support::gate::GateDisk;
use support::{get, open, small_options, until};
use terrane_base::options::Options;
use terrane_base::{Batch, Kind, Result, Rng, TableId};
use terrane_device::{Call, Disk, Failure, Fault, FaultyDisk, MemDisk};
use terrane_engine::{Bounds, Engine};

const MIB: usize = 1 << 20;
const VALUE_BYTES: usize = 64 << 10;

/// Rows of 64 KiB under keys that begin with `front`, of `mib` MiB in all.
pub(crate) fn batch(front: &str, mib: usize) -> Batch {
    let mut batch = Batch::new();
    for row in 0..mib * MIB / VALUE_BYTES {
        let value = vec![row as u8; VALUE_BYTES];
        batch.put(TableId::DEFAULT, format!("{front} {row:04}").as_bytes(), &value).unwrap();
    }
    batch
}

/// How many rows of [`batch`] there are, which must have their values.
pub(crate) fn rows(engine: &Arc<Engine>, front: &str) -> usize {
    let table = engine.catalog().require("default").unwrap();
    let all = engine.range(&table, Bounds::all(), engine.visible()).collect::<Result<Vec<_>>>().unwrap();
    let mut own: Vec<_> = all.into_iter().filter(|(key, _)| key.starts_with(front.as_bytes())).collect();
    own.retain(|(key, value)| {
        let row: usize = String::from_utf8_lossy(&key[front.len() + 1..]).parse().unwrap();
        assert!(value.len() == VALUE_BYTES && value.iter().all(|byte| *byte == row as u8), "row {row}");
        true
    });
    own.len()
}

pub(crate) fn count(mib: usize) -> usize {
    mib * MIB / VALUE_BYTES
}

/// The memory that writers and the cache may have together, with the part that jobs lend while none runs.
fn shared_bytes(options: &Options) -> u64 {
    options.memory_bytes / 16 * 15
}

/// 4 MiB of write memory, of which a batch may have one without more ado.
pub(crate) fn opened(disk: impl Disk + 'static) -> Arc<Engine> {
    open(disk, &small_options()).unwrap()
}

#[test]
fn a_batch_larger_than_the_write_memory_takes_that_of_the_cache() {
    let (disk, options) = (MemDisk::new(), small_options());
    let engine = opened(disk.clone());
    // Twice: the second one needs the memory of the first.
    for round in ["one", "two", "one"] {
        for number in 0..200u32 {
            engine.put(TableId::DEFAULT, &number.to_be_bytes(), &[7; 10_000], false).unwrap();
        }
        engine.write(&batch(round, 8), false).unwrap();
        assert_eq!(rows(&engine, round), count(8), "{round}");
        let stats = engine.stats();
        let most = stats.memory_bytes_max.max(stats.memory_bytes);
        assert!(most <= shared_bytes(&options), "{round}: {most} bytes counted");
    }
    // Without another commit the memory comes back, once no reader of the process could see it any more.
    until("the memory of the segments comes back", || {
        engine.wait_until_quiescent().unwrap();
        engine.stats().memory_journal_bytes <= 2 * MIB as u64
    });
    engine.close().unwrap();
    drop(engine);
    let engine = opened(disk);
    assert_eq!((rows(&engine, "one"), rows(&engine, "two")), (count(8), count(8)));
}

#[test]
fn a_batch_that_was_not_flushed_is_replayed_under_less_memory() {
    let disk = MemDisk::new();
    let more = Options { memory_bytes: 64 << 20, write_memory_bytes: 16 << 20, ..small_options() };
    let engine = open(disk.clone(), &more).unwrap();
    engine.set_background_paused(true);
    engine.write(&batch("long", 20), true).unwrap();
    let left = disk.kill();
    engine.set_background_paused(false);
    drop(engine);
    // More than all of its memory is in the journal.
    let engine = opened(left);
    assert_eq!(engine.stats().records_recovered, count(20) as u64);
    assert_eq!(rows(&engine, "long"), count(20));
    engine.put(TableId::DEFAULT, b"small", b"value", true).unwrap();
    engine.write(&batch("next", 8), false).unwrap();
    assert_eq!((rows(&engine, "long"), rows(&engine, "next")), (count(20), count(8)));
}

#[test]
fn batches_of_several_threads_go_one_at_a_time_beside_small_writes() {
    let options = small_options();
    let engine = opened(MemDisk::new());
    let is_over = AtomicBool::new(false);
    let fronts = ["one", "two", "three"];
    std::thread::scope(|scope| {
        let small = scope.spawn(|| {
            let mut number = 0u64;
            while !is_over.load(Ordering::Relaxed) {
                engine.put(TableId::DEFAULT, &number.to_be_bytes(), &[7; 1000], false).unwrap();
                let now = engine.stats().memory_bytes;
                assert!(now <= shared_bytes(&options), "{now} bytes counted");
                number += 1;
            }
            number
        });
        let large = fronts.map(|front| {
            let engine = &engine;
            scope.spawn(move || {
                let batch = batch(front, 7);
                (0..2).for_each(|_| engine.write(&batch, false).map(drop).unwrap());
            })
        });
        large.into_iter().for_each(|writer| writer.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
        assert!(small.join().unwrap() > 0);
    });
    assert!(fronts.iter().all(|front| rows(&engine, front) == count(7)));
    let most = engine.stats().memory_bytes_max;
    assert!(most <= shared_bytes(&options), "{most} bytes counted");
}

#[test]
fn a_batch_that_may_not_wait_is_refused_and_other_writers_go_on() {
    let engine = opened(MemDisk::new());
    engine.set_background_paused(true);
    for number in 0..3u32 {
        engine.put(TableId::DEFAULT, &number.to_be_bytes(), &vec![7; 1_000_000], false).unwrap();
    }
    // More than is left, also where jobs have lent the cache their memory.
    let batch = batch("large", 11);
    let before = engine.visible();
    for wait_max in [Duration::ZERO, Duration::from_millis(20)] {
        let refused = engine.write_within(&batch, false, wait_max).unwrap_err();
        assert_eq!(refused.kind(), Kind::Busy, "{refused}");
        assert!(refused.to_string().contains("nothing is written"), "{refused}");
    }
    assert_eq!((rows(&engine, "large"), engine.visible()), (0, before));
    engine.write_within(&batch_of_one(), false, Duration::ZERO).unwrap();
    // The refusal has asked for what it needs, so that a later try finds it.
    engine.set_background_paused(false);
    until("a batch that does not wait finds room", || {
        match engine.write_within(&batch, false, Duration::ZERO) {
            Ok(_) => true,
            Err(error) => {
                assert_eq!(error.kind(), Kind::Busy, "{error}");
                false
            }
        }
    });
    assert_eq!(rows(&engine, "large"), count(11));
}

fn batch_of_one() -> Batch {
    let mut batch = Batch::new();
    batch.put(TableId::DEFAULT, b"small", b"value").unwrap();
    batch
}

#[test]
fn a_batch_beyond_all_memory_is_refused_with_the_memory_that_is_enough() {
    let put = |memory_bytes: u64, mib: usize| {
        open(MemDisk::new(), &Options { memory_bytes, ..small_options() })
            .unwrap()
            .write(&batch("k", mib), false)
    };
    let refused = put(16 << 20, 14).unwrap_err();
    assert_eq!(refused.kind(), Kind::Invalid);
    let text = refused.to_string();
    let number = |front: &str, end: &str| -> u64 {
        let (_, rest) = text.split_once(front).unwrap();
        rest.split_once(end).unwrap().0.parse().unwrap()
    };
    let limit = number("the limit of a batch is ", " bytes");
    assert!((9 << 20..14 << 20).contains(&limit), "{text}");
    let enough = refused.memory_enough().unwrap();
    assert_eq!(number("raise memory_bytes to ", " MiB") << 20, enough, "the number is that of the text");
    assert_eq!(refused.context("a load").memory_enough(), Some(enough));
    put(enough, 14).unwrap();
}

/// The segment that was prepared for the next long batch counts beside a batch that has the rest of memory.
#[test]
fn a_batch_near_the_limit_finds_room_behind_long_segments() {
    let options = Options { write_memory_bytes: 12 << 20, ..small_options() };
    let engine = open(MemDisk::new(), &options).unwrap();
    let mut long = Batch::new();
    long.put(TableId::DEFAULT, b"long", &vec![7; 1_500_000]).unwrap();
    let refused = engine.write(&batch("k", 20), false).unwrap_err();
    let limit = refused.to_string().split_once("the limit of a batch is ").unwrap().1.to_owned();
    let limit: usize = limit.split_once(' ').unwrap().0.parse().unwrap();
    let mut most = Batch::new();
    while most.bytes().len() + VALUE_BYTES + 4096 < limit {
        let value = vec![most.record_count() as u8; VALUE_BYTES];
        most.put(TableId::DEFAULT, format!("most {:04}", most.record_count()).as_bytes(), &value).unwrap();
    }
    (0..3).for_each(|_| engine.write(&long, false).map(drop).unwrap());
    engine.write(&most, false).unwrap();
    assert_eq!(rows(&engine, "most"), most.record_count() as usize);
}

/// Room is reserved for the index as well, before it is known.
#[test]
fn the_index_over_many_small_rows_fits_in_its_reservation() {
    let engine = opened(MemDisk::new());
    engine.set_background_paused(true);
    let (mut batch, mut numbers) = (Batch::new(), Rng::new(20));
    while batch.bytes().len() < 2 * MIB {
        let key = [numbers.next_u64().to_be_bytes(), numbers.next_u64().to_be_bytes()].concat();
        batch.put(TableId::DEFAULT, &key, b"value").unwrap();
    }
    let before = engine.stats().memory_index_bytes;
    engine.write(&batch, false).unwrap();
    let (index, records) = (engine.stats().memory_index_bytes - before, u64::from(batch.record_count()));
    // Nodes come in chunks, the last one of which has a free end.
    assert!(index <= 96 * records + (2 << 20), "{index} bytes for {records} records");
    assert!(index >= 30 * records, "{index} bytes for {records} records: less is enough to reserve");
}

#[test]
fn a_batch_waits_for_no_memory_that_readers_keep() {
    let engine = opened(MemDisk::new());
    // Were it flushed before there is a reader, the reader would keep extents and no memory.
    engine.set_background_paused(true);
    engine.write(&batch("first", 8), false).unwrap();
    let table = engine.catalog().require("default").unwrap();
    let mut reader = engine.range(&table, Bounds::all(), engine.visible());
    assert!(reader.next().unwrap().is_ok());
    engine.set_background_paused(false);
    let refused = engine.write(&batch("second", 8), false).unwrap_err();
    assert_eq!(refused.kind(), Kind::Busy, "{refused}");
    assert!(refused.to_string().contains("close iterators"), "{refused}");
    assert!(engine.stats().memory_held_bytes >= 8 * MIB as u64, "the segment counts as long as it is read");
    // Others go on.
    engine.put(TableId::DEFAULT, b"small", b"value", false).unwrap();
    assert_eq!(reader.count() + 1, count(8));
    engine.write(&batch("second", 8), false).unwrap();
    assert_eq!((rows(&engine, "first"), rows(&engine, "second")), (count(8), count(8)));
    until("nothing is held", || {
        terrane_base::epoch::pin().flush();
        engine.stats().memory_held_bytes == 0
    });
}

/// A crash at any call of the device while such a batch is committed, synced or not, and flushed behind.
#[test]
fn a_crash_leaves_all_of_a_batch_or_nothing() {
    let disk = GateDisk::new(MemDisk::new());
    let engine = open(disk.clone(), &small_options()).unwrap();
    engine.write(&batch("before", 2), true).unwrap();
    // Else all images may be of the flush behind that batch.
    engine.wait_until_quiescent().unwrap();
    let images = Arc::new(Mutex::new(Vec::new()));
    let (taken, mut seed) = (images.clone(), 0);
    let look = move |disk: &MemDisk| {
        seed += 1;
        taken.lock().push(if seed % 3 == 0 { disk.kill() } else { disk.crash(seed) });
        if seed < 24 { 1 } else { 0 }
    };
    disk.look_after(1, Box::new(look));
    engine.write(&batch("large", 6), true).unwrap();
    engine.flush().unwrap();
    disk.look_away();
    let images = std::mem::take(&mut *images.lock());
    let mut found = [0, 0];
    for image in images {
        let engine = opened(image);
        assert_eq!(rows(&engine, "before"), count(2));
        let there = rows(&engine, "large");
        assert!(there == 0 || there == count(6), "{there} rows of {}", count(6));
        found[usize::from(there > 0)] += 1;
    }
    assert!(found[0] > 0 && found[1] > 0, "crashes before and behind the commit: {found:?}");
}

#[test]
fn a_batch_that_the_device_has_no_space_for_is_not_there_and_ends_its_turn() {
    let disk = FaultyDisk::new(Arc::new(MemDisk::new()));
    let engine = opened(disk.clone());
    engine.put(TableId::DEFAULT, b"before", b"value", true).unwrap();
    disk.fail(Fault::new(Call::Allocate, Failure::Full).on(".seg").lasting());
    let refused = engine.write(&batch("large", 6), false).unwrap_err();
    assert_eq!(refused.kind(), Kind::Full, "{refused}");
    assert_eq!(rows(&engine, "large"), 0);
    disk.heal();
    let table = engine.catalog().require("default").unwrap();
    assert!(get(&engine, &table, b"before").unwrap().is_some());
    engine.put(TableId::DEFAULT, b"small", b"value", false).unwrap();
    engine.write(&batch("large", 6), false).unwrap();
    assert_eq!(rows(&engine, "large"), count(6));
}

#[test]
fn a_close_ends_the_wait_of_a_batch() {
    let engine = opened(MemDisk::new());
    engine.set_background_paused(true);
    engine.put(TableId::DEFAULT, b"before", &vec![7; 1_000_000], false).unwrap();
    engine.put(TableId::DEFAULT, b"behind", &vec![7; 1_000_000], false).unwrap();
    std::thread::scope(|scope| {
        let writers = ["one", "two"].map(|front| {
            let engine = &engine;
            scope.spawn(move || engine.write(&batch(front, 10), false))
        });
        engine.close().unwrap();
        for writer in writers {
            let refused = writer.join().unwrap().unwrap_err();
            assert_eq!(refused.kind(), Kind::Cancelled, "{refused}");
        }
    });
}
