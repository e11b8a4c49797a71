//! Databases in memory: all of the API works, no file is written, the memory limit holds.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a step that fails ends the test, which looks at real files"
)]

use std::path::Path;
use std::sync::Arc;

use terrane::{
    Backups, Batch, Db, DirectoryPlace, Durability, Env, IoUring, Kind, MemoryDevice, Options, TableOptions,
    TransactionOptions,
};
use terrane_base::Rng;

fn fill(db: &Db, count: u64, stamp: u64) {
    for number in 0..count {
        db.put(number.to_be_bytes(), (number * 31 + stamp).to_le_bytes().repeat(20)).unwrap();
    }
}

fn rows(db: &Db) -> Vec<(Vec<u8>, Vec<u8>)> {
    db.default_table().iter().map(|row| row.unwrap()).collect()
}

#[test]
fn everything_works_and_no_file_is_touched() {
    let db = Db::open_in_memory().unwrap();
    assert!(!Path::new(db.path()).exists());
    let other = db.create_table("other", &TableOptions::new()).unwrap();
    fill(&db, 20_000, 1);
    let before = db.snapshot();
    let expected = rows(&db);
    fill(&db, 20_000, 2);
    db.flush().unwrap();
    db.compact_range(db.default_table(), ..).unwrap();
    let seen: Vec<_> = before.iter(db.default_table()).map(|row| row.unwrap()).collect();
    assert!(seen == expected);
    let mut batch = Batch::new();
    batch.put(&other, b"k", b"v").unwrap();
    batch.delete_range(db.default_table(), 5u64.to_be_bytes(), 10u64.to_be_bytes()).unwrap();
    db.write(&batch, Durability::Synced).unwrap();
    let mut transaction = db.transaction(&TransactionOptions::default()).unwrap();
    transaction.put(&other, b"k", b"w").unwrap();
    transaction.commit(Durability::Buffered).unwrap();
    assert_eq!(other.get(b"k").unwrap().as_deref(), Some(&b"w"[..]));
    assert_eq!(rows(&db).len(), 20_000 - 5);
    assert!(db.check(&mut |_, _| ()).unwrap().findings.is_empty());
    assert!(db.stats().memory_bytes <= db.options().memory_bytes);
    assert!(!Path::new(db.path()).exists());
    db.close().unwrap();
}

#[test]
fn a_database_in_memory_is_reopened_copied_and_backed_up() {
    let device = MemoryDevice::new(64 << 20);
    let options = Options::in_memory();
    let db = device.open("/data", &options).unwrap();
    assert_eq!(device.open("/data", &options).unwrap_err().kind(), Kind::Busy);
    fill(&db, 3_000, 1);
    let expected = rows(&db);
    db.checkpoint("/second").unwrap();
    // To real files, and from there into another memory.
    let dir = tempfile::tempdir().unwrap();
    let made = Backups::open(dir.path()).create(&db).unwrap();
    fill(&db, 3_000, 2);
    db.close().unwrap();
    let place = Arc::new(DirectoryPlace::new(Arc::new(terrane_device::PosixDisk::new()), dir.path()));
    let elsewhere = MemoryDevice::new(64 << 20);
    Backups::open_on(place, elsewhere.disk(), Env::real()).restore(made.id, "/restored").unwrap();
    assert!(rows(&elsewhere.open("/restored", &options).unwrap()) == expected);
    assert!(rows(&device.open("/second", &options).unwrap()) == expected);
    let again = device.open("/data", &Options { create_if_missing: false, ..options.clone() }).unwrap();
    assert!(rows(&again) != expected && rows(&again).len() == expected.len());
    again.close().unwrap();
    let reader = device.open("/data", &Options { read_only: true, ..options }).unwrap();
    assert_eq!(rows(&reader).len(), expected.len());
    assert_eq!(reader.put(b"k", b"v").unwrap_err().kind(), Kind::Invalid);
}

#[test]
fn at_the_memory_limit_writes_fail_and_rows_can_be_read() {
    let device = MemoryDevice::new(24 << 20);
    let db = device.open("/data", &Options::in_memory()).unwrap();
    let mut written = 0;
    let error = loop {
        let mut noise = Rng::part(1, written);
        let value: Vec<u8> = (0..8_000).flat_map(|_| noise.next_u64().to_le_bytes()).collect();
        match db.put(written.to_be_bytes(), &value) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 2_000, "128 MB do not fit into 24 MiB");
    };
    assert_eq!(error.kind(), Kind::Full, "{error}");
    assert!(device.used_bytes() <= 24 << 20);
    assert!(written > 50, "{written}");
    for number in 0..written {
        assert_eq!(db.get(number.to_be_bytes()).unwrap().map(|value| value.len()), Some(64_000), "{number}");
    }
}

#[test]
fn options_that_need_a_device_are_refused_by_name() {
    let refused = |options: Options, name: &str| {
        let error = Db::open_in_memory_with(&options).unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid, "{error}");
        assert!(error.to_string().contains(name), "{error}");
    };
    let options = Options::in_memory;
    refused(Options { direct_io: true, ..options() }, "direct_io=true");
    refused(Options { io_uring: IoUring::On, ..options() }, "io_uring=on");
    refused(Options { read_only: true, ..options() }, "read_only=true");
    refused(Options { create_if_missing: false, ..options() }, "create_if_missing=false");
    refused(Options { memory_bytes: 1, ..options() }, "memory_bytes");
}
