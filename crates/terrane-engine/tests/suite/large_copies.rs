//! Batches that are larger than their share in copies of a database: a backup, the view of another process, a
//! reader of changes and a prepared transaction have one as a whole.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use crate::large_batches::{batch, count, opened, rows};
use crate::support::{DIR, open, small_options};
use terrane_base::env::Env;
use terrane_base::{Batch, Functions, SeqNo};
use terrane_device::{Disk, MemDisk};
use terrane_engine::backup::{BackupOptions, Backups, DirectoryPlace, RestoreOptions};
use terrane_engine::{ChangeKind, Engine, Feed, FeedOptions, Transaction, TransactionOptions, Viewed};

const MIB: usize = 6;

fn view(disk: &MemDisk) -> Arc<Engine> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let functions = Functions::default();
    Viewed::of(&disk, Path::new(DIR), &small_options(), &Env::real(), &functions, None).unwrap().engine
}

/// A backup of the database, restored and opened.
fn restored(disk: &MemDisk, engine: &Engine, target: &str) -> Arc<Engine> {
    let (own, target): (Arc<dyn Disk>, _) = (Arc::new(disk.clone()), Path::new(target));
    let place = Backups::new(Arc::new(DirectoryPlace::new(own.clone(), Path::new("/backups"))), Env::real());
    let made = place.create(engine, &BackupOptions::default(), &mut |_| ControlFlow::Continue(())).unwrap();
    let mut go_on = |_: &_| ControlFlow::Continue(());
    place.restore_on(&own, made.id, target, &RestoreOptions::default(), &mut go_on).unwrap();
    Engine::open_on(own, target, &small_options(), Env::real()).unwrap()
}

#[test]
fn copies_of_a_database_have_a_large_batch_as_a_whole() {
    let disk = MemDisk::new();
    let mut options = small_options();
    options.set("history_bytes", "64MiB").unwrap();
    let engine = open(disk.clone(), &options).unwrap();
    engine.set_background_paused(true);
    engine.write(&batch("large", MIB), true).unwrap();
    for is_flushed in [false, true] {
        if is_flushed {
            engine.set_background_paused(false);
            engine.flush().unwrap();
            engine.wait_until_quiescent().unwrap();
        }
        let own = Feed::open(engine.clone(), SeqNo(1), FeedOptions::new()).unwrap();
        let beside = Feed::beside(Arc::new(disk.clone()), Path::new(DIR), Env::real(), SeqNo(1)).unwrap();
        for mut feed in [own, beside] {
            let read = feed.try_next().unwrap().expect("one batch was committed");
            let is_put = |kind: &ChangeKind<'_>| matches!(kind, ChangeKind::Put { .. });
            assert_eq!(read.changes().filter(|change| is_put(&change.kind)).count(), count(MIB));
            assert!(feed.try_next().unwrap().is_none(), "one batch was committed");
        }
        let copies =
            [view(&disk), restored(&disk, &engine, if is_flushed { "/flushed" } else { "/journal" })];
        assert_eq!(copies.map(|copy| rows(&copy, "large")), [count(MIB); 2], "flushed: {is_flushed}");
    }
    engine.close().unwrap();
}

#[test]
fn a_prepared_transaction_with_a_large_batch_survives_crashes() {
    let disk = MemDisk::new();
    let engine = opened(disk.clone());
    let mut transaction = Transaction::begin(engine.clone(), TransactionOptions::default()).unwrap();
    transaction.prepare("name", &batch("large", MIB)).unwrap();
    drop(transaction);
    let left = disk.kill();
    drop(engine);
    let engine = opened(left.clone());
    assert_eq!((engine.prepared(), rows(&engine, "large")), (vec!["name".to_owned()], 0));
    // Others are larger than their share meanwhile.
    engine.write(&batch("other", MIB), false).unwrap();
    engine.commit_prepared("name", &Batch::new(), true).unwrap();
    let left = left.kill();
    drop(engine);
    let engine = opened(left);
    assert!(engine.prepared().is_empty());
    assert_eq!((rows(&engine, "large"), rows(&engine, "other")), (count(MIB), count(MIB)));
}
