//! Clock, randomness and threads of an explored program: all follow from one seed.
#![expect(unsafe_code, reason = "promises that only the program's threads use its objects")]

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use terrane_base::env::{Clock, Env, Joiner, Random, Spawn};
use terrane_base::sync::points::explored;
use terrane_base::{Error, Result, Rng, epoch};

use super::controller::{Controller, Explored, Seat};
use super::strategy::Strategy;

/// Wall time at the beginning, in seconds.
const WALL_START: u64 = 1_700_000_000;
/// Threads that the engine believes can run at once.
const PARALLELISM: usize = 2;
/// Stack of an explored thread: address space, of which a thread takes what it uses.
const STACK_BYTES: usize = 4 << 20;

/// The world of one schedule.
pub(crate) struct World {
    controller: Arc<Controller>,
    random: Mutex<Rng>,
    epochs: epoch::World,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}

thread_local! {
    /// The seat of this thread.
    static SEAT: std::cell::RefCell<Option<Arc<Seat>>> = const { std::cell::RefCell::new(None) };
}

fn seat() -> Arc<Seat> {
    SEAT.with_borrow(|seat| seat.clone()).expect("only explored threads use a world")
}

/// Runs `program` as the first thread of a new world, with `strategy`; returns when all threads have ended,
/// or at the first failure.
pub(crate) fn explore(
    seed: u64,
    strategy: Strategy,
    program: impl FnOnce(Arc<World>) + Send + 'static,
) -> Explored {
    let world = Arc::new(World {
        controller: Controller::new(strategy, Rng::part(seed, 11)),
        random: Mutex::new(Rng::part(seed, 12)),
        epochs: epoch::World::default(),
    });
    let for_program = world.clone();
    let started = world.start("first", Box::new(move || program(for_program)));
    drop(started.expect("the system gives threads"));
    world.controller.run()
}

impl World {
    /// Its doors.
    pub(crate) fn env(self: &Arc<Self>) -> Env {
        Env { clock: self.clone(), random: self.clone(), spawn: Arc::new(Threads(self.clone())) }
    }

    fn start(self: &Arc<Self>, name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Arc<Seat>> {
        let seat = self.controller.add(name);
        let (own, world) = (seat.clone(), self.clone());
        let main = move || {
            SEAT.set(Some(own.clone()));
            explored(own.clone(), || {
                own.sit();
                // SAFETY: every thread of the program is started here, so it is within the same world of
                // epochs; nothing that the program makes is used outside: it returns texts and figures.
                let ended = unsafe {
                    world.epochs.within(|| std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)))
                };
                if let Err(panic) = ended {
                    own.controller().fail(text_of(&*panic));
                }
            });
            drop(world);
            SEAT.set(None);
            own.leave();
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES).spawn(main);
        let thread = thread.map_err(|error| Error::io(format!("cannot start thread {name}"), error))?;
        self.controller.set_handle(&seat, thread.thread().clone());
        Ok(seat)
    }
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "panic without a text".to_owned())
}

impl Clock for World {
    fn now(&self) -> Duration {
        self.controller.now()
    }

    fn wall(&self) -> Duration {
        Duration::from_secs(WALL_START) + self.controller.now()
    }

    fn sleep(&self, duration: Duration) {
        seat().sleep(duration);
    }
}

impl Random for World {
    fn next_u64(&self) -> u64 {
        self.random.lock().next_u64()
    }
}

/// The door to threads.
#[derive(Debug)]
struct Threads(Arc<World>);

impl Spawn for Threads {
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn Joiner>> {
        Ok(Box::new(Joined(self.0.start(name, body)?)))
    }

    fn parallelism(&self) -> usize {
        PARALLELISM
    }
}

struct Joined(Arc<Seat>);

impl Joiner for Joined {
    fn join(self: Box<Self>) {
        seat().join(&self.0);
    }
}
