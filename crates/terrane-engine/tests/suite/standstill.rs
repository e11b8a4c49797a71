//! A background job that is stuck in a call of the device, for every kind of call: point reads, scans and
//! writes go on, since they take no lock that is held across I/O. A write that needs memory waits for the
//! flush that frees it.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test may panic, and leave threads behind that wait for ever"
)]

use crate::support;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use support::gate::GateDisk;
use support::{awaited, get, open, small_options, until};
use terrane_base::TableId;
use terrane_base::options::{Compression, Options};
use terrane_device::{Call, Failure, Fault, FaultyDisk, MemDisk};
use terrane_engine::{Bounds, Engine, JobKind};

const ROWS: u64 = 800;
/// Calls at which to stand still. The rows written meanwhile must neither fill the write memory, for which
/// writers wait with good reason, nor a segment.
const STOPS_MAX: u64 = 300;

enum Event {
    /// A thread of the background stands in front of a call that changes something; all others wait behind
    /// it.
    Standing,
    Done,
}

fn key(number: u64) -> Vec<u8> {
    format!("key{number:04}").into_bytes()
}

fn value(number: u64) -> Vec<u8> {
    vec![number as u8; 4 << 10]
}

fn read_and_write(engine: &Arc<Engine>, stop: u64) {
    let table = engine.catalog().require("default").unwrap();
    let new = format!("new{stop:06}").into_bytes();
    engine.put(TableId::DEFAULT, &new, b"written meanwhile", false).unwrap();
    assert_eq!(get(engine, &table, &new).unwrap().as_deref(), Some(&b"written meanwhile"[..]));
    let number = stop * 7 % ROWS;
    assert!(get(engine, &table, &key(number)).unwrap() == Some(value(number)), "key {number}");
    assert_eq!(get(engine, &table, b"absent").unwrap(), None);
    let first: Vec<_> = engine.range(&table, Bounds::all(), engine.visible()).take(3).collect();
    assert_eq!(first.len(), 3);
    first.into_iter().for_each(|row| drop(row.unwrap()));
}

/// Makes the flush stand still at each of its calls.
///
/// It goes on when the channel says so: to the next call if true, to its end if false.
fn stand_at_each_call(engine: &Arc<Engine>, disk: &GateDisk) -> (Receiver<Event>, Sender<bool>) {
    let ((event, events), (go, gone)) = (channel(), channel());
    let standing = event.clone();
    disk.look_after(
        1,
        Box::new(move |_| u64::from(standing.send(Event::Standing).is_ok() && gone.recv() == Ok(true))),
    );
    let engine = engine.clone();
    std::thread::spawn(move || {
        engine.set_background_paused(false);
        engine.flush().unwrap();
        engine.wait_until_quiescent().unwrap();
        event.send(Event::Done)
    });
    (events, go)
}

#[test]
fn reads_and_writes_go_on_while_the_background_stands_still() {
    let disk = GateDisk::new(MemDisk::new());
    // Small enough for segments to be given back; the rows written meanwhile fit the active one. Rows that
    // are not compressed fill levels, so that there are compactions.
    let options = Options {
        compression: Compression::None,
        compression_last: Compression::None,
        segment_bytes: 256 << 10,
        memory_bytes: 64 << 20,
        write_memory_bytes: 16 << 20,
        ..small_options()
    };
    let engine = open(disk.clone(), &options).unwrap();
    engine.set_background_paused(true);
    for number in 0..ROWS {
        engine.put(TableId::DEFAULT, &key(number), &value(number), false).unwrap();
    }
    let (events, go) = stand_at_each_call(&engine, &disk);
    let (mut stops, mut flush_stops) = (0, 0);
    let ended = loop {
        let event = awaited(&events);
        if !matches!(event, Some(Event::Standing)) {
            break event;
        }
        flush_stops += u64::from(engine.progress().iter().any(|job| job.work == JobKind::Flush));
        let (done, is_done) = channel();
        let working = engine.clone();
        std::thread::spawn(move || {
            read_and_write(&working, stops);
            done.send(())
        });
        let went_on = awaited(&is_done);
        assert!(went_on.is_some(), "stop {stops}: reads or writes failed, or wait for what stands still");
        stops += 1;
        go.send(stops < STOPS_MAX).unwrap();
    };
    assert!(
        matches!(ended, Some(Event::Done)),
        "after {stops} stops neither a call nor the end of the flush"
    );
    // From here on no call stands still, also where there were fewer than `STOPS_MAX`.
    drop((go, events));
    engine.wait_until_quiescent().unwrap();
    assert!(flush_stops > 0, "none of {stops} stops was within the flush");
    assert!(engine.stats().segments_trimmed > 0, "segments were given back");
    engine.close().unwrap();
}

/// Flushes have failed until the write memory was full and writers were refused. Then the device heals, and
/// the next attempt stands still in a device call until the sender lets it go on. The number is how many keys
/// were written.
fn flush_stands_after_failures() -> (Arc<Engine>, Sender<bool>, u64) {
    let gate = GateDisk::new(MemDisk::new());
    let disk = FaultyDisk::new(Arc::new(gate.clone()));
    let engine = open(disk.clone(), &small_options()).unwrap();
    disk.fail(Fault::new(Call::Write, Failure::Broken).on("/data/").lasting());
    let written = (0..2000).map_while(|number| {
        engine.put(TableId::DEFAULT, &key(number), &value(number), false).map_err(|error| error.kind()).ok()
    });
    let written = written.count() as u64;
    assert!(written < 2000, "the write memory fills up");
    // A job that met the failure and still runs would be an attempt that fails while the caller waits. One
    // that the pause holds would never end: it goes on first.
    until("nothing runs", || {
        engine.set_background_paused(true);
        let rests = engine.progress().is_empty();
        engine.set_background_paused(rests);
        rests
    });
    let ((event, events), (go, gone)) = (channel(), channel());
    gate.look_after(
        1,
        Box::new(move |_| u64::from(event.send(Event::Standing).is_ok() && gone.recv() == Ok(true))),
    );
    disk.heal();
    engine.set_background_paused(false);
    // Not yet if it is a thread of the journal that stands.
    while matches!(events.recv(), Ok(Event::Standing))
        && engine.progress().iter().all(|job| job.work != JobKind::Flush)
    {
        go.send(true).unwrap();
    }
    (engine, go, written)
}

/// Lets what stands go on, after `waits` began to wait for it. If it comes later, it need not wait: that is
/// no failure.
fn going_on_while<R>(go: Sender<bool>, waits: impl FnOnce() -> R) -> R {
    let opener = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        go.send(false)
    });
    let result = waits();
    opener.join().unwrap().unwrap();
    result
}

fn assert_there(engine: &Arc<Engine>, written: u64) {
    let table = engine.catalog().require("default").unwrap();
    for number in 0..written {
        let found = get(engine, &table, &key(number)).unwrap();
        assert!(found == Some(value(number)), "key {number} of {written}");
    }
}

#[test]
fn a_writer_waits_for_the_running_attempt_and_ignores_older_failures() {
    let (engine, go, written) = flush_stands_after_failures();
    going_on_while(go, || engine.put(TableId::DEFAULT, b"waits", b"for the flush", false)).unwrap();
    engine.flush().unwrap();
    assert_there(&engine, written);
    engine.close().unwrap();
}

#[test]
fn a_flush_request_waits_for_its_own_attempt_and_ignores_older_failures() {
    let (engine, go, written) = flush_stands_after_failures();
    going_on_while(go, || engine.flush()).unwrap();
    engine.wait_until_quiescent().unwrap();
    assert_there(&engine, written);
    engine.close().unwrap();
}
