//! Statistics: by name, per table, and as text for Prometheus.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use std::collections::BTreeMap;

use terrane::{Db, MetricKind, MetricScope, Options, TableOptions, metrics};

fn number(db: &Db, table: Option<&str>, name: &str) -> u64 {
    let statistics = db.statistics();
    let found = match table {
        None => statistics.get(name),
        Some(table) => statistics.table(table).unwrap().get(name),
    };
    found.unwrap_or_else(|| panic!("there is no metric {name}")).number()
}

#[test]
fn the_statistics_have_every_metric_once() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("data")).unwrap();
    let statistics = db.statistics();
    let listed = |scope| metrics().filter(move |metric| metric.scope == scope).map(|metric| metric.name);
    let names =
        |samples: &[terrane::Sample]| samples.iter().map(|sample| sample.metric.name).collect::<Vec<_>>();
    assert_eq!(names(&statistics.samples), listed(MetricScope::Database).collect::<Vec<_>>());
    assert_eq!(names(&statistics.tables[0].samples), listed(MetricScope::Table).collect::<Vec<_>>());
    let of_stats: Vec<_> = db.stats().rows().into_iter().map(|(name, ..)| name).collect();
    let numbers = metrics().filter(|metric| metric.kind != MetricKind::Histogram);
    let numbers = numbers.filter(|metric| metric.scope == MetricScope::Database).map(|metric| metric.name);
    assert_eq!(of_stats, numbers.collect::<Vec<_>>());
}

#[test]
fn statistics_separate_tables() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("data")).unwrap();
    let users = db.create_table("users", &TableOptions::new()).unwrap();
    (0..100u32).for_each(|key| users.put(key.to_be_bytes(), b"value").unwrap());
    db.put(b"one", b"value").unwrap();
    users.delete(b"absent").unwrap();
    let memory = |table| number(&db, Some(table), "table_memory_entries");
    assert_eq!((memory("users"), memory("default")), (101, 1));
    db.flush().unwrap();
    // A flush is counted at its very end.
    db.wait_until_quiescent().unwrap();
    assert_eq!((memory("users"), memory("default")), (0, 0));
    let flushes = |table| number(&db, Some(table), "table_flushes");
    assert_eq!((flushes("users"), flushes("default")), (1, 1));
    assert_eq!(number(&db, None, "flushes"), 2);
    assert_eq!(number(&db, None, "flush_micros"), 2, "so many flushes were timed");
    let written = |table| number(&db, Some(table), "table_flush_bytes_written");
    assert_eq!(written("users") + written("default"), number(&db, None, "flush_bytes_written"));
    db.compact_range(&users, ..).unwrap();
    assert_eq!(
        number(&db, Some("users"), "table_stored_bytes"),
        db.shape().tables[1].levels.last().unwrap().bytes
    );
    // In this order: it may grow behind the first look.
    let bytes = number(&db, None, "memory_bytes");
    assert!(number(&db, None, "memory_bytes_max") >= bytes);
    db.drop_table("users").unwrap();
    assert!(db.statistics().table("users").is_none());
}

/// The samples of a text for Prometheus by name and labels; every one must follow the head of its metric.
fn parsed(text: &str) -> BTreeMap<String, f64> {
    let (mut samples, mut current) = (BTreeMap::new(), (String::new(), String::new()));
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            current.0 = rest.split(' ').next().unwrap().to_owned();
            continue;
        }
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!(name, current.0, "the type follows the help");
            current.1 = kind.to_owned();
            continue;
        }
        let (id, value) = line.rsplit_once(' ').unwrap();
        let name = id.split('{').next().unwrap();
        let suffix = name.strip_prefix(&*current.0).unwrap_or_else(|| panic!("{line} behind {current:?}"));
        let fits = if current.1 == "histogram" {
            ["_bucket", "_sum", "_count"].contains(&suffix)
        } else {
            suffix.is_empty()
        };
        assert!(fits && name.ends_with("_total") == (current.1 == "counter"), "{line}");
        assert!(samples.insert(id.to_owned(), value.parse().unwrap()).is_none(), "{line} is there twice");
    }
    samples
}

#[test]
fn prometheus_can_parse_the_text() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { memory_bytes: 16 << 20, ..Options::default() };
    let db = Db::open_with(dir.path().join("data"), &options).unwrap();
    db.create_table("a \"b\" \\ c", &TableOptions::new()).unwrap();
    db.put(b"k", b"v").unwrap();
    db.flush().unwrap();
    let samples = parsed(&db.statistics().to_prometheus());
    assert_eq!(samples["terrane_records_written_total"], 1.0);
    assert_eq!(samples["terrane_table_entries{table=\"default\"}"], 1.0);
    assert_eq!(samples["terrane_table_entries{table=\"a \\\"b\\\" \\\\ c\"}"], 0.0);
    assert_eq!(samples["terrane_flush_seconds_bucket{le=\"+Inf\"}"], samples["terrane_flush_seconds_count"]);
    assert!(samples.keys().filter(|name| name.starts_with("terrane_table_extents{")).count() == 2);
}

/// About one get and one commit of 64 is timed, whatever else samples are for.
#[test]
fn samples_of_gets_and_commits_are_timed() {
    for other_samples in ["on", "off"] {
        let dir = tempfile::tempdir().unwrap();
        let mut options = Options::default();
        options.set("experiments.hot_cold", other_samples).unwrap();
        options.set("adaptive_shape", if other_samples == "on" { "auto" } else { "off" }).unwrap();
        let db = Db::open_with(dir.path().join("data"), &options).unwrap();
        let table = db.create_table("users", &TableOptions::new()).unwrap();
        for key in 0..5_000u32 {
            db.put(key.to_be_bytes(), b"value").unwrap();
            table.put(key.to_be_bytes(), b"value").unwrap();
            assert!(db.get(key.to_be_bytes()).unwrap().is_some());
            assert!(table.get(key.to_be_bytes()).unwrap().is_some());
        }
        for name in ["get_nanos", "commit_nanos"] {
            // The gaps follow from a fixed start: 10,000 operations are about 156 samples.
            let samples = number(&db, None, name);
            assert!((140..175).contains(&samples), "{name}: {samples}");
        }
        let text = db.statistics().to_prometheus();
        let samples = parsed(&text);
        let (sum, count) = (samples["terrane_get_seconds_sum"], samples["terrane_get_seconds_count"]);
        assert!(sum > 0.0 && sum / count < 60.0, "{sum} seconds of {count} gets");
        assert_eq!(
            samples["terrane_commit_seconds_bucket{le=\"+Inf\"}"],
            number(&db, None, "commit_nanos") as f64
        );
        db.close().unwrap();
    }
}
