//! The overhead of a short scan: it does not read the clock, and a refreshed cursor allocates no memory.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use terrane::{Db, Env, MemoryDevice, Options};
use terrane_base::env::Clock;
use terrane_base::epoch;

use crate::{ALLOCATIONS, turn};

thread_local! {
    static LOOKS: Cell<u64> = const { Cell::new(0) };
}

/// The real clock, with a count of its readings.
#[derive(Debug)]
struct Counted(Arc<dyn Clock>);

impl Clock for Counted {
    fn now(&self) -> Duration {
        LOOKS.set(LOOKS.get() + 1);
        self.0.now()
    }

    fn wall(&self) -> Duration {
        LOOKS.set(LOOKS.get() + 1);
        self.0.wall()
    }

    fn sleep(&self, duration: Duration) {
        self.0.sleep(duration);
    }
}

/// Allocations and looks of this thread in `work`.
fn cost_of(work: impl FnOnce()) -> (u64, u64) {
    let before = (ALLOCATIONS.get(), LOOKS.get());
    work();
    (ALLOCATIONS.get() - before.0, LOOKS.get() - before.1)
}

/// Leaves to the threads that pin an epoch later what a thread of the background may leave to them.
fn leave_garbage() {
    // Nothing is freed while this thread is in an epoch.
    let kept = epoch::pin();
    let leave = || {
        for _ in 0..10_000 {
            let guard = epoch::pin();
            guard.defer(|| ());
            guard.flush();
        }
    };
    std::thread::scope(|scope| scope.spawn(leave).join().unwrap());
    drop(kept);
}

fn open(options: Options) -> Db {
    let env = Env { clock: Arc::new(Counted(Env::real().clock)), ..Env::real() };
    let db = Db::open_on(MemoryDevice::new(64 << 20).disk(), "/data", &options, env).unwrap();
    (0..1000u32).for_each(|key| db.put(key.to_be_bytes(), b"value").unwrap());
    // Rows in memory stay there.
    db.pause_background();
    db
}

#[test]
fn a_short_scan_looks_at_no_clock_and_a_refresh_takes_no_memory() {
    let _turn = turn();
    let db = open(Options::in_memory());
    let table = db.default_table();
    let mut cursor = table.cursor();
    let mut scan = |key: u32| {
        cursor.refresh();
        cursor.seek(key.to_be_bytes()).unwrap();
        for _ in 0..8 {
            cursor.next().unwrap();
        }
        assert!(cursor.row().is_some());
    };
    scan(0);
    leave_garbage();
    for key in 1..500u32 {
        let costs = [(); 3].map(|()| {
            db.put(key.to_be_bytes(), b"other").unwrap();
            cost_of(|| {
                scan(key);
                scan(key + 1);
            })
        });
        // A thread that pins an epoch frees, now and then, what other threads have left, and notes in memory
        // what is to be freed behind that: in one of some thousand pins, and so never three times running.
        let least = costs.map(|(allocations, _)| allocations).into_iter().min();
        assert_eq!(least, Some(0), "{key}: after a write, and after none");
        assert!(costs.iter().all(|(_, looks)| *looks == 0), "{key}: {costs:?}");
    }
    for key in 0..500u32 {
        let (_, looks) =
            cost_of(|| assert_eq!(table.range(key.to_be_bytes().as_slice()..).take(8).count(), 8));
        assert_eq!(looks, 0);
    }
    assert!(cost_of(|| drop(db.live_readers())).1 > 0, "looks are counted");
    assert!(cost_of(|| drop(table.iter())).0 > 0, "memory is counted");
}

#[test]
fn with_a_greatest_age_every_step_looks_how_old_it_is() {
    let _turn = turn();
    let db = open(Options { reader_age_max_ms: 3_600_000, ..Options::in_memory() });
    let mut cursor = db.default_table().cursor();
    let (_, looks) = cost_of(|| {
        cursor.refresh();
        cursor.seek_first().unwrap();
        cursor.next().unwrap();
    });
    assert!(looks >= 3, "{looks}");
}
