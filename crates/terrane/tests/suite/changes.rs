//! Changes: every committed batch, whole, once, in order; history and its end; waiting; replicas over
//! reopenings.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test, which harms files and starts threads"
)]

#[path = "changes/history.rs"]
mod history;

use std::collections::BTreeMap;
use std::time::Duration;

use terrane::{
    Batch, ChangeBatch, ChangeKind, Changes, Db, Durability, FeedOptions, Kind, Options, SeqNo, TableOptions,
    TransactionOptions,
};
use terrane_base::Rng;

/// Segments of 64 KiB, so that few writes fill several.
fn options(history_bytes: Option<&str>) -> Options {
    let mut options = Options { memory_bytes: 16 << 20, segment_bytes: 64 << 10, ..Options::default() };
    if let Some(bytes) = history_bytes {
        options.set("history_bytes", bytes).unwrap();
    }
    options
}

fn batches_of(changes: &mut Changes) -> Vec<ChangeBatch> {
    changes.by_ref().map(Result::unwrap).collect()
}

/// Writes `count` values of 1 KiB, one batch each.
fn fill(db: &Db, count: u32) {
    for number in 0..count {
        db.put(number.to_be_bytes(), [number as u8; 1024]).unwrap();
    }
}

/// A batch of any changes in two tables, one of which folds numbers.
fn random_batch(db: &Db, random: &mut Rng) -> Batch {
    let tables = [db.default_table().clone(), db.table("counters").unwrap()];
    let mut batch = Batch::new();
    for _ in 0..=random.below(5) {
        let counts = random.one_in(2);
        let table = &tables[usize::from(counts)];
        let key = [b'k', random.below(60) as u8];
        // A table of counters takes values of 8 bytes only.
        let value = |value: Vec<u8>| if counts { vec![7; 8] } else { value };
        match random.below(8) {
            0..=2 => batch.put(table, key, value(vec![7; 8 + random.below(900) as usize])).unwrap(),
            3 => batch.delete(table, key).unwrap(),
            4 => batch.delete_range(table, key, [b'k', key[1] + 5]).unwrap(),
            5 => {
                let far = Duration::from_secs(1 << 33);
                batch.put_until(table, key, value(b"a very long time".to_vec()), far).unwrap();
            }
            6 => batch.put_until(table, key, value(b"long ago".to_vec()), Duration::from_secs(1)).unwrap(),
            _ => batch.merge(&tables[1], [b'c', key[1]], 1i64.to_le_bytes()).unwrap(),
        }
    }
    batch
}

fn make_counters(db: &Db) {
    if db.table("counters").is_err() {
        db.create_table("counters", &TableOptions::new().set("merge_operator", "counter").unwrap()).unwrap();
    }
}

fn position(replica: &Db) -> SeqNo {
    let stored = replica.table_or_create("position").unwrap().get(b"p").unwrap();
    SeqNo(stored.map_or(1, |value| u64::from_be_bytes(*value.first_chunk().unwrap())))
}

fn apply(replica: &Db, change_batch: &ChangeBatch) {
    let mut batch = Batch::new();
    for change in change_batch.changes() {
        batch.add_change(&replica.table(change.table.unwrap()).unwrap(), &change).unwrap();
    }
    batch
        .put(&replica.table("position").unwrap(), b"p", (change_batch.last_seq().0 + 1).to_be_bytes())
        .unwrap();
    replica.write(&batch, Durability::Buffered).unwrap();
}

fn rows(db: &Db, table: &str) -> BTreeMap<Vec<u8>, Vec<u8>> {
    db.table(table).unwrap().iter().map(Result::unwrap).collect()
}

/// Both close and open again at any time, the source flushes, and the replica has the same rows in the end.
#[test]
fn a_replica_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let (source, replica) = (dir.path().join("source"), dir.path().join("replica"));
    for seed in 0..2 {
        let mut random = Rng::new(seed);
        let mut first = Some("16MiB");
        for _ in 0..9 {
            // The rule is stored: only the first opening says it.
            let db = Db::open_with(&source, &options(first.take())).unwrap();
            make_counters(&db);
            let copy = Db::open_with(&replica, &options(None)).unwrap();
            make_counters(&copy);
            let mut changes = db.changes(position(&copy)).unwrap();
            for _ in 0..random.below(150) {
                let batch = random_batch(&db, &mut random);
                db.write(&batch, Durability::Buffered).unwrap();
                match random.below(40) {
                    0 => db.flush().unwrap(),
                    1..=20 => batches_of(&mut changes).iter().for_each(|batch| apply(&copy, batch)),
                    _ => {}
                }
            }
        }
        let db = Db::open_with(&source, &options(None)).unwrap();
        let copy = Db::open_with(&replica, &options(None)).unwrap();
        let mut changes = db.changes(position(&copy)).unwrap();
        batches_of(&mut changes).iter().for_each(|batch| apply(&copy, batch));
        for table in ["default", "counters"] {
            assert_eq!(rows(&db, table), rows(&copy, table), "seed {seed}");
        }
    }
}

/// From any number on, from history and live segments: numbers without a gap, each batch whole.
#[test]
fn readers_of_changes_get_whole_batches_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), &options(Some("4MiB"))).unwrap();
    make_counters(&db);
    let mut random = Rng::new(3);
    let mut ends = vec![0];
    for round in 0..400 {
        let batch = random_batch(&db, &mut random);
        ends.push(db.write(&batch, Durability::Buffered).unwrap().0);
        assert_eq!(ends[ends.len() - 1] - ends[ends.len() - 2], batch.len() as u64);
        if round % 90 == 0 {
            db.flush().unwrap();
        }
    }
    db.wait_until_quiescent().unwrap();
    assert!(db.shape().history_segments > 0, "{}", db.shape());
    for from in (1..=ends[400]).step_by(37) {
        let mut changes = db.changes(SeqNo(from)).unwrap();
        let first = ends.iter().position(|end| *end >= from).unwrap();
        for index in first..ends.len() {
            let batch = changes.next().unwrap().unwrap();
            assert_eq!((batch.first_seq().0, batch.last_seq().0), (ends[index - 1] + 1, ends[index]));
            let seqs: Vec<_> = batch.changes().map(|change| change.seq.0).collect();
            assert_eq!(seqs, (ends[index - 1] + 1..=ends[index]).collect::<Vec<_>>());
            assert_eq!(changes.position().0, ends[index] + 1);
        }
        assert!(changes.next().is_none());
    }
    assert_eq!(db.check(&mut |_, _| {}).unwrap().findings.len(), 0);
}

#[test]
fn flushed_changes_are_gone_without_history() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), &options(None)).unwrap();
    fill(&db, 300);
    db.flush().unwrap();
    db.wait_until_quiescent().unwrap();
    db.put(b"later", b"v").unwrap();
    let gone = db.changes(SeqNo(1)).unwrap_err();
    assert_eq!(gone.kind(), Kind::Gone);
    let oldest = gone.oldest().unwrap();
    assert!(gone.message().contains(&format!("oldest is {oldest}")), "{gone}");
    let mut changes = db.changes(oldest).unwrap();
    let all = batches_of(&mut changes);
    assert_eq!(all.first().unwrap().first_seq(), oldest);
    assert_eq!(all.last().unwrap().last_seq(), SeqNo(301));
    assert_eq!(db.changes(SeqNo(oldest.0 - 1)).unwrap_err().oldest(), Some(oldest));
    // A reader that falls behind gets an error with its position.
    let mut slow = db.changes(SeqNo(301)).unwrap();
    fill(&db, 300);
    db.flush().unwrap();
    let behind = slow.by_ref().find_map(Result::err);
    if let Some(error) = behind {
        assert_eq!(error.kind(), Kind::Gone);
    }
    let ahead = db.changes(SeqNo(1 << 40)).unwrap_err();
    assert_eq!(ahead.kind(), Kind::Invalid);
}

/// A prepared transaction shows as one batch at its commit; after a rollback it does not show.
#[test]
fn a_prepared_transaction_shows_at_its_commit() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), &options(Some("1MiB"))).unwrap();
    let mut changes = db.changes(SeqNo(1)).unwrap();
    let prepare = |name: &str, key: &[u8]| {
        let mut transaction = db.transaction(&TransactionOptions::default()).unwrap();
        transaction.put(db.default_table(), key, b"1").unwrap();
        transaction.put(db.default_table(), b"both", name.as_bytes()).unwrap();
        transaction.prepare(name).unwrap();
    };
    prepare("one", b"a");
    assert_eq!(batches_of(&mut changes).len(), 0);
    db.put(b"between", b"v").unwrap();
    assert_eq!(batches_of(&mut changes).len(), 1);
    let seq = db.commit_prepared("one", Durability::Buffered).unwrap();
    let committed = batches_of(&mut changes);
    assert_eq!(committed.len(), 1);
    let keys: Vec<_> =
        committed[0].changes().map(|change| (change.table.unwrap().to_owned(), change.kind)).collect();
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0], ("default".to_owned(), ChangeKind::Put { key: b"a", value: b"1" }));
    assert_eq!(committed[0].last_seq(), seq);
    prepare("two", b"b");
    db.rollback_prepared("two").unwrap();
    assert_eq!(batches_of(&mut changes).len(), 0);
    let mut transaction = db.transaction(&TransactionOptions::default()).unwrap();
    transaction.put(db.default_table(), b"c", b"1").unwrap();
    assert_eq!(batches_of(&mut changes).len(), 0);
    transaction.commit(Durability::Buffered).unwrap();
    assert_eq!(batches_of(&mut changes).len(), 1);
}

#[test]
fn a_waiting_reader_is_woken_by_a_commit_and_by_the_close() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), &options(None)).unwrap();
    let (send, receive) = std::sync::mpsc::channel();
    let mut changes = db.changes(SeqNo(1)).unwrap();
    let reader = std::thread::spawn(move || {
        loop {
            match changes.next_within(Duration::from_secs(600)) {
                Ok(batch) => send.send(batch.unwrap().last_seq().0).unwrap(),
                Err(error) => return error,
            }
        }
    });
    for number in 1..=200 {
        db.put(b"k", b"v").unwrap();
        assert_eq!(receive.recv().unwrap(), number);
    }
    db.close().unwrap();
    assert_eq!(reader.join().unwrap().kind(), Kind::Cancelled);
}

#[test]
fn durable_only_readers_get_only_durable_changes() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), &options(None)).unwrap();
    let mut all = db.changes(SeqNo(1)).unwrap();
    let mut durable = db.changes_with(SeqNo(1), FeedOptions::new().durable_only(true)).unwrap();
    let count = |changes: &mut Changes| batches_of(changes).len();
    db.put(b"a", b"1").unwrap();
    assert_eq!((count(&mut all), count(&mut durable)), (1, 0));
    let table = db.default_table();
    table.put_with(b"b", b"2", Durability::Synced).unwrap();
    assert_eq!((count(&mut all), count(&mut durable)), (1, 2));
    db.put(b"c", b"3").unwrap();
    db.sync().unwrap();
    assert_eq!((count(&mut all), count(&mut durable)), (1, 1));
}

/// Beside a writer, without its lock; also once it has closed, and what it keeps as history.
#[test]
fn changes_are_read_beside_a_writer() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    assert_eq!(Changes::beside(&path, SeqNo(1)).unwrap_err().kind(), Kind::NotFound);
    let db = Db::open_with(&path, &options(Some("4MiB"))).unwrap();
    let mut changes = Changes::beside(&path, SeqNo(1)).unwrap();
    assert_eq!(batches_of(&mut changes).len(), 0);
    fill(&db, 300);
    db.flush().unwrap();
    fill(&db, 100);
    let users = db.table_or_create("made later").unwrap();
    users.put(b"k", b"v").unwrap();
    let all = batches_of(&mut changes);
    assert_eq!(all.len(), 401);
    assert_eq!(all[400].changes().next().unwrap().table, Some("made later"));
    users.delete(b"k").unwrap();
    assert!(changes.next_within(Duration::from_secs(60)).unwrap().is_some());
    assert!(changes.next_within(Duration::ZERO).unwrap().is_none());
    db.close().unwrap();
    assert_eq!(batches_of(&mut Changes::beside(&path, SeqNo(200)).unwrap()).len(), 203);
    let read_only = Options { read_only: true, ..options(None) };
    let db = Db::open_with(&path, &read_only).unwrap();
    assert_eq!(batches_of(&mut db.changes(SeqNo(1)).unwrap()).len(), 402);
}

#[test]
fn a_checkpoint_begins_without_history_and_can_follow_its_source() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path().join("data"), &options(Some("4MiB"))).unwrap();
    fill(&db, 300);
    db.flush().unwrap();
    // The segments are trimmed behind the flush: until then a copy has their records, and so their changes.
    db.wait_until_quiescent().unwrap();
    let copy = db.checkpoint(dir.path().join("copy")).unwrap();
    db.put(b"after", b"v").unwrap();
    let second = Db::open_with(&copy.path, &options(None)).unwrap();
    // What the copy has of the journal becomes its history sooner or later; what the source had before does
    // not come along.
    assert_eq!(second.changes(SeqNo(1)).unwrap_err().kind(), Kind::Gone);
    let next = SeqNo(copy.last_seq.0 + 1);
    for change_batch in db.changes(next).unwrap() {
        let mut batch = Batch::new();
        for change in change_batch.unwrap().changes() {
            batch.add_change(&second.table(change.table.unwrap()).unwrap(), &change).unwrap();
        }
        second.write(&batch, Durability::Buffered).unwrap();
    }
    assert_eq!(rows(&db, "default"), rows(&second, "default"));
}

/// Readers beside writers and flushes see every number once, whichever thread is faster.
#[test]
fn readers_keep_up_with_writers() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), &options(Some("64MiB"))).unwrap();
    let total = 4 * 1500;
    std::thread::scope(|scope| {
        for writer in 0..4u8 {
            let db = &db;
            scope.spawn(move || {
                for number in 0..1500u32 {
                    let sync = if number % 500 == 0 { Durability::Synced } else { Durability::Buffered };
                    db.default_table().put_with([writer, number as u8], [writer; 400], sync).unwrap();
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                let mut changes = db.changes(SeqNo(1)).unwrap();
                for number in 1..=total {
                    let batch = changes.next_within(Duration::from_secs(600)).unwrap().unwrap();
                    assert_eq!(batch.first_seq().0, number);
                }
            });
        }
        scope.spawn(|| (0..5).for_each(|_| db.flush().unwrap()));
    });
}

/// A table stores encoded keys; readers of changes get the keys of the user.
#[test]
fn readers_of_changes_get_the_keys_of_the_user() {
    let dir = tempfile::tempdir().unwrap();
    let reverse = || TableOptions::new().set("key_order", "reverse").unwrap();
    let (db, replica) =
        (Db::open(dir.path().join("source")).unwrap(), Db::open(dir.path().join("b")).unwrap());
    let (table, copy) =
        (db.create_table("t", &reverse()).unwrap(), replica.create_table("t", &reverse()).unwrap());
    for key in [b"a", b"b", b"c", b"d"] {
        table.put(key, b"v").unwrap();
    }
    table.delete_range(b"c", b"a").unwrap();
    let batches = batches_of(&mut db.changes(SeqNo(1)).unwrap());
    let kinds: Vec<_> = batches.iter().flat_map(ChangeBatch::changes).map(|change| change.kind).collect();
    assert_eq!(kinds[1], ChangeKind::Put { key: b"b", value: b"v" });
    assert_eq!(kinds[4..], [ChangeKind::DeleteRange { start: b"c", end: b"a" }]);
    for change in batches.iter().flat_map(ChangeBatch::changes) {
        let mut batch = Batch::new();
        batch.add_change(&copy, &change).unwrap();
        replica.write(&batch, Durability::Buffered).unwrap();
    }
    assert_eq!(rows(&db, "t"), rows(&replica, "t"));
    let beside: Vec<_> =
        Changes::beside(dir.path().join("source"), SeqNo(5)).unwrap().map(Result::unwrap).collect();
    let beside = beside.iter().flat_map(ChangeBatch::changes).map(|change| change.kind);
    assert!(beside.eq([ChangeKind::DeleteRange { start: b"c", end: b"a" }]));
}

/// No record says what came in as extents, but that it came in, and where.
#[test]
fn an_ingest_shows_as_one_change_for_each_table() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    let table = db.create_table("t", &TableOptions::new()).unwrap();
    db.bulk_load(&table, [(b"k", b"v")]).unwrap();
    table.put(b"l", b"v").unwrap();
    let batches = batches_of(&mut db.changes(SeqNo(1)).unwrap());
    let changes: Vec<_> = batches.iter().flat_map(ChangeBatch::changes).collect();
    assert_eq!((changes[0].table, changes[0].kind), (Some("t"), ChangeKind::Ingest));
    assert_eq!(changes[1].kind, ChangeKind::Put { key: b"l", value: b"v" });
    let refused = Batch::new().add_change(&table, &changes[0]).unwrap_err();
    assert_eq!(refused.kind(), Kind::Invalid);
}
