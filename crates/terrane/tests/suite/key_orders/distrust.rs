//! After a comparator failed the engine does not use its answers, and they hide no row.

#![allow(clippy::disallowed_methods, reason = "one damages files of its own")]

use std::sync::atomic::Ordering as Memory;

use terrane::{Db, Durability, Isolation, Kind, TransactionOptions};

use super::border::own;
use super::failing::{breaking, refused, with_a_breaking_table};
use super::options;

/// Flips a bit of every copy of a value of 100,000 times `fill`: compactions leave old ones in what they
/// freed. Returns files and offsets.
fn flip_in_value(data: &std::path::Path, fill: u8) -> Vec<(String, u64)> {
    let mut flipped = Vec::new();
    for entry in std::fs::read_dir(data).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        let before = flipped.len();
        for start in (0..bytes.len()).step_by(50_000) {
            if bytes.get(start..start + 64).is_some_and(|run| run == [fill; 64]) {
                bytes[start] ^= 1;
                flipped.push((path.display().to_string(), start as u64));
            }
        }
        if flipped.len() > before {
            std::fs::write(&path, bytes).unwrap();
        }
    }
    assert!(!flipped.is_empty(), "no file of extents has a value of {fill:#x}");
    flipped
}

#[test]
fn damage_is_found_beside_a_comparator_that_failed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let (comparator, functions) = breaking(true);
    let db = Db::open_with_functions(&path, &options(), functions).unwrap();
    let table = db
        .create_table(
            "t",
            &own("test.breaking")
                .value_separation_bytes(0)
                .set("compression", "none")
                .unwrap()
                .set("compression_last", "none")
                .unwrap(),
        )
        .unwrap();
    for number in 0..60u32 {
        // The least number comes last.
        let fill = if number == 0 { 0xa5 } else { 7 };
        table.put(number.to_be_bytes(), vec![fill; 100_000]).unwrap();
    }
    db.flush().unwrap();
    db.compact_range(&table, ..).unwrap();
    comparator.set(true);
    refused("get", table.get(5u32.to_be_bytes()));
    comparator.set(false);
    let flipped = flip_in_value(&path.join("data"), 0xa5);
    let report = db.check(&mut |_, _| ()).unwrap();
    assert!(report.extents > 1, "{report:?}");
    assert_eq!(report.entries, 60, "every extent was looked at");
    let kinds: Vec<Kind> = report.findings.iter().map(|finding| finding.error.kind()).collect();
    assert_eq!(kinds, [Kind::Corrupt, Kind::Poisoned], "{:?}", report.findings);
    let place = report.findings[0].error.place().expect("damage has a place");
    let is_there = |(file, at): &(String, u64)| {
        *file == place.file && place.offset <= *at && at - place.offset < 110_000
    };
    assert!(flipped.iter().any(is_there), "{place:?} {flipped:?}");
}

/// Commits a serializable transaction that has read a range, with the comparator panicking at its `nth` call
/// during the commit. Returns whether it was called so often.
fn commit_with_failing_call(nth: i64) -> bool {
    let dir = tempfile::tempdir().unwrap();
    let (comparator, functions) = breaking(false);
    let db = Db::open_with_functions(dir.path().join("data"), &options(), functions).unwrap();
    let table = db.create_table("t", &own("test.breaking")).unwrap();
    table.put([50], b"v").unwrap();
    let serializable =
        TransactionOptions { isolation: Isolation::Serializable, ..TransactionOptions::default() };
    // An older transaction keeps the conflict window from comparing keys in order to forget them.
    let _before = db.transaction(&serializable).unwrap();
    let mut transaction = db.transaction(&serializable).unwrap();
    assert_eq!(transaction.range(&table, &[40][..]..&[60][..]).unwrap().count(), 1);
    transaction.put(db.default_table(), b"seen", b"one row").unwrap();
    // Keys outside of the range, which the commit compares with it.
    for key in [10, 90, 20, 80] {
        table.put([key], b"v").unwrap();
    }
    comparator.calls_left.store(nth, Memory::SeqCst);
    let committed = transaction.commit(Durability::Buffered);
    let has_failed = comparator.calls_left.swap(0, Memory::SeqCst) <= 0;
    if has_failed {
        refused("commit", committed);
    } else {
        committed.unwrap();
    }
    assert_eq!(db.get(b"seen").unwrap().is_none(), has_failed, "call {nth}");
    has_failed
}

#[test]
fn a_commit_fails_if_its_comparator_fails_meanwhile() {
    let calls = (1..100).take_while(|nth| commit_with_failing_call(*nth)).count();
    assert!((3..99).contains(&calls), "{calls} calls");
}

#[test]
fn a_range_delete_is_not_committed_if_the_comparator_fails() {
    with_a_breaking_table(|db, table, comparator| {
        let mut transaction = db.transaction(&TransactionOptions::default()).unwrap();
        transaction.delete_range(table, [3], [9]).unwrap();
        transaction.put(db.default_table(), b"deleted", b"six rows").unwrap();
        table.delete_range([100], [110]).unwrap();
        comparator.set(true);
        refused("commit", transaction.commit(Durability::Buffered));
        assert!(db.get(b"deleted").unwrap().is_none());
    });
}
