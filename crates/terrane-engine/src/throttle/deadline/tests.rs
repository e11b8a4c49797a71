//! Writes that are held back, on a clock that only waiting threads move. The background runs in steps, on the
//! thread of the waiting caller.

use std::path::Path;
use std::sync::Arc;

use terrane_base::env::{Clock, Env, SleepClock, Step, SteppedSpawn};
use terrane_base::options::Options;
use terrane_base::sync::Mutex;
use terrane_base::sync::atomic::Ordering;
use terrane_base::{Batch, Error, Kind, Result, SeqNo, TableId};
use terrane_device::{Call, Disk, Failure, Fault, FaultyDisk, MemDisk};

use super::*;
use crate::background::scheduler::Schedule;
use crate::engine::Engine;
use crate::locks::ingest_guard::Span;
use crate::observe::job_kind::JobKind;
use crate::read::scan::Bounds;
use crate::txn::{Concurrency, Isolation, Transaction, TransactionOptions};

fn open() -> (Arc<SleepClock>, Arc<Engine>) {
    open_with(&Options::default())
}

fn open_with(options: &Options) -> (Arc<SleepClock>, Arc<Engine>) {
    open_on(Arc::new(MemDisk::new()), options)
}

/// A database whose background is paused.
fn open_on(disk: Arc<dyn Disk>, options: &Options) -> (Arc<SleepClock>, Arc<Engine>) {
    let clock = Arc::new(SleepClock::default());
    let options = Options { memory_bytes: 16 << 20, ..options.clone() };
    let spawn = Arc::new(SteppedSpawn::new(clock.clone()));
    let env = Env { clock: clock.clone(), spawn, ..Env::real() };
    let engine = Engine::open_on(disk, Path::new("/db"), &options, env).expect("opens");
    engine.set_background_paused(true);
    (clock, engine)
}

fn batch() -> Batch {
    let mut batch = Batch::new();
    batch.put(TableId::DEFAULT, b"k", b"v").expect("fits");
    batch
}

/// If the deadline began again for locks, this test would wait without end, since its clock stands still.
#[test]
fn the_wait_for_locks_has_the_time_that_admission_left() {
    let (clock, engine) = open();
    let options = TransactionOptions { concurrency: Concurrency::Pessimistic, ..Default::default() };
    let mut holder = Transaction::begin(engine.clone(), options).expect("begins");
    holder.before_write(TableId::DEFAULT, b"k").expect("no other owner has it");
    let wait = WriteWait::within(&engine, Duration::from_millis(500));
    let permit = engine.write_control().admit(&batch(), wait.admission).expect("there is no debt");
    clock.sleep(Duration::from_millis(500));
    let refused = engine.txn.pass_gate((&engine.shared, &permit), &batch(), &wait).map(drop);
    assert_eq!(refused.map_err(|error| error.kind()), Err(Kind::TimedOut));
    drop(permit);
    assert_eq!(engine.visible(), SeqNo(0), "nothing is written");
    drop(holder);
    engine.write_within(&batch(), false, Duration::ZERO).expect("no owner has the lock");
    engine.close().expect("closes");
}

#[test]
fn a_commit_that_panics_gives_its_room_back() {
    let (_, engine) = open();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _permit = engine.write_control().admit(&large(400_000), None).expect("there is room");
        assert_eq!(engine.throttle.reserved_bytes(), large(400_000).bytes().len() as u64);
        panic!("a bug of the commit")
    }));
    assert!(panicked.is_err());
    assert_eq!(engine.throttle.reserved_bytes(), 0);
    engine.close().expect("closes");
}

fn large(bytes: usize) -> Batch {
    let mut batch = Batch::new();
    batch.put(TableId::DEFAULT, b"k", &vec![7; bytes]).expect("fits");
    batch
}

/// A database whose default table has records in memory: a table without records has no debt.
fn open_filled() -> Arc<Engine> {
    let (_, engine) = open();
    engine.write(&batch(), false).expect("there is no debt");
    engine
}

#[test]
fn a_write_refused_for_memory_is_not_charged() {
    let engine = open_filled();
    // So slow that one batch is charged for a quarter of a second.
    engine.throttle.fill_memory_debt();
    // Nothing is free.
    let taken = 2 * engine.memory.budget().write_bytes();
    engine.throttle.take_room(taken);
    for _ in 0..20 {
        let error = engine.write_within(&large(60_000), false, Duration::ZERO).expect_err("no room");
        assert_eq!(error.kind(), Kind::Busy);
        assert!(error.to_string().contains("write memory is full"), "{error}");
    }
    engine.throttle.give_back(taken);
    engine.write_within(&large(60_000), false, Duration::ZERO).expect("all earlier credit is repaid");
    engine.close().expect("closes");
}

#[test]
fn a_write_refused_for_an_ingest_is_not_charged() {
    let engine = open_filled();
    let table = engine.catalog().require("default").expect("is always there");
    let watched = engine.txn.watch_writes();
    let spans = vec![Span::new(&table, (b"a", b"z"))];
    let span_lock = engine.txn.lock_spans(&engine, spans, Duration::ZERO).expect("no writer writes");
    engine.throttle.fill_memory_debt();
    for number in 0..20 {
        let error =
            engine.write_within(&large(60_000), false, Duration::ZERO).expect_err("an ingest holds the key");
        assert_eq!(error.kind(), Kind::TimedOut, "write {number}: {error}");
    }
    drop(span_lock.release());
    drop(watched);
    engine.write_within(&large(60_000), false, Duration::ZERO).expect("all earlier credit is repaid");
    engine.close().expect("closes");
}

#[test]
fn a_request_for_one_table_does_not_fail_by_another_table() {
    let (_, engine) = open();
    let [one, other] = ["one", "other"].map(|name| engine.create_table(name, &[]).expect("is new"));
    let mut batch = Batch::new();
    batch.put(one.id, b"k", b"v").expect("fits");
    engine.write(&batch, false).expect("is admitted");
    engine.set_background_paused(false);
    let fail = |subject| {
        let fail = |schedule: &mut Schedule| {
            for _ in 0..3 {
                schedule.failures.note(subject, u64::MAX, Err(Error::new(Kind::Io, "broken")));
            }
            Ok(true)
        };
        engine.background.scheduler.wait_until(fail).expect("it is done");
    };
    fail((JobKind::Compact, Some(other.id)));
    fail((JobKind::Flush, Some(other.id)));
    engine.compact_range(&one, &Bounds::all()).expect("nothing failed on this table");
    let error = engine.compact_range(&other, &Bounds::all()).map_err(|error| error.kind());
    assert_eq!(error, Err(Kind::Io), "a request for the other table fails");
    // A failure without a table concerns all tables.
    fail((JobKind::Trim, None));
    let error = engine.compact_range(&one, &Bounds::all()).map_err(|error| error.kind());
    assert_eq!(error, Err(Kind::Io));
    engine.close().expect("closes");
}

const LONGEST: Duration = Duration::from_millis(20);

fn bounded() -> (Arc<SleepClock>, Arc<Engine>) {
    open_with(&Options { write_wait_max_ms: LONGEST.as_millis() as u64, ..Options::default() })
}

#[test]
fn no_write_is_held_back_for_longer_than_the_option_says() {
    let (clock, engine) = bounded();
    let (mut refused, mut longest) = (0, Duration::ZERO);
    for number in 0..20_000u64 {
        let mut batch = Batch::new();
        batch.put(TableId::DEFAULT, &number.to_be_bytes(), &[7; 4000]).expect("fits");
        let start = clock.now();
        // A wait that the caller gives does not go beyond it.
        let written = match number % 3 {
            0 => engine.write_within(&batch, false, Duration::from_secs(10)),
            1 => engine.write_within(&batch, false, Duration::from_millis(1)),
            _ => engine.write(&batch, false),
        };
        longest = longest.max(clock.now() - start);
        assert!(longest <= LONGEST, "write {number} was held back for {longest:?}");
        if let Err(error) = written {
            assert_eq!(error.kind(), Kind::Busy, "{error}");
            refused += 1;
            if refused > 100 && error.to_string().contains("write memory is full") {
                break;
            }
        }
    }
    assert!(refused > 100, "memory is full at last");
    assert_eq!(longest, LONGEST, "some were held back as long as that");
    let waits = engine.statistics();
    assert!(waits.get("write_wait_micros").expect("exists").number() > 0);
    engine.close().expect("closes");
}

#[test]
fn a_write_waits_for_an_ingest_as_long_as_the_option_allows() {
    let (clock, engine) = bounded();
    let watched = engine.txn.watch_writes();
    let table = engine.catalog().require("default").expect("is always there");
    let span = || vec![Span::new(&table, (b"a", b"z"))];
    let span_lock = engine.txn.lock_spans(&engine, span(), Duration::ZERO).expect("no writer writes");
    let error = engine.write(&batch(), false).expect_err("an ingest holds the key");
    assert_eq!((error.kind(), clock.now()), (Kind::Busy, LONGEST), "{error}");
    assert!(error.to_string().contains("an ingest holds the key"), "{error}");
    assert_eq!(engine.visible(), SeqNo(0), "nothing is written");
    // A wait that the caller gives does not go beyond it, and ends before it if it is shorter.
    let start = clock.now();
    let error =
        engine.write_within(&batch(), false, Duration::from_secs(10)).expect_err("an ingest holds the key");
    assert_eq!((error.kind(), clock.now() - start), (Kind::Busy, LONGEST), "{error}");
    let start = clock.now();
    let error = engine.write_within(&batch(), false, LONGEST / 2).expect_err("an ingest holds the key");
    assert_eq!((error.kind(), clock.now() - start), (Kind::TimedOut, LONGEST / 2), "{error}");
    drop(span_lock.release());
    engine.write(&batch(), false).expect("nothing comes in any more");
    drop(watched);

    // For locks of transactions it waits as long as ever.
    let options = TransactionOptions { concurrency: Concurrency::Pessimistic, ..Default::default() };
    let mut holder = Transaction::begin(engine.clone(), options).expect("begins");
    holder.before_write(TableId::DEFAULT, b"k").expect("no other owner has it");
    let start = clock.now();
    let error = engine.write(&batch(), false).expect_err("it is locked");
    assert_eq!((error.kind(), clock.now() - start), (Kind::TimedOut, LOCK_TIMEOUT), "{error}");
    drop(holder);
    engine.close().expect("closes");
}

/// A batch that has its turn alone.
fn very_large(engine: &Engine) -> Batch {
    let batch = large(4_000_000);
    assert!(
        batch.bytes().len() as u64 > engine.memory.budget().write_bytes() / 4,
        "it is larger than its share"
    );
    batch
}

/// Runs `act` once, in the first wait of a caller.
fn in_a_wait(
    engine: &Engine,
    act: impl FnOnce() -> Result<SeqNo> + Send + 'static,
) -> Arc<Mutex<Option<Result<SeqNo>>>> {
    let done = Arc::new(Mutex::new(None));
    let (mut act, shared) = (Some(act), done.clone());
    let step = move || match act.take() {
        Some(act) => {
            let outcome = act();
            *shared.lock() = Some(outcome);
            Step::Worked
        }
        None => Step::Idle,
    };
    engine.env.spawn.stepper().expect("the background runs in steps").add("test-act", Box::new(step));
    done
}

/// Otherwise the holder waits for its turn, and the batch that has the turn for the lock.
#[test]
fn a_large_batch_has_no_turn_while_it_waits_for_a_lock() {
    let options = TransactionOptions { concurrency: Concurrency::Pessimistic, ..Default::default() };
    for is_transaction in [false, true] {
        // A new database for each: segments of the one before stay in memory while a thread of another test
        // is in an epoch from before their flush, and the writer would wait for that memory first.
        let (_, engine) = bounded();
        let mut holder = Transaction::begin(engine.clone(), options.clone()).expect("begins");
        holder.before_write(TableId::DEFAULT, b"k").expect("no other owner has it");
        let batch = very_large(&engine);
        let held = in_a_wait(&engine, move || holder.commit(&batch, false));
        let waited = match is_transaction {
            false => engine.write(&very_large(&engine), false),
            true => {
                let waiter = Transaction::begin(
                    engine.clone(),
                    TransactionOptions { isolation: Isolation::ReadCommitted, ..options.clone() },
                );
                waiter.expect("begins").commit(&very_large(&engine), false)
            }
        };
        let held = held.lock().take().expect("the writer has waited for the lock");
        let held = held.expect("the holder has its turn while the writer waits");
        assert!(waited.expect("the writer has the lock, and its turn again") > held);
        assert_eq!(engine.throttle.reserved_bytes(), 0);
        engine.close().expect("closes");
    }
}

/// A prepared transaction keeps others out of what it has scanned until it is committed.
#[test]
fn a_large_batch_has_no_turn_while_it_waits_for_a_prepared_transaction() {
    let (_, engine) = bounded();
    let options = TransactionOptions { isolation: Isolation::Serializable, ..Default::default() };
    let mut prepared = Transaction::begin(engine.clone(), options).expect("begins");
    prepared.before_scan(TableId::DEFAULT, &Bounds::all()).expect("scans are kept");
    let mut own = Batch::new();
    own.put(TableId::DEFAULT, b"other", &vec![7; 4_000_000]).expect("fits");
    prepared.prepare("name", &own).expect("nothing is in the way");
    drop(prepared);
    engine.set_background_paused(false);
    engine.flush().expect("is written");
    engine.set_background_paused(true);
    let resolving = engine.clone();
    let resolved = in_a_wait(&engine, move || resolving.commit_prepared("name", &Batch::new(), false));
    let waited = engine.write(&very_large(&engine), false);
    let resolved = resolved.lock().take().expect("the writer has waited").expect("it has its turn");
    assert!(waited.expect("nothing is prepared any more") > resolved);
    engine.close().expect("closes");
}

#[test]
fn a_large_batch_that_is_refused_leaves_its_turn_to_the_next_one() {
    let engine = open_filled();
    let taken = 2 * engine.memory.budget().memory_bytes();
    engine.throttle.take_room(taken);
    let refused = engine.write_within(&very_large(&engine), false, Duration::ZERO).expect_err("no room");
    assert_eq!(refused.kind(), Kind::Busy, "{refused}");
    engine.throttle.give_back(taken);
    engine.write_within(&very_large(&engine), false, Duration::ZERO).expect("no batch is in front");
    engine.close().expect("closes");
}

/// No job frees the memory that this test takes, and compactions fail as long as the device fails reads. If
/// the writer waited for them, it would wait without end.
#[test]
fn a_write_that_waits_for_memory_does_not_wait_for_a_compaction_that_keeps_failing() {
    let disk = FaultyDisk::new(Arc::new(MemDisk::new()));
    let (clock, engine) = open_on(Arc::new(disk.clone()), &Options::default());
    let table = engine.catalog().require("default").expect("is always there");
    for _ in 0..2 {
        engine.write(&batch(), false).expect("there is no debt");
        engine.flush_to_run(&table).expect("is written");
    }
    disk.fail(Fault::new(Call::Read, Failure::Broken).on("/data/").lasting());
    let taken = engine.memory.budget().write_bytes();
    engine.txn.window_bytes_shared().fetch_add(taken, Ordering::Relaxed);
    engine.set_background_paused(false);
    let start = clock.now();
    let written = engine.write_within(&large(400_000), false, Duration::from_secs(60));
    written.expect("no job is left that frees memory");
    let took = clock.now() - start;
    assert!(took >= Duration::from_millis(500), "it waited for room, {took:?}");
    let is_failing =
        |schedule: &Schedule| schedule.failures.is_failing((JobKind::Compact, Some(TableId::DEFAULT)));
    assert!(engine.background.scheduler.inspect(is_failing), "the compaction fails");
    engine.txn.window_bytes_shared().fetch_sub(taken, Ordering::Relaxed);
    disk.heal();
    engine.close().expect("closes");
}
