//! Readers of durable changes and the syncs that wake them.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use terrane_base::env::{Env, SteppedSpawn};
use terrane_base::options::Options;
use terrane_base::{Batch, Result, SeqNo, TableId};
use terrane_device::MemDisk;
use terrane_journal::Ticket;

use crate::engine::Engine;

/// No test waits so long unless it fails.
const LONG: Duration = Duration::from_secs(300);

/// Without threads: nothing is synced until a caller asks for it.
fn open() -> Arc<Engine> {
    let env = Env { spawn: Arc::new(SteppedSpawn::default()), ..Env::real() };
    let options = Options { memory_bytes: 16 << 20, close_flush: false, ..Options::default() };
    Engine::open_on(Arc::new(MemDisk::new()), Path::new("/db"), &options, env).expect("opens")
}

fn batch() -> Batch {
    let mut batch = Batch::new();
    batch.put(TableId::DEFAULT, b"k", b"v").expect("fits");
    batch
}

/// A reader that waits until `seq` is durable, on a thread of its own; it sends one word when it was woken.
/// On return it has looked, and sleeps before another thread can wake it.
fn waiting_reader(engine: &Arc<Engine>, seq: SeqNo) -> Receiver<()> {
    let (began, has_begun) = mpsc::channel();
    let (woken, is_woken) = mpsc::channel();
    let engine = engine.clone();
    let reader = move || {
        let is_there = || {
            let is_durable = engine.journal.durable() >= seq;
            began.send(is_durable).expect("the test waits for it");
            is_durable
        };
        engine.readers.of_changes().wait(&Env::real(), LONG * 4, is_there);
        let _ = woken.send(()); // a test that failed does not listen
    };
    Env::real().spawn.spawn("reader", Box::new(reader)).expect("a thread");
    assert!(!has_begun.recv().expect("the reader looks"), "nothing is durable yet");
    is_woken
}

/// Makes a write durable by `sync`, while a reader waits for that and no commit comes.
fn assert_wakes(sync: impl FnOnce(&Engine, &Ticket) -> Result<()>) {
    let engine = open();
    let ticket = engine.write_async(&batch(), true).expect("a write");
    let is_woken = waiting_reader(&engine, ticket.seq());
    sync(&engine, &ticket).expect("a sync");
    assert!(engine.journal.durable() >= ticket.seq());
    is_woken.recv_timeout(LONG).expect("a durable commit wakes the reader");
    engine.close().expect("closes");
}

#[test]
fn a_ticket_that_is_done_wakes_readers_of_durable_changes() {
    assert_wakes(|_, ticket| ticket.wait().map(drop));
}

#[test]
fn other_syncs_wake_readers_of_durable_changes() {
    assert_wakes(|engine, _| engine.sync());
    assert_wakes(|engine, ticket| engine.sync_journal_through(ticket.seq()));
    assert_wakes(|engine, _| engine.write(&Batch::new(), true).map(drop));
    assert_wakes(|engine, _| engine.create_table("t", &[]).map(drop));
}
