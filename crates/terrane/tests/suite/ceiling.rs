//! The memory ceiling holds, and every wait for memory ends: with options at their limits, one idle table
//! among busy ones, live iterators, several large batches at once.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use terrane::{Batch, Db, Durability, Kind, Options, TableOptions};

const MIB: u64 = 1 << 20;

fn open(dir: &tempfile::TempDir, settings: &[(&str, &str)]) -> Db {
    let mut options = Options::default();
    for (name, value) in settings {
        options.set(name, value).unwrap();
    }
    Db::open_with(dir.path().join("db"), &options).unwrap()
}

fn put_all(table: &terrane::Table, count: u64) {
    let value = [7; 1000];
    for number in 0..count {
        table.put(number.to_be_bytes(), value).unwrap();
    }
}

#[test]
fn the_largest_segments_that_are_accepted_leave_room_to_write() {
    let dir = tempfile::tempdir().unwrap();
    let db =
        open(&dir, &[("memory_bytes", "16MiB"), ("write_memory_bytes", "8MiB"), ("segment_bytes", "1MiB")]);
    put_all(db.default_table(), 40_000);
    let mut options = db.options().clone();
    options.segment_bytes = 2 * MIB;
    let error = Db::open_with(dir.path().join("other"), &options).unwrap_err();
    assert_eq!(error.kind(), Kind::Invalid);
    assert!(error.to_string().contains("segment_bytes"), "{error}");
}

#[test]
fn an_idle_table_does_not_slow_writers() {
    let dir = tempfile::tempdir().unwrap();
    let settings = [
        ("memory_bytes", "16MiB"),
        ("write_memory_bytes", "8MiB"),
        ("memtable_bytes", "1MiB"),
        ("global_index_bytes", "4MiB"),
    ];
    let db = open(&dir, &settings);
    let idle = db.create_table("idle", &TableOptions::new()).unwrap();
    let busy = db.create_table("busy", &TableOptions::new()).unwrap();
    let mut batch = Batch::new();
    for number in 0..1100u64 {
        batch.put(&idle, number.to_be_bytes(), [7; 1000]).unwrap();
    }
    db.write(&batch, Durability::Buffered).unwrap();
    // Its full memtable becomes a generation that is not full, in the oldest segment of all.
    db.wait_until_quiescent().unwrap();
    put_all(&busy, 40_000);
    assert_eq!(idle.iter().count(), 1100);
}

#[test]
fn writing_past_the_write_memory_ends_while_an_iterator_lives() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir, &[("memory_bytes", "16MiB")]);
    put_all(db.default_table(), 5_000);
    let rows = db.default_table().iter();
    put_all(db.default_table(), 40_000);
    assert_eq!(rows.count(), 5_000);
}

#[test]
fn large_batches_at_once_stay_under_the_ceiling() {
    // Segments have 2 MiB: batches longer than those that are kept ready for long ones, others, and both.
    for values_mib in [[7, 7], [3, 3], [7, 3]] {
        put_large_batches_at_once(values_mib.map(|mib| mib * MIB as usize));
    }
}

fn put_large_batches_at_once(value_bytes: [usize; 2]) {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir, &[("memory_bytes", "64MiB")]);
    let peak = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let (db, peak) = (&db, &peak);
            scope.spawn(move || {
                let values = value_bytes.map(|bytes| vec![thread as u8; bytes]);
                for number in 0..4u64 {
                    let value = &values[number as usize % 2];
                    db.put((thread * 100 + number).to_be_bytes(), value).unwrap();
                    peak.fetch_max(db.stats().memory_bytes, Ordering::Relaxed);
                }
            });
        }
    });
    let peak = peak.into_inner();
    assert!(peak <= 64 * MIB / 100 * 105, "{peak} bytes counted under a ceiling of {}", 64 * MIB);
    assert_eq!(db.default_table().iter().count(), 32);
}

/// Readers fill what writers do not use, writers take it back, again and again; neither direction may pass
/// the ceiling at any moment that is looked at, and each must get what the other leaves.
#[test]
fn memory_moves_between_readers_and_writers_under_the_ceiling() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir, &[("memory_bytes", "48MiB")]);
    let shared = 48 * MIB / 8 * 7;
    let rows = 60_000u64;
    put_all(db.default_table(), rows);
    db.flush().unwrap();
    db.wait_until_quiescent().unwrap();
    let peak = Mutex::new(db.stats());
    let look = || {
        let stats = db.stats();
        let mut peak = peak.lock().unwrap();
        if stats.memory_bytes > peak.memory_bytes {
            *peak = stats.clone();
        }
        stats
    };
    let read_all = || {
        for number in (0..rows).map(|number| number * 7919 % rows) {
            assert_eq!(db.get(number.to_be_bytes()).unwrap().unwrap().len(), 1000);
            if number % 64 == 0 {
                look();
            }
        }
    };
    for round in 0..3u64 {
        db.flush().unwrap();
        db.wait_until_quiescent().unwrap();
        read_all();
        let lent = look().cache_bytes;
        assert!(lent > shared - 24 * MIB + 4 * MIB, "round {round}: readers got {lent} bytes of idle memory");
        std::thread::scope(|scope| {
            scope.spawn(read_all);
            let value = [round as u8; 1000];
            let mut least = u64::MAX;
            for number in 0..rows {
                db.put(number.to_be_bytes(), value).unwrap();
                if number % 32 == 0 {
                    let stats = look();
                    least = least.min(stats.cache_bytes);
                }
            }
            assert!(least < lent, "round {round}: the cache kept {least} of {lent} bytes from the writer");
        });
    }
    let peak = peak.into_inner().unwrap();
    let lent_by_jobs = 48 * MIB / 16;
    assert!(
        peak.memory_bytes <= shared + lent_by_jobs,
        "{} bytes counted, {shared} are shared, {lent_by_jobs} lent by jobs; of these the cache had {}, the window \
         of transactions {}, segments and indexes the rest; pressure {}, {} segments trimmed",
        peak.memory_bytes,
        peak.cache_bytes,
        peak.transaction_window_bytes,
        peak.pressure_permille,
        peak.segments_trimmed
    );
}

#[test]
fn a_codec_that_is_not_compiled_in_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.set("compression_last", "zstd").unwrap();
    let opened = Db::open_with(dir.path().join("zstd"), &options);
    let db = open(&dir, &[]);
    let created = db.create_table("t", &TableOptions::new().set("compression", "zstd").unwrap());
    for refused in [opened.err(), created.err()] {
        if cfg!(feature = "zstd") {
            assert!(refused.is_none());
        } else {
            let error = refused.expect("refused");
            assert_eq!(error.kind(), Kind::Invalid);
            assert!(error.to_string().contains("zstd"), "{error}");
        }
    }
}

#[test]
fn readers_share_a_database_and_keep_writers_out() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir, &[]);
    db.put(b"k", b"v").unwrap();
    let path = dir.path().join("db");
    let read_only = Options { read_only: true, ..Options::default() };
    let busy = Db::open_with(&path, &read_only).unwrap_err();
    assert_eq!(busy.kind(), Kind::Busy, "{busy}");
    assert!(busy.to_string().contains(&std::process::id().to_string()), "{busy}");
    db.close().unwrap();
    let readers = [Db::open_with(&path, &read_only).unwrap(), Db::open_with(&path, &read_only).unwrap()];
    assert!(readers.iter().all(|reader| reader.contains(b"k").unwrap()));
    let kept_out = Db::open(&path).unwrap_err();
    assert_eq!(kept_out.kind(), Kind::Busy);
    assert!(kept_out.to_string().contains("locked by readers"), "{kept_out}");
    drop(readers);
    assert!(Db::open(&path).unwrap().contains(b"k").unwrap());
}

#[test]
fn a_view_keeps_no_writer_out_and_shows_one_moment() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    open(&dir, &[]).close().unwrap();
    let empty = Db::open_view(&path).unwrap();
    let writer = Db::open(&path).unwrap();
    writer.put("k", "v").unwrap();
    let beside = Db::open_view(&path).unwrap();
    writer.put("k", "later").unwrap();
    writer.close().unwrap();
    assert!(empty.get("k").unwrap().is_none());
    assert_eq!(beside.get("k").unwrap().unwrap(), "v");
    assert_eq!(beside.put("k", "x").unwrap_err().kind(), Kind::Invalid);
    assert_eq!(Db::open_view(dir.path().join("none")).unwrap_err().kind(), Kind::NotFound);
}

/// An index that a flush has moved into the levels and an iterator still reads is not a part of the write
/// memory, and it is counted: the cache has so much less.
#[test]
fn an_index_that_an_iterator_holds_is_counted_apart() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir, &[("memory_bytes", "64MiB")]);
    put_all(db.default_table(), 5_000);
    let rows = db.default_table().iter();
    let before = db.stats();
    db.flush().unwrap();
    db.wait_until_quiescent().unwrap();
    let after = db.stats();
    let left = before.memory_index_bytes - after.memory_index_bytes;
    assert!(left > 5_000 * 16, "{left} bytes left with the flush");
    assert!(after.memory_held_bytes >= left, "{} of {left} bytes are held", after.memory_held_bytes);
    assert_eq!(rows.count(), 5_000);
}

/// The remedy that the error of a batch names is enough.
#[test]
fn a_batch_beyond_the_memory_names_the_memory_that_is_enough() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let put = |dir, memory: &str| {
        let db = open(dir, &[("memory_bytes", memory)]);
        let mut batch = Batch::new();
        batch.put(db.default_table(), "k", vec![7; 13 * MIB as usize]).unwrap();
        db.write(&batch, Durability::Buffered)
    };
    let refused = put(&dirs[0], "16MiB").unwrap_err();
    assert_eq!(refused.kind(), Kind::Invalid);
    let text = refused.to_string();
    let enough = text.split_once("raise memory_bytes to ").and_then(|(_, rest)| rest.split_once(" MiB"));
    put(&dirs[1], &format!("{}MiB", enough.unwrap().0)).unwrap();
}

/// The range deletes of an extent are decoded when it is read. They count as its cached blocks do, and are
/// evicted when something else needs the room.
#[test]
fn range_deletes_that_reads_load_stay_under_the_ceiling() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir, &[("memory_bytes", "16MiB"), ("row_cache", "0")]);
    let table = db.default_table();
    let key = |number: u64| [&[b'k'; 40][..], &number.to_be_bytes()].concat();
    let count = 60_000;
    for number in 0..count {
        db.put(key(2 * number), b"old").unwrap();
    }
    db.flush().unwrap();
    db.compact_range(table, ..).unwrap();
    // A snapshot keeps what they hide, and so the range deletes as well.
    let snapshot = db.snapshot();
    for number in 0..count {
        table.delete_range(key(2 * number), key(2 * number + 1)).unwrap();
    }
    db.flush_to_run(table).unwrap();
    let ceiling = 16 * MIB / 8 * 7;
    let (mut before, mut most) = (db.stats().cache_bytes, 0);
    for round in 0..2 {
        for number in (0..count).step_by(100) {
            assert!(db.get(key(2 * number)).unwrap().is_none());
            let stats = db.stats();
            assert!(stats.memory_bytes <= ceiling, "round {round}: {} bytes counted", stats.memory_bytes);
            most = most.max(stats.cache_bytes);
            before = before.min(stats.cache_bytes);
        }
        assert_eq!(table.iter().count(), 0);
    }
    // 160 bytes each at least: keys, a number and what holds them.
    let (counted, decoded) = (most - before, count * 160);
    assert!(counted > decoded.min(2 * MIB), "{counted} of some {decoded} bytes are counted");
    assert_eq!(snapshot.iter(table).count() as u64, count);
}
