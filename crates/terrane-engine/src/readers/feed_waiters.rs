//! Readers of changes that wait for the next commit, and how a commit wakes them: by one look where none
//! waits.

use std::time::Duration;

use terrane_base::env::Env;
use terrane_base::sync::atomic::{AtomicUsize, Ordering, fence};
use terrane_base::sync::{Condvar, Mutex};

/// Readers that wait for a commit.
#[derive(Debug, Default)]
pub(crate) struct FeedWaiters {
    waiting: AtomicUsize,
    turn: Mutex<()>,
    changed: Condvar,
}

impl FeedWaiters {
    /// Wakes the readers that wait, if there are any. Called after each commit, once it is visible.
    #[inline]
    pub(crate) fn wake_if_waiting(&self) {
        // Pairs with the fence in `wait`: either the reader sees what became visible before, or this thread
        // sees that the reader waits.
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.wake();
        }
    }

    /// Wakes all readers that wait.
    #[cold]
    pub(crate) fn wake(&self) {
        // A reader that has found nothing but does not sleep yet holds the lock.
        drop(self.turn.lock());
        self.changed.notify_all();
    }

    /// Sleeps for `sleep` at most, unless `is_there`.
    pub(crate) fn wait(&self, env: &Env, sleep: Duration, is_there: impl Fn() -> bool) {
        let mut turn = self.turn.lock();
        self.waiting.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !is_there() {
            match env.spawn.stepper() {
                Some(stepper) => terrane_base::sync::unlocked(&mut turn, || stepper.pass(sleep)),
                None => drop(self.changed.wait_for(&mut turn, sleep)),
            }
        }
        let waited = self.waiting.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(waited > 0, "each reader that waits is counted once");
    }
}
