//! Background loops as steps on the thread of the caller, for tests and measurements.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{Clock, Joiner, SleepClock, Spawn, Step, Stepper};
use crate::sync::Mutex;
use crate::{Error, Result};

type Loop = (String, Box<dyn FnMut() -> Step + Send>);

/// Takes background loops as steps and starts no thread. A caller that waits runs one step of each loop; if
/// none did anything, the clock moves on by that wait.
///
/// ```
/// use std::sync::Arc;
/// use terrane_base::env::{Env, SteppedSpawn};
/// let spawn = Arc::new(SteppedSpawn::default());
/// let env = Env { spawn: spawn.clone(), ..Env::real() };
/// assert!(!spawn.run(|_| true), "there is no loop");
/// ```
#[derive(Default)]
pub struct SteppedSpawn {
    clock: Arc<SleepClock>,
    loops: Mutex<Vec<Loop>>,
}

impl SteppedSpawn {
    /// Without loops; callers that wait in vain move `clock`.
    #[must_use]
    pub fn new(clock: Arc<SleepClock>) -> Self {
        SteppedSpawn { clock, loops: Mutex::default() }
    }

    /// Runs one step of each loop with such a name; returns true if any did something.
    pub fn run(&self, is_meant: impl Fn(&str) -> bool) -> bool {
        // Not under the lock: a step may wait, and its wait runs steps of the other loops.
        let mut loops = std::mem::take(&mut *self.loops.lock());
        let meant = loops.iter_mut().filter(|(name, _)| is_meant(name));
        let steps: Vec<Step> = meant.map(|(_, step)| step()).collect();
        self.loops.lock().append(&mut loops);
        steps.contains(&Step::Worked)
    }
}

impl fmt::Debug for SteppedSpawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SteppedSpawn")
    }
}

impl Spawn for SteppedSpawn {
    fn spawn(&self, name: &str, _body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn Joiner>> {
        Err(Error::invalid(format!("there are no threads: {name}")))
    }

    fn parallelism(&self) -> usize {
        1
    }

    fn stepper(&self) -> Option<&dyn Stepper> {
        Some(self)
    }
}

impl Stepper for SteppedSpawn {
    fn add(&self, name: &str, step: Box<dyn FnMut() -> Step + Send>) {
        self.loops.lock().push((name.to_owned(), step));
    }

    fn pass(&self, wait_max: Duration) {
        if !self.run(|_| true) {
            let before = self.clock.now();
            self.clock.sleep(wait_max);
            assert!(self.clock.now() >= before + wait_max, "the clock stands: a caller would wait for ever");
        }
    }
}
