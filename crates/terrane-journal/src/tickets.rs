//! Tickets: commits that are numbered, indexed and visible, and whose durability is still to come.
//!
//! A commit without a sync is over within microseconds. [`Tickets::issue`] gives its number a [`Ticket`], and
//! one persist step later makes all numbers durable that have waited for it. So one thread has many commits
//! in flight, and they share a persist step as commits of many threads do.
//!
//! # Which thread persists
//! Any thread that takes the role of the persister (`is_persisting`): a thread that waits for a ticket, or
//! the thread that runs [`Tickets::run`], for tickets that only a waker or a callback waits for. One thread
//! at a time has the role.
//!
//! # No ticket is left behind
//! A ticket joins `waiting` under the lock. The thread of `run` sleeps on `work` only if it has seen, under
//! that lock, that nothing waits or that another thread persists; a thread that gives the role back looks for
//! what came meanwhile, and wakes it. A thread that waits for a ticket sleeps on `changed` only while another
//! thread persists, which wakes all of them when it gives the role back. A ticket is done before that.
//!
//! # Callbacks
//! They run on the thread of `run`, one at a time, without a lock and without the role.

mod ticket;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use terrane_base::env::{Clock, Env, Step};
use terrane_base::sync::atomic::{AtomicU64, Ordering};
use terrane_base::sync::{Condvar, Mutex, MutexGuard};
use terrane_base::{Result, SeqNo};

use ticket::{Callback, Cell};

pub use ticket::Ticket;

/// Makes numbers durable: a journal.
pub trait PersistThrough: Send + Sync {
    /// See [`Journal::sync_through`](crate::Journal::sync_through).
    ///
    /// # Errors
    /// As [`Journal::sync_through`](crate::Journal::sync_through).
    fn persist_through(&self, seq: SeqNo) -> Result<()>;

    /// See [`Journal::durable`](crate::Journal::durable).
    fn durable(&self) -> SeqNo;
}

/// Takes the number of a commit whose callback panicked, and the message of the panic.
pub type OnPanic = fn(SeqNo, &str);

/// A callback that is due.
struct Call {
    callback: Callback,
    seq: SeqNo,
    outcome: Result<SeqNo>,
}

/// Callbacks that panicked.
struct Panics {
    count: AtomicU64,
    on_panic: OnPanic,
}

/// See the head of the file.
pub struct Tickets {
    journal: Box<dyn PersistThrough>,
    /// More are not in flight, but for one of each writing thread.
    in_flight_max: usize,
    /// True if a thread runs [`Tickets::run`]: a wait with a deadline need not persist by itself.
    has_thread: bool,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    /// There is something to do for [`Tickets::run`].
    work: Condvar,
    /// The role of the persister is free, or there is room again.
    changed: Condvar,
    panics: Panics,
}

#[derive(Default)]
struct State {
    /// Tickets that are not done.
    waiting: Vec<Arc<Cell>>,
    /// The greatest number in `waiting`.
    last: SeqNo,
    callbacks: VecDeque<Call>,
    is_persisting: bool,
    is_closed: bool,
}

impl Tickets {
    /// No ticket yet; `in_flight_max` at least 1. The caller gives [`Tickets::run`] a thread before the first
    /// ticket or, where `env` has none, [`Tickets::step`] to the stepper. `on_panic` is called for each
    /// callback that panics, on the thread of that callback.
    #[must_use]
    pub fn new(
        journal: Box<dyn PersistThrough>,
        in_flight_max: usize,
        env: &Env,
        on_panic: OnPanic,
    ) -> Arc<Tickets> {
        assert!(in_flight_max > 0, "a writer would wait for ever");
        Arc::new(Tickets {
            journal,
            in_flight_max,
            has_thread: env.spawn.stepper().is_none(),
            clock: env.clock.clone(),
            state: Mutex::new(State::default()),
            work: Condvar::new(),
            changed: Condvar::new(),
            panics: Panics { count: AtomicU64::new(0), on_panic },
        })
    }

    /// Waits until fewer tickets than the maximum are in flight, callbacks to come included. Called before
    /// the commit, and not by a callback.
    pub fn wait_for_room(&self) {
        loop {
            let mut state = self.state.lock();
            if state.in_flight() < self.in_flight_max {
                return;
            }
            debug_assert!(
                !state.waiting.is_empty() || !state.callbacks.is_empty(),
                "nothing is in flight that would make room"
            );
            match (state.waiting.is_empty(), self.has_thread) {
                (false, _) => self.persist_or_wait(state),
                (true, true) => self.changed.wait(&mut state),
                // The steps that call the callbacks come later.
                (true, false) => return,
            }
        }
    }

    /// Returns true if fewer tickets than the maximum are in flight, callbacks to come included.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.state.lock().in_flight() < self.in_flight_max
    }

    /// A ticket for `seq`. Requires: `seq` is visible.
    pub fn issue(self: &Arc<Self>, seq: SeqNo) -> Ticket {
        if seq <= self.journal.durable() || terrane_base::planted!(DoneBeforeSync) {
            return self.done(seq);
        }
        let cell = Arc::new(Cell::new(seq));
        let mut state = self.state.lock();
        if state.is_closed {
            drop(state);
            // Its commit was admitted before the close, which makes durable whatever was committed.
            let outcome = self.journal.persist_through(seq).map(|()| seq);
            let _ = cell.complete(outcome);
            return Ticket::new(cell, Arc::downgrade(self));
        }
        debug_assert!(seq > SeqNo(0), "number 0 is durable from the beginning");
        let is_first = state.waiting.is_empty();
        state.waiting.push(cell.clone());
        state.last = state.last.max(seq);
        if is_first && !state.is_persisting {
            self.work.notify_one();
        }
        drop(state);
        Ticket::new(cell, Arc::downgrade(self))
    }

    /// A ticket for `seq` that is done: nothing is to be made durable for it.
    pub fn done(self: &Arc<Self>, seq: SeqNo) -> Ticket {
        Ticket::new(Arc::new(Cell::done(seq)), Arc::downgrade(self))
    }

    /// The number of callbacks that panicked.
    pub fn callback_panics(&self) -> u64 {
        self.panics.count.load(Ordering::Relaxed)
    }

    /// Completes every ticket; later ones are made durable at once. The thread of [`Tickets::run`] calls the
    /// callbacks that are left, and ends.
    pub fn close(&self) {
        loop {
            let mut state = self.state.lock();
            let is_served = state.waiting.is_empty() && !state.is_persisting;
            if is_served || terrane_base::planted!(LeaveTicketsAtClose) {
                state.is_closed = true;
                drop(state);
                self.work.notify_all();
                return;
            }
            self.persist_or_wait(state);
        }
    }

    /// One piece of work: a callback, or else a persist step. `Ended` after [`Tickets::close`].
    pub fn step(&self) -> Step {
        let mut state = self.state.lock();
        if let Some(call) = state.callbacks.pop_front() {
            let makes_room = state.in_flight() + 1 == self.in_flight_max;
            drop(state);
            if makes_room {
                self.changed.notify_all();
            }
            self.call(call);
            return Step::Worked;
        }
        if !state.waiting.is_empty() && !state.is_persisting {
            self.persist(state);
            return Step::Worked;
        }
        if state.is_closed {
            assert!(state.waiting.is_empty(), "a close completes every ticket, and none joins after it");
            return Step::Ended;
        }
        Step::Idle
    }

    /// Does what there is to do until [`Tickets::close`].
    pub fn run(&self) {
        loop {
            match self.step() {
                Step::Worked => {}
                Step::Ended => return,
                Step::Idle => {
                    let mut state = self.state.lock();
                    if !state.has_work() && !state.is_closed {
                        self.work.wait(&mut state);
                    }
                }
            }
        }
    }

    /// Persists, or waits while another thread does.
    fn persist_or_wait(&self, mut state: MutexGuard<'_, State>) {
        debug_assert!(state.is_persisting || !state.waiting.is_empty(), "no thread would wake this one");
        if state.is_persisting {
            self.changed.wait(&mut state);
        } else {
            self.persist(state);
        }
    }

    /// Takes the role of the persister, makes durable what waits, and completes those tickets.
    fn persist(&self, mut state: MutexGuard<'_, State>) {
        assert!(
            !state.is_persisting,
            "two persisters: one could complete tickets of the other's failed step"
        );
        assert!(
            !state.waiting.is_empty(),
            "a persist step that completes no ticket: the role went to no use"
        );
        debug_assert!(
            state.waiting.iter().all(|cell| cell.seq <= state.last),
            "a ticket would stay behind its persist step"
        );
        state.is_persisting = true;
        let target = state.last;
        drop(state);
        let outcome = self.journal.persist_through(target);
        debug_assert!(
            outcome.is_err() || self.journal.durable() >= target,
            "a step that succeeded made {target} durable"
        );
        let is_durable = outcome.is_ok() || terrane_base::planted!(HideFailedSync);
        let durable = if is_durable { target } else { self.journal.durable() };
        let finished = self.take_finished(outcome.is_ok().then_some(target));
        let (mut wakers, mut callbacks) = (Vec::new(), Vec::new());
        for cell in &finished {
            let failed = outcome.as_ref().err().filter(|_| cell.seq > durable);
            let outcome = failed.map_or(Ok(cell.seq), |error| Err(error.clone()));
            let (waker, cell_callbacks) = cell.complete(outcome.clone());
            wakers.extend(waker);
            let call = |callback| Call { callback, seq: cell.seq, outcome: outcome.clone() };
            callbacks.extend(cell_callbacks.into_iter().map(call));
        }
        debug_assert!(
            finished.iter().all(|cell| cell.is_done()),
            "a waiting thread looks once more, then sleeps"
        );
        let mut state = self.state.lock();
        assert!(state.is_persisting, "the thread that took the role gives it back");
        state.callbacks.extend(callbacks);
        state.is_persisting = false;
        let has_work = state.has_work();
        drop(state);
        self.changed.notify_all();
        if has_work {
            self.work.notify_one();
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Takes the tickets up to `upto` out of those that wait; all of them after a failure, because nothing is
    /// made durable any more.
    fn take_finished(&self, upto: Option<SeqNo>) -> Vec<Arc<Cell>> {
        let mut state = self.state.lock();
        debug_assert!(
            state.is_persisting,
            "only the persister takes tickets out: others may look for theirs"
        );
        let waiting = std::mem::take(&mut state.waiting);
        let Some(upto) = upto else { return waiting };
        let (finished, rest): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|cell| cell.seq <= upto);
        assert!(!finished.is_empty(), "the ticket of {upto} waits until its persist step is over");
        state.waiting = rest;
        finished
    }

    /// Waits until `cell` is done.
    fn wait(&self, cell: &Cell) {
        loop {
            let state = self.state.lock();
            // Looked at under the lock: the thread that completes it takes the lock after that, and then
            // wakes this one.
            if cell.is_done() {
                return;
            }
            self.persist_or_wait(state);
        }
    }

    /// Waits until `cell` is done, or `wait_max` is over.
    fn wait_for(&self, cell: &Cell, wait_max: Duration) {
        if !self.has_thread {
            return self.wait(cell);
        }
        let deadline = self.clock.now().saturating_add(wait_max);
        let mut state = self.state.lock();
        while !cell.is_done() {
            let left = deadline.saturating_sub(self.clock.now());
            if left.is_zero() {
                return;
            }
            self.changed.wait_for(&mut state, left);
        }
    }

    /// Calls a callback; a panic ends here.
    fn call(&self, Call { callback, seq, outcome }: Call) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| callback(outcome))) {
            self.panics.count.fetch_add(1, Ordering::Relaxed);
            let text = payload.downcast_ref::<&str>().copied();
            let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
            (self.panics.on_panic)(seq, text.unwrap_or("a panic without a text"));
        }
    }
}

impl State {
    fn in_flight(&self) -> usize {
        self.waiting.len() + self.callbacks.len()
    }

    /// Returns true if there is something to do for [`Tickets::run`].
    fn has_work(&self) -> bool {
        !self.callbacks.is_empty() || !(self.waiting.is_empty() || self.is_persisting)
    }
}

impl std::fmt::Debug for Tickets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tickets").field("in_flight_max", &self.in_flight_max).finish_non_exhaustive()
    }
}
