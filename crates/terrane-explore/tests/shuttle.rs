//! Locks of transactions, the conflict window and the lanes of cores under the schedule explorer.
//!
//! * Locks (`crates/terrane-engine/src/locks`): an exclusive holder is alone, every deadlock is found
//!   and none is invented, every waiter is woken, and no commit overwrites a change that it has not seen.
//! * Lanes (`crates/terrane/src/cores/lane`): order, completeness, sleep, helpers, closing, panics.
//!
//! Run with `cargo test -p terrane-explore --features shuttle --test shuttle`. The explorer itself
//! reports deadlocks; a lost wake-up, or a cycle that is not found, ends in one. The modules are not a part
//! of the public face of their crates: they are compiled into this test.
#![cfg(feature = "shuttle")]
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "a test, with the modules that it tests")]

#[path = "../../terrane-engine/src/read/scan/bounds.rs"]
mod bounds;
#[path = "shuttle/commits.rs"]
mod commits;
#[path = "shuttle/deadlocks.rs"]
mod deadlocks;
#[path = "shuttle/lanes.rs"]
mod lanes;
#[path = "shuttle/locks.rs"]
mod locks;
#[path = "shuttle/range_locks.rs"]
mod range_locks;

/// The items that the locks import from their crate, by their paths there.
mod read {
    pub(crate) mod scan {
        pub(crate) use crate::bounds::Bounds;
    }
}

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use terrane_base::TableId;
use terrane_base::env::{Clock, Env};
use terrane_base::sync::atomic::AtomicBool;

use locks::lock_table::{LockKey, LockWait};

/// Schedules of each kind for each test; `TERRANE_SCHEDULES` sets another number for long runs.
fn schedules() -> usize {
    std::env::var("TERRANE_SCHEDULES").ok().and_then(|text| text.parse().ok()).unwrap_or(3000)
}

fn explore(test: impl Fn() + Send + Sync + 'static) {
    let test = Arc::new(test);
    let random = Arc::clone(&test);
    shuttle::check_random(move || random(), schedules());
    shuttle::check_pct(move || test(), schedules(), 4);
}

fn key(name: u8) -> LockKey {
    LockKey::new(TableId(1), &[name])
}

/// A clock that goes on by a second whenever it is read.
#[derive(Debug, Default)]
struct Hasty(AtomicU64);

impl Clock for Hasty {
    fn now(&self) -> Duration {
        Duration::from_secs(self.0.fetch_add(1, Ordering::Relaxed))
    }

    fn wall(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _duration: Duration) {}
}

/// The clock and the flag of one caller. The flag is not a `static`: what `shuttle` explores belongs to one
/// execution, and the tests of this program run beside each other.
struct Surroundings {
    env: Env,
    closing: AtomicBool,
}

fn surroundings() -> Surroundings {
    let env = Env { clock: Arc::new(Hasty::default()), ..Env::real() };
    Surroundings { env, closing: AtomicBool::new(false) }
}

/// A wait that ends after so many readings of the clock; a waiter reads it each time it wakes up.
fn lock_wait(around: &Surroundings, readings: u64) -> LockWait<'_> {
    let Surroundings { env, closing } = around;
    let until = env.clock.now() + Duration::from_secs(readings);
    LockWait { env, until, closing, finds_deadlocks: true, room: None }
}

/// A lock wait that does not end.
const ENDLESS: u64 = 1 << 40;
