//! The contract of the adapters, run for each engine of this build.
//!
//! An engine may answer `Unsupported` where [`Promises`] says so, and nowhere else. RocksDB is run if a
//! library is found (`TERRANE_ROCKSDB`, or the system's loader); otherwise its tests say that they were not
//! run.
#![allow(clippy::disallowed_methods, clippy::type_complexity, reason = "a test, on files of its own")]

#[cfg(feature = "rocksdb")]
mod rocksdb;
mod suite;
mod transactions;

use terrane_bench::Error;
use terrane_bench::engine;

use suite::{FULL, Promises, options, suite};

fn run(promises: Promises) {
    suite(promises, |directory| engine::open(promises.name, &options(directory, promises)));
}

/// Terrane in each way in which requests come to it.
#[test]
fn terrane() {
    let modes: [&[(&str, &str)]; 5] = [
        &[],
        &[("requests", "together")],
        &[("cores", "2")],
        &[("parts", "bucket")],
        &[("cores", "1"), ("cores_helping", "false"), ("cores_pinned", "true")],
    ];
    for mode in modes {
        let promises =
            Promises { name: "terrane", range_deletes: true, in_flight: !is_through_cores(mode), ..FULL };
        suite(promises, |directory| {
            let mut options = options(directory, promises);
            options.options =
                mode.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            engine::open("terrane", &options)
        });
    }
}

/// With the option, manifest and extents lie in the bucket, and nothing but the journal in a directory.
#[test]
fn parts_of_terrane_lie_where_the_option_says() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = options(directory.path(), FULL);
    options.options.insert("parts".to_owned(), "bucket".to_owned());
    engine::open("terrane", &options).expect("opens").close().expect("closes");
    let there = |name: &str| directory.path().join(name).exists();
    assert!(there("bucket/terrane/manifest") && there("journal/REMOTE") && !there("CURRENT"));
}

fn is_through_cores(mode: &[(&str, &str)]) -> bool {
    mode.iter().any(|(name, _)| *name == "cores")
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
#[test]
fn unknown_options_are_refused() {
    for name in ["terrane", "lmdb", "redb", "fjall", "bftree", "rocksdb"] {
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
