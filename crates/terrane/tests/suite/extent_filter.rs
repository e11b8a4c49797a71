//! Cursors with an extent filter, which skip extents.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use terrane::{Cursor, Db, ExtentSummary, Table, TableOptions};

fn keys(cursor: &mut Cursor) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    cursor.seek_first().unwrap();
    while let Some((key, value)) = cursor.row() {
        found.push((text(key), text(value)));
        cursor.next().unwrap();
    }
    let mut backward = Vec::new();
    cursor.seek_last().unwrap();
    while let Some((key, value)) = cursor.row() {
        backward.push((text(key), text(value)));
        cursor.prev().unwrap();
    }
    backward.reverse();
    assert_eq!(found, backward);
    found
}

fn rows(rows: &[(&str, &str)]) -> Vec<(String, String)> {
    rows.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// A run for each of 1, 2 and 3 entries.
fn runs(db: &Db) -> Table {
    let options = TableOptions::new().set("auto_compaction", "false").unwrap();
    let table = db.create_table("t", &options).unwrap();
    for batch in [&[("a", "1")][..], &[("b", "1"), ("c", "1")], &[("d", "1"), ("e", "1"), ("f", "1")]] {
        for (key, value) in batch {
            table.put(key.as_bytes(), value.as_bytes()).unwrap();
        }
        db.flush().unwrap();
    }
    table
}

#[test]
fn a_filtered_extent_is_skipped_and_the_filter_is_called_once_for_each() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    let table = runs(&db);
    let calls = Arc::new(AtomicU64::new(0));
    let counting = calls.clone();
    let shows = Arc::new(move |extent: &ExtentSummary| {
        counting.fetch_add(1, Ordering::Relaxed);
        extent.entries != 2
    });
    let mut cursor = table.filtered_cursor(.., shows.clone()).unwrap();
    let expected = rows(&[("a", "1"), ("d", "1"), ("e", "1"), ("f", "1")]);
    assert_eq!(keys(&mut cursor), expected);
    assert_eq!(calls.load(Ordering::Relaxed), 3, "once for each extent, whatever is sought");
    // A refresh that finds no new extents does not call the filter.
    cursor.refresh();
    assert_eq!(keys(&mut cursor), expected);
    assert_eq!(calls.load(Ordering::Relaxed), 3);
    // Rows in memory show; the filter is called for the extents of another flush, too.
    table.put(b"g", b"1").unwrap();
    cursor.refresh();
    assert_eq!(keys(&mut cursor).len(), 5);
    db.flush().unwrap();
    cursor.refresh();
    assert_eq!(keys(&mut cursor).len(), 5);
    assert!(calls.load(Ordering::Relaxed) >= 7);
    // For extents outside of the bounds the filter is not called.
    calls.store(0, Ordering::Relaxed);
    let mut cursor = table.filtered_cursor(b"b".as_slice()..b"d".as_slice(), shows.clone()).unwrap();
    assert!(keys(&mut cursor).is_empty());
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    // Point reads, and cursors without a filter, see everything.
    assert_eq!(table.iter().count(), 7);
    assert!(table.contains(b"b").unwrap());
    let snapshot = db.snapshot();
    table.put(b"h", b"1").unwrap();
    let mut cursor = snapshot.filtered_cursor(&table, .., shows).unwrap();
    assert_eq!(keys(&mut cursor).len(), 5);
}

#[test]
fn versions_below_a_filtered_extent_show() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    let table = runs(&db);
    table.put(b"a", b"2").unwrap();
    db.flush().unwrap();
    table.delete_range(b"b", b"e").unwrap();
    db.flush().unwrap();
    let all = |_: &ExtentSummary| true;
    let mut cursor = table.filtered_cursor(.., Arc::new(all)).unwrap();
    assert_eq!(keys(&mut cursor), rows(&[("a", "2"), ("e", "1"), ("f", "1")]));
    let newest = table.extents().unwrap().iter().map(|extent| extent.summary.seq_max).max().unwrap();
    let shows = move |extent: &ExtentSummary| extent.seq_max < newest;
    let mut cursor = table.filtered_cursor(.., Arc::new(shows)).unwrap();
    let expected = rows(&[("a", "2"), ("b", "1"), ("c", "1"), ("d", "1"), ("e", "1"), ("f", "1")]);
    assert_eq!(keys(&mut cursor), expected);
    let shows = move |extent: &ExtentSummary| extent.seq_max.0 <= 6;
    let mut cursor = table.filtered_cursor(.., Arc::new(shows)).unwrap();
    assert_eq!(keys(&mut cursor)[0], ("a".to_owned(), "1".to_owned()), "the older version");
}
