//! Which thread of an explored program runs: one at a time, chosen at points.
//!
//! Every explored thread is a thread of the operating system with a [`Seat`]. All but one are parked. The one
//! that runs keeps running until it blocks, ends, gives way, or reaches the point at which its turn is over
//! by the [`Strategy`]; then the controller chooses the next one and parks this one. All choices follow from
//! one seed, so that the same program takes the same way again; a hash of all choices ([`Controller::trace`])
//! shows whether it did.
//!
//! Ownership rules:
//! 1. `State` is touched under its lock only, by the thread that runs, or by the harness before the first and
//!    after the last turn.
//! 2. A thread parks only after it has made another one current; it goes on only when it is current again.
//! 3. A failure stops everything: the thread that finds it tells the harness and parks for ever, as all
//!    others are parked. Their memory is not given back: a campaign ends at its first failure.
//!
//! Code of a thread after its last turn, such as destructors of thread-local variables, runs beside the
//! others; nothing of an explored program is left to them.
//!
//! Time is virtual: a look at the clock takes a microsecond, and where every thread waits for the time it
//! moves on to the earliest of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::Thread;
use std::time::Duration;

use super::strategy::Strategy;
use crate::trace::Trace;
use parking_lot::{Condvar, Mutex};
pub(crate) use seat::Seat;
use terrane_base::Rng;
use terrane_base::sync::points::CallSite;

/// No point is passed for so long, by the system's clock: a thread waits where the explorer does not see it.
const STILL: Duration = Duration::from_secs(60);
/// Stands for no thread.
const NO_THREAD: usize = usize::MAX;
/// The time that a reading of the clock takes.
const LOOK_NANOS: u64 = 1_000;
/// A timed wait ends before its time once in this many choices: other threads were slow.
const EARLY: u64 = 16;
/// Choices after which a program counts as endless.
const CHOICES_MAX: u64 = 2_000_000;

/// The state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    /// It could run.
    Ready,
    /// It waits for what `on` names, or for the time.
    Blocked {
        on: usize,
        until: Option<u64>,
    },
    Ended,
}

struct Member {
    name: String,
    doing: Doing,
    /// True if the last wait ended because of a wake-up.
    is_woken: bool,
    /// Where it waits, or where it waited last.
    place: Option<CallSite>,
    handle: Option<Thread>,
}

struct State {
    members: Vec<Member>,
    strategy: Strategy,
    numbers: Rng,
    choices: u64,
    trace: Trace,
    /// True if all have ended, or how they failed.
    outcome: Option<Result<(), String>>,
}

/// See the [module](self).
pub(crate) struct Controller {
    state: Mutex<State>,
    ended: Condvar,
    /// The thread that runs; none after a failure.
    current: AtomicUsize,
    /// Weight of the points until the turn of the current thread is over.
    left: AtomicU64,
    /// Weight of all points that were passed, but for those of the current turn.
    turn: AtomicU64,
    passed: AtomicU64,
    nanos: AtomicU64,
    /// A bit for each address that a thread is blocked on, or may have been.
    waited: AtomicU64,
    /// Threads whose numbers are the same modulo this share parts that threads do not share as a rule.
    numbers: usize,
}

/// How an exploration ended.
pub(crate) struct Explored {
    /// The failure, if there is one.
    pub(crate) outcome: Result<(), String>,
    /// A hash of all choices.
    pub(crate) trace: Trace,
    /// Weight of all points.
    pub(crate) weight: u64,
    /// How often another thread was chosen or might have been.
    pub(crate) choices: u64,
    /// How many threads there were.
    pub(crate) threads: usize,
}

impl Controller {
    pub(crate) fn new(strategy: Strategy, mut numbers: Rng) -> Arc<Self> {
        Arc::new(Controller {
            numbers: *numbers.pick(&[1, 2, 4, usize::MAX]),
            state: Mutex::new(State {
                members: Vec::new(),
                strategy,
                numbers,
                choices: 0,
                trace: Trace::default(),
                outcome: None,
            }),
            ended: Condvar::new(),
            current: AtomicUsize::new(NO_THREAD),
            left: AtomicU64::new(0),
            turn: AtomicU64::new(0),
            passed: AtomicU64::new(0),
            nanos: AtomicU64::new(1_000_000_000),
            waited: AtomicU64::new(0),
        })
    }

    /// A new thread, which is ready; [`Seat::sit`] is to be its first call.
    pub(crate) fn add(self: &Arc<Self>, name: &str) -> Arc<Seat> {
        let mut state = self.state.lock();
        let id = state.members.len();
        state.members.push(Member {
            name: name.to_owned(),
            doing: Doing::Ready,
            is_woken: false,
            place: None,
            handle: None,
        });
        state.strategy.add_thread(id);
        Arc::new(Seat { controller: self.clone(), id })
    }

    /// Names the thread of a seat, which may be parked already.
    pub(crate) fn set_handle(&self, seat: &Seat, handle: Thread) {
        let mut state = self.state.lock();
        state.members[seat.id].handle = Some(handle);
    }

    /// Lets the first thread run and waits for the end of all.
    pub(crate) fn run(&self) -> Explored {
        {
            let mut state = self.state.lock();
            let gap = state.strategy.next_gap(0);
            self.left.store(gap, Ordering::Relaxed);
            self.turn.store(gap, Ordering::Relaxed);
            let first = state.members[0].handle.clone();
            drop(state);
            self.hand_over(0, first);
        }
        let mut state = self.state.lock();
        let mut seen = None;
        while state.outcome.is_none() {
            let is_late = self.ended.wait_for(&mut state, STILL).timed_out();
            let passed = Some((state.choices, self.left.load(Ordering::Relaxed)));
            if is_late && seen == passed {
                let why = format!("a thread stands still outside of the explorer: {}", describe(&state));
                state.outcome = Some(Err(why));
            }
            seen = passed;
        }
        Explored {
            outcome: state.outcome.clone().unwrap_or(Ok(())),
            trace: state.trace,
            weight: self.weight(),
            choices: state.choices,
            threads: state.members.len(),
        }
    }

    /// Weight of all points so far.
    fn weight(&self) -> u64 {
        let of_turn = self.turn.load(Ordering::Relaxed).saturating_sub(self.left.load(Ordering::Relaxed));
        self.passed.load(Ordering::Relaxed) + of_turn
    }

    pub(crate) fn now(&self) -> Duration {
        Duration::from_nanos(self.nanos.fetch_add(LOOK_NANOS, Ordering::Relaxed))
    }

    /// A failure: no thread runs any more.
    pub(crate) fn fail(&self, why: String) -> ! {
        let mut state = self.state.lock();
        if state.outcome.is_none() {
            state.outcome = Some(Err(why));
        }
        // Release: as in `hand_over`.
        self.current.store(NO_THREAD, Ordering::Release);
        self.ended.notify_all();
        drop(state);
        loop {
            std::thread::park();
        }
    }

    /// Ends the turn of the thread `me`, and lets the one run that is chosen among those that are ready.
    fn choose(&self, state: parking_lot::MutexGuard<'_, State>, me: usize, gives_way: bool) {
        let mut state = state;
        state.choices += 1;
        if state.choices > CHOICES_MAX {
            let doing = describe(&state);
            drop(state);
            self.fail(format!("hang: no end after {CHOICES_MAX} choices: {doing}"));
        }
        self.end_early(&mut state);
        let passed = self.weight();
        let Some(next) = self.next_ready(&mut state, me, gives_way, passed) else {
            let waiting = describe(&state);
            drop(state);
            self.fail(format!("deadlock: every thread waits for another one: {waiting}"));
        };
        state.trace.note(next as u64);
        let gap = state.strategy.next_gap(passed);
        self.passed.store(passed, Ordering::Relaxed);
        self.left.store(gap, Ordering::Relaxed);
        self.turn.store(gap, Ordering::Relaxed);
        if next == me && state.members[me].doing == Doing::Ready {
            return;
        }
        let has_ended = state.members[me].doing == Doing::Ended;
        let handle = state.members[next].handle.clone();
        // The thread that is woken wants the lock soon.
        drop(state);
        self.hand_over(next, handle);
        if !has_ended {
            self.wait_for_turn(me);
        }
    }

    /// A thread that can run, or the one whose time comes first.
    fn next_ready(&self, state: &mut State, me: usize, gives_way: bool, passed: u64) -> Option<usize> {
        let ready: Vec<usize> =
            (0..state.members.len()).filter(|id| state.members[*id].doing == Doing::Ready).collect();
        if !ready.is_empty() {
            return Some(state.strategy.choose(&ready, me, gives_way, passed));
        }
        let timed = state.members.iter().enumerate().filter_map(|(id, member)| match member.doing {
            Doing::Blocked { until: Some(until), .. } => Some((until, id)),
            _ => None,
        });
        let (until, next) = timed.min()?;
        self.time_out(state, next, until);
        Some(next)
    }

    /// Now and then a wait with a time ends before others have done anything.
    fn end_early(&self, state: &mut State) {
        if state.numbers.below(EARLY) > 0 {
            return;
        }
        let timed: Vec<(u64, usize)> = state
            .members
            .iter()
            .enumerate()
            .filter_map(|(id, member)| match member.doing {
                Doing::Blocked { until: Some(until), .. } => Some((until, id)),
                _ => None,
            })
            .collect();
        if let Some((until, id)) = timed.iter().min().copied() {
            self.time_out(state, id, until);
        }
    }

    fn time_out(&self, state: &mut State, id: usize, until: u64) {
        self.nanos.fetch_max(until, Ordering::Relaxed);
        state.members[id].doing = Doing::Ready;
        state.members[id].is_woken = false;
    }

    fn hand_over(&self, next: usize, handle: Option<Thread>) {
        // Release: pairs with the Acquire in `wait_for_turn`; the next thread sees all that this one did.
        self.current.store(next, Ordering::Release);
        if let Some(handle) = handle {
            handle.unpark();
        }
    }

    fn wait_for_turn(&self, me: usize) {
        while self.current.load(Ordering::Acquire) != me {
            std::thread::park();
        }
    }
}

/// The place where each thread that has not ended waits, and for which event.
fn describe(state: &State) -> String {
    let of = |member: &Member| {
        let doing = match member.doing {
            Doing::Blocked { on, .. } => format!("on {on:#x}"),
            other => format!("{other:?}, waited last"),
        };
        match member.place {
            Some(place) => format!("{} {doing} ({place})", member.name),
            None => format!("{} {doing} (never)", member.name),
        }
    };
    state.members.iter().filter(|member| member.doing != Doing::Ended).map(of).collect::<Vec<_>>().join(", ")
}

fn bit(on: usize) -> u64 {
    1 << ((on >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58)
}

fn wake(state: &mut State, on: usize, all: bool) {
    let mut waiting: Vec<usize> = (0..state.members.len())
        .filter(|id| matches!(state.members[*id].doing, Doing::Blocked { on: waits, .. } if waits == on))
        .collect();
    if !all && waiting.len() > 1 {
        let one = state.numbers.below(waiting.len() as u64) as usize;
        waiting = vec![waiting[one]];
    }
    for id in waiting {
        state.members[id].doing = Doing::Ready;
        state.members[id].is_woken = true;
    }
}

mod seat;
