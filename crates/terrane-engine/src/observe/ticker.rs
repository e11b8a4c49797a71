//! A thread that does something once in an interval, until it is closed. It counts as a thread of the
//! background ([`crate::reentrancy`]).

use std::sync::Arc;
use std::time::Duration;

use terrane_base::Result;
use terrane_base::env::{Joiner, Spawn};
use terrane_base::sync::{Condvar, Mutex};

use crate::reentrancy::Working;

/// The state of the thread at the end of each interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It has done its work, or failed to: it waits for the next interval.
    Done,
    /// There is nothing left to do: the thread ends.
    Ended,
}

/// The thread, while there is one.
#[derive(Default)]
pub(crate) struct Ticker {
    wait: Arc<Wait>,
    thread: Mutex<Option<Box<dyn Joiner>>>,
}

/// Where the thread waits.
#[derive(Default)]
struct Wait {
    is_closing: Mutex<bool>,
    closed: Condvar,
}

impl Wait {
    /// Waits for `interval`; true if there is to be no further turn.
    fn pass(&self, interval: Duration) -> bool {
        let mut is_closing = self.is_closing.lock();
        if !*is_closing {
            self.closed.wait_for(&mut is_closing, interval);
        }
        *is_closing
    }
}

impl Ticker {
    /// Starts the thread `name` of the database `instance`: it calls `turn` after each `interval`.
    ///
    /// # Errors
    /// `Io` if the system refuses a thread.
    pub(crate) fn start(
        &self,
        (spawn, name, instance): (&dyn Spawn, &str, u64),
        interval: Duration,
        mut turn: impl FnMut() -> Turn + Send + 'static,
    ) -> Result<()> {
        let wait = self.wait.clone();
        let body = move || {
            // What a turn calls may drop the last handle of the database, whose close waits for this thread.
            let _working = Working::of(instance);
            while !wait.pass(interval) && turn() == Turn::Done {}
        };
        let thread = spawn.spawn(name, Box::new(body))?;
        let before = self.thread.lock().replace(thread);
        assert!(before.is_none(), "a database has one thread {name}");
        Ok(())
    }

    /// Ends the thread and, on other threads, waits for it; returns false if there is no thread.
    pub(crate) fn close(&self) -> bool {
        *self.wait.is_closing.lock() = true;
        self.wait.closed.notify_all();
        let thread = self.thread.lock().take();
        thread.map(Joiner::join).is_some()
    }
}
