//! Listeners: events of flushes, compactions and stalls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use terrane::{Db, JobEnded, Listener, Result, StallBegan, WorkFailed};

/// Counts what it hears, for a log or a metric of the program's own.
#[derive(Default)]
struct Watcher {
    flushed_bytes: AtomicU64,
}

impl Listener for Watcher {
    fn flush_ended(&self, job: &JobEnded) {
        println!("flushed {} bytes of {:?} in {:?}", job.bytes_written, job.table, job.took);
        self.flushed_bytes.fetch_add(job.bytes_written, Ordering::Relaxed);
    }

    fn stall_began(&self, stall: &StallBegan) {
        println!("writers are held back by {:?}, pressure {:.2}", stall.cause, stall.pressure);
    }

    fn work_failed(&self, failure: &WorkFailed) {
        eprintln!("{} of {:?} failed: {}", failure.work, failure.table, failure.error);
    }

    fn table_created(&self, name: &str) {
        println!("there is a table {name:?} now");
    }
}

pub(crate) fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = Db::open(dir.path().join("data"))?;
    let watcher = Arc::new(Watcher::default());
    db.add_listener(watcher.clone())?;
    let orders = db.table_or_create("orders")?;
    orders.put("1", "apples")?;
    db.flush()?;
    // A close waits until listeners have got all events.
    db.close()?;
    assert!(watcher.flushed_bytes.load(Ordering::Relaxed) > 0);
    Ok(())
}
