//! Time to live through the public face, under a clock that the test moves.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use terrane::{
    Batch, Concurrency, Db, Durability, Env, IndexedBatch, Kind, Options, Table, TableOptions,
    TransactionOptions, counter,
};
use terrane_base::env::Clock;

mod separated;

/// A wall clock that stands until it is moved; the steady clock goes on.
#[derive(Debug)]
struct Hand {
    wall_millis: AtomicU64,
    real: Arc<dyn Clock>,
}

impl Hand {
    fn move_on(&self, millis: u64) {
        self.wall_millis.fetch_add(millis, Ordering::Relaxed);
    }
}

impl Clock for Hand {
    fn now(&self) -> Duration {
        self.real.now()
    }

    fn wall(&self) -> Duration {
        Duration::from_millis(self.wall_millis.load(Ordering::Relaxed))
    }

    fn sleep(&self, duration: Duration) {
        self.real.sleep(duration);
    }
}

struct World {
    dir: tempfile::TempDir,
    hand: Arc<Hand>,
}

impl World {
    fn new() -> Self {
        let real = Env::real().clock;
        let hand = Arc::new(Hand { wall_millis: AtomicU64::new(1_800_000_000_000), real });
        World { dir: tempfile::tempdir().unwrap(), hand }
    }

    fn open(&self) -> Db {
        let mut options = Options { memory_bytes: 16 << 20, ..Options::default() };
        for (name, value) in
            [("segment_bytes", "64KiB"), ("memtable_bytes", "64KiB"), ("global_index_bytes", "256KiB")]
        {
            options.set(name, value).unwrap();
        }
        let env = Env { clock: self.hand.clone(), ..Env::real() };
        Db::open_in(self.dir.path().join("db"), &options, env).unwrap()
    }
}

/// The rows by every way of reading; all must agree.
fn seen(table: &Table, keys: &[&[u8]]) -> Vec<bool> {
    let by_get: Vec<bool> = keys.iter().map(|key| table.get(key).unwrap().is_some()).collect();
    let by_many: Vec<bool> = table.multi_get(keys).unwrap().iter().map(Option::is_some).collect();
    let forward: Vec<Vec<u8>> = table.iter().map(|row| row.unwrap().0).collect();
    let mut backward: Vec<Vec<u8>> = table.iter().rev().map(|row| row.unwrap().0).collect();
    backward.reverse();
    let mut cursor = table.cursor();
    let by_cursor = keys.iter().map(|key| {
        cursor.seek(key).unwrap();
        cursor.row().is_some_and(|(found, _)| found == *key)
    });
    let by_cursor: Vec<bool> = by_cursor.collect();
    let by_scan: Vec<bool> = keys.iter().map(|key| forward.iter().any(|found| found == key)).collect();
    assert_eq!(forward, backward);
    assert_eq!((&by_many, &by_cursor, &by_scan), (&by_get, &by_get, &by_get));
    by_get
}

fn entries(db: &Db) -> u64 {
    let shape = db.shape();
    let levels = shape.tables.iter().flat_map(|table| &table.levels);
    levels.map(|level| level.entries).sum()
}

const KEYS: [&[u8]; 4] = [b"a", b"b", b"c", b"d"];

/// Every holder of changes has a put for so long and a put until a moment, which mean the same; the duration
/// begins with the call, not with the commit.
#[test]
fn a_put_with_an_expiry_means_the_same_in_every_holder() {
    let (ttl, until) = (Duration::from_secs(2), Duration::from_millis(1_800_000_002_000));
    let world = World::new();
    let db = world.open();
    let table = db.default_table();
    let (mut batch, mut indexed) = (Batch::new(), IndexedBatch::new());
    let mut own = db.transaction(&TransactionOptions::default()).unwrap();
    table.put_with_ttl("table, ttl", "v", ttl).unwrap();
    table.put_until("table, until", "v", until).unwrap();
    batch.put_with_ttl(table, "batch, ttl", "v", ttl).unwrap();
    batch.put_until(table, "batch, until", "v", until).unwrap();
    indexed.put_with_ttl(table, "indexed, ttl", "v", ttl).unwrap();
    indexed.put_until(table, "indexed, until", "v", until).unwrap();
    own.put_with_ttl(table, "transaction, ttl", "v", ttl).unwrap();
    own.put_until(table, "transaction, until", "v", until).unwrap();
    world.hand.move_on(1000);
    db.write(&batch, Durability::Buffered).unwrap();
    indexed.write(&db, Durability::Buffered).unwrap();
    own.commit(Durability::Buffered).unwrap();
    world.hand.move_on(999);
    assert_eq!(table.iter().map(Result::unwrap).count(), 8, "a millisecond before the end");
    world.hand.move_on(1);
    assert_eq!(table.iter().map(Result::unwrap).count(), 0, "at the end");
}

/// A put that a transaction refuses for its time to live has locked nothing.
#[test]
fn a_refused_time_to_live_leaves_no_lock() {
    let world = World::new();
    let db = world.open();
    let table = db.default_table();
    let options = TransactionOptions {
        concurrency: Concurrency::Pessimistic,
        lock_timeout: Duration::ZERO,
        ..TransactionOptions::default()
    };
    let mut own = db.transaction(&options).unwrap();
    assert_eq!(own.put_with_ttl(table, "k", "v", Duration::ZERO).unwrap_err().kind(), Kind::Invalid);
    let mut other = db.transaction(&options).unwrap();
    other.put_with_ttl(table, "k", "v", Duration::from_secs(1)).unwrap();
    other.commit(Durability::Buffered).unwrap();
    own.rollback();
    assert!(table.contains("k").unwrap());
}

#[test]
fn expired_values_are_gone_for_every_read() {
    for place in ["memory", "run", "level", "bottom"] {
        let world = World::new();
        let db = world.open();
        let table = db.default_table();
        table.put(b"a", b"for ever").unwrap();
        table.put_with_ttl(b"b", b"a second", Duration::from_secs(1)).unwrap();
        let mut batch = Batch::new();
        batch.put_with_ttl(table, b"c", b"two seconds", Duration::from_secs(2)).unwrap();
        batch.put_until(table, b"d", b"", Duration::from_millis(1_800_000_003_000)).unwrap();
        db.write(&batch, Durability::Buffered).unwrap();
        match place {
            "run" => {
                // Before the flush: a merge of the run that has begun would go on to its end.
                db.pause_background();
                db.flush_to_run(table).unwrap();
            }
            "level" => db.flush().unwrap(),
            "bottom" => db.compact_range(table, ..).unwrap(),
            _ => {}
        }
        // A merge by itself, while the clock is ahead, would drop rows that are seen again when it is set
        // back.
        db.pause_background();
        let snapshot = db.snapshot();
        assert_eq!(table.get(b"c").unwrap().as_deref(), Some(&b"two seconds"[..]));
        assert_eq!(table.get(b"d").unwrap().as_deref(), Some(&b""[..]));
        let values: Vec<_> = table.iter().rev().map(|row| row.unwrap().1).collect();
        assert_eq!(values, [&b""[..], b"two seconds", b"a second", b"for ever"]);
        for (expected, step) in [
            ([true, true, true, true], 999),
            ([true, true, true, true], 1),
            ([true, false, true, true], 1000),
            ([true, false, false, true], 1000),
            ([true, false, false, false], 0),
        ] {
            assert_eq!(seen(table, &KEYS), expected, "in {place}");
            // The moment of the read decides, for a snapshot too.
            let at_snapshot: Vec<bool> =
                KEYS.iter().map(|key| snapshot.contains(table, key).unwrap()).collect();
            assert_eq!(at_snapshot, expected);
            world.hand.move_on(step);
        }
        // A clock that is set back brings back rows that are still stored.
        world.hand.wall_millis.store(1_800_000_000_000, Ordering::Relaxed);
        assert_eq!(seen(table, &KEYS), [true; 4]);
        world.hand.move_on(5000);
        drop(snapshot);
        db.resume_background();
        db.compact_range(table, ..).unwrap();
        assert_eq!(entries(&db), 1, "in {place}");
        assert!(place == "memory" || db.stats().entries_expired >= 3);
        world.hand.wall_millis.store(1_800_000_000_000, Ordering::Relaxed);
        assert_eq!(seen(table, &KEYS), [true, false, false, false], "what was dropped stays dropped");
    }
}

#[test]
fn an_expired_value_reveals_no_older_one() {
    let world = World::new();
    let db = world.open();
    let table = db.default_table();
    db.wait_until_quiescent().unwrap();
    db.pause_background();
    for key in KEYS {
        table.put(key, b"old").unwrap();
    }
    db.flush_to_run(table).unwrap();
    db.compact_level(table, 0).unwrap();
    db.compact_level(table, 1).unwrap();
    table.put_with_ttl(b"b", b"new", Duration::from_secs(1)).unwrap();
    table.put_with_ttl(b"c", b"new", Duration::from_secs(9)).unwrap();
    world.hand.move_on(2000);
    let expected = [true, false, true, true];
    assert_eq!(seen(table, &KEYS), expected);
    db.flush_to_run(table).unwrap();
    assert_eq!(seen(table, &KEYS), expected);
    db.compact_level(table, 0).unwrap();
    assert_eq!(seen(table, &KEYS), expected, "level 1 hides level 2");
    db.compact_level(table, 1).unwrap();
    assert_eq!(seen(table, &KEYS), expected);
    assert_eq!(entries(&db), 3);
    // And over what has expired a new life begins.
    table.put(b"b", b"again").unwrap();
    assert_eq!(seen(table, &KEYS), [true; 4]);
}

#[test]
fn a_table_has_a_time_to_live_that_can_be_changed() {
    let world = World::new();
    let db = world.open();
    let options = TableOptions::new().set("time_to_live", "10s").unwrap();
    let table = db.create_table("sessions", &options).unwrap();
    table.put(b"a", b"1").unwrap();
    table.put_with_ttl(b"b", b"2", Duration::from_secs(60)).unwrap();
    let mut batch = Batch::new();
    batch.put(&table, b"c", b"3").unwrap();
    batch.put(db.default_table(), b"c", b"for ever").unwrap();
    db.write(&batch, Durability::Buffered).unwrap();
    world.hand.move_on(5000);
    table.set_option("time_to_live", "1m").unwrap();
    table.put(b"d", b"4").unwrap();
    world.hand.move_on(5000);
    assert_eq!(seen(&table, &KEYS), [false, true, false, true]);
    assert!(db.default_table().contains(b"c").unwrap());
    for (name, value) in
        [("time_to_live", "0s"), ("time_to_live", "soon"), ("key_order", "reverse"), ("x", "1")]
    {
        assert_eq!(table.set_option(name, value).unwrap_err().kind(), Kind::Invalid, "{name}={value}");
    }
    assert_eq!(table.put_with_ttl(b"a", b"", Duration::from_micros(9)).unwrap_err().kind(), Kind::Invalid);
    db.close().unwrap();
    drop(table);
    let db = world.open();
    let table = db.table("sessions").unwrap();
    assert_eq!(seen(&table, &KEYS), [false, true, false, true]);
    table.put(b"a", b"5").unwrap();
    world.hand.move_on(55_000);
    assert_eq!(seen(&table, &KEYS), [true, false, false, false]);
    table.set_option("time_to_live", "none").unwrap();
    table.put(b"b", b"for ever").unwrap();
    world.hand.move_on(1 << 40);
    assert_eq!(seen(&table, &KEYS), [false, true, false, false]);
}

#[test]
fn operands_live_one_by_one_and_are_folded_all_the_same() {
    let world = World::new();
    let db = world.open();
    let options =
        TableOptions::new().set("merge_operator", "counter").unwrap().set("time_to_live", "16s").unwrap();
    let table = db.create_table("visits", &options).unwrap();
    let sum = || table.get(b"page").unwrap().map(|value| counter::decode(&value).unwrap());
    // One a second: at any moment those of the last 16 or 17 seconds count.
    for second in 0..60i64 {
        for _ in 0..10 {
            table.merge(b"page", counter::encode(1)).unwrap();
        }
        let expected = (second + 1).min(17) * 10;
        let found = sum().unwrap();
        assert!((expected - 10..=expected).contains(&found), "second {second}: {found}");
        match second % 7 {
            2 => db.flush_to_run(&table).unwrap(),
            4 => db.flush().unwrap(),
            6 => db.compact_range(&table, ..).unwrap(),
            _ => {}
        }
        assert_eq!(sum(), Some(found), "where they lie changes nothing");
        assert_eq!(table.iter().count(), 1);
        assert_eq!(table.iter().rev().count(), 1);
        world.hand.move_on(1000);
    }
    db.compact_range(&table, ..).unwrap();
    assert!(entries(&db) <= 18, "{} entries: those of a step are one", entries(&db));
    world.hand.move_on(20_000);
    assert_eq!(sum(), None);
    db.compact_range(&table, ..).unwrap();
    assert_eq!(entries(&db), 0);
}

#[test]
fn a_scan_is_of_one_moment() {
    let world = World::new();
    let db = world.open();
    let table = db.default_table();
    for key in KEYS {
        table.put_with_ttl(key, b"v", Duration::from_secs(1)).unwrap();
    }
    let (mut rows, mut back) = (table.iter(), table.iter().rev());
    assert!(rows.next().is_some() && back.next().is_some());
    let mut cursor = table.cursor();
    cursor.seek_first().unwrap();
    world.hand.move_on(1000);
    assert_eq!((rows.count(), back.count()), (3, 3));
    cursor.next().unwrap();
    assert!(cursor.row().is_some());
    assert_eq!(table.iter().count(), 0);
    cursor.refresh();
    cursor.seek_first().unwrap();
    assert!(cursor.row().is_none());
}

/// There are no writes and no requests; only time passes.
///
/// The rows that are left take one slot. How many all took depends on what readers of other tests still held.
#[test]
fn the_space_of_expired_values_is_freed_without_writes() {
    const SLOT_BYTES: u64 = 2 << 20;
    for is_on in [true, false] {
        let world = World::new();
        let mut options = Options { memory_bytes: 16 << 20, ..Options::default() };
        options.set("experiments.expiry_compaction", if is_on { "true" } else { "false" }).unwrap();
        options.set("compression_last", "none").unwrap();
        let env = Env { clock: world.hand.clone(), ..Env::real() };
        let db = Db::open_in(world.dir.path().join("db"), &options, env).unwrap();
        let table = db.default_table();
        for number in 0..20_000u32 {
            let minutes = if number % 100 == 0 { 600 } else { 1 + u64::from(number % 2) };
            table.put_with_ttl(number.to_be_bytes(), [7; 500], Duration::from_secs(60 * minutes)).unwrap();
            // The second flush takes the blocks of the first over as they are.
            if number % 10_000 == 9_999 {
                db.flush().unwrap();
            }
        }
        db.wait_until_quiescent().unwrap();
        let live = |db: &Db| db.shape().store_live_bytes;
        let (full, written) = (live(&db), db.stats().bytes_written);
        assert_eq!(entries(&db), 20_000);
        world.hand.move_on(130_000);
        db.wait_until_quiescent().unwrap();
        if is_on {
            // As soon as no reader of the process that was there is left, those of the other tests as well.
            let is_back = |_| {
                assert!(!table.contains(b"nothing").unwrap());
                world.hand.sleep(Duration::from_millis(1));
                live(&db) <= SLOT_BYTES
            };
            assert!(full > SLOT_BYTES, "all rows are in one slot");
            assert!((0..100_000).any(is_back), "{} of {full} bytes are left", live(&db));
            assert_eq!(entries(&db), 200);
        } else {
            assert_eq!(entries(&db), 20_000);
        }
        assert_eq!(db.stats().bytes_written, written, "no writer wrote");
        assert_eq!(table.iter().count(), 200);
        assert_eq!(db.check(&mut |_, _| ()).unwrap().findings.len(), 0);
        db.close().unwrap();
    }
}
