//! Compaction filters: the rows that they get, the effect of their decisions, and the rows that snapshots
//! keep.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use terrane::{
    CompactionContext, CompactionFilter, Db, FilterDecision, Kind, Options, Table, TableOptions, counter,
};

/// A filter made of a function; keeps what it was shown.
struct Shown<F> {
    decide: F,
    sees_all: bool,
    keys: Mutex<Vec<Vec<u8>>>,
}

impl<F> std::fmt::Debug for Shown<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shown")
    }
}

impl<F: Fn(&[u8], &[u8]) -> FilterDecision + Send + Sync> CompactionFilter for Shown<F> {
    fn name(&self) -> &str {
        "shown"
    }

    fn filter(&self, key: &[u8], value: &[u8]) -> FilterDecision {
        self.keys.lock().unwrap().push(key.to_vec());
        (self.decide)(key, value)
    }

    fn sees_all(&self) -> bool {
        self.sees_all
    }
}

fn shown<F>(sees_all: bool, decide: F) -> Arc<Shown<F>>
where
    F: Fn(&[u8], &[u8]) -> FilterDecision + Send + Sync + 'static,
{
    Arc::new(Shown { decide, sees_all, keys: Mutex::default() })
}

fn open(dir: &Path) -> Db {
    let mut options = Options::default();
    for (name, value) in [("memory_bytes", "16MiB"), ("block_bytes", "1KiB"), ("row_cache", "50")] {
        options.set(name, value).unwrap();
    }
    Db::open_with(dir.join("db"), &options).unwrap()
}

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn fill(table: &Table, numbers: std::ops::Range<u64>, value: &[u8]) {
    numbers.for_each(|number| table.put(key(number), value).unwrap());
}

fn is_odd(key: &[u8]) -> bool {
    key.last().is_some_and(|byte| byte % 2 == 1)
}

#[test]
fn rows_are_taken_out_and_changed() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let table = db.default_table();
    let filter = shown(true, |key: &[u8], value: &[u8]| match key[7] % 4 {
        0 => FilterDecision::Remove,
        // It may be asked again about what it has changed.
        1 if !value.ends_with(b"!") => FilterDecision::Change([value, b"!"].concat()),
        _ => FilterDecision::Keep,
    });
    fill(table, 0..200, b"v");
    table.delete(key(7)).unwrap();
    table.set_compaction_filter(Some(filter.clone()));
    db.compact_range(table, ..).unwrap();
    let keys: BTreeSet<_> = filter.keys.lock().unwrap().iter().cloned().collect();
    assert!(!keys.contains(key(7).as_slice()) && keys.len() == 199, "not deletes: {}", keys.len());
    let rows: Vec<_> = table.iter().map(|row| row.unwrap()).collect();
    assert_eq!(rows.len(), 149);
    for (key, value) in &rows {
        let expected = if key[7] % 4 == 1 { &b"v!"[..] } else { b"v" };
        assert_eq!(&value[..], expected);
        assert_eq!(table.get(key).unwrap().as_deref(), Some(expected));
    }
    assert_eq!(db.stats().entries_filtered, 100);
    // Removed rows reveal no older version, also where the compaction had to leave a delete.
    table.set_compaction_filter(None);
    fill(table, 0..200, b"old");
    db.compact_range(table, ..).unwrap();
    db.pause_background();
    fill(table, 0..200, b"new");
    db.flush_to_run(table).unwrap();
    table.set_compaction_filter(Some(shown(true, |_: &[u8], _: &[u8]| FilterDecision::Remove)));
    db.compact_level(table, 0).unwrap();
    assert_eq!(table.iter().count(), 0);
    assert_eq!(table.get(key(3)).unwrap(), None);
    db.resume_background();
    db.close().unwrap();
    assert_eq!(open(dir.path()).default_table().iter().count(), 0);
}

#[test]
fn a_removed_range_is_skipped_without_calls() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let table = db.default_table();
    fill(table, 0..1_000, b"v");
    let filter = shown(true, |found: &[u8], _: &[u8]| match found == key(100) {
        true => FilterDecision::RemoveUntil(key(900).to_vec()),
        false => FilterDecision::Keep,
    });
    table.set_compaction_filter(Some(filter.clone()));
    db.compact_range(table, ..).unwrap();
    assert_eq!(table.iter().count(), 200);
    let keys: BTreeSet<_> = filter.keys.lock().unwrap().iter().cloned().collect();
    assert_eq!(keys.len(), 201, "the others went unasked");
}

#[test]
fn a_snapshot_keeps_what_it_sees() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let table = db.default_table();
    fill(table, 0..100, b"before");
    let snapshot = db.snapshot();
    fill(table, 50..150, b"after");
    table.set_compaction_filter(Some(shown(true, |_: &[u8], _: &[u8]| FilterDecision::Remove)));
    db.compact_range(table, ..).unwrap();
    assert_eq!(snapshot.iter(table).count(), 100);
    assert_eq!(snapshot.get(table, key(70)).unwrap().as_deref(), Some(&b"before"[..]));
    // Rows that the snapshot does not see are gone, and older versions of their keys do not reappear for
    // later readers.
    assert_eq!(table.iter().count(), 50);
    assert_eq!(table.get(key(70)).unwrap(), None);
    drop(snapshot);
    db.compact_range(table, ..).unwrap();
    assert_eq!(table.iter().count(), 0);
}

#[test]
fn a_filter_gets_completely_folded_values() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let table = db.create_table("n", &TableOptions::new().set("merge_operator", "counter").unwrap()).unwrap();
    for number in 0..20 {
        for _ in 0..number {
            table.merge(key(number), counter::encode(1)).unwrap();
        }
    }
    let filter = shown(true, |_: &[u8], value: &[u8]| match counter::decode(value).unwrap() < 10 {
        true => FilterDecision::Remove,
        false => FilterDecision::Keep,
    });
    table.set_compaction_filter(Some(filter.clone()));
    db.compact_range(&table, ..).unwrap();
    // Operands that a flush folded are a value now; the other compaction passes it to the filter, too.
    db.compact_range(&table, ..).unwrap();
    assert_eq!(table.iter().count(), 10);
    assert_eq!(counter::decode(&table.get(key(15)).unwrap().unwrap()).unwrap(), 15);
}

#[test]
fn writes_from_inside_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let (table, refused) = (db.default_table(), Arc::new(AtomicU64::new(0)));
    fill(table, 0..10, b"v");
    let (inner, count) = (table.clone(), refused.clone());
    let filter = shown(true, move |key: &[u8], _: &[u8]| {
        let error = inner.put(key, b"from inside").unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid);
        count.fetch_add(1, Ordering::Relaxed);
        FilterDecision::Keep
    });
    table.set_compaction_filter(Some(filter));
    db.compact_range(table, ..).unwrap();
    assert!(refused.load(Ordering::Relaxed) >= 10);
    table.set_compaction_filter(None);
    assert_eq!(table.get(key(1)).unwrap().as_deref(), Some(&b"v"[..]));
}

#[test]
fn a_panic_changes_nothing_and_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let table = db.default_table();
    fill(table, 0..100, b"v");
    let filter = shown(true, |key: &[u8], _: &[u8]| match is_odd(key) && key[7] > 50 {
        true => panic!("a filter that is not right"),
        false => FilterDecision::Remove,
    });
    table.set_compaction_filter(Some(filter));
    let error = db.compact_range(table, ..).unwrap_err();
    assert!(error.to_string().contains("compaction filter \"shown\" panicked at key"), "{error}");
    assert_eq!(table.iter().count(), 100);
    table.put(b"writes", b"go on").unwrap();
    table.set_compaction_filter(None);
    db.close().unwrap();
    let db = open(dir.path());
    db.compact_range(db.default_table(), ..).unwrap();
    assert_eq!(db.default_table().iter().count(), 101);
}

/// The limit of a value is not a lack of space: the filter must be fixed.
#[test]
fn a_value_that_is_too_long_changes_nothing_and_is_the_fault_of_the_filter() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let table = db.default_table();
    fill(table, 0..10, b"v");
    let filter = shown(true, |_: &[u8], _: &[u8]| FilterDecision::Change(vec![0; (64 << 20) + 1]));
    table.set_compaction_filter(Some(filter));
    let error = db.compact_range(table, ..).unwrap_err();
    assert_eq!(error.kind(), Kind::Invalid, "{error}");
    let said = error.to_string();
    assert!(said.contains("compaction filter \"shown\" at key") && said.contains("fix the filter"), "{said}");
    table.set_compaction_filter(None);
    db.compact_range(table, ..).unwrap();
    assert_eq!(table.iter().count(), 10);
}

/// Gives each compaction a filter of its own, and counts its calls.
#[derive(Debug, Default)]
struct Factory {
    asked: AtomicU64,
    manual: AtomicU64,
    full: AtomicU64,
    panics: bool,
}

impl CompactionFilter for Factory {
    fn name(&self) -> &str {
        "factory"
    }

    fn filter(&self, _key: &[u8], _value: &[u8]) -> FilterDecision {
        panic!("rows go to the filters that it makes")
    }

    fn for_compaction(&self, compaction: CompactionContext) -> Option<Arc<dyn CompactionFilter>> {
        assert!(!self.panics, "on purpose");
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.manual.fetch_add(u64::from(compaction.is_manual), Ordering::Relaxed);
        self.full.fetch_add(u64::from(compaction.is_full), Ordering::Relaxed);
        Some(shown(true, |key: &[u8], _: &[u8]| match is_odd(key) {
            true => FilterDecision::Remove,
            false => FilterDecision::Keep,
        }))
    }
}

#[test]
fn each_compaction_has_a_filter_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let table = db.default_table();
    fill(table, 0..200, b"v");
    let factory = Arc::new(Factory::default());
    table.set_compaction_filter(Some(factory.clone()));
    db.compact_range(table, ..).unwrap();
    assert_eq!(table.iter().count(), 100);
    let counted = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    assert!(counted(&factory.asked) > 0 && counted(&factory.manual) > 0, "{factory:?}");
    assert!(counted(&factory.full) > 0, "everything took part: {factory:?}");
    table.set_compaction_filter(Some(Arc::new(Factory { panics: true, ..Factory::default() })));
    fill(table, 0..200, b"v");
    let error = db.compact_range(table, ..).unwrap_err();
    assert!(error.to_string().contains("compaction filter \"factory\" panicked"), "{error}");
    table.set_compaction_filter(None);
    assert_eq!(table.iter().count(), 200);
}

#[test]
fn a_filter_is_shown_separated_values() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let table = db.create_table("t", &TableOptions::new().value_separation_bytes(100)).unwrap();
    for number in 0..300 {
        table.put(key(number), vec![(number % 3) as u8; 200]).unwrap();
    }
    db.flush().unwrap();
    table.set_compaction_filter(Some(shown(true, |_, value| {
        assert_eq!(value.len(), 200, "the value, not the pointer to it");
        match value[0] {
            0 => FilterDecision::Keep,
            1 => FilterDecision::Remove,
            _ => FilterDecision::Change(vec![9; 150]),
        }
    })));
    db.compact_range(&table, ..).unwrap();
    for number in 0..300 {
        let expected = match number % 3 {
            0 => Some(vec![0; 200]),
            1 => None,
            _ => Some(vec![9; 150]),
        };
        assert_eq!(table.get(key(number)).unwrap().map(|value| value.to_vec()), expected, "key {number}");
    }
}
