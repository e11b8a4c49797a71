//! What every engine of the bench must do alike; run for each engine of this build.
//!
//! An engine may answer `Unsupported` where [`Promises`] says so, and nowhere else. RocksDB is run if a library is found
//! (`TERRANE_ROCKSDB`, or the system's loader); otherwise its test says that it was not run.

use std::collections::BTreeMap;
use std::path::Path;

use terrane_bench::engine::{self, Control, Direction, Engine, EngineCounters, OpenOptions, Session, Write};
use terrane_bench::{Error, Result};

/// Where an engine may differ.
#[derive(Clone, Copy)]
struct Promises {
    name: &'static str,
    sync: bool,
    backward: bool,
    reopen: bool,
    /// The longest value that its default settings take here.
    value_bytes_max: u64,
    /// Whether an empty value is a value.
    empty_values: bool,
}

const FULL: Promises = Promises {
    name: "",
    sync: true,
    backward: true,
    reopen: true,
    value_bytes_max: 300 << 10,
    empty_values: true,
};

fn options(directory: &Path, promises: Promises) -> OpenOptions {
    OpenOptions {
        directory: directory.to_owned(),
        memory_bytes: 64 << 20,
        tables: 3,
        direct_io: false,
        background_threads: 0,
        records: 20_000,
        data_bytes: 4 << 20,
        value_bytes_max: promises.value_bytes_max,
        level_fanout: 8,
        filter_bits_per_key: 10,
        options: BTreeMap::new(),
        library: None,
    }
}

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn value(number: u64) -> Vec<u8> {
    (0..20 + number % 90).map(|byte| (number.wrapping_mul(31) + byte) as u8).collect()
}

fn put(session: &mut dyn Session, table: u32, key: &[u8], value: &[u8]) {
    session.write(table, &[Write::Put(key, value)], false).expect("put");
}

fn get(session: &mut dyn Session, table: u32, key: &[u8]) -> Option<Vec<u8>> {
    let mut seen = None;
    let found = session
        .get(table, key, &mut |at, value| {
            assert_eq!(at, key, "the visitor sees the key that was asked for");
            seen = Some(value.to_vec());
        })
        .expect("get");
    assert_eq!(found, seen.is_some(), "the answer says what the visitor saw");
    seen
}

fn scan(session: &mut dyn Session, table: u32, start: u64, rows: u64, direction: Direction) -> Vec<u64> {
    let mut seen = Vec::new();
    let count = session
        .scan(table, &key(start), rows, direction, &mut |at, bytes| {
            let number = u64::from_be_bytes(at.try_into().expect("8-byte keys"));
            assert_eq!(bytes, value(number), "value of {number} in a scan");
            seen.push(number);
        })
        .expect("scan");
    assert_eq!(count as usize, seen.len());
    seen
}

/// Even numbers below 4000, written in a scattered order by batches of many sizes.
fn load(session: &mut dyn Session, table: u32) {
    let numbers: Vec<u64> = (0..2000).map(|index| index * 1_217 % 2000 * 2).collect();
    for chunk in numbers.chunks(37) {
        let rows: Vec<_> = chunk.iter().map(|number| (key(*number), value(*number))).collect();
        let writes: Vec<_> = rows.iter().map(|(key, value)| Write::Put(key, value)).collect();
        session.write(table, &writes, false).expect("batch");
    }
}

fn points(session: &mut dyn Session, promises: Promises) {
    assert_eq!(get(session, 0, b"missing"), None);
    put(session, 0, b"point", b"first value");
    assert_eq!(get(session, 0, b"point").as_deref(), Some(&b"first value"[..]));
    put(session, 0, b"point", b"second, longer value");
    assert_eq!(get(session, 0, b"point").as_deref(), Some(&b"second, longer value"[..]));
    assert_eq!(get(session, 1, b"point"), None, "tables are apart");
    if promises.empty_values {
        put(session, 0, b"point", b"");
        assert_eq!(get(session, 0, b"point").as_deref(), Some(&b""[..]));
    }
    session.write(0, &[Write::Delete(b"point")], false).expect("delete");
    assert_eq!(get(session, 0, b"point"), None);
    session.write(0, &[Write::Delete(b"never there")], false).expect("deleting what is not there");
    session.write(0, &[], false).expect("an empty batch");
    let writes = [Write::Put(b"batch", b"one"), Write::Put(b"batch", b"two"), Write::Delete(b"batch")];
    session.write(0, &writes[..2], false).expect("batch");
    assert_eq!(get(session, 0, b"batch").as_deref(), Some(&b"two"[..]), "a batch is applied in order");
    session.write(0, &writes, false).expect("batch");
    assert_eq!(get(session, 0, b"batch"), None, "a batch is applied in order");
}

fn big_values(session: &mut dyn Session, promises: Promises) {
    let big: Vec<u8> = (0..promises.value_bytes_max).map(|byte| (byte * 7 % 251) as u8).collect();
    put(session, 2, b"big", &big);
    assert_eq!(get(session, 2, b"big"), Some(big));
    session.write(2, &[Write::Delete(b"big")], false).expect("delete");
}

fn multi_gets(session: &mut dyn Session) {
    let numbers = [10, 11, 3998, 0, 10, 4001];
    let keys = numbers.map(key);
    let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    let mut seen = Vec::new();
    let mut visit = |at: &[u8], bytes: &[u8]| {
        let number = u64::from_be_bytes(at.try_into().expect("8-byte keys"));
        assert_eq!(bytes, value(number), "value of {number} in a multi-get");
        seen.push(number);
    };
    assert_eq!(session.multi_get(1, &keys, &mut visit).expect("multi-get"), 4);
    assert_eq!(session.multi_get(1, &[], &mut visit).expect("an empty multi-get"), 0);
    seen.sort_unstable();
    assert_eq!(seen, [0, 10, 10, 3998]);
}

fn scans(session: &mut dyn Session, promises: Promises) {
    let forward = Direction::Forward;
    assert_eq!(scan(session, 1, 100, 3, forward), [100, 102, 104], "a start that is a key");
    assert_eq!(scan(session, 1, 101, 3, forward), [102, 104, 106], "a start between keys");
    assert_eq!(scan(session, 1, 3996, 9, forward), [3996, 3998], "the end comes first");
    assert_eq!(scan(session, 1, 5000, 9, forward), [0; 0], "a start behind the end");
    assert_eq!(scan(session, 1, 100, 0, forward), [0; 0], "no rows");
    assert_eq!(scan(session, 1, 0, 5000, forward), (0..2000).map(|n| n * 2).collect::<Vec<_>>());
    let mut stopped = 0;
    let mut seen = Vec::new();
    let all = session.scan_all(1, forward, &mut |at, _| {
        seen.push(u64::from_be_bytes(at.try_into().expect("8-byte keys")));
        true
    });
    assert_eq!(all.expect("scan all"), 2000);
    assert!(seen.is_sorted() && seen.len() == 2000);
    let few = session.scan_all(1, forward, &mut |_, _| {
        stopped += 1;
        stopped < 7
    });
    assert_eq!((few.expect("scan all"), stopped), (7, 7), "the visitor stops it");
    backward_scans(session, promises);
}

fn backward_scans(session: &mut dyn Session, promises: Promises) {
    let backward = Direction::Backward;
    if !promises.backward {
        let refused = session.scan(1, &key(100), 3, backward, &mut |_, _| {});
        assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
        let refused = session.scan_all(1, backward, &mut |_, _| true);
        assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
        return;
    }
    assert_eq!(scan(session, 1, 100, 3, backward), [100, 98, 96], "a start that is a key");
    assert_eq!(scan(session, 1, 101, 3, backward), [100, 98, 96], "a start between keys");
    assert_eq!(scan(session, 1, 2, 9, backward), [2, 0], "the beginning comes first");
    assert_eq!(scan(session, 1, 9999, 1, backward), [3998], "a start behind the end");
    let mut seen = Vec::new();
    let all = session.scan_all(1, backward, &mut |at, _| {
        seen.push(u64::from_be_bytes(at.try_into().expect("8-byte keys")));
        true
    });
    assert_eq!(all.expect("scan all"), 2000);
    assert!(seen.iter().rev().is_sorted());
}

fn syncs(session: &mut dyn Session, promises: Promises) {
    let synced = session.write(0, &[Write::Put(b"synced", b"yes")], true);
    if promises.sync {
        synced.expect("a write with sync");
        session
            .write(0, &[Write::Put(b"synced", b"no"), Write::Put(b"again", b"y")], false)
            .expect("without again");
        session
            .write(0, &[Write::Put(b"synced", b"yes"), Write::Delete(b"again")], true)
            .expect("a batch with sync");
        assert_eq!(get(session, 0, b"synced").as_deref(), Some(&b"yes"[..]));
    } else {
        assert!(matches!(synced, Err(Error::Unsupported { .. })), "{synced:?}");
    }
}

/// Every step does its work or says `Unsupported`; the data stays what it was.
fn controls(engine: &dyn Engine) {
    let steps = [
        Control::Flush,
        Control::PauseBackground,
        Control::FlushToRun,
        Control::Compact0,
        Control::Compact1,
        Control::ResumeBackground,
        Control::CompactAll,
        Control::FiltersOff,
        Control::FiltersOn,
        Control::WaitUntilQuiescent,
    ];
    for step in steps {
        match engine.control(step) {
            Ok(()) | Err(Error::Unsupported { .. }) => {}
            Err(error) => panic!("{step:?}: {error}"),
        }
        let mut session = engine.session().expect("session");
        assert_eq!(scan(&mut *session, 1, 1000, 2, Direction::Forward), [1000, 1002], "after {step:?}");
    }
    assert!(engine.control(Control::WaitUntilQuiescent).is_ok(), "waiting is always possible");
}

fn fields(counters: &EngineCounters) -> BTreeMap<String, Option<u64>> {
    let json = serde_json::to_value(counters).expect("counters are plain");
    json.as_object().expect("an object").iter().map(|(name, value)| (name.clone(), value.as_u64())).collect()
}

fn counters_grow(before: &EngineCounters, after: &EngineCounters) {
    let after = fields(after);
    for (name, before) in fields(before) {
        assert!(after[&name] >= before, "{name} went from {before:?} to {:?}", after[&name]);
    }
}

/// The whole suite on an engine opened by `open`.
fn suite(promises: Promises, open: impl Fn(&Path) -> Result<Box<dyn Engine>>) {
    let directory = tempfile::tempdir().expect("a directory");
    let engine = open(directory.path()).expect("open");
    let opened = engine.opened();
    assert!(!opened.version.is_empty());
    assert!(opened.settings.iter().any(|(name, _)| name == "durability"), "{opened:?}");
    println!("{} {}", promises.name, opened.version);
    for (name, value) in &opened.settings {
        println!("  {name} = {value}");
    }
    let mut session = engine.session().expect("session");
    points(&mut *session, promises);
    big_values(&mut *session, promises);
    load(&mut *session, 1);
    let before = engine.counters();
    multi_gets(&mut *session);
    scans(&mut *session, promises);
    syncs(&mut *session, promises);
    drop(session);
    threads(&*engine, promises);
    controls(&*engine);
    counters_grow(&before, &engine.counters());
    for row in engine.shape().rows {
        println!("  {row:?}");
    }
    engine.close().expect("close");
    reopened(promises, open(directory.path()));
}

/// Readers and a writer at once: each sees whole values.
fn threads(engine: &dyn Engine, promises: Promises) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut session = engine.session().expect("session");
            for number in 0..500 {
                let row = key(number);
                session
                    .write(2, &[Write::Put(&row, &value(number))], promises.sync && number % 97 == 0)
                    .expect("put");
            }
        });
        for _ in 0..2 {
            scope.spawn(|| {
                let mut session = engine.session().expect("session");
                for number in 0..500 {
                    let seen = get(&mut *session, 2, &key(number));
                    assert!(seen.is_none_or(|seen| seen == value(number)), "a torn value of {number}");
                    assert_eq!(get(&mut *session, 1, &key(number * 2)), Some(value(number * 2)));
                }
            });
        }
    });
    let mut session = engine.session().expect("session");
    assert_eq!(get(&mut *session, 2, &key(499)), Some(value(499)));
}

fn reopened(promises: Promises, engine: Result<Box<dyn Engine>>) {
    if !promises.reopen {
        assert!(
            matches!(engine, Err(Error::Unsupported { .. })),
            "reopening must be refused, not start empty"
        );
        return;
    }
    let engine = engine.expect("reopen");
    let mut session = engine.session().expect("session");
    assert_eq!(scan(&mut *session, 1, 0, 5000, Direction::Forward).len(), 2000, "reopened");
    assert_eq!(get(&mut *session, 2, &key(77)), Some(value(77)), "reopened");
    assert_eq!(get(&mut *session, 0, b"synced").as_deref(), Some(&b"yes"[..]), "reopened");
    drop(session);
    engine.close().expect("close");
}

fn run(promises: Promises) {
    suite(promises, |directory| engine::open(promises.name, &options(directory, promises)));
}

#[cfg(feature = "lmdb")]
#[test]
fn lmdb() {
    run(Promises { name: "lmdb", ..FULL });
}

#[cfg(feature = "redb")]
#[test]
fn redb() {
    run(Promises { name: "redb", ..FULL });
}

#[cfg(feature = "fjall")]
#[test]
fn fjall() {
    run(Promises { name: "fjall", ..FULL });
}

#[cfg(feature = "bftree")]
#[test]
fn bftree() {
    let promises = Promises {
        sync: false,
        backward: false,
        reopen: false,
        value_bytes_max: 8 << 10,
        empty_values: false,
        ..FULL
    };
    run(Promises { name: "bftree", ..promises });
}

#[cfg(feature = "bftree")]
#[test]
fn bftree_refuses_values_that_no_page_takes() {
    let directory = tempfile::tempdir().expect("a directory");
    let refused = engine::open("bftree", &options(directory.path(), FULL));
    assert!(matches!(refused, Err(Error::Unsupported { .. })));
}

/// Options that name an engine's own setting are taken, others are refused by name.
#[cfg(feature = "lmdb")]
#[test]
fn unknown_options_are_refused() {
    for name in ["lmdb", "redb", "fjall", "bftree", "rocksdb"] {
        let directory = tempfile::tempdir().expect("a directory");
        let promises = Promises { value_bytes_max: 100, ..FULL };
        let mut options = options(directory.path(), promises);
        options.options.insert("no_such_option".to_owned(), "1".to_owned());
        match engine::open(name, &options) {
            Err(Error::Plan(text)) => {
                assert!(text.contains("no_such_option") || text.contains("feature"), "{text}")
            }
            Err(other) => panic!("{name}: {other}"),
            Ok(_) => panic!("{name} took an option that it does not have"),
        }
    }
}

#[cfg(feature = "rocksdb")]
mod rocksdb {
    use std::path::PathBuf;

    use super::*;

    /// Opens RocksDB with engine options, or says that there is no library and returns `false`.
    fn run_with(named: &[(&str, &str)]) -> bool {
        let directory = tempfile::tempdir().expect("a directory");
        let promises = Promises { name: "rocksdb", ..FULL };
        if let Err(error @ Error::Plan(_)) = engine::open("rocksdb", &options(directory.path(), promises)) {
            assert!(error.to_string().contains("TERRANE_ROCKSDB"), "{error}");
            println!("NOT RUN: {error}");
            return false;
        }
        suite(promises, |directory| {
            let mut options = options(directory, promises);
            options.options =
                named.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            engine::open("rocksdb", &options)
        });
        true
    }

    #[test]
    fn rocksdb() {
        run_with(&[]);
    }

    #[test]
    fn rocksdb_with_its_other_options() {
        run_with(&[
            ("cache", "lru"),
            ("filter", "ribbon"),
            ("block_index", "hash"),
            ("block_bytes", "4096"),
            ("compression_last", "none"),
            ("counters", "perf"),
            ("readahead_bytes", "65536"),
            ("options", "unordered_write=true"),
        ]);
    }

    #[test]
    fn rocksdb_counts() {
        let directory = tempfile::tempdir().expect("a directory");
        for counting in ["statistics", "perf"] {
            let mut options = options(&directory.path().join(counting), FULL);
            options.options.insert("counters".to_owned(), counting.to_owned());
            let Ok(engine) = engine::open("rocksdb", &options) else {
                println!("NOT RUN: no RocksDB library");
                return;
            };
            let mut session = engine.session().expect("session");
            load(&mut *session, 1);
            engine.control(Control::Flush).expect("flush");
            assert_eq!(get(&mut *session, 1, &key(500)), Some(value(500)));
            assert_eq!(get(&mut *session, 1, &key(501)), None);
            let counters = if counting == "perf" { session.counters() } else { engine.counters() };
            assert!(counters.filter_probes > Some(0), "{counting}: {counters:?}");
            assert!(
                counters.cache_hits.zip(counters.cache_misses) > Some((0, 0)),
                "{counting}: {counters:?}"
            );
            assert_eq!(counters.log_bytes_written.is_some(), counting == "statistics", "{counters:?}");
            drop(session);
            engine.close().expect("close");
        }
    }

    /// A flush while paused makes a run in level 0 that compaction of one level, where there is one, takes away.
    #[test]
    fn rocksdb_keeps_the_shape_it_was_given() {
        let directory = tempfile::tempdir().expect("a directory");
        let Ok(engine) = engine::open("rocksdb", &options(directory.path(), FULL)) else {
            println!("NOT RUN: no RocksDB library");
            return;
        };
        let level = |name: &str| {
            let rows = engine.shape().rows;
            rows.iter()
                .find(|row| row.part == name)
                .map_or((0, 0), |row| (row.runs, row.entries.unwrap_or(0)))
        };
        engine.control(Control::PauseBackground).expect("pause");
        for _ in 0..6 {
            load(&mut *engine.session().expect("session"), 1);
            assert_eq!(level("memtable").1, 2000);
            engine.control(Control::FlushToRun).expect("flush");
        }
        assert_eq!(level("L0"), (6, 12_000), "six runs stay while paused, although four call for compaction");
        match engine.control(Control::Compact0) {
            Ok(()) => {
                assert_eq!(level("L0"), (0, 0));
                assert_eq!(level("L6"), (1, 2000), "{:?}", engine.shape());
            }
            Err(error) => assert!(matches!(error, Error::Unsupported { .. }), "{error}"),
        }
        engine.control(Control::CompactAll).expect("compact all");
        assert_eq!((level("L0"), level("L6")), ((0, 0), (1, 2000)), "{:?}", engine.shape());
        engine.control(Control::ResumeBackground).expect("resume");
        engine.control(Control::WaitUntilQuiescent).expect("wait");
        engine.close().expect("close");
    }

    #[test]
    fn rocksdb_options_that_it_does_not_know_are_its_own_error() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut options = options(directory.path(), FULL);
        options.options.insert("options".to_owned(), "no_such_option=1".to_owned());
        match engine::open("rocksdb", &options) {
            Err(Error::Engine { message, .. }) => assert!(message.contains("no_such_option"), "{message}"),
            Err(Error::Plan(text)) => println!("NOT RUN: {text}"),
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("RocksDB took an option that it does not have"),
        }
    }

    fn refused(library: &str) -> String {
        let directory = tempfile::tempdir().expect("a directory");
        let mut options = options(directory.path(), FULL);
        options.library = Some(PathBuf::from(library));
        match engine::open("rocksdb", &options) {
            Err(Error::Plan(text)) => text,
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("opened with {library}"),
        }
    }

    #[test]
    fn a_library_that_is_not_there_is_named_with_the_ways_to_get_one() {
        let text = refused("/no/such/librocksdb.so");
        for part in [
            "/no/such/librocksdb.so",
            "librocksdb-dev",
            "org.rocksdb:rocksdbjni",
            "unzip -p",
            "TERRANE_ROCKSDB",
        ] {
            assert!(text.contains(part), "{part} is not in: {text}");
        }
    }

    #[test]
    fn a_library_without_the_symbols_is_named_with_the_first_missing() {
        let text = refused("libc.so.6");
        for part in ["libc.so.6", "rocksdb_free", "7.8"] {
            assert!(text.contains(part), "{part} is not in: {text}");
        }
    }
}
