//! The environment: clock, randomness and threads enter the engine only here, so that a simulator can replace
//! them.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use crate::{Error, Result, rng};

mod stepped;
pub use stepped::SteppedSpawn;

/// Time as the engine sees it.
pub trait Clock: Send + Sync + Debug {
    /// Time since an arbitrary fixed moment; never goes back.
    fn now(&self) -> Duration;

    /// Wall time since the Unix epoch; may jump. Only for display and for time stamps in files.
    fn wall(&self) -> Duration;

    /// Suspends the caller for about `duration`.
    fn sleep(&self, duration: Duration);
}

/// Randomness as the engine sees it; never used for secrets.
pub trait Random: Send + Sync + Debug {
    /// A number uniform over all of `u64`.
    fn next_u64(&self) -> u64;
}

/// A started thread that can be waited for.
pub trait Joiner: Send {
    /// Waits for the thread to end; on that thread itself, which would wait for ever, returns at once.
    fn join(self: Box<Self>);
}

/// Threads as the engine sees them.
pub trait Spawn: Send + Sync + Debug {
    /// Starts `body` on a thread named `name`.
    ///
    /// # Errors
    /// `Io` if the operating system refuses.
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn Joiner>>;

    /// Number of threads that can run at once; at least 1.
    fn parallelism(&self) -> usize;

    /// Runs background work in steps on the threads that wait for it. `Some` means that no thread is started
    /// at all: [`Stepper::add`] takes every background loop instead of [`Spawn::spawn`].
    fn stepper(&self) -> Option<&dyn Stepper> {
        None
    }
}

/// The result of a step of background work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Something was done; there may be more.
    Worked,
    /// There is nothing to do now.
    Idle,
    /// There will never be anything to do again.
    Ended,
}

/// Background loops as steps: a simulator runs them in an order of its choice, on one thread.
pub trait Stepper: Send + Sync + Debug {
    /// Takes over a background loop. A step never waits for another loop but through [`Stepper::pass`].
    fn add(&self, name: &str, step: Box<dyn FnMut() -> Step + Send>);

    /// Stands for waiting up to `wait_max`: runs one step of some loop, or lets that much time pass if none
    /// has anything to do. The caller holds no lock that a step may take.
    fn pass(&self, wait_max: Duration);
}

/// The doors of one database. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Env {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// Threads.
    pub spawn: Arc<dyn Spawn>,
}

impl Env {
    /// The real world.
    ///
    /// ```
    /// # use terrane_base::env::Env;
    /// let env = Env::real();
    /// let before = env.clock.now();
    /// assert!(env.clock.now() >= before);
    /// ```
    #[must_use]
    pub fn real() -> Self {
        let real = Arc::new(RealEnv::new());
        Env { clock: real.clone(), random: real.clone(), spawn: real }
    }
}

/// Clock, randomness and threads of the operating system.
#[derive(Debug)]
struct RealEnv {
    start: std::time::Instant,
    state: std::sync::atomic::AtomicU64,
}

impl RealEnv {
    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    fn new() -> Self {
        use std::hash::{BuildHasher, RandomState};
        // `RandomState` is seeded by the operating system: a seed without a further dependency.
        let seed = RandomState::new().hash_one(0u64);
        RealEnv { start: std::time::Instant::now(), state: std::sync::atomic::AtomicU64::new(seed) }
    }
}

impl Clock for RealEnv {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    fn wall(&self) -> Duration {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// A clock that moves on by sleeps only: for tests in which the speed of the machine must decide nothing.
///
/// ```
/// use std::time::Duration;
/// use terrane_base::env::{Clock, SleepClock};
/// let clock = SleepClock::default();
/// clock.sleep(Duration::from_millis(5));
/// assert_eq!(clock.now(), Duration::from_millis(5));
/// ```
#[derive(Debug, Default)]
pub struct SleepClock {
    micros: std::sync::atomic::AtomicU64,
}

impl Clock for SleepClock {
    fn now(&self) -> Duration {
        Duration::from_micros(self.micros.load(std::sync::atomic::Ordering::Relaxed))
    }

    fn wall(&self) -> Duration {
        self.now()
    }

    fn sleep(&self, duration: Duration) {
        self.micros.fetch_add(duration.as_micros() as u64, std::sync::atomic::Ordering::Relaxed);
        std::thread::yield_now();
    }
}

impl Random for RealEnv {
    fn next_u64(&self) -> u64 {
        // As [`crate::Rng`] does it: a counter and a mix, so threads need no lock.
        let before = self.state.fetch_add(rng::STEP, std::sync::atomic::Ordering::Relaxed);
        rng::mix(before.wrapping_add(rng::STEP))
    }
}

impl Spawn for RealEnv {
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn Joiner>> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(body);
        let thread = thread.map_err(|error| Error::io(format!("cannot start thread {name}"), error))?;
        Ok(Box::new(RealJoiner(thread)))
    }

    fn parallelism(&self) -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }
}

struct RealJoiner(std::thread::JoinHandle<()>);

impl Joiner for RealJoiner {
    fn join(self: Box<Self>) {
        if self.0.thread().id() == std::thread::current().id() {
            return;
        }
        // A panic of a background thread was already reported by the panic hook.
        let _ = self.0.join();
    }
}
