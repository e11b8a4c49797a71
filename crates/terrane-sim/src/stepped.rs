//! A world for whoever drives an engine by hand, such as a fuzz target: clock, randomness and background
//! loops of one seed, no thread, so that the same calls do the same every time. (Memory that an epoch keeps
//! goes back when no other thread of the process is in an older one: nothing of an answer depends on it.)

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
