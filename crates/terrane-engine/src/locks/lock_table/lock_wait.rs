//! The wait of an owner for locks, or for commits in flight.

use std::time::Duration;

use terrane_base::env::Env;
use terrane_base::sync::atomic::{AtomicBool, Ordering};
use terrane_base::sync::{Condvar, MutexGuard, unlocked};

use crate::locks::lock_table::Owner;
use crate::locks::wait_graph::Edge;

/// How long a waiter sleeps before it looks whether the database closes.
const SLEEP_MAX: Duration = Duration::from_millis(100);

/// How long an owner is ready to wait.
pub(crate) struct LockWait<'e> {
    /// The clock, and the work that runs during the wait in a world with one thread.
    pub(crate) env: &'e Env,
    /// The moment on that clock at which it ends.
    pub(crate) until: Duration,
    /// Set when the database closes, which ends every wait.
    pub(crate) closing: &'e AtomicBool,
    /// True if a wait that closes a cycle is refused.
    pub(crate) finds_deadlocks: bool,
    /// The room in memory that the owner has reserved, if it may have any.
    pub(crate) room: Option<&'e dyn Room>,
}

/// Room in memory that a writer has reserved for its batch. It is given back before the writer waits for a
/// lock: the holder may need the room to commit, and each would wait for the other until the lock wait ends.
pub(crate) trait Room {
    /// Returns true if some is reserved.
    fn is_reserved(&self) -> bool;

    /// Gives all of it back.
    fn give_back(&self);
}

/// Why something was not waited for to its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// These wait for each other.
    Deadlock(Vec<Edge>),
    /// The wait ended while these were in front.
    TimedOut(Vec<Owner>),
    /// The wait ended while an ingest had the keys.
    Ingest,
    /// The database closes.
    Closing,
}

/// How a wait ended.
pub(crate) type Waited = Result<(), Refusal>;

impl<'e> LockWait<'e> {
    /// The same wait of an owner that has reserved room, if it is one.
    pub(crate) fn with_room(self, room: Option<&'e dyn Room>) -> LockWait<'e> {
        LockWait { room, ..self }
    }

    /// Sleeps on `changed` for a while; says why the wait is over. It may return at once: the caller looks
    /// again for the reason of its wait.
    pub(crate) fn wait<T>(&self, changed: &Condvar, guard: &mut MutexGuard<'_, T>) -> Waited {
        if self.closing.load(Ordering::Relaxed) {
            return Err(Refusal::Closing);
        }
        let left = self.until.saturating_sub(self.env.clock.now());
        if left.is_zero() {
            return Err(Refusal::TimedOut(Vec::new()));
        }
        let keeps_room = terrane_base::planted!(KeepRoomForLocks);
        if let Some(room) = self.room.filter(|room| room.is_reserved() && !keeps_room) {
            // Without the mutex: it takes others, and the lock may be granted meanwhile.
            unlocked(guard, || room.give_back());
            debug_assert!(!room.is_reserved(), "room is given back once");
            return Ok(());
        }
        let sleep = left.min(SLEEP_MAX);
        match self.env.spawn.stepper() {
            Some(stepper) => unlocked(guard, || stepper.pass(sleep)),
            None => {
                changed.wait_for(guard, sleep);
            }
        }
        Ok(())
    }
}
