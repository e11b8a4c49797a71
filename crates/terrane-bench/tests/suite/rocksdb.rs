//! Texts of RocksDB that the adapter reads: counters, levels, options, merge operators.
#![cfg(feature = "rocksdb")]
#![expect(clippy::disallowed_methods, reason = "writes files as RocksDB does")]

use std::collections::BTreeMap;

use terrane_bench::engine::rocksdb::counters::{TableFile, levels, of_perf_context, of_statistics};
use terrane_bench::engine::rocksdb::operators;
use terrane_bench::engine::rocksdb::recorded::{Recorded, read};

#[test]
fn statistics_are_read_by_name() {
    let text = "rocksdb.block.cache.miss COUNT : 7\nrocksdb.block.cache.hit COUNT : 30\n\
                rocksdb.bloom.filter.useful COUNT : 5\nrocksdb.bloom.filter.full.positive COUNT : 4\n\
                rocksdb.bloom.filter.full.true.positive COUNT : 3\n\
                rocksdb.db.get.micros P50 : 1.0 P95 : 2.0 COUNT : 9 SUM : 10\n";
    let counters = of_statistics(text);
    assert_eq!((counters.cache_hits, counters.cache_misses), (Some(30), Some(7)));
    assert_eq!((counters.filter_probes, counters.filter_false_positives), (Some(9), Some(1)));
    assert_eq!(counters.log_bytes_written, None);
}

#[test]
fn perf_contexts_are_read_by_name() {
    let counters = of_perf_context(
        "user_key_comparison_count = 12, block_cache_hit_count = 3, bloom_sst_hit_count = 2, ",
    );
    assert_eq!(
        (counters.cache_hits, counters.cache_misses, counters.filter_probes),
        (Some(3), Some(0), Some(2))
    );
}

#[test]
fn files_of_level_0_are_runs_and_deeper_levels_one_per_table() {
    let file = |family: &str, level, bytes| TableFile {
        family: family.to_owned(),
        name: String::new(),
        level,
        bytes,
        entries: 10,
    };
    let files = [file("a", 0, 1), file("a", 0, 2), file("a", 6, 4), file("a", 6, 8), file("b", 6, 16)];
    let rows = levels(&files);
    let seen: Vec<_> = rows.iter().map(|row| (row.part.as_str(), row.runs, row.entries, row.bytes)).collect();
    assert_eq!(seen, [("L0", 2, Some(20), 3), ("L6", 2, Some(30), 28)]);
}

#[test]
fn only_the_option_of_that_name_is_the_operator() {
    let apart = |text| {
        let (operator, others) = operators::apart(text);
        (operator.unwrap_or_default(), others)
    };
    let both = |operator: &str, others: &str| (operator.to_owned(), others.to_owned());
    assert_eq!(apart(""), both("", ""));
    assert_eq!(apart("merge_operator=put"), both("put", ""));
    assert_eq!(apart("a=1; merge_operator = uint64add ;b=2;"), both("uint64add", "a=1;b=2"));
    let nested = "t={merge_operator=no;x={y=1;}};merge_operator={id=StringAppendOperator;delimiter=,;}";
    assert_eq!(
        apart(nested),
        both("{id=StringAppendOperator;delimiter=,;}", "t={merge_operator=no;x={y=1;}}")
    );
    let path = "wal_dir=/merge_operator/x;merge_operator_like=1";
    assert_eq!(apart(path), both("", path));
    assert_eq!(apart("merge_operator=a;merge_operator=b"), both("b", ""));
}

#[test]
fn the_newest_file_of_options_counts() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = |name: &str, operator: &str| {
        let text = format!(
            "# comment\n[Version]\n  rocksdb_version=11.8.1\n[CFOptions \"default\"]\n  comparator=leveldb.BytewiseComparator\n  \
             merge_operator={operator}\n[TableOptions/BlockBasedTable \"default\"]\n  merge_operator=wrong\n\
             [CFOptions \"a\\#b\"]\n  comparator=mine\n  merge_operator=nullptr\n"
        );
        std::fs::write(directory.path().join(name), text).expect("written");
    };
    assert_eq!(read(directory.path()), Ok(BTreeMap::new()));
    file("OPTIONS-000009", "old");
    file("OPTIONS-000010", "{id=StringAppendOperator;delimiter=,;}");
    file("OPTIONS-000011.dbtmp", "unfinished");
    let found = read(directory.path()).expect("there");
    let family = |comparator: &str, operator: Option<&str>| Recorded {
        comparator: Some(comparator.to_owned()),
        merge_operator: operator.map(str::to_owned),
    };
    assert_eq!(
        found["default"],
        family("leveldb.BytewiseComparator", Some("{id=StringAppendOperator;delimiter=,;}"))
    );
    assert_eq!(found["a#b"], family("mine", None));
    let missing = read(&directory.path().join("missing")).map(|_| ()).expect_err("no directory");
    assert!(missing.to_string().contains("missing"), "{missing}");
}
