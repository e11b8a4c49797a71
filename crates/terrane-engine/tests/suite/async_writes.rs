//! Writes that return before they are durable: shared syncs, losses of power, failed syncs, callbacks, close.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};

use support::{DIR, get, open, small_options};
use terrane_base::env::{Env, SteppedSpawn};
use terrane_base::options::Options;
use terrane_base::{Batch, Kind, TableId};
use terrane_device::{Call, Failure, Fault, FaultyDisk, MemDisk};
use terrane_engine::{Engine, Ticket};

fn batch(number: u64) -> Batch {
    let mut batch = Batch::new();
    batch.put(TableId::DEFAULT, &number.to_be_bytes(), b"value").unwrap();
    batch.put(TableId::DEFAULT, &(number + (1 << 32)).to_be_bytes(), b"other").unwrap();
    batch
}

fn write(engine: &Engine, numbers: std::ops::Range<u64>) -> Vec<Ticket> {
    numbers.map(|number| engine.write_async(&batch(number), true).unwrap()).collect()
}

fn has(engine: &Engine, number: u64) -> bool {
    let table = engine.catalog().all().into_iter().find(|table| table.id == TableId::DEFAULT).unwrap();
    let halves = [number, number + (1 << 32)].map(|key| get(engine, &table, &key.to_be_bytes()).unwrap());
    assert_eq!(halves[0].is_some(), halves[1].is_some(), "batch {number} is half there");
    halves[0].is_some()
}

/// Without threads: nothing is synced until a caller waits.
fn open_stepped(disk: &MemDisk) -> Arc<Engine> {
    let env = Env { spawn: Arc::new(SteppedSpawn::default()), ..Env::real() };
    let options = Options { memory_bytes: 16 << 20, close_flush: false, ..Options::default() };
    Engine::open_on(Arc::new(disk.clone()), Path::new(DIR), &options, env).unwrap()
}

#[test]
fn a_thousand_writes_of_one_thread_share_a_sync() {
    let disk = MemDisk::new();
    let engine = open_stepped(&disk);
    let syncs = engine.stats().device_journal_syncs;
    let tickets = write(&engine, 0..1000);
    assert!(
        tickets.windows(2).all(|pair| pair[0].seq() < pair[1].seq()),
        "tickets have the order of commits"
    );
    assert!((0..1000).all(|number| has(&engine, number)), "visible before they are durable");
    assert!(!tickets[999].is_done());
    assert_eq!(tickets[999].wait().unwrap(), engine.visible());
    assert!(tickets.iter().all(Ticket::is_done), "one step made all durable");
    let syncs = engine.stats().device_journal_syncs - syncs;
    assert!((1..=30).contains(&syncs), "{syncs} syncs of 1000 commits, with those of new segments");
    let again = open_stepped(&disk.crash(7));
    assert!((0..1000).all(|number| has(&again, number)), "what was acknowledged survives a loss of power");
}

#[test]
fn a_loss_of_power_leaves_a_prefix_with_every_acknowledged_write() {
    for seed in 0..20 {
        let disk = MemDisk::new();
        let engine = open_stepped(&disk);
        write(&engine, 0..30).pop().unwrap().wait().unwrap();
        let later = write(&engine, 30..50);
        assert!(later.iter().all(|ticket| !ticket.is_done()));
        let again = open_stepped(&disk.crash(seed));
        let survived = (0..50).take_while(|&number| has(&again, number)).count() as u64;
        assert!(survived >= 30, "seed {seed}: {survived} of 30 acknowledged writes");
        assert!((survived..50).all(|number| !has(&again, number)), "seed {seed}: a hole behind {survived}");
    }
}

#[test]
fn a_failed_sync_reaches_each_ticket() {
    let faulty = FaultyDisk::new(Arc::new(MemDisk::new()));
    let engine = open(faulty.clone(), &small_options()).unwrap();
    write(&engine, 0..1).pop().unwrap().wait().unwrap();
    faulty.fail(Fault::new(Call::Sync, Failure::Broken).on(".seg").lasting());
    let mut failed = Vec::new();
    // The thread of tickets may meet the error before the last one is written.
    for number in 1..50 {
        match engine.write_async(&batch(number), true) {
            Ok(ticket) => failed.push(ticket),
            Err(error) => assert_eq!(error.kind(), Kind::Poisoned),
        }
    }
    assert!(!failed.is_empty());
    for ticket in &failed {
        assert!(matches!(ticket.wait().unwrap_err().kind(), Kind::Io | Kind::Poisoned));
    }
    faulty.heal();
    assert_eq!(engine.write_async(&batch(99), true).unwrap_err().kind(), Kind::Poisoned);
    assert!(has(&engine, 0), "reads go on");
    assert!(engine.close().is_err());
}

#[test]
fn a_close_waits_for_tickets_and_callbacks() {
    let disk = MemDisk::new();
    let engine = open(disk.clone(), &small_options()).unwrap();
    let (called, tickets) = (Arc::new(AtomicU64::new(0)), write(&engine, 0..200));
    for ticket in &tickets {
        let called = called.clone();
        ticket.on_done(move |outcome| {
            called.fetch_add(u64::from(outcome.is_ok()), Ordering::SeqCst);
        });
    }
    drop(write(&engine, 200..210));
    engine.close().unwrap();
    assert_eq!(called.load(Ordering::SeqCst), 200);
    assert!(tickets.iter().all(|ticket| ticket.is_done() && ticket.wait().is_ok()));
    assert_eq!(engine.write_async(&batch(0), true).unwrap_err().kind(), Kind::Cancelled);
    let again = open(disk.crash(1), &small_options()).unwrap();
    assert!((0..210).all(|number| has(&again, number)), "a dropped ticket is not a dropped write");
}

#[test]
fn a_callback_on_the_thread_of_tickets_may_read_and_not_write() {
    let engine = open_stepped(&MemDisk::new());
    let (sender, outcomes) = mpsc::channel();
    let inside = engine.clone();
    let ticket = engine.write_async(&batch(1), true).unwrap();
    ticket.on_done(move |outcome| {
        let refused = inside.write_async(&batch(2), true).unwrap_err().kind();
        sender.send((outcome.unwrap(), has(&inside, 1), refused)).unwrap();
    });
    let seq = ticket.wait().unwrap();
    engine.close().unwrap();
    assert_eq!(outcomes.try_recv().unwrap(), (seq, true, Kind::Invalid));
}

#[test]
fn a_buffered_write_has_a_ticket_that_is_done() {
    let engine = open_stepped(&MemDisk::new());
    let syncs = engine.stats().device_journal_syncs;
    let ticket = engine.try_write_async(&batch(1), false).unwrap();
    assert!(ticket.is_done() && ticket.wait().unwrap() == engine.visible());
    assert_eq!(engine.stats().device_journal_syncs, syncs, "nothing was synced");
    assert!(!engine.try_write_async(&batch(2), true).unwrap().is_done());
    assert!(engine.write_async(&Batch::new(), true).unwrap().wait().is_ok(), "as a sync of all before it");
}

#[test]
fn callbacks_that_panic_are_counted() {
    let engine = open_stepped(&MemDisk::new());
    let (first, buffered) = (write(&engine, 0..1).remove(0), engine.write_async(&batch(2), false).unwrap());
    first.on_done(|_| panic!("on purpose"));
    assert_eq!(engine.stats().ticket_panics, 0, "nothing is durable yet");
    buffered.on_done(|_| panic!("on purpose, at once"));
    assert_eq!(engine.stats().ticket_panics, 1, "also of a ticket that was done when it was made");
    first.wait().unwrap();
    engine.close().unwrap();
    assert_eq!(engine.stats().ticket_panics, 2, "the close waits for callbacks");
}
