//! Attempts on a device that has no room for a batch of 600 KiB, whatever is flushed.

use std::path::Path;
use std::sync::Arc;

use terrane_base::env::{Clock, Env, SleepClock, SteppedSpawn};
use terrane_base::options::Options;
use terrane_base::{Batch, Kind, Result, TableId};
use terrane_compaction::JobControl;
use terrane_device::MemDisk;

use super::*;
use crate::background::scheduler::Running;
use crate::engine::Engine;
use crate::throttle::control::Relief;

const MIB: u64 = 1 << 20;
/// Not a figure: a state that has not come after as many looks never will.
const LOOKS_MAX: u32 = 50_000;

fn open(env: Env) -> (MemDisk, Arc<Engine>) {
    let disk = MemDisk::new();
    disk.set_capacity(MIB);
    let engine = Engine::open_on(Arc::new(disk.clone()), Path::new("/db"), &Options::default(), env);
    (disk, engine.expect("opens"))
}

fn assert_refused(engine: &Engine) {
    let refused = engine.put(TableId::DEFAULT, b"key", &[7; 600 << 10], false).expect_err("no room");
    assert!(refused.kind() == Kind::Full && refused.to_string().contains("free some on"), "{refused}");
}

fn attempts(engine: &Engine) -> u64 {
    engine.background.space.state.lock().newest
}

fn until(is_so: impl Fn() -> bool) {
    let clock = Env::real().clock;
    for _ in 0..LOOKS_MAX {
        if is_so() {
            return;
        }
        clock.sleep(Duration::from_millis(1));
    }
    panic!("it never comes to that");
}

#[test]
fn one_attempt_serves_all_writers_that_wait() {
    let (_, engine) = open(Env::real());
    // The attempt cannot end.
    let change = engine.catalog.change();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8).map(|_| scope.spawn(|| assert_refused(&engine))).collect();
        until(|| engine.background.space.state.lock().waiting == 8);
        assert_eq!(attempts(&engine), 1);
        drop(change);
        writers.into_iter().for_each(|writer| writer.join().expect("the device has refused it"));
    });
    let state = engine.background.space.state.lock();
    assert_eq!((state.newest, state.waiting, state.under_way.is_none()), (1, 0, true));
    drop(state);
    engine.close().expect("closes");
}

#[test]
fn no_attempt_begins_until_something_changes_that_may_free_space() {
    let clock = Arc::new(SleepClock::default());
    let spawn = Arc::new(SteppedSpawn::new(clock.clone()));
    let (disk, engine) = open(Env { clock: clock.clone(), spawn, ..Env::real() });
    engine.put(TableId::DEFAULT, b"other", b"value", false).expect("fits");
    assert_refused(&engine);
    // Its flush was a job that ends after it.
    assert_refused(&engine);
    let known = std::cell::Cell::new(attempts(&engine));
    let assert_begins = |what: &str, begins: bool| {
        assert_refused(&engine);
        let before = known.replace(attempts(&engine));
        assert_eq!(known.get() - before, u64::from(begins), "{what}");
    };
    (0..50).for_each(|_| assert_begins("nothing has changed", false));
    engine.background.space.note_done(JobKind::Compact);
    assert_begins("a merge has ended", true);
    engine.background.space.note_done(JobKind::Scrub);
    assert_begins("a scrub frees nothing", false);
    let pin = engine.pins.pin(|| engine.journal.visible());
    assert_begins("a snapshot was taken", false);
    clock.sleep(PAUSE_MAX);
    assert_begins("the pause is over", true);
    drop(pin);
    assert_begins("a snapshot was released", true);
    disk.set_capacity(MIB + (8 << 10));
    assert_begins("the device has more room", true);
    let mut pause = PAUSE_MIN;
    while pause < PAUSE_MAX {
        clock.sleep(pause / 2);
        assert_begins("half of a pause", false);
        clock.sleep(pause / 2);
        assert_begins("a pause", true);
        pause *= 2;
    }
    (0..3).for_each(|_| {
        clock.sleep(PAUSE_MAX);
        assert_begins("the longest pause", true);
    });
    engine.set_background_paused(true);
    clock.sleep(PAUSE_MAX);
    assert_begins("the background is paused", false);
    engine.set_background_paused(false);
    engine.close().expect("closes");
}

#[test]
fn a_refused_writer_waits_for_no_check() {
    let (_, engine) = open(Env::real());
    std::thread::scope(|scope| {
        // As a check of the journal does.
        let _check = engine.trims.hold_for_check();
        let writer = scope.spawn(|| {
            let put = |number: u32| engine.put(TableId::DEFAULT, &number.to_be_bytes(), &[7; 100], false);
            let refused = (0..100_000).find_map(|number| put(number).err()).expect("the device becomes full");
            assert_eq!(refused.kind(), Kind::Full, "{refused}");
        });
        until(|| writer.is_finished());
    });
    let before = attempts(&engine);
    assert!(before > 0, "everything was flushed");
    // The segments go: rows have room again.
    until(|| engine.put(TableId::DEFAULT, b"key", &[7; 100], false).is_ok());
    engine.close().expect("closes");
}

#[test]
fn the_last_step_of_an_attempt_waits_for_a_copy_and_trims_behind_it() {
    let (_, engine) = open(Env::real());
    std::thread::scope(|scope| {
        // As a checkpoint does, for a moment.
        let moment = engine.trims.hold();
        assert!(!engine.trims.is_checked(), "only a check keeps attempts from trimming");
        let step = scope.spawn(|| end_of_attempt(&engine, SeqNo(0)));
        until(|| engine.trims.is_trimming() || step.is_finished());
        drop(moment);
        assert_eq!(step.join().expect("it ends"), Outcome::Trimmed(SeqNo(0)));
    });
    engine.close().expect("closes");
}

/// A flush holds its generation until its job has ended. A file that is removed before that is still mapped:
/// its space is not free, and the writer behind the attempt would be refused though all is flushed.
#[test]
fn the_last_step_of_an_attempt_begins_when_no_flush_runs() {
    let engine = open_behind_attempts();
    let mut schedule = Schedule::default();
    let mut begins = |is_last: bool, runs: bool| {
        let (tables, upto) = (Vec::new().into(), SeqNo(0));
        let due = Phase::Flushing(Flushing { tables, upto, seen: 0, is_last });
        engine.background.space.state.lock().under_way = Some(due);
        schedule.running.clear();
        schedule.running.extend(runs.then(|| Running {
            id: 0,
            kind: JobKind::Flush,
            table: Some(TableId::DEFAULT),
            claim: None,
            is_manual: false,
            advance: None,
            control: Arc::new(JobControl::new(Env::real().clock, None)),
        }));
        Look { engine: &engine, schedule: &schedule }.next_space_step().is_some()
    };
    assert!(begins(true, false), "all is flushed");
    assert!(!begins(true, true), "the job of the flush has the segments still");
    assert!(begins(false, true), "nothing is given back before the last step");
    engine.background.space.state.lock().under_way = None;
    engine.close().expect("closes");
}

/// Has the device refuse a batch until no attempt begins for it any more.
fn refuse_until_unchanged(engine: &Engine) {
    for _ in 0..10 {
        let before = attempts(engine);
        assert_refused(engine);
        if attempts(engine) == before {
            return;
        }
    }
    panic!("each refused writer has another attempt");
}

/// An engine on one thread, after attempts that have ended.
fn open_behind_attempts() -> Arc<Engine> {
    let clock = Arc::new(SleepClock::default());
    let spawn = Arc::new(SteppedSpawn::new(clock.clone()));
    let (_, engine) = open(Env { clock, spawn, ..Env::real() });
    engine.put(TableId::DEFAULT, b"other", b"value", false).expect("fits");
    refuse_until_unchanged(&engine);
    engine
}

#[test]
fn a_writer_that_was_refused_before_the_last_attempt_ended_writes_again() {
    let engine = open_behind_attempts();
    let full = || {
        let refused = engine.put(TableId::DEFAULT, b"key", &[7; 600 << 10], false);
        refused.expect_err("the device has no room")
    };
    let mut batch = Batch::new();
    batch.put(TableId::DEFAULT, b"key", b"value").expect("within the limits");
    for is_bounded in [false, true] {
        let error = full();
        let before = attempts(&engine);
        // The room is there since the writer was refused.
        let written: Result<u32> = engine.behind_attempt(&batch, is_bounded, error, &|| Ok(7));
        assert_eq!(written.expect("there is room"), 7);
        assert_eq!(attempts(&engine), before, "nothing has changed since the last attempt");
    }
    engine.close().expect("closes");
}

#[test]
fn a_batch_of_deletes_has_an_attempt_begun_behind_a_merge() {
    let engine = open_behind_attempts();
    let is_trimmed = |answer| matches!(answer, Answer::Unchanged(Outcome::Trimmed(_)));
    assert!(is_trimmed(engine.ask_for_space(true)), "nothing was committed since");
    engine.background.space.note_done(JobKind::Compact);
    let Answer::UnderWay(number) = engine.ask_for_space(true) else {
        panic!("what the merge has freed is not given back");
    };
    assert!(matches!(engine.wait_for_space(number), Outcome::Trimmed(_)));
    assert!(is_trimmed(engine.ask_for_space(true)), "one attempt gives it back");
    engine.close().expect("closes");
}

/// Tables that the background visits where a writer has memory freed, where a large batch follows it, and
/// for an attempt, of so many tables of which three have records.
fn visited_of(tables: u32) -> [u64; 3] {
    let env = Env { spawn: Arc::new(SteppedSpawn::default()), ..Env::real() };
    let opened = Engine::open_on(Arc::new(MemDisk::new()), Path::new("/db"), &Options::default(), env);
    let engine = opened.expect("opens");
    (1..tables).for_each(|number| drop(engine.create_table(&number.to_string(), &[]).expect("a table")));
    engine.set_background_paused(true);
    let filled = [0, 1, tables - 1].map(TableId);
    for table in filled {
        engine.put(table, b"key", b"value", false).expect("fits");
    }
    let visited = |step: &dyn Fn()| {
        let before = engine.catalog.visited();
        step();
        engine.catalog.visited() - before
    };
    let attempt = || {
        let flushing = flush_for_space(&engine, false);
        let waits_for: Vec<_> = flushing.tables.iter().map(|table| table.id).collect();
        assert_eq!((waits_for, flushing.upto), (filled.to_vec(), engine.journal.visible()));
    };
    let counts = [visited(&|| engine.make_room()), visited(&|| engine.flush_behind()), visited(&attempt)];
    let asked = engine.catalog.all().into_iter().filter(|table| table.flush_wanted() > SeqNo(0));
    assert!(asked.map(|table| table.id).eq(filled), "what has records is flushed, and nothing else");
    engine.set_background_paused(false);
    engine.close().expect("closes");
    counts
}

#[test]
fn writers_visit_as_many_tables_of_a_thousand_as_of_three() {
    let few = visited_of(3);
    assert_eq!(few, [3; 3], "those with records");
    assert_eq!(visited_of(1_000), few);
}

#[test]
fn an_attempt_fails_by_records_of_a_table_that_has_stopped() {
    let engine = open_behind_attempts();
    let table = engine.catalog.require("default").expect("it exists");
    engine.put(TableId::DEFAULT, b"key", b"value", false).expect("fits");
    let _ = table.stop("by a test", crate::table::stopped::Left::Nothing);
    let flushing = flush_for_space(&engine, true);
    assert_eq!(flushing.tables.len(), 1, "its records are not in the levels");
    let look = Look { engine: &engine, schedule: &engine.background.scheduler.copy_for([]) };
    assert!(look.is_flush_done(&flushing.tables, flushing.upto, flushing.seen).is_err());
    engine.close().expect("closes");
}
