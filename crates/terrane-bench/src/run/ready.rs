//! Checks before the measurement: each engine opens with the options of the plan, and each trace can be read.
//! A run of hours must not fail at its end for such a reason.

use std::collections::BTreeSet;
use std::path::Path;

use crate::child::parent::{self, Outcome};
use crate::child::protocol::{Event, Job};
use crate::error::{Error, Result};
use crate::files;
use crate::plan::{EngineChoice, Plan, Scenario, Step};
use crate::report::model::Failed;
use crate::trace;

use super::Session;

impl Session<'_> {
    /// Refuses a plan with an engine that does not open or a trace that cannot be read.
    ///
    /// # Errors
    /// `Plan`, naming which and why; `Interrupted`.
    pub(super) fn check_ready(&self, plan: &Plan, scratch: &Path) -> Result<()> {
        check_traces(plan)?;
        let Some(first) = plan.scenarios.first() else { return Ok(()) };
        plan.engines.iter().try_for_each(|engine| self.try_engine(engine, first, plan.seed, scratch))
    }

    /// Opens an engine on an empty directory, in a process of its own as in the run, and closes it.
    fn try_engine(
        &self,
        engine: &EngineChoice,
        scenario: &Scenario,
        seed: u64,
        scratch: &Path,
    ) -> Result<()> {
        let directory = scratch.join("check");
        files::create_directory(&directory)?;
        let scenario = Scenario { steps: Vec::new(), memory_limit_bytes: None, ..scenario.clone() };
        let job = Job { engine: engine.clone(), scenario, repetition: 0, seed, directory };
        let mut failed = None;
        let outcome = parent::run(&self.place.launcher, &job, None, self.interrupted, &mut |event| {
            if let Event::Failed(failure) = event {
                failed = failed.take().or(Some(failure));
            }
            Ok(())
        });
        files::remove_directory(&job.directory)?;
        match (outcome?, failed) {
            (Outcome::Interrupted, _) => Err(Error::Interrupted),
            (Outcome::Died(why), _) => Err(refused(engine, &why)),
            (Outcome::Done, Some(failed)) => self.judge(engine, &failed),
            (Outcome::Done, None) => Ok(()),
        }
    }

    /// The run lists the steps that an engine cannot do as not measured, unless the user asked for the engine
    /// by name.
    fn judge(&self, engine: &EngineChoice, failed: &Failed) -> Result<()> {
        let asked = self.place.must_have.contains(&engine.label);
        if failed.unsupported && !asked { Ok(()) } else { Err(refused(engine, &failed.why)) }
    }
}

fn refused(engine: &EngineChoice, why: &str) -> Error {
    Error::plan(format!("engine {:?} does not open, so nothing was run: {why}", engine.label))
}

/// Opens every trace that is replayed, except those that the run itself records before.
fn check_traces(plan: &Plan) -> Result<()> {
    let mut recorded = BTreeSet::new();
    for step in plan.scenarios.iter().flat_map(|scenario| &scenario.steps) {
        let Step::Run(run) = step else { continue };
        if let Some(replay) = run.replay.as_deref().filter(|replay| !recorded.contains(replay)) {
            trace::Reader::open(replay)?;
        }
        recorded.extend(run.record.as_deref());
    }
    Ok(())
}
