//! RocksDB: the suite with two sets of options, what it counts, the shape it keeps, and libraries that will
//! not do.

use std::path::PathBuf;

use terrane_bench::Error;
use terrane_bench::engine::{self, Control, Engine, EngineOptions};

use crate::conformance::suite::{FULL, Promises, get, key, load, options, suite, value};

/// Opens RocksDB; `None`, and a line that says so, if there is no library. Any other error is a failure.
fn found(options: &EngineOptions) -> Option<Box<dyn Engine>> {
    match engine::open("rocksdb", options) {
        Ok(engine) => Some(engine),
        Err(error @ Error::Unsupported { .. }) => {
            println!("NOT RUN: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn run_with(named: &[(&str, &str)]) {
    let directory = tempfile::tempdir().expect("a directory");
    let promises = Promises { name: "rocksdb", range_deletes: true, ..FULL };
    let with = |directory: &std::path::Path| {
        let mut options = options(directory, promises);
        options.options =
            named.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        options
    };
    if found(&with(directory.path())).is_none() {
        return;
    }
    suite(promises, |directory| engine::open("rocksdb", &with(directory)));
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
        ("pin", "all"),
        ("memtable_filter_percent", "2"),
        ("block_bytes", "4096"),
        ("compression_last", "none"),
        ("counters", "perf"),
        ("readahead_bytes", "65536"),
        ("options", "unordered_write=true"),
    ]);
}

/// A library before RocksDB 11.9 lacks functions for it.
#[test]
fn rocksdb_by_the_calls_that_do_what_the_library_does() {
    run_with(&[("calls", "like_library")]);
}

#[test]
fn calls_that_there_are_not_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = options(directory.path(), FULL);
    options.options = [("calls".to_owned(), "other".to_owned())].into();
    match engine::open("rocksdb", &options) {
        Err(Error::Plan(text)) => assert!(text.contains("usual, like_library"), "{text}"),
        other => panic!("{:?}", other.map(|_| "opened")),
    }
}

#[test]
fn a_filter_of_memtables_that_rocksdb_would_cut_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = options(directory.path(), FULL);
    if found(&options).is_none() {
        return;
    }
    options.options = [("memtable_filter_percent".to_owned(), "26".to_owned())].into();
    let error = engine::open("rocksdb", &options).err().expect("a share beyond RocksDB's limit");
    assert!(error.to_string().contains("memtable_filter_percent of rocksdb is 26"), "{error}");
}

#[test]
fn rocksdb_counts() {
    let directory = tempfile::tempdir().expect("a directory");
    for counting in ["statistics", "perf"] {
        let mut options = options(&directory.path().join(counting), FULL);
        options.options.insert("counters".to_owned(), counting.to_owned());
        let Some(engine) = found(&options) else { return };
        let mut session = engine.session().expect("session");
        load(&mut *session, 1);
        engine.control(Control::Flush).expect("flush");
        assert_eq!(get(&mut *session, 1, &key(500)), Some(value(500)));
        assert_eq!(get(&mut *session, 1, &key(501)), None);
        let counters = if counting == "perf" { session.counters() } else { engine.counters() };
        assert!(counters.filter_probes > Some(0), "{counting}: {counters:?}");
        assert!(counters.cache_hits.zip(counters.cache_misses) > Some((0, 0)), "{counting}: {counters:?}");
        assert_eq!(counters.log_bytes_written.is_some(), counting == "statistics", "{counters:?}");
        drop(session);
        engine.close().expect("close");
    }
}

/// A flush while paused makes a run in level 0 that compaction of one level, where there is one, takes away.
#[test]
fn rocksdb_keeps_the_shape_it_was_given() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(engine) = found(&options(directory.path(), FULL)) else { return };
    let level = |name: &str| {
        let rows = engine.shape().rows;
        rows.iter().find(|row| row.part == name).map_or((0, 0), |row| (row.runs, row.entries.unwrap_or(0)))
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
        Err(error @ Error::Unsupported { .. }) => {
            println!("NOT RUN: {error}")
        }
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
fn a_missing_library_is_named_with_the_ways_to_get_one() {
    let text = refused("/no/such/librocksdb.so");
    for part in
        ["/no/such/librocksdb.so", "librocksdb-dev", "org.rocksdb:rocksdbjni", "unzip -p", "TERRANE_ROCKSDB"]
    {
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
