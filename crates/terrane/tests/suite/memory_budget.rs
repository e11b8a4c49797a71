//! The memory ceiling, changed while the database is open.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use terrane::{Db, Kind, Options};
use terrane_base::env::Env;

const MIB: u64 = 1 << 20;
const ROWS: u64 = 60_000;
/// The budget, and 15 % for memory that is being allocated or freed at the moment of a look.
const CEILING: u64 = 24 * MIB / 100 * 115;

fn open(dir: &tempfile::TempDir, memory_bytes: u64) -> Db {
    // Segments, and chunks of huge pages, of the largest ceiling would be too large for the least.
    let mut options = Options { memory_bytes, segment_bytes: MIB / 4, ..Options::default() };
    options.set("experiments.block_memory", "heap").unwrap();
    // A machine that is slow enough is idle now and then.
    options.set("experiments.idle_flush", "false").unwrap();
    Db::open_with(dir.path().join("data"), &options).unwrap()
}

fn put_all(db: &Db, stamp: u8) {
    (0..ROWS).for_each(|key| db.put(key.to_be_bytes(), [stamp; 1000]).unwrap());
}

fn read_all(db: &Db, stamp: u8) {
    for key in (0..ROWS).map(|key| key * 7919 % ROWS) {
        assert_eq!(db.get(key.to_be_bytes()).unwrap().as_deref(), Some(&[stamp; 1000][..]));
    }
}

#[test]
fn a_lower_ceiling_holds_at_once_for_readers_and_writers() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir, 128 * MIB);
    put_all(&db, 1);
    db.flush().unwrap();
    read_all(&db, 1);
    // Readers and writers have more than the lower ceiling leaves them; how much depends on when the
    // background flushes.
    (0..ROWS / 2).for_each(|key| db.put(key.to_be_bytes(), [1; 1000]).unwrap());
    assert!(db.stats().memory_bytes > CEILING, "{}", db.stats().memory_bytes);
    db.set_memory_bytes(24 * MIB).unwrap();
    assert_eq!(db.stats().memory_limit_bytes, 24 * MIB);
    db.wait_until_quiescent().unwrap();
    for stamp in 2..4 {
        let mut most = 0;
        for key in 0..ROWS {
            db.put(key.to_be_bytes(), [stamp; 1000]).unwrap();
            if key % 64 == 0 {
                most = most.max(db.stats().memory_bytes);
            }
        }
        assert!(most <= CEILING, "{most} bytes while {stamp} was written");
        read_all(&db, stamp);
        assert!(db.stats().memory_bytes <= CEILING);
    }
    // More serves readers without a reopening.
    db.set_memory_bytes(256 * MIB).unwrap();
    db.flush().unwrap();
    read_all(&db, 3);
    assert!(db.stats().cache_bytes > 40 * MIB, "{}", db.stats().cache_bytes);
    db.close().unwrap();
}

/// With the cache in chunks of huge pages, which are emptied as soon as readers and the background leave
/// them.
#[test]
fn a_changed_ceiling_holds_with_chunks_of_huge_pages() {
    const LOWER: u64 = 160 * MIB;
    let dir = tempfile::tempdir().unwrap();
    let options = Options { memory_bytes: 512 * MIB, segment_bytes: 2 * MIB, ..Options::default() };
    let db = Db::open_with(dir.path().join("data"), &options).unwrap();
    put_all(&db, 1);
    (0..4 * ROWS).for_each(|key| db.put((key + ROWS).to_be_bytes(), [3; 1000]).unwrap());
    db.flush().unwrap();
    (0..4 * ROWS).for_each(|key| assert!(db.get((key + ROWS).to_be_bytes()).unwrap().is_some()));
    let before = db.stats().memory_bytes;
    assert!(before > LOWER / 100 * 115, "{before} bytes are too few to be too much");
    db.set_memory_bytes(LOWER).unwrap();
    put_all(&db, 2);
    db.flush().unwrap();
    db.wait_until_quiescent().unwrap();
    let clock = Env::real().clock;
    let until = clock.now() + Duration::from_secs(300);
    loop {
        read_all(&db, 2);
        let bytes = db.stats().memory_bytes;
        if bytes <= LOWER / 100 * 115 {
            break;
        }
        assert!(clock.now() < until, "{bytes} bytes, of {before}");
    }
    // Were it on the heap, this would be enough for it.
    let error = db.set_memory_bytes(48 * MIB).unwrap_err();
    assert!(
        error.kind() == Kind::Invalid && error.to_string().contains("chunks of 2097152 bytes"),
        "{error}"
    );
    db.set_memory_bytes(512 * MIB).unwrap();
    read_all(&db, 2);
    db.close().unwrap();
}

#[test]
fn the_memory_ceiling_changes_beside_readers_and_writers() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir, 64 * MIB);
    put_all(&db, 1);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            put_all(&db, 2);
            is_over.store(true, Ordering::Release);
        });
        scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                assert_eq!(db.get(7u64.to_be_bytes()).unwrap().unwrap().len(), 1000);
            }
        });
        let mut bytes = [24, 200, 32, 64].into_iter().cycle();
        while !writer.is_finished() {
            db.set_memory_bytes(bytes.next().unwrap() * MIB).unwrap();
            std::thread::yield_now();
        }
    });
    read_all(&db, 2);
    db.close().unwrap();
}

#[test]
fn contradictory_sizes_are_refused_and_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let options = Options { memory_bytes: 256 * MIB, ..Options::default() };
    let db = Db::open_with(&path, &options).unwrap();
    for (bytes, name) in [(MIB, "memory_bytes"), (17 << 40, "memory_bytes"), (48 * MIB, "segment_bytes")] {
        let error = db.set_memory_bytes(bytes).unwrap_err();
        assert!(error.kind() == Kind::Invalid && error.to_string().contains(name), "{bytes}: {error}");
    }
    assert_eq!(db.stats().memory_limit_bytes, 256 * MIB);
    db.close().unwrap();
    let db = Db::open_with(&path, &Options { read_only: true, ..options }).unwrap();
    assert_eq!(db.set_memory_bytes(512 * MIB).unwrap_err().kind(), Kind::Invalid);
}
