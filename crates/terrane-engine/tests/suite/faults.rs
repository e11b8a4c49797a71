//! A device that fails at the n-th call of each kind, with EIO and with ENOSPC: an operation succeeds or
//! returns an error, no acknowledged row is lost, reads go on, and so do writes once there is space.
//!
//! `TERRANE_FAULT_STEP` is the distance between the n that are tried (1 tries all).
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use std::sync::Arc;
use std::time::Duration;

use support::oracle::{LASTING, Oracle, Span, random_changes};
use support::{chosen, get, number_from_env, open, small_options};
use terrane_base::env::Env;
use terrane_base::{Error, Kind, Result, Rng, TableId};
use terrane_device::{Call, Failure, Fault, FaultyDisk, MemDisk};
use terrane_engine::{Bounds, Engine};

/// Calls that a healthy engine may meet an error in.
const CALLS: [Call; 15] = [
    Call::Open,
    Call::Create,
    Call::CreateDir,
    Call::List,
    Call::Exists,
    Call::Rename,
    Call::Remove,
    Call::SyncDir,
    Call::Len,
    Call::Write,
    Call::Sync,
    Call::SetLen,
    Call::Allocate,
    Call::Punch,
    Call::Map,
];

/// Tries, 5 ms and more apart, in which work that has failed is begun again: its pause is 5 s at most.
const TRIES_MAX: u64 = 6000;

/// The errors of a history.
#[derive(Debug, Default)]
struct Met {
    errors: Vec<Error>,
    /// A write failed after it was begun: it may be there or not.
    in_doubt: bool,
}

/// A short life of a database on a device that may fail: open, write, create, drop, flush, compact, reopen.
/// Every error is noted and the life goes on, as a careful application would.
fn live(disk: &FaultyDisk, oracle: &mut Oracle, seed: u64) -> Met {
    let mut numbers = Rng::new(seed);
    let mut met = Met::default();
    for round in 0..3 {
        let engine = match open(disk.clone(), &small_options()) {
            Ok(engine) => engine,
            Err(error) => {
                met.errors.push(error);
                continue;
            }
        };
        if round == 0 || engine.catalog().find(LASTING[1]).is_none() {
            change_table(&engine, oracle, LASTING[1], &mut met);
        }
        if engine.catalog().find(LASTING[1]).is_some() {
            live_open(&engine, oracle, &mut numbers, &mut met);
        }
        match engine.close() {
            Ok(()) => oracle.all_durable(),
            Err(error) => met.errors.push(error),
        }
        if met.in_doubt {
            break;
        }
    }
    met
}

fn live_open(engine: &Arc<Engine>, oracle: &mut Oracle, numbers: &mut Rng, met: &mut Met) {
    for step in 0..60 {
        if met.in_doubt {
            return;
        }
        let number = oracle.batches.len() + 1;
        let lasting: Vec<_> = oracle.live().into_iter().take(2).collect();
        let changes = random_changes(numbers, &lasting, number);
        let batch = oracle.begin(engine, changes, step % 2);
        let sync = step % 10 == 9;
        match engine.write(&batch, sync) {
            Ok(_) => oracle.end(sync),
            Err(error) => {
                met.in_doubt = true;
                met.errors.push(error);
            }
        }
        let kept = match step {
            20 => engine.flush().map(|()| oracle.all_durable()),
            30 => {
                change_table(engine, oracle, "other", met);
                Ok(())
            }
            45 => {
                let table = engine.catalog().require("default").unwrap();
                engine.compact_range(&table, &Bounds::all()).map(|()| oracle.all_durable())
            }
            _ => Ok(()),
        };
        met.errors.extend(kept.err());
    }
}

/// Creates the table, or drops it. After an error it may be either.
fn change_table(engine: &Engine, oracle: &mut Oracle, name: &str, met: &mut Met) {
    let exists = engine.catalog().find(name).is_some();
    let was = oracle.live().iter().any(|(_, live)| live == name);
    if exists != was {
        // An earlier change failed half way; what it did is seen now.
        oracle.begin_event(name);
        oracle.end_event();
        if name == LASTING[1] {
            return;
        }
    }
    oracle.begin_event(name);
    let done = if exists { engine.drop_table(name) } else { engine.create_table(name, &[]).map(drop) };
    match done {
        Ok(()) => oracle.end_event(),
        Err(error) => {
            let now = engine.catalog().find(name).is_some();
            met.errors.push(error);
            if now == exists {
                // Perhaps done on the device, not done in memory.
                met.in_doubt = true;
            } else {
                oracle.end_event();
            }
        }
    }
}

fn reopen_and_judge(disk: &MemDisk, oracle: &Oracle, span: Span, place: &str) {
    let engine = open(disk.clone(), &small_options()).unwrap_or_else(|error| panic!("{place}: {error}"));
    oracle.judge(&engine, span, place).unwrap_or_else(|error| panic!("{place}: {error}"));
    let report = engine.check(&mut |_, _| ()).unwrap();
    assert!(report.findings.is_empty(), "{place}: {:?}", report.findings);
    engine.put(terrane_base::TableId::DEFAULT, b"more", b"x", true).unwrap();
    engine.close().unwrap_or_else(|error| panic!("{place}: close: {error}"));
}

fn fail_each_call(failure: Failure) {
    let step = number_from_env("TERRANE_FAULT_STEP", 7);
    let healthy = FaultyDisk::new(Arc::new(MemDisk::new()));
    let met = live(&healthy, &mut Oracle::new(), 1);
    assert!(met.errors.is_empty(), "{met:?}");
    let mut failed = 0;
    for call in CALLS {
        let count = healthy.count(call);
        let dense = 12.min(count);
        for nth in chosen((0..dense).chain((dense..count).step_by(step as usize))) {
            let place = format!("{failure:?} in {call:?} number {nth} of {count}");
            let inner = MemDisk::new();
            let disk = FaultyDisk::new(Arc::new(inner.clone()));
            disk.fail(Fault::new(call, failure).after(nth));
            let mut oracle = Oracle::new();
            let met = live(&disk, &mut oracle, 1);
            failed += u64::from(!met.errors.is_empty());
            for error in &met.errors {
                let kind = error.kind();
                let expected = [Kind::Io, Kind::Full, Kind::Poisoned, Kind::Cancelled];
                assert!(expected.contains(&kind), "{place}: {error}");
            }
            let reached = &oracle.reached;
            let (dead, dark) = (reached.close(reached.floor(false)), reached.close(reached.floor(true)));
            reopen_and_judge(&inner.crash(nth), &oracle, dark, &format!("{place}, power loss"));
            reopen_and_judge(&inner, &oracle, dead, &place);
        }
    }
    println!("{failed} lives met an error");
    assert!(failed > 6, "{failed}");
}

#[test]
fn a_broken_call_loses_nothing_acknowledged() {
    fail_each_call(Failure::Broken);
}

#[test]
fn a_call_without_space_loses_nothing_acknowledged() {
    fail_each_call(Failure::Full);
}

fn write_some(engine: &Engine, from: u64, count: u64, bytes: usize) -> Result<()> {
    for number in from..from + count {
        // Random, so that compression makes no room.
        let mut numbers = Rng::new(number);
        let mut value: Vec<u8> =
            (0..bytes.div_ceil(8)).flat_map(|_| numbers.next_u64().to_le_bytes()).collect();
        value[..8].copy_from_slice(&number.to_le_bytes());
        engine.put(terrane_base::TableId::DEFAULT, &number.to_be_bytes(), &value, false)?;
    }
    Ok(())
}

#[test]
fn after_a_failed_sync_of_the_journal_no_write_succeeds_and_reads_go_on() {
    let inner = MemDisk::new();
    let disk = FaultyDisk::new(Arc::new(inner.clone()));
    let engine = open(disk.clone(), &small_options()).unwrap();
    let table = engine.catalog().require("default").unwrap();
    write_some(&engine, 0, 100, 500).unwrap();
    engine.sync().unwrap();
    write_some(&engine, 100, 10, 500).unwrap();
    // Once would not do: the file of the next segment may still be in the making, and is synced as well.
    disk.fail(Fault::new(Call::Sync, Failure::Broken).on(".seg").lasting());
    let failed = engine.put(table.id, b"synced", b"value", true).unwrap_err();
    assert!([Kind::Io, Kind::Poisoned].contains(&failed.kind()), "{failed}");
    disk.heal();
    for sync in [false, true, false] {
        let refused = engine.put(table.id, b"later", b"value", sync).unwrap_err();
        assert_eq!(refused.kind(), Kind::Poisoned, "{refused}");
        assert!(refused.to_string().contains("open"), "names the remedy: {refused}");
    }
    assert_eq!(engine.sync().unwrap_err().kind(), Kind::Poisoned);
    for number in 0..110u64 {
        assert!(get(&engine, &table, &number.to_be_bytes()).unwrap().is_some(), "read {number}");
    }
    assert_eq!(engine.range(&table, Bounds::all(), engine.visible()).filter(|row| row.is_ok()).count(), 110);
    assert!(engine.close().is_err(), "a close reports that the last commits are not durable");
    let engine = open(inner.crash(3), &small_options()).unwrap();
    let table = engine.catalog().require("default").unwrap();
    for number in 0..100u64 {
        assert!(get(&engine, &table, &number.to_be_bytes()).unwrap().is_some(), "synced {number}");
    }
    assert_eq!(get(&engine, &table, b"later").unwrap(), None, "refused");
    engine.close().unwrap();
}

/// Repeats `attempt` while it fails because there is no space: the background tries failed jobs again after a
/// pause, and until then attempts get the old error.
fn within_a_while(mut attempt: impl FnMut() -> Result<()>) {
    let env = Env::real();
    for _ in 0..TRIES_MAX {
        match attempt() {
            Ok(()) => return,
            Err(error) if error.kind() == Kind::Full => env.clock.sleep(Duration::from_millis(5)),
            Err(error) => panic!("{error}"),
        }
    }
    panic!("there is space, but a write still fails after {TRIES_MAX} tries");
}

/// Repeats `attempt` until it succeeds. Tries are counted, not time: a machine may stand still.
fn within_tries(otherwise: &str, mut attempt: impl FnMut() -> bool) {
    for _ in 0..TRIES_MAX {
        if attempt() {
            return;
        }
        Env::real().clock.sleep(Duration::from_millis(5));
    }
    panic!("{otherwise}");
}

#[test]
fn without_space_writes_fail_reads_go_on_and_space_lets_writes_go_on() {
    for (seed, room) in [0u64, 100 << 10, 1 << 20, 5 << 20].into_iter().enumerate() {
        let disk = MemDisk::new();
        let engine = open(disk.clone(), &small_options()).unwrap();
        let table = engine.catalog().require("default").unwrap();
        let mut next = 0;
        for round in 0..3 {
            for number in next..next + 200 {
                within_a_while(|| write_some(&engine, number, 1, 2000));
            }
            next += 200;
            // The bytes in use may include much that compaction gives back, and slots in reserve.
            let capacity = disk.used_bytes() + room;
            disk.set_capacity(capacity);
            let full = loop {
                match write_some(&engine, next, 1, 2000) {
                    Ok(()) => next += 1,
                    Err(error) => break error,
                }
                assert!(next * 2000 <= capacity, "more was taken than the device holds");
            };
            assert_eq!(full.kind(), Kind::Full, "room {room} round {round}: {full}");
            for number in (0..next).step_by(13) {
                let value = get(&engine, &table, &number.to_be_bytes()).unwrap();
                assert!(value.is_some(), "room {room}: read {number} of {next} while full");
            }
            // The device has all acknowledged rows, whatever was refused: nothing is lost here, either.
            let copy = disk.kill();
            copy.set_capacity(u64::MAX);
            check_all(&copy, next, &format!("room {room} round {round}, killed while full"));
            disk.set_capacity(u64::MAX);
            within_a_while(|| write_some(&engine, next, 1, 2000));
            next += 1;
        }
        within_a_while(|| engine.flush());
        within_a_while(|| engine.wait_until_quiescent());
        engine.close().unwrap();
        check_all(&disk, next, &format!("room {room}, seed {seed}"));
    }
}

fn check_all(disk: &MemDisk, count: u64, place: &str) {
    let engine = open(disk.clone(), &small_options()).unwrap_or_else(|error| panic!("{place}: {error}"));
    let table = engine.catalog().require("default").unwrap();
    for number in 0..count {
        let value = get(&engine, &table, &number.to_be_bytes()).unwrap();
        let found = value.map(|value| u64::from_le_bytes(value[..8].try_into().unwrap()));
        assert_eq!(found, Some(number), "{place}: key {number} of {count}");
    }
    let report = engine.check(&mut |_, _| ()).unwrap();
    assert!(report.findings.is_empty(), "{place}: {:?}", report.findings);
    engine.close().unwrap();
}

#[test]
fn background_work_that_fails_is_tried_again() {
    let disk = FaultyDisk::new(Arc::new(MemDisk::new()));
    let engine = open(disk.clone(), &small_options()).unwrap();
    // These are more than some memtables: their flushes must not be done before the fault is there.
    engine.set_background_paused(true);
    write_some(&engine, 0, 300, 1000).unwrap();
    disk.fail(Fault::new(Call::Write, Failure::Broken).on("/data/"));
    engine.set_background_paused(false);
    engine.flush().unwrap();
    assert!(engine.stats().background_errors >= 1, "the fault was met");
    engine.wait_until_quiescent().unwrap();
    let table = engine.catalog().require("default").unwrap();
    for number in 0..300u64 {
        assert!(get(&engine, &table, &number.to_be_bytes()).unwrap().is_some());
    }
    assert!(engine.check(&mut |_, _| ()).unwrap().findings.is_empty());
    engine.close().unwrap();
}

#[test]
fn background_work_that_keeps_failing_is_reported_to_waiting_callers() {
    let disk = FaultyDisk::new(Arc::new(MemDisk::new()));
    let engine = open(disk.clone(), &small_options()).unwrap();
    // As above.
    engine.set_background_paused(true);
    write_some(&engine, 0, 300, 1000).unwrap();
    disk.fail(Fault::new(Call::Write, Failure::Broken).on("/data/").lasting());
    engine.set_background_paused(false);
    let error = engine.flush().unwrap_err();
    assert_eq!(error.kind(), Kind::Io, "{error}");
    disk.heal();
    within_tries("it never recovered", || engine.flush().is_ok());
    let table = engine.catalog().require("default").unwrap();
    for number in 0..300u64 {
        assert!(get(&engine, &table, &number.to_be_bytes()).unwrap().is_some(), "key {number}");
    }
    engine.close().unwrap();
}

/// Nothing is flushed: writes go on while the write memory lasts, then they are refused, and not held for
/// ever.
#[test]
fn writes_are_refused_once_write_memory_is_full_and_cannot_be_flushed() {
    let options = small_options();
    let disk = FaultyDisk::new(Arc::new(MemDisk::new()));
    let engine = open(disk.clone(), &options).unwrap();
    let table = engine.catalog().require("default").unwrap();
    disk.fail(Fault::new(Call::Write, Failure::Broken).on("/data/").lasting());
    let (mut next, mut refused) = (0, None);
    while refused.is_none() {
        assert!(next * 2000 < 4 * options.write_memory_bytes, "{next} rows, and none was refused");
        match write_some(&engine, next, 1, 2000) {
            Ok(()) => next += 1,
            Err(error) => refused = Some(error),
        }
    }
    let error = refused.unwrap();
    assert_eq!(error.kind(), Kind::Io, "{error}");
    assert!(error.to_string().contains("write memory is full and cannot be flushed"), "{error}");
    assert!(next * 2000 > options.write_memory_bytes / 4, "refused with memory left: {next} rows");
    for number in 0..next {
        assert!(get(&engine, &table, &number.to_be_bytes()).unwrap().is_some(), "read {number} of {next}");
    }
    disk.heal();
    within_tries("writes never went on", || write_some(&engine, next, 1, 2000).is_ok());
    engine.close().unwrap();
}

/// Numbers that a failed group took are never visible; nothing may wait for them.
#[test]
fn flush_and_close_end_after_a_failed_sync() {
    let faulty = Arc::new(FaultyDisk::new(Arc::new(MemDisk::new())));
    let path = std::path::Path::new("/db");
    let engine = Engine::open_on(faulty.clone(), path, &small_options(), Env::real()).unwrap();
    engine.put(TableId::DEFAULT, b"a", b"1", true).unwrap();
    faulty.fail(Fault::new(Call::Sync, Failure::Broken).on(".seg").lasting());
    assert!(engine.put(TableId::DEFAULT, b"b", b"2", true).is_err());
    let poisoned = engine.flush().unwrap_err();
    assert_eq!(poisoned.kind(), Kind::Poisoned, "{poisoned}");
    assert!(engine.close().is_err());
}
