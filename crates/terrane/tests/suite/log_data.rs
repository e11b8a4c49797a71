//! Log data: every reader of changes gets it at its place in its batch; no other reader sees it.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use terrane::cores::Cores;
use terrane::{
    Backups, Batch, ChangeKind, Changes, Concurrency, Db, Durability, Functions, IndexedBatch, Kind, Options,
    ReplayDecision, ReplayFilter, ReplayedBatch, ReplayedChanges, SeqNo, TransactionOptions,
};

fn options() -> Options {
    // Without a flush at the close: the journal has batches to replay.
    let mut options =
        Options { memory_bytes: 16 << 20, segment_bytes: 64 << 10, close_flush: false, ..Options::default() };
    options.set("history_bytes", "1MiB").unwrap();
    options
}

fn open(dir: &tempfile::TempDir) -> Db {
    Db::open_with(dir.path().join("db"), &options()).unwrap()
}

/// A change in a word; of log data the data behind a #.
fn word(kind: ChangeKind<'_>) -> String {
    match kind {
        ChangeKind::Put { key, .. } => String::from_utf8_lossy(key).into_owned(),
        ChangeKind::LogData { data } => format!("#{}", String::from_utf8_lossy(data)),
        other => panic!("{other:?}"),
    }
}

/// The changes from the first number on: for each batch its first number and its changes.
fn batches_of(changes: &mut Changes) -> Vec<(u64, String)> {
    let batches = changes.by_ref().map(Result::unwrap);
    let line = |batch: terrane::ChangeBatch| {
        let mut words = Vec::new();
        for (change, seq) in batch.changes().zip(batch.first_seq().0..) {
            let is_log_data = matches!(change.kind, ChangeKind::LogData { .. });
            assert_eq!((change.seq.0, change.table.is_none()), (seq, is_log_data));
            assert_eq!(change.table_id == u32::MAX, is_log_data);
            words.push(word(change.kind));
        }
        (batch.first_seq().0, words.join(" "))
    };
    batches.map(line).collect()
}

fn all_batches(db: &Db) -> Vec<(u64, String)> {
    batches_of(&mut db.changes(SeqNo(1)).unwrap())
}

/// A batch of puts, and log data where a word begins with #.
fn batch(db: &Db, words: &str) -> Batch {
    let mut batch = Batch::new();
    for word in words.split(' ') {
        match word.strip_prefix('#') {
            Some(data) => batch.log_data(data.as_bytes()).unwrap(),
            None => batch.put(db.default_table(), word.as_bytes(), b"v").unwrap(),
        }
    }
    batch
}

fn write(db: &Db, words: &str) -> u64 {
    db.write(&batch(db, words), Durability::Synced).unwrap().0
}

fn keys(db: &Db) -> String {
    let keys = db.default_table().iter().map(|row| String::from_utf8(row.unwrap().0).unwrap());
    keys.collect::<Vec<_>>().join(" ")
}

fn expected() -> Vec<(u64, String)> {
    [(1, "#one a #two b"), (5, "#alone"), (6, "#"), (7, "c")]
        .map(|(seq, words)| (seq, words.to_owned()))
        .into()
}

fn load(db: &Db) {
    for (seq, words) in expected() {
        let count = words.split(' ').count() as u64;
        assert_eq!(write(db, &words), seq + count - 1, "each takes a number");
    }
}

#[test]
fn log_data_is_read_at_its_place_after_reopening_and_flush() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir);
    load(&db);
    assert_eq!(all_batches(&db), expected());
    assert_eq!(batches_of(&mut db.changes(SeqNo(3)).unwrap()).len(), 4, "from within a batch: the batch");
    drop(db);
    let db = open(&dir);
    assert_eq!(
        (all_batches(&db), keys(&db), db.snapshot().seq()),
        (expected(), "a b c".to_owned(), SeqNo(7))
    );
    db.flush().unwrap();
    assert_eq!((all_batches(&db), keys(&db)), (expected(), "a b c".to_owned()));
    assert_eq!(write(&db, "#later"), 8);
    assert!(db.check(&mut |_, _| ()).unwrap().findings.is_empty());
    assert_eq!(db.tables(), ["default"]);
}

#[test]
fn followers_skip_log_data_and_readers_of_changes_get_it() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir);
    let path = dir.path().join("db");
    let follower = Db::open_follower(&path).unwrap();
    load(&db);
    assert_eq!(batches_of(&mut Changes::beside(&path, SeqNo(1)).unwrap()), expected());
    follower.catch_up().unwrap();
    let view = follower.view();
    assert_eq!((keys(&view), view.snapshot().seq()), ("a b c".to_owned(), SeqNo(7)));
    assert_eq!(follower.lag().unwrap(), 0);
}

#[test]
fn copies_and_repairs_open_with_the_same_rows() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir);
    load(&db);
    let backups = Backups::open(dir.path().join("backups"));
    let made = backups.create(&db).unwrap();
    backups.restore(made.id, dir.path().join("restored")).unwrap();
    db.checkpoint(dir.path().join("checkpoint")).unwrap();
    db.close().unwrap();
    terrane::repair(dir.path().join("db"), dir.path().join("repaired"), &options()).unwrap();
    for name in ["restored", "checkpoint", "repaired"] {
        let db = Db::open_with(dir.path().join(name), &options()).unwrap();
        assert_eq!((keys(&db), db.tables()), ("a b c".to_owned(), vec!["default".to_owned()]), "{name}");
        let last = db.snapshot().seq().0;
        assert!(name == "repaired" || last == 7, "{name}: {last}");
        assert_eq!(write(&db, "#x d"), last + 2, "{name}");
        let changes = batches_of(&mut db.changes(SeqNo(last + 1)).unwrap());
        assert_eq!(changes, [(last + 1, "#x d".to_owned())], "{name}");
    }
}

/// Nothing but log data: the journal gives its segments back all the same.
#[test]
fn log_data_keeps_no_segment_alive() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { memory_bytes: 16 << 20, segment_bytes: 64 << 10, ..Options::default() };
    let db = Db::open_with(dir.path().join("db"), &options).unwrap();
    let mut data = Batch::new();
    data.log_data([b'x'; 8000]).unwrap();
    for _ in 0..100 {
        db.write(&data, Durability::Buffered).unwrap();
    }
    db.flush().unwrap();
    db.wait_until_quiescent().unwrap();
    assert!(db.segments().len() <= 3, "{} segments are kept", db.segments().len());
    assert_eq!(db.changes(SeqNo(1)).unwrap_err().kind(), Kind::Gone);
}

#[test]
fn a_batch_belongs_to_no_database_by_it_and_is_bounded_with_it() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [one, two] = [open(&dirs[0]), open(&dirs[1])];
    let mut data = Batch::new();
    data.log_data(b"data").unwrap();
    assert_eq!((data.len(), data.is_empty()), (1, false));
    for db in [&one, &two] {
        db.write(&data, Durability::Buffered).unwrap();
        assert_eq!(all_batches(db), [(1, "#data".to_owned())]);
    }
    data.put(two.default_table(), b"k", b"v").unwrap();
    assert_eq!(one.write(&data, Durability::Buffered).unwrap_err().kind(), Kind::Invalid);
    assert_eq!(data.put(one.default_table(), b"k", b"v").unwrap_err().kind(), Kind::Invalid);
    assert_eq!(two.write(&data, Durability::Buffered).unwrap(), SeqNo(3));
    let mut large = Batch::new();
    large.log_data(vec![0; 13 << 20]).unwrap();
    assert_eq!(
        one.write(&large, Durability::Buffered).unwrap_err().kind(),
        Kind::Invalid,
        "above all memory"
    );
}

#[test]
fn log_data_of_a_reader_is_added_to_another_database() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [source, copy] = [open(&dirs[0]), open(&dirs[1])];
    load(&source);
    for batch in source.changes(SeqNo(1)).unwrap() {
        let mut copied = Batch::new();
        batch.unwrap().changes().for_each(|change| copied.add_change(copy.default_table(), &change).unwrap());
        copy.write(&copied, Durability::Buffered).unwrap();
    }
    assert_eq!(all_batches(&copy), expected());
}

#[test]
fn transactions_have_it_and_do_not_meet_in_it() {
    for concurrency in [Concurrency::Optimistic, Concurrency::Pessimistic] {
        let dir = tempfile::tempdir().unwrap();
        let db = open(&dir);
        let options =
            TransactionOptions { concurrency, lock_timeout: Duration::ZERO, ..TransactionOptions::default() };
        let mut one = db.transaction(&options).unwrap();
        let mut two = db.transaction(&options).unwrap();
        one.put(db.default_table(), b"a", b"v").unwrap();
        one.log_data(b"one").unwrap();
        one.set_savepoint();
        one.log_data(b"taken back").unwrap();
        one.rollback_to_savepoint().unwrap();
        two.log_data(b"two").unwrap();
        one.prepare("prepared").unwrap();
        assert!(all_batches(&db).is_empty(), "readers get nothing of a prepared transaction");
        assert_eq!(write(&db, "#plain"), 2);
        two.commit(Durability::Buffered).unwrap();
        let mut prepared = Vec::new();
        db.prepared_changes("prepared", &mut |table, kind| prepared.push((table, word(kind)))).unwrap();
        assert_eq!(prepared, [(0, "a".to_owned()), (u32::MAX, "#one".to_owned())]);
        drop(db);
        let db = open(&dir);
        db.commit_prepared_with("prepared", &batch(&db, "#more b"), Durability::Buffered).unwrap();
        let lines = [(2, "#plain"), (3, "#two"), (4, "a #one #more b")];
        assert_eq!(all_batches(&db), lines.map(|(seq, words)| (seq, words.to_owned())));
        let small = TransactionOptions { keys_max: 1, ..options };
        let mut full = db.transaction(&small).unwrap();
        full.log_data(b"x").unwrap();
        assert_eq!(full.log_data(b"x").unwrap_err().kind(), Kind::Full);
    }
}

#[test]
fn a_repair_brings_that_of_prepared_transactions_over() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir);
    let mut transaction = db.transaction(&TransactionOptions::default()).unwrap();
    transaction.put(db.default_table(), b"a", b"v").unwrap();
    transaction.log_data(b"data").unwrap();
    transaction.prepare("one").unwrap();
    db.close().unwrap();
    let target = dir.path().join("repaired");
    assert!(terrane::repair(dir.path().join("db"), &target, &options()).unwrap().is_whole());
    let db = Db::open_with(&target, &options()).unwrap();
    assert_eq!(db.tables(), ["default"]);
    db.commit_prepared("one", Durability::Buffered).unwrap();
    assert_eq!(all_batches(&db).pop().unwrap().1, "a #data");
}

#[test]
fn batches_with_an_index_and_sessions_of_cores_have_it() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [db, other] = [open(&dirs[0]), open(&dirs[1])];
    let mut batch_of_both = IndexedBatch::new();
    batch_of_both.log_data(b"kept").unwrap();
    batch_of_both.set_savepoint();
    batch_of_both.put(other.default_table(), b"x", b"v").unwrap();
    batch_of_both.rollback_to_savepoint().unwrap();
    batch_of_both.put(db.default_table(), b"a", b"v").unwrap();
    assert!(batch_of_both.get(db.default_table(), b"log data").unwrap().is_none());
    assert_eq!((batch_of_both.len(), batch_of_both.key_count()), (2, 1));
    batch_of_both.write(&db, Durability::Buffered).unwrap();
    let cores = Cores::builder(&db).cores(2).table(db.default_table()).build().unwrap();
    let mut session = cores.session().unwrap();
    session.write(&batch(&db, "#x"), Durability::Buffered).unwrap();
    session.finish(&mut |_, answer| {
        answer.unwrap();
    });
    session.write(&batch(&db, "#y b"), Durability::Buffered).unwrap();
    session.finish(&mut |_, answer| {
        answer.unwrap();
    });
    let lines = [(1, "#kept a"), (3, "#x"), (4, "#y b")];
    assert_eq!(all_batches(&db), lines.map(|(seq, words)| (seq, words.to_owned())));
}

/// A filter that takes the batch of `a` out, puts another into the place of that of `b`, and stops at that of
/// `d`.
struct Filter(Mutex<Vec<String>>);

impl ReplayFilter for Filter {
    fn name(&self) -> &str {
        "a test's"
    }

    fn batch(&self, batch: &ReplayedBatch<'_>) -> ReplayDecision {
        let words: Vec<_> = batch.changes().iter().map(|change| word(change.kind)).collect();
        let words = words.join(" ");
        self.0.lock().unwrap().push(words.clone());
        match words.as_str() {
            "a #gone" => ReplayDecision::Ignore,
            "#old b #old" => {
                let mut changes = ReplayedChanges::new();
                changes.put(0, b"new", b"v").unwrap();
                changes.log_data(b"new").unwrap();
                ReplayDecision::Replace(changes)
            }
            "d #behind" => ReplayDecision::Stop,
            _ => ReplayDecision::Keep,
        }
    }
}

fn filtered(path: &Path, filter: &Filter) -> Db {
    Db::open_with_replay_filter(path, &options(), Functions::default(), filter).unwrap()
}

#[test]
fn a_filter_of_replay_sees_it_with_its_batch() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir);
    for words in ["a #gone", "#alone", "#old b #old", "c #kept", "d #behind", "#stays"] {
        write(&db, words);
    }
    drop(db);
    let filter = Filter(Mutex::default());
    let db = filtered(&dir.path().join("db"), &filter);
    assert_eq!(*filter.0.lock().unwrap(), ["a #gone", "#old b #old", "c #kept", "d #behind"]);
    let lines = [(3, "#alone"), (4, "new #new"), (7, "c #kept"), (11, "#stays")];
    let lines = lines.map(|(seq, words)| (seq, words.to_owned()));
    assert_eq!((all_batches(&db), keys(&db)), (lines.to_vec(), "c new".to_owned()));
    drop(db);
    assert_eq!(all_batches(&open(&dir)), lines);
}
