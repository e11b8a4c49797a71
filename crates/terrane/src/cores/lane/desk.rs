//! A desk: the lanes whose requests one thread at a time serves.
//!
//! The thread that serves holds the *lease*, a lock. Usually that is the desk's owner ([`Desk::run`]), which
//! keeps it while there is work and sleeps on the desk's bell otherwise. A waiting client may find the lease
//! free and then serves the desk itself ([`Desk::help`]), including the requests of all other clients.
//!
//! # Which thread may touch what
//! 1. The server and the lanes belong to the holder of the lease.
//! 2. New lanes wait in `entering` until a holder of the lease adds them.
//!
//! # Progress
//! A client that published either sees that the owner is awake, or rings the bell, or serves the desk itself.
//! An owner that is awake takes the lease, and before it sleeps it checks every lane and `has_entered` after
//! its announcement.
//!
//! # Panics
//! A panic of the server ends the server, not the desk: every waiting request, and every later one, gets
//! [`Serve::fail`] instead of an answer.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::bell::Bell;
use super::ring::{Client, Server, lane};
use terrane_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use terrane_base::sync::{Arc, Mutex, spin};

/// Turns in which an owner looks for work before it sleeps. The later ones give the processor away
/// ([`spin`]).
const SPIN_TURNS: u32 = if cfg!(feature = "shuttle") { 1 } else { 96 };

/// The server of a desk.
pub(crate) trait Serve: Send {
    /// The content of a slot of a lane.
    type Slot: Default + Send;

    /// Answers requests and gives them back ([`Server::advance`]), at least one. Each lane was looked at.
    fn serve(&mut self, lanes: &mut [Server<Self::Slot>]);

    /// Puts into `slot` that the server panicked, in the place of an answer.
    fn fail(&mut self, slot: &mut Self::Slot);
}

struct Work<S: Serve> {
    server: S,
    lanes: Vec<Server<S::Slot>>,
    has_failed: bool,
}

struct Entering<T> {
    lanes: Vec<Server<T>>,
    is_closed: bool,
}

/// See the head of the file.
pub(crate) struct Desk<S: Serve> {
    work: Mutex<Work<S>>,
    entering: Mutex<Entering<S::Slot>>,
    has_entered: AtomicBool,
    is_closing: AtomicBool,
    bell: Bell,
    served: AtomicU64,
}

impl<S: Serve> Desk<S> {
    /// A desk without lanes.
    #[must_use]
    pub(crate) fn new(server: S) -> Self {
        Desk {
            work: Mutex::new(Work { server, lanes: Vec::new(), has_failed: false }),
            entering: Mutex::new(Entering { lanes: Vec::new(), is_closed: false }),
            has_entered: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            bell: Bell::new(),
            served: AtomicU64::new(0),
        }
    }

    /// Opens a lane of `slots` slots, a power of two, whose client sleeps by `bell`; `None` if the desk is
    /// closed.
    pub(crate) fn enter(&self, slots: usize, bell: Arc<Bell>) -> Option<Client<S::Slot>> {
        let (client, server) = lane(slots, bell);
        let mut entering = self.entering.lock();
        if entering.is_closed {
            return None;
        }
        entering.lanes.push(server);
        // SeqCst: before the client's first look at the bell, against the look in `run`.
        self.has_entered.store(true, Ordering::SeqCst);
        Some(client)
    }

    /// Requests that were answered.
    pub(crate) fn served(&self) -> u64 {
        self.served.load(Ordering::Relaxed)
    }

    /// Wakes the owner if it sleeps. The caller has published.
    #[inline]
    pub(crate) fn wake(&self) {
        self.bell.ring_if_asleep();
    }

    /// Serves the desk once if no other thread does; returns true if there was work.
    #[inline]
    pub(crate) fn help(&self) -> bool {
        self.work.try_lock().is_some_and(|mut work| self.round(&mut work))
    }

    /// The owner's life: serves until the desk is closed.
    pub(crate) fn run(&self) {
        loop {
            let mut work = self.work.lock();
            let mut turn = 0;
            while turn <= SPIN_TURNS {
                // Acquire: pairs with the Release in `close`.
                if self.is_closing.load(Ordering::Acquire) {
                    return self.end(&mut work);
                }
                if self.round(&mut work) {
                    turn = 0;
                } else {
                    spin(turn);
                    turn += 1;
                }
            }
            self.bell.announce();
            // SeqCst: behind the announcement, against `enter`.
            let has_work =
                self.has_entered.load(Ordering::SeqCst) || work.lanes.iter_mut().any(|lane| lane.look() > 0);
            drop(work);
            if has_work { self.bell.cancel() } else { self.bell.sleep() }
        }
    }

    /// Ends every lane, serves what was accepted and ends the owner. Later requests are refused.
    pub(crate) fn close(&self) {
        self.entering.lock().is_closed = true;
        // Release: a thread that sees it sees that no lane enters any more. An owner with endless work
        // releases the lease only for this.
        self.is_closing.store(true, Ordering::Release);
        self.end(&mut self.work.lock());
        self.bell.ring();
    }

    fn end(&self, work: &mut Work<S>) {
        self.take_in(work);
        if terrane_base::planted!(ForgetAccepted) {
            work.has_failed = true;
        }
        let mut waiting: usize = work.lanes.iter_mut().map(Server::end).sum();
        while waiting > 0 {
            self.round(work);
            waiting = work.lanes.iter().map(Server::waiting).sum();
        }
        work.lanes.clear();
    }

    /// Serves what waits now; returns whether there was anything.
    fn round(&self, work: &mut Work<S>) -> bool {
        // Acquire is enough: the list is behind a lock, and sleep is behind a look of its own.
        if self.has_entered.load(Ordering::Acquire) {
            self.take_in(work);
        }
        let waiting: usize = work.lanes.iter_mut().map(Server::look).sum();
        if waiting == 0 {
            // In this order: a lane that is gone publishes nothing behind the look.
            work.lanes.retain_mut(|lane| !lane.is_gone() || lane.look() > 0);
            return false;
        }
        let Work { server, lanes, has_failed, .. } = work;
        if !*has_failed {
            *has_failed = catch_unwind(AssertUnwindSafe(|| server.serve(lanes))).is_err();
        }
        if *has_failed {
            fail_all(server, lanes);
        }
        let left: usize = work.lanes.iter().map(Server::waiting).sum();
        // Relaxed, no addition: only the holder of the lease writes it.
        self.served.store(self.served() + (waiting - left) as u64, Ordering::Relaxed);
        true
    }

    #[cold]
    fn take_in(&self, work: &mut Work<S>) {
        let mut entering = self.entering.lock();
        self.has_entered.store(false, Ordering::Relaxed);
        work.lanes.append(&mut entering.lanes);
    }
}

#[cold]
fn fail_all<S: Serve>(server: &mut S, lanes: &mut [Server<S::Slot>]) {
    for lane in lanes {
        let waiting = lane.waiting();
        (0..waiting).for_each(|index| server.fail(lane.get_mut(index)));
        lane.advance(waiting);
    }
}

impl<S: Serve> std::fmt::Debug for Desk<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").field("served", &self.served()).finish_non_exhaustive()
    }
}
