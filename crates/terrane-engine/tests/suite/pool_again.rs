//! The pool of a database that was closed while a reader of the process was in an epoch: what readers could
//! still see keeps the mapping, and with it the lock of the pool.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use support::{get, small_options};
use terrane_base::TableId;
use terrane_base::env::{Clock, Env, Joiner};
use terrane_base::options::Options;
use terrane_engine::Engine;

/// The real clock. The first sleep ends what waits for the other end of the channel.
#[derive(Debug)]
struct EndsEpoch {
    real: Arc<dyn Clock>,
    end: Mutex<Option<Sender<()>>>,
}

impl Clock for EndsEpoch {
    fn now(&self) -> Duration {
        self.real.now()
    }

    fn wall(&self) -> Duration {
        self.real.wall()
    }

    fn sleep(&self, duration: Duration) {
        drop(self.end.lock().unwrap().take());
        self.real.sleep(duration);
    }
}

fn options(pool: &Path) -> Options {
    let mut options = small_options();
    options.set("pmem_path", pool.to_str().unwrap()).unwrap();
    options
}

/// A thread that stays in an epoch, from the return of this until the sender is dropped.
fn reader() -> (Box<dyn Joiner>, Sender<()>) {
    let (end, ended): (Sender<()>, Receiver<()>) = channel();
    let (began, begun) = channel();
    let reads = move || {
        let epoch = terrane_base::epoch::pin();
        began.send(()).unwrap();
        let _ = ended.recv();
        drop(epoch);
    };
    let thread = Env::real().spawn.spawn("reader", Box::new(reads)).unwrap();
    begun.recv().unwrap();
    (thread, end)
}

#[test]
fn an_opening_waits_for_the_pool_that_readers_of_a_closed_database_keep() {
    let dir = tempfile::tempdir().unwrap();
    let (data, options) = (dir.path().join("data"), options(&dir.path().join("pool")));
    let engine = Engine::open(&data, &options, Env::real()).unwrap();
    engine.put(TableId::DEFAULT, b"key", b"value", false).unwrap();
    let (thread, end) = reader();
    // The memtable, and with it the segment, is left to the epoch that the reader is in.
    engine.flush().unwrap();
    engine.close().unwrap();
    drop(engine);
    let clock = Arc::new(EndsEpoch { real: Env::real().clock, end: Mutex::new(Some(end)) });
    let engine = Engine::open(&data, &options, Env { clock, ..Env::real() }).unwrap();
    let tables = engine.catalog().all();
    let table = tables.iter().find(|table| table.id == TableId::DEFAULT).unwrap();
    assert_eq!(get(&engine, table, b"key").unwrap().as_deref(), Some(&b"value"[..]));
    thread.join();
}
