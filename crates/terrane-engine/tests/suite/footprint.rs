//! How much of the device a database takes, and what a close leaves for the next opening.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use std::path::Path;
use std::sync::Arc;

use support::{DIR, get, open, rows, small_options};
use terrane_base::options::Options;
use terrane_base::{Kind, Rng};
use terrane_device::{
    Call, Disk, Failure, Fault, FaultyDisk, Flow, FlowCounts, MemDisk, MeteredDisk, OpenMode,
};
use terrane_engine::{Engine, Table};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn default_table(engine: &Engine) -> Arc<Table> {
    engine.catalog().require("default").unwrap()
}

fn put(engine: &Engine, table: &Table, number: u64, value: &[u8]) {
    engine.put(table.id, format!("key{number:08}").as_bytes(), value, false).unwrap();
}

/// Bytes that no compression makes fewer.
fn noise(number: u64) -> Vec<u8> {
    let mut rng = Rng::new(number);
    (0..100).map(|_| rng.next_u64() as u8).collect()
}

/// A database with so many rows, closed.
fn closed_with(count: u64) -> MemDisk {
    let disk = MemDisk::new();
    let engine = open(disk.clone(), &Options::default()).unwrap();
    let table = default_table(&engine);
    (0..count).for_each(|number| put(&engine, &table, number, &noise(number)));
    engine.close().unwrap();
    disk
}

#[test]
fn a_database_of_one_row_takes_little() {
    let disk = MemDisk::new();
    for round in 0..20 {
        let engine = open(disk.clone(), &Options::default()).unwrap();
        put(&engine, &default_table(&engine), 1, b"value");
        assert!(disk.used_bytes() < 100_000, "round {round}, open: {}", disk.used_bytes());
        engine.close().unwrap();
        assert!(disk.used_bytes() < 40_000, "round {round}, closed: {}", disk.used_bytes());
    }
}

#[test]
fn a_closed_database_takes_less_than_twice_its_data() {
    for count in [1, 1_000, 20_000] {
        let disk = closed_with(count);
        assert!(disk.used_bytes() < 2 * count * 111 + MIB, "{count} rows: {} bytes", disk.used_bytes());
        let engine = open(disk, &Options::default()).unwrap();
        assert_eq!(rows(&engine, &default_table(&engine)).unwrap().len() as u64, count);
    }
}

/// By what the value tables have: when their space is free for the device depends on the epochs of the whole
/// process, so on other tests.
#[test]
fn value_tables_of_few_long_values_have_little_that_is_dead() {
    let long = |number: u64| (0..200).flat_map(|part| noise(number << 20 | part)).collect::<Vec<u8>>();
    for (count, kept) in [(200, 1), (200, 60), (390, 5)] {
        let engine = open(MemDisk::new(), &Options::default()).unwrap();
        let table = default_table(&engine);
        let check = |what: &str| {
            engine.flush().unwrap();
            engine.wait_until_quiescent().unwrap();
            let values = engine.shape().tables.swap_remove(0).values;
            assert_eq!(values.live_entries, kept, "{what}, {kept} of {count}");
            assert!(values.bytes <= kept * 31_000 + 128 * KIB, "{what}, {kept} of {count}: {values:?}");
        };
        (0..count).for_each(|number| put(&engine, &table, number, &long(number)));
        engine.flush().unwrap();
        for number in kept..count {
            engine.delete(table.id, format!("key{number:08}").as_bytes(), false).unwrap();
        }
        check("deleted");
        for round in 1..20 {
            (0..kept).for_each(|number| put(&engine, &table, number, &long(number + round)));
            engine.flush().unwrap();
        }
        check("overwritten");
        engine.close().unwrap();
    }
}

/// Short rows that come between them hide no long value, so none is written again.
#[test]
fn long_values_among_short_rows_stay_where_they_are() {
    let long = |number: u64| (0..200).flat_map(|part| noise(number << 20 | part)).collect::<Vec<u8>>();
    let engine = open(MemDisk::new(), &Options::default()).unwrap();
    let table = default_table(&engine);
    for number in 0..20_000 {
        put(&engine, &table, 16 * number, &noise(number));
    }
    (0..50).for_each(|number| put(&engine, &table, 6400 * number + 1, &long(number)));
    engine.flush().unwrap();
    for round in 2..12 {
        (0..1000).for_each(|number| put(&engine, &table, 320 * number + round, &noise(number)));
        engine.flush().unwrap();
        engine.wait_until_quiescent().unwrap();
    }
    assert_eq!(engine.stats().values_moved, 0);
    assert_eq!(get(&engine, &table, b"key00006401").unwrap(), Some(long(1)));
    engine.close().unwrap();
}

/// The device calls of an opening, and those of a get after it.
fn calls_of(disk: &MemDisk, options: &Options) -> [FlowCounts; 2] {
    let flow = Arc::new(Flow::default());
    let engine = open(MeteredDisk::new(Arc::new(disk.clone()), flow.clone()), options).unwrap();
    let opened = flow.counts();
    let value = get(&engine, &default_table(&engine), b"key00000500").unwrap();
    assert_eq!(value.as_deref(), Some(&noise(500)[..]));
    let both = flow.counts();
    engine.close().unwrap();
    let got = FlowCounts {
        reads: both.reads - opened.reads,
        bytes_read: both.bytes_read - opened.bytes_read,
        ..both
    };
    println!("read_only={}: opening {opened:?}, get {got:?}", options.read_only);
    [opened, got]
}

/// The cost of `terrane get` on the device, and of any other opening of a small database.
#[test]
fn an_opening_and_a_get_cost_few_device_calls() {
    let disk = closed_with(1_000);
    let [opened, got] = calls_of(&disk, &Options { read_only: true, ..Options::default() });
    assert!(opened.reads <= 6 && opened.bytes_read <= 96 * KIB, "{opened:?}");
    assert_eq!((opened.writes, opened.syncs), (0, 0), "{opened:?}");
    assert!((1..=3).contains(&got.reads) && got.bytes_read <= 64 * KIB, "index, filter and a block: {got:?}");
    let [opened, _] = calls_of(&disk, &Options::default());
    assert!(opened.reads <= 6 && opened.writes <= 12 && opened.syncs <= 12, "{opened:?}");
}

/// Opens, says how many records were replayed, and checks that all rows are there.
fn replayed(disk: impl Disk + 'static, options: &Options, count: usize) -> u64 {
    let engine = open(disk, options).unwrap();
    assert_eq!(rows(&engine, &default_table(&engine)).unwrap().len(), count);
    let (records, bytes) = (engine.stats().records_recovered, engine.stats().segment_bytes_recovered);
    assert!(records > 0 || bytes <= 64 * KIB, "{bytes} bytes were replayed for nothing");
    engine.close().unwrap();
    records
}

#[test]
fn a_close_leaves_nothing_to_replay() {
    let disk = closed_with(300);
    let options = Options::default();
    assert_eq!(replayed(disk.clone(), &Options { read_only: true, ..options.clone() }, 300), 0);
    assert_eq!(replayed(disk.clone(), &options, 300), 0);
    assert!(segment_files(&disk).len() <= 1, "the last segment, if a record came since the opening");
}

#[test]
fn a_close_that_is_not_to_flush_leaves_the_records_to_the_journal() {
    let disk = MemDisk::new();
    let options = Options { close_flush: false, ..Options::default() };
    let engine = open(disk.clone(), &options).unwrap();
    (0..300).for_each(|number| put(&engine, &default_table(&engine), number, b"value"));
    engine.close().unwrap();
    let read_only = Options { read_only: true, ..options.clone() };
    assert_eq!(replayed(disk.clone(), &read_only, 300), 300);
    assert_eq!(replayed(disk.clone(), &options, 300), 300);
    // Another close may flush what this one left.
    assert_eq!(replayed(disk.clone(), &Options::default(), 300), 300);
    assert_eq!(replayed(disk, &options, 300), 0);
}

/// Bytes and names of the files of segments.
fn segment_files(disk: &MemDisk) -> Vec<(u64, String)> {
    let dir = Path::new(DIR).join("journal");
    let bytes = |name: &String| disk.open(&dir.join(name), OpenMode::Read, false).unwrap().len().unwrap();
    let names = disk.list(&dir).unwrap().into_iter();
    names.filter(|name| name.ends_with(".seg")).map(|name| (bytes(&name), name)).collect()
}

/// A database on `disk` whose journal has records in its first segment, and a second one prepared.
fn with_a_prepared_segment(disk: impl Disk + 'static, memory: &MemDisk) -> Arc<Engine> {
    let engine = open(disk, &Options { close_flush: false, ..Options::default() }).unwrap();
    (0..300).for_each(|number| put(&engine, &default_table(&engine), number, &noise(number)));
    support::until("a segment is prepared", || segment_files(memory).len() == 2);
    engine
}

/// The manifest does not list it and its file is gone, also where every record stays in the journal.
#[test]
fn a_close_gives_a_prepared_segment_back() {
    let disk = MemDisk::new();
    with_a_prepared_segment(disk.clone(), &disk).close().unwrap();
    let files = segment_files(&disk);
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!(replayed(disk.clone(), &Options { read_only: true, ..Options::default() }, 300), 300);
    assert_eq!(replayed(disk, &Options::default(), 300), 300);
}

/// The manifest lists the segment until an edit that takes it out is durable, so its file stays until then.
#[test]
fn a_close_removes_no_segment_that_the_manifest_still_lists() {
    for call in [Call::Write, Call::Sync] {
        let disk = MemDisk::new();
        let faulty = FaultyDisk::new(Arc::new(disk.clone()));
        let engine = with_a_prepared_segment(faulty.clone(), &disk);
        faulty.fail(Fault::new(call, Failure::Broken).on("MANIFEST").lasting());
        engine.close().unwrap_err();
        assert_eq!(segment_files(&disk).len(), 2, "{call:?}");
        assert_eq!(replayed(disk, &Options::default(), 300), 300, "{call:?}");
    }
}

/// A flush that fails is not a failure of the close, and nothing is lost by it.
#[test]
fn a_close_whose_flush_fails_succeeds() {
    let faults = [
        (Call::Create, Failure::Full),
        (Call::SetLen, Failure::Full),
        (Call::Allocate, Failure::Full),
        (Call::Write, Failure::Broken),
        (Call::Sync, Failure::Broken),
    ];
    for (call, failure) in faults {
        let disk = MemDisk::new();
        let faulty = FaultyDisk::new(Arc::new(disk.clone()));
        faulty.fail(Fault::new(call, failure).on(".ext").lasting());
        let engine = open(faulty, &Options::default()).unwrap();
        (0..300).for_each(|number| put(&engine, &default_table(&engine), number, b"value"));
        engine.close().unwrap_or_else(|error| panic!("{call:?}: {error}"));
        assert_eq!(replayed(disk.clone(), &Options::default(), 300), 300, "{call:?}");
        assert_eq!(replayed(disk, &Options::default(), 300), 0, "{call:?}");
    }
}

/// A flush that costs more than a replay is not made: one row over a large level.
#[test]
fn a_close_rewrites_no_large_level_for_one_row() {
    let disk = closed_with(40_000);
    for round in 0..3 {
        let engine = open(disk.clone(), &Options::default()).unwrap();
        assert_eq!(engine.stats().records_recovered, round);
        put(&engine, &default_table(&engine), round * 7, &noise(round));
        engine.close().unwrap();
    }
    // Each opening found a segment more; they take the space of their records.
    assert!(disk.used_bytes() < 2 * 40_000 * 111 + MIB, "{} bytes", disk.used_bytes());
}

/// A table that hardly any commit writes to holds back every later segment: it is flushed.
#[test]
fn a_small_table_does_not_hold_back_a_long_journal() {
    let disk = MemDisk::new();
    let engine = open(disk, &small_options()).unwrap();
    let (table, small) = (default_table(&engine), engine.create_table("positions", &[]).unwrap());
    put(&engine, &small, 1, b"position");
    for round in 0..20 {
        (0..1_000).for_each(|number| put(&engine, &table, number, &noise(round)));
    }
    engine.flush_tables(&[table]).unwrap();
    engine.wait_until_quiescent().unwrap();
    let held = engine.shape().segment_bytes;
    // An eighth of the write memory, the active segment and the prepared one.
    assert!(held <= 4 * MIB / 8 + 2 * 64 * KIB, "{held} bytes of segments for one row");
    engine.close().unwrap();
}

/// Processes that end without a close leave a nearly empty segment each.
#[test]
fn nearly_empty_segments_hold_no_writer_back() {
    let options = Options { segment_bytes: 512 * KIB, ..small_options() };
    let mut disk = MemDisk::new();
    for round in 0..24 {
        let engine = open(disk.clone(), &options).unwrap();
        assert!(engine.debt() < 0.5, "round {round}: {}", engine.debt());
        let table = engine.create_table(&format!("table{round}"), &[]).unwrap();
        put(&engine, &table, round, &noise(round));
        engine.sync().unwrap();
        disk = disk.kill();
    }
}

#[test]
fn a_device_of_one_megabyte_is_enough() {
    let disk = MemDisk::new();
    disk.set_capacity(MIB);
    for round in 0..10 {
        let engine = open(disk.clone(), &Options::default()).unwrap();
        let table = default_table(&engine);
        for number in 0..200 {
            put(&engine, &table, number, &noise(round));
        }
        engine.close().unwrap();
    }
    let engine = open(disk, &Options::default()).unwrap();
    let table = default_table(&engine);
    assert_eq!(rows(&engine, &table).unwrap().len(), 200);
    assert_eq!(get(&engine, &table, b"key00000007").unwrap(), Some(noise(9)));
    let error = (0..20_000).find_map(|number| {
        engine.put(table.id, format!("more{number}").as_bytes(), &noise(number), false).err()
    });
    assert_eq!(error.expect("two megabytes do not fit").kind(), Kind::Full);
}
