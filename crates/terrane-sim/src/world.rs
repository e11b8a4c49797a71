//! The world of a simulated database: clock, randomness and threads, all from one seed.
//!
//! * Time advances only by calls of the engine: each reading of the clock takes a little, sleeping takes the
//!   requested time at no cost, and when all threads wait time passes.
//! * The wall clock, by which values expire, stands still within an operation: it follows from the operations
//!   alone, so that it does not depend on what the engine does.
//! * There are no threads. Background loops are steps ([`terrane_base::env::Stepper`]); a random stream of
//!   the seed chooses the next loop. A loop whose step waits runs steps of the others meanwhile.
//! * Everything that happens goes into one hash ([`World::trace`]).
//!
//! Virtual persistent memory will be a part of this world, too: a device of lines of 64 bytes beside the
//! disk, under the same seed, trace and crash.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use terrane_base::env::{Clock, Env, Joiner, Random, Spawn, Step, Stepper};
use terrane_base::{Result, Rng, rng::mix};

use crate::trace::{Trace, hash};

/// This many waits in a row without work mean that a thread waits for ever: minutes of the engine's time.
const IDLE_MAX: u64 = 4_000;
/// Waits within one operation after which it counts as endless.
const PASSES_MAX: u64 = 200_000;
/// The time that a reading of the clock takes.
const LOOK_NANOS: u64 = 700;
/// The time of the wall clock that an operation takes.
pub(crate) const OPERATION_MILLIS: u64 = 5;
/// Wall time at the beginning, in seconds.
const WALL_START: u64 = 1_700_000_000;

type StepFn = Box<dyn FnMut() -> Step + Send>;

/// A background loop; `step` is absent while it runs.
struct Loop {
    id: u64,
    name: String,
    step: Option<StepFn>,
}

#[derive(Default)]
struct Loops {
    list: Vec<Loop>,
    next_id: u64,
}

/// Clock, randomness and threads of one seed.
pub(crate) struct World {
    nanos: AtomicU64,
    wall_millis: AtomicU64,
    random: Mutex<Rng>,
    turns: Mutex<Rng>,
    loops: Mutex<Loops>,
    trace: Mutex<Trace>,
    idle: AtomicU64,
    passes: AtomicU64,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}

impl World {
    /// The world of `seed`.
    #[must_use]
    pub(crate) fn new(seed: u64) -> Arc<Self> {
        Arc::new(World {
            nanos: AtomicU64::new(0),
            wall_millis: AtomicU64::new(WALL_START * 1000),
            random: Mutex::new(Rng::part(seed, 1)),
            turns: Mutex::new(Rng::part(seed, 2)),
            loops: Mutex::default(),
            trace: Mutex::default(),
            idle: AtomicU64::new(0),
            passes: AtomicU64::new(0),
        })
    }

    /// Its doors.
    #[must_use]
    pub(crate) fn env(self: &Arc<Self>) -> Env {
        let spawn = Arc::new(Threads(Arc::clone(self)));
        Env { clock: self.clone(), random: self.clone(), spawn }
    }

    /// Takes a number into the trace.
    pub(crate) fn note(&self, number: u64) {
        self.trace.lock().note(number);
    }

    /// Takes a text into the trace.
    pub(crate) fn note_text(&self, text: &str) {
        self.trace.lock().note_bytes(text.as_bytes());
    }

    /// Everything that happened so far.
    #[must_use]
    pub(crate) fn trace(&self) -> Trace {
        *self.trace.lock()
    }

    /// Runs one step of the loop whose turn it is; false if none had anything to do.
    pub(crate) fn step(&self) -> bool {
        let mut left = self.loops.lock().list.len();
        let mut at = self.turns.lock().below(left.max(1) as u64) as usize;
        while left > 0 {
            let taken = {
                let mut loops = self.loops.lock();
                let count = loops.list.len();
                if count == 0 {
                    return false;
                }
                at %= count;
                let entry = &mut loops.list[at];
                entry.step.take().map(|step| (entry.id, hash(entry.name.as_bytes()), step))
            };
            let outcome = taken.map(|(id, name, step)| self.run(id, name, step));
            match outcome {
                Some(Step::Worked) => return true,
                // The loop is gone, and the next one is in its place.
                Some(Step::Ended) => {}
                Some(Step::Idle) | None => at += 1,
            }
            left -= 1;
        }
        false
    }

    /// Runs a step that was taken out of its loop, and puts it back unless it has ended.
    fn run(&self, id: u64, name: u64, mut step: StepFn) -> Step {
        let outcome = step();
        if outcome == Step::Worked {
            self.note(mix(name ^ id));
        }
        let mut loops = self.loops.lock();
        let place = loops.list.iter().position(|entry| entry.id == id);
        match place {
            Some(index) if outcome == Step::Ended => drop(loops.list.remove(index)),
            Some(index) => loops.list[index].step = Some(step),
            // The process died meanwhile.
            None => {}
        }
        outcome
    }

    /// The process ends: its loops are gone.
    pub(crate) fn end_loops(&self) {
        let gone = std::mem::take(&mut self.loops.lock().list);
        drop(gone);
    }

    /// An operation begins: it may wait again.
    pub(crate) fn begin_operation(&self) {
        self.passes.store(0, Ordering::Relaxed);
        self.idle.store(0, Ordering::Relaxed);
    }

    /// Moves the wall clock.
    pub(crate) fn move_wall(&self, millis: u64) {
        self.wall_millis.fetch_add(millis, Ordering::Relaxed);
    }

    fn advance(&self, nanos: u64) -> u64 {
        self.nanos.fetch_add(nanos, Ordering::Relaxed) + nanos
    }
}

impl Clock for World {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.advance(LOOK_NANOS))
    }

    fn wall(&self) -> Duration {
        Duration::from_millis(self.wall_millis.load(Ordering::Relaxed))
    }

    fn sleep(&self, duration: Duration) {
        self.advance(duration.as_nanos() as u64);
    }
}

impl Random for World {
    fn next_u64(&self) -> u64 {
        self.random.lock().next_u64()
    }
}

/// The door to threads, which starts none.
#[derive(Debug)]
struct Threads(Arc<World>);

impl Spawn for Threads {
    /// Runs `body` to its end: what cannot be done in steps is done at once.
    fn spawn(&self, _name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn Joiner>> {
        body();
        Ok(Box::new(Done))
    }

    fn parallelism(&self) -> usize {
        1
    }

    fn stepper(&self) -> Option<&dyn Stepper> {
        Some(&*self.0)
    }
}

struct Done;

impl Joiner for Done {
    fn join(self: Box<Self>) {}
}

impl Stepper for World {
    fn add(&self, name: &str, step: StepFn) {
        let mut loops = self.loops.lock();
        loops.next_id += 1;
        let id = loops.next_id;
        loops.list.push(Loop { id, name: name.to_owned(), step: Some(step) });
    }

    /// # Panics
    /// If the engine waits for ever: nothing to do for minutes, or one operation that never ends.
    fn pass(&self, wait_max: Duration) {
        let passes = self.passes.fetch_add(1, Ordering::Relaxed);
        assert!(passes < PASSES_MAX, "hang: an operation waited {passes} times and is not done");
        if self.step() {
            self.idle.store(0, Ordering::Relaxed);
            return;
        }
        let idle = self.idle.fetch_add(1, Ordering::Relaxed);
        assert!(idle < IDLE_MAX, "hang: a thread waits, and no thread had work {idle} times");
        self.advance(wait_max.as_nanos() as u64);
    }
}
