//! A world for a caller that steps an engine itself, such as a fuzz target: clock, randomness and background
//! loops follow one seed, and there is no thread, so that the same calls have the same effect every time.
//! (When memory of an old epoch is freed depends on other threads of the process; no answer depends on it.)

use std::sync::Arc;

use terrane_base::env::Env;

use crate::world::World;

/// The environment of one life of a process. Background loops run while a caller waits, one step after the
/// other.
#[derive(Debug)]
pub struct SteppedWorld(Arc<World>);

impl SteppedWorld {
    /// The world of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        SteppedWorld(World::new(seed))
    }

    /// Its doors, for one engine at a time.
    #[must_use]
    pub fn env(&self) -> Env {
        self.0.env()
    }

    /// An operation begins. One that waits without end panics: its waits are counted from here.
    pub fn begin_operation(&self) {
        self.0.begin_operation();
    }

    /// Gives the background up to `steps` steps; stops when it has nothing to do.
    pub fn step(&self, steps: usize) {
        for _ in 0..steps {
            if !self.0.step() {
                return;
            }
        }
    }
}

/// The life ends: loops that are left hold the engine, and the engine holds the world.
impl Drop for SteppedWorld {
    fn drop(&mut self) {
        self.0.end_loops();
    }
}
