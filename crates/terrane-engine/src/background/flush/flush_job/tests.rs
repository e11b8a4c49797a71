//! A step of a flush that needs a level 1 which another job holds, while the background is paused; and what a
//! flush leaves behind.
#![allow(clippy::disallowed_methods, reason = "a test may leave threads behind that wait for ever")]

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::ThreadId;
use std::time::Duration;

use terrane_base::TableId;
use terrane_base::env::{Clock, Env};
use terrane_base::options::Options;
use terrane_base::sync::Mutex;
use terrane_device::MemDisk;

use super::*;
use crate::background::flush::merge_frozen::tests::settle;
use crate::engine::Engine;

/// A test fails if an event has not come by then.
const LIMIT: Duration = Duration::from_secs(300);

/// The real time. Reports each call of `now` by one thread.
#[derive(Debug)]
struct WatchedClock {
    real: Arc<dyn Clock>,
    of: Mutex<Option<(ThreadId, Sender<()>)>>,
}

impl WatchedClock {
    /// Reports the calls of this thread from now on.
    fn watch_this_thread(&self) -> Receiver<()> {
        let (look, looks) = channel();
        *self.of.lock() = Some((std::thread::current().id(), look));
        looks
    }
}

impl Clock for WatchedClock {
    fn now(&self) -> Duration {
        if let Some((thread, look)) = &*self.of.lock()
            && *thread == std::thread::current().id()
        {
            // The receiver may be gone.
            let _ = look.send(());
        }
        self.real.now()
    }

    fn wall(&self) -> Duration {
        self.real.wall()
    }

    fn sleep(&self, duration: Duration) {
        self.real.sleep(duration);
    }
}

/// The first generation of a load is an overflow run, and the journal is not synced for it; a small one that
/// a caller has flushed is merged into level 1.
#[test]
fn the_first_generation_of_a_load_is_a_run() {
    for (puts, runs) in [(40_000, 1), (50, 0)] {
        let options = Options { memory_bytes: 16 << 20, segment_bytes: 256 << 10, ..Options::default() };
        let disk = Arc::new(MemDisk::new());
        let engine = Engine::open_on(disk, Path::new("/db"), &options, Env::real()).expect("opens");
        let has_written = || {
            let stats = engine.stats();
            stats.overflow_runs_written + stats.flush_steps > 0
        };
        let durable = engine.journal.durable();
        let puts_until_flush = (0..puts).take_while(|_| !has_written());
        puts_until_flush.for_each(|number: u64| {
            engine.put(TableId::DEFAULT, &number.to_be_bytes(), &[7; 1000], false).expect("commits");
        });
        let is_synced = engine.journal.durable() > durable;
        if runs == 0 {
            assert!(!has_written(), "so few rows are not a full generation");
            engine.flush().expect("flushes");
        }
        let stats = engine.stats();
        assert_eq!(stats.overflow_runs_written > 0, runs > 0, "{puts} puts");
        assert_eq!(stats.flush_steps > 0, runs == 0, "{puts} puts");
        assert!(runs == 0 || !is_synced, "a run in an empty tree waits for no sync");
        engine.close().expect("closes");
    }
}

/// A database whose level 1 has a row, its default table, and its clock.
fn with_level_1() -> (Arc<Engine>, Arc<Table>, Arc<WatchedClock>) {
    let real = Env::real();
    let clock = Arc::new(WatchedClock { real: real.clock.clone(), of: Mutex::new(None) });
    let env = Env { clock: clock.clone(), ..real };
    let options = Options { memory_bytes: 16 << 20, segment_bytes: 64 << 10, ..Options::default() };
    let disk = Arc::new(MemDisk::new());
    let engine = Engine::open_on(disk, Path::new("/db"), &options, env).expect("opens");
    engine.put(TableId::DEFAULT, b"a", b"1", false).expect("commits");
    engine.flush().expect("flushes");
    engine.wait_until_quiescent().expect("nothing fails");
    let table = engine.catalog().require("default").expect("is always there");
    (engine, table, clock)
}

/// Another job holds level 1; a flush that was paused comes to the step that needs it, and looks. The thread
/// that ends the pause, or that gives level 1 up, needs the lock of the schedule, which the flush must not
/// hold while it waits.
#[test]
fn ending_a_pause_waits_for_no_paused_flush() {
    let (engine, table, clock) = with_level_1();
    let running = Arc::new(engine.new_control());
    let job = FlushJob { engine: &engine, table: &table, control: &running };
    let held = job.claim_step(b"", 1).expect("nothing fails");
    let (_, claim) = held.expect("level 1 is free");
    engine.set_background_paused(true);
    let paused = Arc::new(engine.new_control());
    paused.pause();
    let ((ready, looks), (result, results)) = (channel(), channel());
    let (flushing, its_table, its_control) = (engine.clone(), table.clone(), paused.clone());
    std::thread::spawn(move || {
        ready.send(clock.watch_this_thread()).expect("the test waits for it");
        // The receiver is gone where the test has failed.
        let job = FlushJob { engine: &flushing, table: &its_table, control: &its_control };
        let _ = result.send(job.claim_step(b"", 1));
    });
    let looks = looks.recv_timeout(LIMIT).expect("the thread begins");
    // It asks whether writers fill memory once it has found level 1 busy.
    looks.recv_timeout(LIMIT).expect("it looks at level 1");
    let (resumed, resumes) = channel();
    let resuming = engine.clone();
    std::thread::spawn(move || {
        resuming.set_background_paused(false);
        resumed.send(())
    });
    let ended = resumes.recv_timeout(LIMIT);
    assert!(ended.is_ok(), "the thread that ends the pause waits for the lock that the flush holds");
    paused.resume();
    engine.background.scheduler.release(claim);
    let step = results.recv_timeout(LIMIT).expect("level 1 is free").expect("nothing fails");
    engine.background.scheduler.release(step.expect("there are no runs").1);
    engine.close().expect("closes");
}

/// A flush that is observed while it runs counts as running, and slows writers to its pace.
#[test]
fn a_flush_that_has_ended_slows_no_writer() {
    let (engine, table, _) = with_level_1();
    engine.set_background_paused(true);
    engine.put(TableId::DEFAULT, b"b", b"2", false).expect("commits");
    assert!(engine.freeze(&table).expect("nothing fails"));
    let control = Arc::new(engine.new_control());
    settle(&engine, &table).expect("settles");
    let job = FlushJob { engine: &engine, table: &table, control: &control };
    let generation = job.take_generation().expect("a row is frozen");
    let under_way = engine.throttle.begin_flush(&control, &generation, engine.env.clock.now());
    engine.refresh_debt();
    assert!(engine.throttle.is_slowing(), "writers keep to the pace of a flush that is under way");
    drop(under_way);
    job.run().expect("nothing fails");
    assert!(
        table.is_flushed(engine.visible()) && !engine.is_trim_due(),
        "nothing else looks behind the flush"
    );
    assert!(!engine.throttle.is_slowing(), "a flush that has ended slows writers");
    engine.set_background_paused(false);
    engine.close().expect("closes");
}
