//! Tables with a comparator that is not registered, or that fails.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering as Memory};

use terrane::{
    Backups, CompactionContext, CompactionFilter, Comparator, Db, ExtentSummary, FilterDecision, Functions,
    IndexedBatch, KeyOrders, Kind, Result, Table, TransactionOptions,
};

use super::border::own;
use super::{open, options, rows};

/// Extents of many blocks whose range deletes reach beyond their entries at both ends, as the comparator
/// orders and as bytes do.
fn fill(db: &Db) -> Table {
    let table = db.create_table("t", &own("test.backward")).unwrap();
    let key = |number: u32| format!("{:03}{}", number % 997, number).into_bytes();
    for number in 0..3000u32 {
        table.put(key(number), [7; 100]).unwrap();
    }
    db.flush().unwrap();
    db.compact_range(&table, ..).unwrap();
    let snapshot = db.snapshot();
    for (from, to) in [("a8", "a7"), ("x5", "0001"), ("b1", "zz0")] {
        table.delete_range(from.as_bytes(), to.as_bytes()).unwrap();
    }
    table.put(b"m4", b"between").unwrap();
    db.flush().unwrap();
    db.compact_range(&table, ..).unwrap();
    drop(snapshot);
    table
}

#[test]
fn a_backup_is_verified_and_restored_without_the_comparator() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("data"));
    let table = fill(&db);
    let expected = rows(table.iter());
    assert!(expected.len() > 100, "{}", expected.len());
    let backups = Backups::open(dir.path().join("backups"));
    let id = backups.create(&db).unwrap().id;
    let report = backups.verify(id).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let restored = dir.path().join("restored");
    backups.restore(id, &restored).unwrap();
    let db = open(&restored);
    assert_eq!(rows(db.table("t").unwrap().iter()), expected);
    assert!(db.check(&mut |_, _| ()).unwrap().findings.is_empty());
}

/// Orders as bytes do, or the other way round, until it breaks: then it panics.
#[derive(Debug, Default)]
pub(super) struct Breaking {
    is_broken: AtomicBool,
    /// Calls up to the one that panics; none does if it is not above 0.
    pub(super) calls_left: AtomicI64,
    descends: bool,
}

impl Comparator for Breaking {
    fn name(&self) -> &str {
        "test.breaking"
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        assert!(!self.is_broken.load(Memory::SeqCst), "it is broken");
        assert!(self.calls_left.fetch_sub(1, Memory::SeqCst) != 1, "the last call");
        if self.descends { right.cmp(left) } else { left.cmp(right) }
    }
}

impl Breaking {
    pub(super) fn set(&self, is_broken: bool) {
        self.is_broken.store(is_broken, Memory::SeqCst);
    }
}

pub(super) fn breaking(descends: bool) -> (Arc<Breaking>, Functions) {
    let comparator = Arc::new(Breaking { descends, ..Breaking::default() });
    let orders = KeyOrders::new().with_comparator(comparator.clone()).unwrap();
    (comparator, Functions { orders, ..Functions::default() })
}

pub(super) fn refused<T>(what: &str, result: Result<T>) {
    let error = result.err().unwrap_or_else(|| panic!("{what} was answered"));
    assert_eq!(error.kind(), Kind::Poisoned, "{what}: {error}");
    assert!(error.to_string().contains("comparator"), "{what}: {error}");
}

/// A database with a few rows, in memory and in extents, of a table whose comparator works until `read` is
/// called.
pub(super) fn with_a_breaking_table(read: impl FnOnce(&Db, &Table, &Breaking)) {
    let dir = tempfile::tempdir().unwrap();
    let (comparator, functions) = breaking(false);
    let db = Db::open_with_functions(dir.path().join("data"), &options(), functions).unwrap();
    let table = db.create_table("t", &own("test.breaking")).unwrap();
    for number in 0..200u8 {
        table.put([number], [number; 50]).unwrap();
        if number == 100 {
            db.flush().unwrap();
        }
    }
    read(&db, &table, &comparator);
    comparator.set(false);
}

#[test]
fn several_keys_are_not_answered_by_a_comparator_that_fails() {
    with_a_breaking_table(|_, table, comparator| {
        comparator.set(true);
        refused("multi_get", table.multi_get(&[b"a", b"b", b"\x07"]));
    });
    with_a_breaking_table(|db, table, comparator| {
        comparator.set(true);
        refused("multi_get of a snapshot", db.snapshot().multi_get(table, &[b"a", b"b", b"\x07"]));
    });
}

#[test]
fn a_scan_does_not_end_early_by_a_comparator_that_fails() {
    // The last row lies behind what the comparator says of the end of the range.
    with_a_breaking_table(|_, table, comparator| {
        let mut iter = table.range(&[250][..]..);
        comparator.set(true);
        let last = std::iter::from_fn(|| iter.next()).last().expect("it ends with an error");
        refused("range", last);
        assert!(iter.next().is_none() && iter.next_back().is_none());
    });
    with_a_breaking_table(|_, table, comparator| {
        let mut iter = table.range(..&[0][..]).rev();
        comparator.set(true);
        refused("range backwards", iter.by_ref().last().expect("it ends with an error"));
    });
}

#[test]
fn a_cursor_without_a_row_says_that_the_comparator_failed() {
    with_a_breaking_table(|_, table, comparator| {
        let mut cursor = table.cursor();
        comparator.set(true);
        // Whether it finds a row by the wrong answers or not.
        refused("seek", cursor.seek([250]));
        assert!(cursor.row().is_none());
    });
    with_a_breaking_table(|_, table, comparator| {
        let mut cursor = table.range_cursor(&[3][..]..&[4][..]).unwrap();
        cursor.seek_first().unwrap();
        assert_eq!(cursor.row().unwrap().0, [3]);
        comparator.set(true);
        refused("next", cursor.next());
        assert!(cursor.row().is_none());
    });
}

fn is_poisoned(error: terrane::Error) {
    assert_eq!(error.kind(), Kind::Poisoned, "{error}");
}

#[test]
fn a_filtered_cursor_reports_that_the_comparator_failed() {
    let hiding = || Arc::new(|extent: &ExtentSummary| extent.entries == 1);
    // Against bytes, so that what a failure falls back to does not find the extent that is hidden.
    for calls_left in 0..8 {
        let dir = tempfile::tempdir().unwrap();
        let (comparator, functions) = breaking(true);
        let db = Db::open_with_functions(dir.path().join("data"), &options(), functions).unwrap();
        let settings = own("test.breaking").set("auto_compaction", "false").unwrap();
        let table = db.create_table("t", &settings).unwrap();
        (0..100u8).for_each(|number| table.put([number], b"v").unwrap());
        db.flush().unwrap();
        let mut early = table.filtered_cursor(.., hiding()).unwrap();
        table.put([100], b"v").unwrap();
        db.flush().unwrap();
        db.wait_until_quiescent().unwrap();
        comparator.calls_left.store(calls_left, Memory::SeqCst);
        comparator.set(calls_left == 0);
        let range = &[90][..]..&[10][..];
        let made = [
            table.filtered_cursor(.., hiding()),
            table.filtered_cursor(range.clone(), hiding()),
            db.snapshot().filtered_cursor(&table, range, hiding()),
        ];
        // The bounds of a range are compared when a cursor over it is made, which may be refused at once.
        let mut cursors: Vec<_> = made.into_iter().flat_map(|made| made.map_err(is_poisoned)).collect();
        early.refresh();
        comparator.set(true);
        cursors.push(early);
        for mut cursor in cursors {
            refused("seek", cursor.seek([50]));
            assert!(cursor.row().is_none());
        }
        comparator.set(false);
    }
}

#[test]
fn scans_of_batches_and_transactions_do_not_end_early_by_a_comparator_that_fails() {
    with_a_breaking_table(|_, table, comparator| {
        let mut batch = IndexedBatch::new();
        batch.put(table, [3, 3], b"v").unwrap();
        let mut iter = batch.range(table, &[3][..]..&[4][..]);
        assert_eq!(iter.next().unwrap().unwrap().0, [3]);
        comparator.set(true);
        refused("batch", iter.by_ref().last().expect("it ends with an error"));
        assert!(iter.next().is_none());
    });
    with_a_breaking_table(|db, table, comparator| {
        let transaction = db.transaction(&TransactionOptions::default()).unwrap();
        let mut iter = transaction.range(table, &[3][..]..&[4][..]).unwrap();
        assert_eq!(iter.next().unwrap().unwrap().0, [3]);
        comparator.set(true);
        refused("transaction", iter.by_ref().last().expect("it ends with an error"));
        assert!(iter.next_back().is_none());
    });
}

#[test]
fn every_view_of_a_follower_reports_that_the_comparator_failed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let (_, functions) = breaking(false);
    let db = Db::open_with_functions(&path, &options(), functions).unwrap();
    let table = db.create_table("t", &own("test.breaking")).unwrap();
    for number in 0..200u8 {
        table.put([number], [number; 50]).unwrap();
    }
    db.flush().unwrap();
    let (comparator, functions) = breaking(false);
    let follower = Db::open_follower_with(&path, &options(), functions.clone()).unwrap();
    follower.catch_up().unwrap();
    // The extents of this view are those of the one before.
    let view = follower.view();
    let followed = view.table("t").unwrap();
    assert!(followed.get([7]).unwrap().is_some());
    comparator.set(true);
    refused("get", followed.get([9]));
    refused("get", followed.get([9]));
    comparator.set(false);
    refused("catching up", follower.catch_up());
    let again = Db::open_follower_with(&path, &options(), functions).unwrap();
    assert!(again.view().table("t").unwrap().get([9]).unwrap().is_some(), "another opening");
}

/// Takes out what it was made for: each compaction has one of its own.
#[derive(Debug)]
struct Makes(bool);

impl CompactionFilter for Makes {
    fn name(&self) -> &str {
        "test.makes"
    }

    fn filter(&self, key: &[u8], _value: &[u8]) -> FilterDecision {
        if self.0 && key.starts_with(b"gone") { FilterDecision::Remove } else { FilterDecision::Keep }
    }

    fn sees_all(&self) -> bool {
        true
    }

    fn for_compaction(&self, _compaction: CompactionContext) -> Option<Arc<dyn CompactionFilter>> {
        Some(Arc::new(Makes(true)))
    }
}

#[test]
fn a_filter_of_one_compaction_sees_keys_as_users_know_them() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("data"));
    let table = db.create_table("t", &own("reverse")).unwrap();
    table.set_compaction_filter(Some(Arc::new(Makes(false))));
    for key in [&b"gone1"[..], b"gone2", b"stays"] {
        table.put(key, b"v").unwrap();
    }
    db.compact_range(&table, ..).unwrap();
    assert_eq!(rows(table.iter()), [(b"stays".to_vec(), b"v".to_vec())]);
}

#[test]
fn an_opening_reports_that_the_comparator_failed_and_no_damage() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let (comparator, functions) = breaking(true);
    let db = Db::open_with_functions(&path, &options(), functions.clone()).unwrap();
    let table = db.create_table("t", &own("test.breaking").value_separation_bytes(0)).unwrap();
    // As bytes the extents lie the wrong way round.
    for number in 0..60u32 {
        table.put(number.to_be_bytes(), vec![7; 100_000]).unwrap();
    }
    db.flush().unwrap();
    db.compact_range(&table, ..).unwrap();
    drop(table);
    db.close().unwrap();
    comparator.set(true);
    refused("opening", Db::open_with_functions(&path, &options(), functions.clone()));
    comparator.set(false);
    Db::open_with_functions(&path, &options(), functions).unwrap();
}

#[test]
fn a_repair_goes_on_where_a_comparator_does_not_fit() {
    let dir = tempfile::tempdir().unwrap();
    let (path, repaired) = (dir.path().join("data"), dir.path().join("repaired"));
    let db = Db::open_with_functions(&path, &options(), breaking(false).1).unwrap();
    let table = db.create_table("t", &own("test.breaking")).unwrap();
    for number in 0..100u8 {
        table.put([number], b"v").unwrap();
        db.put([number], b"v").unwrap();
    }
    db.flush().unwrap();
    drop(table);
    db.close().unwrap();
    let other = breaking(true).1;
    let error = Db::open_with_functions(&path, &options(), other.clone()).err().unwrap();
    assert_eq!(error.kind(), Kind::Corrupt, "{error}");
    let report = terrane::repair_with_functions(&path, &repaired, &options(), other.clone()).unwrap();
    assert_eq!(report.losses.len(), 1, "{:?}", report.losses);
    let loss = &report.losses[0];
    assert_eq!((loss.table.as_deref(), loss.entries), (Some("t"), Some(100)), "{}", loss.error);
    assert!(loss.error.to_string().contains("comparator"), "{}", loss.error);
    let db = Db::open_with_functions(&repaired, &options(), other).unwrap();
    assert_eq!(db.default_table().iter().count(), 100);
    assert_eq!(db.table("t").unwrap().iter().count(), 0);
}

#[test]
fn a_failed_comparator_is_not_reported_as_damage() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let (comparator, functions) = breaking(true);
    let db = Db::open_with_functions(&path, &options(), functions.clone()).unwrap();
    let table = db.create_table("t", &own("test.breaking").value_separation_bytes(0)).unwrap();
    // As bytes the rows of each block lie the wrong way round.
    for number in 0..60u32 {
        table.put(number.to_be_bytes(), vec![7; 100_000]).unwrap();
    }
    db.flush().unwrap();
    db.compact_range(&table, ..).unwrap();
    for number in (0..60u32).step_by(7) {
        table.put(number.to_be_bytes(), b"new").unwrap();
    }
    comparator.set(true);
    refused("a flush", db.flush());
    refused("another flush", db.flush());
    let report = db.check(&mut |_, _| ()).unwrap();
    assert!(!report.findings.is_empty());
    for finding in report.findings.iter().chain(&db.background_errors()) {
        assert_eq!(finding.error.kind(), Kind::Poisoned, "{}", finding.error);
    }
    comparator.set(false);
    drop(table);
    drop(db);
    let db = Db::open_with_functions(&path, &options(), functions).unwrap();
    let table = db.table("t").unwrap();
    db.flush().unwrap();
    db.compact_range(&table, ..).unwrap();
    assert_eq!(table.iter().count(), 60);
    assert_eq!(table.get(7u32.to_be_bytes()).unwrap().as_deref(), Some(&b"new"[..]));
    assert!(db.check(&mut |_, _| ()).unwrap().findings.is_empty() && db.background_errors().is_empty());
}
