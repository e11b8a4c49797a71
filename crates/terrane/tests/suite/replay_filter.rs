//! Replay filters: their decisions to skip, replace and stop are permanent, for whole batches, over all
//! tables.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use terrane::{
    Batch, ChangeKind, Db, Durability, Env, Error, Functions, Kind, MemoryDevice, Options, ReplayDecision,
    ReplayFilter, ReplayedBatch, ReplayedChanges, ReplayedTable, Table, TableOptions,
};

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// A filter made of a function, which notes what it was shown.
struct Filter<F> {
    decide: F,
    batches: Mutex<Vec<String>>,
    tables: Mutex<Vec<Vec<ReplayedTable>>>,
}

impl<F: Fn(&ReplayedBatch<'_>) -> ReplayDecision + Send + std::marker::Sync> Filter<F> {
    fn new(decide: F) -> Self {
        Filter { decide, batches: Mutex::default(), tables: Mutex::default() }
    }

    fn shown(&self) -> Vec<String> {
        self.batches.lock().unwrap().clone()
    }
}

impl<F: Fn(&ReplayedBatch<'_>) -> ReplayDecision + Send + std::marker::Sync> ReplayFilter for Filter<F> {
    fn name(&self) -> &str {
        "a test's"
    }

    fn begin(&self, tables: &[ReplayedTable]) {
        self.tables.lock().unwrap().push(tables.to_vec());
    }

    fn batch(&self, batch: &ReplayedBatch<'_>) -> ReplayDecision {
        assert!(batch.file().ends_with(".seg") && batch.segment().0 > 0, "{batch:?}");
        let shown = batch.changes().iter().map(|change| {
            let key = match change.kind {
                ChangeKind::Put { key, .. } | ChangeKind::Delete { key } => key,
                ChangeKind::DeleteRange { start, .. } => start,
                other => panic!("{other:?}"),
            };
            format!("{}/{}", change.table.unwrap(), String::from_utf8_lossy(key))
        });
        self.batches.lock().unwrap().push(shown.collect::<Vec<_>>().join(" "));
        (self.decide)(batch)
    }
}

fn options() -> Options {
    // A filter is shown what a close has left to replay.
    let mut options = Options { close_flush: false, ..Options::default() };
    for (name, value) in [("memory_bytes", "16MiB"), ("segment_bytes", "64KiB"), ("memtable_bytes", "1MiB")] {
        options.set(name, value).unwrap();
    }
    options
}

fn filtered(path: &Path, filter: &dyn ReplayFilter) -> Result<Db, Error> {
    Db::open_with_replay_filter(path, &options(), Functions::default(), filter)
}

fn rows(table: &Table) -> Rows {
    table.iter().map(|row| row.unwrap()).collect()
}

fn text(rows: &Rows) -> String {
    let row = |(key, value): (&Vec<u8>, &Vec<u8>)| {
        format!("{}={}", String::from_utf8_lossy(key), String::from_utf8_lossy(value))
    };
    rows.iter().map(row).collect::<Vec<_>>().join(" ")
}

/// Batches 1 to 5: each puts its number into both tables.
fn load(path: &Path) {
    let db = Db::open_with(path, &options()).unwrap();
    let other = db.create_table("other", &TableOptions::new().set("key_order", "reverse").unwrap()).unwrap();
    for number in 1..=5u8 {
        let mut batch = Batch::new();
        batch.put(db.default_table(), [b'k', b'0' + number], [b'0' + number]).unwrap();
        batch.put(&other, [b'o', b'0' + number], [b'0' + number]).unwrap();
        db.write(&batch, Durability::Buffered).unwrap();
    }
}

/// The number of a batch of [`load`].
fn number_of(batch: &ReplayedBatch<'_>) -> u8 {
    match batch.changes()[0].kind {
        ChangeKind::Put { value, .. } => value[0] - b'0',
        other => panic!("{other:?}"),
    }
}

/// The rows of both tables; the other's as they are ordered.
fn both(db: &Db) -> (String, String) {
    (text(&rows(db.default_table())), text(&rows(&db.table("other").unwrap())))
}

fn reopened(path: &Path) -> (String, String) {
    both(&Db::open_with(path, &options()).unwrap())
}

#[test]
fn the_filter_gets_every_batch_once_in_the_order_of_commits() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    load(&path);
    let filter = Filter::new(|_: &ReplayedBatch<'_>| ReplayDecision::Keep);
    let db = filtered(&path, &filter).unwrap();
    let shown: Vec<_> = (1..=5).map(|number| format!("default/k{number} other/o{number}")).collect();
    assert_eq!(filter.shown(), shown);
    let tables = filter.tables.lock().unwrap().clone();
    assert_eq!(tables.len(), 1, "called once");
    let names: Vec<_> = tables[0].iter().map(|table| (table.name.as_str(), table.from.0)).collect();
    assert_eq!(names, [("default", 1), ("other", 1)]);
    assert_eq!(both(&db).0, "k1=1 k2=2 k3=3 k4=4 k5=5");
    assert_eq!(db.segments()[0].id.0, 1, "nothing was rewritten");
    // The filter is not called for batches that are in the levels.
    db.flush().unwrap();
    drop(db);
    let filter = Filter::new(|_: &ReplayedBatch<'_>| ReplayDecision::Stop);
    let db = filtered(&path, &filter).unwrap();
    assert!(filter.shown().is_empty(), "{:?}", filter.shown());
    assert_eq!(both(&db).0, "k1=1 k2=2 k3=3 k4=4 k5=5");
}

#[test]
fn an_ignored_batch_is_gone_from_all_tables_for_good() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    load(&path);
    let filter = Filter::new(|batch: &ReplayedBatch<'_>| match number_of(batch) {
        2 | 4 => ReplayDecision::Ignore,
        _ => ReplayDecision::Keep,
    });
    let db = filtered(&path, &filter).unwrap();
    let expected = ("k1=1 k3=3 k5=5".to_owned(), "o1=1 o3=3 o5=5".to_owned());
    assert_eq!(both(&db), expected);
    assert!(db.segments()[0].id.0 > 1, "rewritten");
    // Numbers go on behind those of what was ignored.
    let last = db.snapshot().seq();
    assert_eq!(last.0, 10);
    db.put(b"new", b"1").unwrap();
    assert_eq!(db.snapshot().seq().0, 11);
    let changes: Vec<_> =
        db.changes(terrane::SeqNo(1)).unwrap().map(|batch| batch.unwrap().first_seq().0).collect();
    assert_eq!(changes, [1, 5, 9, 11], "readers of changes get no fillers");
    db.delete(b"new").unwrap();
    drop(db);
    assert_eq!(reopened(&path), expected, "without a filter");
    let db = Db::open_with(&path, &options()).unwrap();
    assert!(db.check(&mut |_, _| ()).unwrap().findings.is_empty());
}

#[test]
fn batches_behind_a_stop_are_never_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    load(&path);
    let filter = Filter::new(|batch: &ReplayedBatch<'_>| match number_of(batch) {
        3 => ReplayDecision::Stop,
        _ => ReplayDecision::Keep,
    });
    let db = filtered(&path, &filter).unwrap();
    assert_eq!(filter.shown().len(), 3, "it is not asked any more");
    let expected = ("k1=1 k2=2".to_owned(), "o1=1 o2=2".to_owned());
    assert_eq!(both(&db), expected);
    drop(db);
    assert_eq!(reopened(&path), expected);
}

#[test]
fn a_replaced_batch_is_durable_and_keeps_its_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    load(&path);
    let filter = Filter::new(|batch: &ReplayedBatch<'_>| {
        let mut changes = ReplayedChanges::new();
        match number_of(batch) {
            // Longer than what was there.
            2 => changes.put(batch.changes()[1].table_id, b"p", &[b'x'; 3000]).unwrap(),
            3 => changes.delete_range(batch.changes()[0].table_id, b"k1", b"k2").unwrap(),
            // In the order of that table the greater key comes first.
            4 => changes.delete_range(batch.changes()[1].table_id, b"o9", b"o0").unwrap(),
            _ => return ReplayDecision::Keep,
        }
        ReplayDecision::Replace(changes)
    });
    let db = filtered(&path, &filter).unwrap();
    let (default, other) = both(&db);
    assert_eq!(default, "k5=5");
    assert_eq!(other, format!("o5=5 p={}", "x".repeat(3000)));
    let seqs: Vec<_> =
        db.changes(terrane::SeqNo(1)).unwrap().map(|batch| batch.unwrap().first_seq().0).collect();
    assert_eq!(seqs, [1, 3, 5, 7, 9]);
    drop(db);
    assert_eq!(reopened(&path), (default, other));
}

#[test]
fn refusals_name_the_filter_and_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    load(&path);
    let all = ("k1=1 k2=2 k3=3 k4=4 k5=5".to_owned(), "o1=1 o2=2 o3=3 o4=4 o5=5".to_owned());
    let refused = |decide: fn(&ReplayedBatch<'_>) -> ReplayDecision| {
        let error = filtered(&path, &Filter::new(decide)).unwrap_err();
        assert!(error.to_string().contains("a test's"), "{error}");
        error
    };
    let corrupt = refused(|batch| match number_of(batch) {
        1 => ReplayDecision::Ignore,
        2 => ReplayDecision::Corrupt,
        _ => ReplayDecision::Keep,
    });
    assert_eq!(corrupt.kind(), Kind::Corrupt);
    assert!(corrupt.to_string().contains(".seg"), "{corrupt}");
    let too_many = refused(|_| {
        let mut changes = ReplayedChanges::new();
        (0..3u8).for_each(|key| changes.put(0, &[key], b"").unwrap());
        ReplayDecision::Replace(changes)
    });
    assert_eq!(too_many.kind(), Kind::Invalid);
    let unknown = refused(|_| {
        let mut changes = ReplayedChanges::new();
        changes.put(77, b"key", b"").unwrap();
        ReplayDecision::Replace(changes)
    });
    assert_eq!(unknown.kind(), Kind::Invalid);
    let operand = refused(|_| {
        let mut changes = ReplayedChanges::new();
        changes.merge(0, b"key", b"1").unwrap();
        ReplayDecision::Replace(changes)
    });
    assert!(operand.to_string().contains("merge operator"), "{operand}");
    assert_eq!(refused(|_| panic!("on purpose")).kind(), Kind::Poisoned);
    assert_eq!(reopened(&path), all);
    let read_only = Options { read_only: true, ..options() };
    let keep = Filter::new(|_: &ReplayedBatch<'_>| ReplayDecision::Keep);
    let error = Db::open_with_replay_filter(&path, &read_only, Functions::default(), &keep).unwrap_err();
    assert_eq!(error.kind(), Kind::Invalid);
}

/// Many segments, of which some were written before the first batch that is changed, and some behind it.
#[test]
fn a_long_journal_keeps_what_was_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = Db::open_with(&path, &options()).unwrap();
    let mut expected = Rows::new();
    for number in 0..600u32 {
        db.put(number.to_be_bytes(), [number as u8; 700]).unwrap();
        if number % 7 != 3 || number < 200 {
            expected.insert(number.to_be_bytes().to_vec(), vec![number as u8; 700]);
        }
    }
    assert!(db.segments().len() > 4);
    drop(db);
    let filter = Filter::new(|batch: &ReplayedBatch<'_>| {
        let ChangeKind::Put { key, .. } = batch.changes()[0].kind else { panic!("puts only") };
        let number = u32::from_be_bytes(key.try_into().unwrap());
        if number % 7 == 3 && number >= 200 { ReplayDecision::Ignore } else { ReplayDecision::Keep }
    });
    let db = filtered(&path, &filter).unwrap();
    assert_eq!(filter.shown().len(), 600);
    assert!(rows(db.default_table()) == expected);
    db.put(b"later", b"1").unwrap();
    drop(db);
    let db = Db::open_with(&path, &options()).unwrap();
    expected.insert(b"later".to_vec(), b"1".to_vec());
    assert!(rows(db.default_table()) == expected);
    db.flush().unwrap();
    drop(db);
    assert!(rows(Db::open_with(&path, &options()).unwrap().default_table()) == expected);
}

/// The filter is not called for a prepare; a transaction whose commit is ignored stays prepared.
#[test]
fn the_filter_gets_a_prepared_transaction_at_its_commit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = Db::open_with(&path, &options()).unwrap();
    let mut transaction = db.transaction(&terrane::TransactionOptions::default()).unwrap();
    transaction.put(db.default_table(), b"key", b"value").unwrap();
    transaction.prepare("name").unwrap();
    db.put(b"other", b"1").unwrap();
    db.commit_prepared("name", Durability::Buffered).unwrap();
    drop(db);
    let filter = Filter::new(|batch: &ReplayedBatch<'_>| match batch.changes()[0].kind {
        ChangeKind::Put { key: b"key", .. } => ReplayDecision::Ignore,
        _ => ReplayDecision::Keep,
    });
    let db = filtered(&path, &filter).unwrap();
    assert_eq!(filter.shown(), ["default/other", "default/key"]);
    assert_eq!(text(&rows(db.default_table())), "other=1");
    assert_eq!(db.prepared(), ["name"], "as if the commit had not come through");
}

/// The changes of a commit are in levels, but not the record that ends the prepared transaction: neither an
/// ignoring filter nor a stop before it brings the transaction back.
#[test]
fn a_commit_that_is_in_levels_is_not_prepared_again() {
    for decision in [ReplayDecision::Ignore, ReplayDecision::Stop] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("db");
        let db = Db::open_with(&path, &options()).unwrap();
        let other = db.create_table("other", &TableOptions::new()).unwrap();
        let mut transaction = db.transaction(&terrane::TransactionOptions::default()).unwrap();
        transaction.put(db.default_table(), b"key", b"value").unwrap();
        transaction.prepare("name").unwrap();
        let mut batch = Batch::new();
        batch.put(&other, b"early", b"1").unwrap();
        db.write(&batch, Durability::Buffered).unwrap();
        db.commit_prepared("name", Durability::Buffered).unwrap();
        db.flush_to_run(db.default_table()).unwrap();
        drop((batch, other, db));
        let filter = Filter::new(|_: &ReplayedBatch<'_>| decision.clone());
        let db = filtered(&path, &filter).unwrap();
        assert_eq!(filter.shown(), ["other/early"], "{decision:?}");
        assert_eq!(both(&db), ("key=value".to_owned(), String::new()), "{decision:?}");
        assert!(db.prepared().is_empty(), "committed, and prepared again: {:?}", db.prepared());
        drop(db);
        assert!(Db::open_with(&path, &options()).unwrap().prepared().is_empty());
    }
}

#[test]
fn on_a_device_in_memory_too() {
    let device = MemoryDevice::new(64 << 20);
    let open =
        || Db::open_with_functions_on(device.disk(), "db", &options(), Env::real(), Functions::default());
    let db = open().unwrap();
    db.put(b"a", b"1").unwrap();
    db.put(b"b", b"1").unwrap();
    db.close().unwrap();
    let filter = Filter::new(|batch: &ReplayedBatch<'_>| match batch.changes()[0].kind {
        ChangeKind::Put { key: b"a", .. } => ReplayDecision::Ignore,
        _ => ReplayDecision::Keep,
    });
    let disk: Arc<_> = device.disk();
    let db =
        Db::open_with_replay_filter_on(disk, "db", &options(), Env::real(), Functions::default(), &filter);
    assert_eq!(text(&rows(db.unwrap().default_table())), "b=1");
}
