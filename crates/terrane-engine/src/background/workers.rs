//! The threads of the pool: each runs one piece of work after the other ([`crate::background::scheduler`]).

use std::sync::Arc;

use terrane_base::Result;
use terrane_base::env::Step;

use crate::background::maintenance::{Maintenance, MaintenanceRef};
use crate::reentrancy::Working;

impl Maintenance {
    /// Starts the workers, which keep `engine`, the owner of this, while they work.
    pub(crate) fn start_workers(&self, engine: &MaintenanceRef) -> Result<()> {
        assert!(std::ptr::eq(self, engine.part()), "workers keep the database that they work on");
        for number in 0..self.options.background_threads {
            // Workers hold the engine only while they look for work and do it, so that dropping the last
            // handle ends them. Did they hold it while they wait, two of them would hold it in turn, for
            // ever.
            let engine = Arc::downgrade(engine);
            if let Some(stepper) = self.env.spawn.stepper() {
                let step = move || engine.upgrade().map_or(Step::Ended, |engine| engine.work_step());
                stepper.add(&format!("terrane-{number}"), Box::new(step));
                continue;
            }
            let scheduler = self.background.scheduler.clone();
            let nice = self.options.experiments.background_nice as u8;
            let body = move || {
                if nice > 0 {
                    // Where the system refuses, only the order of threads on the processors differs.
                    terrane_device::lower_priority(nice);
                }
                loop {
                    let seen = scheduler.signals();
                    let step = |engine: MaintenanceRef| {
                        let _working = Working::of(engine.instance());
                        engine.work_step()
                    };
                    match engine.upgrade().map_or(Step::Ended, step) {
                        Step::Worked => {}
                        Step::Idle => scheduler.wait_for_signal(seen),
                        Step::Ended => return,
                    }
                }
            };
            let worker = self.env.spawn.spawn(&format!("terrane-{number}"), Box::new(body))?;
            self.background.scheduler.workers.lock().push(worker);
        }
        Ok(())
    }
}
