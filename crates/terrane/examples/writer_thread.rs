//! One thread writes what others hand to it: each group of changes is one synced batch, and each caller is
//! given its outcome. With channels of a runtime the callers are tasks: see `docs/async.md`.
#![allow(clippy::disallowed_methods, reason = "a program of a user starts threads as it likes")]

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use terrane::{Batch, Db, Durability, Error, Kind, Result};

/// Most changes of one batch.
const GROUP_MAX: usize = 256;

/// One change, and where its outcome goes.
struct Change {
    key: Vec<u8>,
    value: Vec<u8>,
    done: Sender<Result<()>>,
}

/// Takes changes until the last sender is dropped.
fn write_all(db: &Db, changes: &Receiver<Change>) {
    while let Ok(first) = changes.recv() {
        let mut group = vec![first];
        while group.len() < GROUP_MAX
            && let Ok(next) = changes.try_recv()
        {
            group.push(next);
        }
        let written = write(db, &group);
        for change in group {
            // A caller may have given up.
            let _ = change.done.send(written.clone());
        }
    }
}

fn write(db: &Db, group: &[Change]) -> Result<()> {
    let mut batch = Batch::new();
    for change in group {
        batch.put(db.default_table(), &change.key, &change.value)?;
    }
    db.write(&batch, Durability::Synced).map(drop)
}

/// Waits until the change is durable.
fn put(writer: &SyncSender<Change>, key: &str, value: &str) -> Result<()> {
    let ended = || Error::new(Kind::Cancelled, "the writer has ended");
    let (done, outcome) = channel();
    let change = Change { key: key.into(), value: value.into(), done };
    writer.send(change).map_err(|_| ended())?;
    outcome.recv().map_err(|_| ended())?
}

pub(crate) fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = Db::open(dir.path().join("data"))?;
    std::thread::scope(|scope| {
        // Where it is full, callers wait for the writer.
        let (sender, receiver) = sync_channel(1024);
        let writing = db.clone();
        scope.spawn(move || write_all(&writing, &receiver));
        let callers = (0..8).map(|caller| {
            let sender = sender.clone();
            scope.spawn(move || {
                (0..50).try_for_each(|number| put(&sender, &format!("{caller}-{number}"), "value"))
            })
        });
        let callers: Vec<_> = callers.collect();
        drop(sender);
        callers.into_iter().try_for_each(|caller| caller.join().expect("no caller panics"))
    })?;
    assert_eq!(db.iter().count(), 400);
    println!("{} changes in {} batches", 400, db.stats().batches_written);
    db.close()
}
