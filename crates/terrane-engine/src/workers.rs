//! The threads of the pool: each runs one piece of work after the other ([`crate::schedule`]).

use std::sync::Arc;

use terrane_base::Result;
use terrane_base::env::Step;

use crate::engine::Engine;

impl Engine {
    /// Starts the workers.
    pub(crate) fn start_workers(self: &Arc<Self>) -> Result<()> {
        for number in 0..self.options.background_threads {
            // Workers hold the engine weakly between pieces of work, so that dropping the last handle ends them.
            let engine = Arc::downgrade(self);
            if let Some(stepper) = self.env.spawn.stepper() {
                let step = move || engine.upgrade().map_or(Step::Ended, |engine| engine.work_step());
                stepper.add(&format!("terrane-{number}"), Box::new(step));
                continue;
            }
            let nice = self.options.background_nice as u8;
            let body = move || {
                if nice > 0 {
                    // A system that refuses changes nothing but who waits for whom.
                    terrane_device::lower_priority(nice);
                }
                while let Some(engine) = engine.upgrade() {
                    if engine.work_step() == Step::Ended {
                        return;
                    }
                }
            };
            let worker = self.env.spawn.spawn(&format!("terrane-{number}"), Box::new(body))?;
            self.scheduler.workers.lock().push(worker);
        }
        Ok(())
    }
}
