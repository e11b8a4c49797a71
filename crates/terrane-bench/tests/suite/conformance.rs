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
use terrane_bench::engine::{self, Control, Write};

use suite::{FULL, Promises, key, options, suite};

#[cfg(any(feature = "bftree", feature = "fjall", feature = "lmdb", feature = "redb"))]
fn run(promises: Promises) {
    suite(promises, |directory| engine::open(promises.name, &options(directory, promises)));
}

/// Terrane in each way in which requests come to it.
#[test]
fn terrane() {
    let modes: [&[(&str, &str)]; 8] = [
        &[],
        &[("requests", "together")],
        &[("cores", "2")],
        &[("parts", "bucket")],
        &[("preset", "xs")],
        &[("preset", "xp")],
        &[("preset", "xp-pm")],
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

/// The facts that a preset reports: the classic one writes runs of level 0 and the others do not, and a
/// journal in a pool has no segment files. An option of the plan wins.
#[test]
fn presets_of_terrane_are_what_they_say() {
    for (preset, global_index, pool) in
        [("xs", false, false), ("xp", true, false), ("xs-pm", false, true), ("xp-pm", true, true)]
    {
        let directory = tempfile::tempdir().expect("a directory");
        let mut options = options(directory.path(), FULL);
        options.options.insert("preset".to_owned(), preset.to_owned());
        options.options.insert("compression".to_owned(), "none".to_owned());
        let engine = engine::open("terrane", &options).expect("opens");
        let settings = engine.opened().settings;
        let value = |name: &str| settings.iter().rfind(|(known, _)| known == name).map(|(_, value)| &**value);
        assert_eq!(value("compression"), Some("none"), "{preset}: the plan's own option");
        assert_eq!(value("pmem_path").is_some(), pool, "{preset}");
        assert_eq!(value("durability").is_some_and(|text| text.contains("pool")), pool, "{preset}");
        let mut session = engine.session().expect("a session");
        for number in 0..100 {
            session.write(0, &[Write::Put(&key(number), &[7; 1000])], true).expect("a synced write");
        }
        drop(session);
        engine.control(Control::Flush).expect("a flush");
        let overflows = value("experiments.always_overflow");
        assert_eq!(overflows, (!global_index).then_some("true"), "{preset}: where a flush goes");
        let parts: Vec<String> = engine.shape().rows.into_iter().map(|row| row.part).collect();
        // An idle compaction may have merged the overflow run already.
        let places: &[&str] = if global_index { &["L1"] } else { &["L0", "L1"] };
        assert!(parts.len() == 1 && places.contains(&&*parts[0]), "{preset}: {parts:?}");
        let segments = std::fs::read_dir(directory.path().join("journal")).expect("the journal").count();
        assert_eq!(segments == 0, pool, "{preset}: {segments} segment files");
        assert_eq!(directory.path().join("pool").exists(), pool, "{preset}");
        engine.close().expect("closes");
    }
}

/// A bucket has no pool, and there are no other presets.
#[test]
fn presets_that_cannot_be_are_refused() {
    for (given, named) in
        [(vec![("preset", "xz")], "xs-pm"), (vec![("preset", "xs-pm"), ("parts", "bucket")], "parts")]
    {
        let directory = tempfile::tempdir().expect("a directory");
        let mut options = options(directory.path(), FULL);
        options.options =
            given.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        match engine::open("terrane", &options) {
            Err(Error::Plan(text)) => assert!(text.contains(named), "{text}"),
            other => panic!("{:?}", other.map(|_| "opened")),
        }
    }
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
