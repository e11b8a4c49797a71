//! Does one run on an open engine: workers, background threads of the workload, the sampler of the timeline.
//!
//! 1. Every worker gets a session, a stream (or a trace) and a share of the operations.
//! 2. The calling thread samples their tallies every [`SAMPLE`], ends a run that is bound by time, and passes
//!    figures to the observer.
//! 3. When the workers are done, background threads are stopped.
//! 4. If the run asks for it, the engine works until quiescent; that time belongs to the sustained rate, and
//!    the timeline shows it with no operations.
//!
//! The harness takes no lock while operations run; workers share only read-only data, the key space and their
//! own tally.

mod batch;
mod pace;
mod recorder;
mod round;
mod series;
mod source;
mod space_series;
mod window;
mod worker;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use terrane::Env;

use crate::engine::{Control, Engine, EngineCounters};
use crate::error::{Error, Result};
use crate::generate::catalogue;
use crate::generate::keys::Keys;
use crate::generate::operation::OperationKind;
use crate::generate::space::KeySpace;
use crate::generate::values::Values;
use crate::plan::{Data, Run};
use crate::report::model::{Latency, SpaceTimeline, Timeline};

use round::Round;
use series::pad;

/// Length of an interval of the timeline.
pub const SAMPLE: Duration = Duration::from_millis(100);

/// Hears of a run while it goes on.
pub trait Observer {
    /// Called about every [`SAMPLE`]: operations so far, the time so far, and the operations that a run bound
    /// by operations will have in the end. Returns false to interrupt the run.
    fn progress(&self, operations: u64, elapsed: Duration, total: Option<u64>) -> bool;
}

/// The measurements of a run; the child adds those of the process and the engine.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Operations done.
    pub operations: u64,
    /// Reads that found their key.
    pub found: u64,
    /// Key and value bytes written.
    pub bytes_written: u64,
    /// Key and value bytes read.
    pub bytes_read: u64,
    /// Time of the operations, in seconds.
    pub seconds: f64,
    /// Time until quiescent as well, in seconds.
    pub seconds_until_quiescent: f64,
    /// Latency over all operations.
    pub latency: Latency,
    /// Latency by kind, if there is more than one kind.
    pub latency_by_kind: BTreeMap<OperationKind, Latency>,
    /// Operations over time.
    pub timeline: Timeline,
    /// Space over time, if the driver knows the directory.
    pub space: SpaceTimeline,
    /// The counters of all sessions.
    pub counters: EngineCounters,
    /// Operations of background threads.
    pub background_operations: u64,
    /// True if anything was deleted, so that the number of live keys is not known.
    pub deleted: bool,
}

/// State that all runs on one database share.
#[derive(Debug)]
pub struct Driver {
    data: Data,
    seed: u64,
    keys: Arc<Keys>,
    space: Arc<KeySpace>,
    /// Runs so far: each has random choices of its own.
    runs: u64,
    /// True if anything was deleted.
    deleted: bool,
    /// The directory of the database, whose space is looked at.
    directory: Option<PathBuf>,
    env: Env,
}

impl Driver {
    /// A driver for a new database that holds nothing yet.
    #[must_use]
    pub fn new(data: &Data, seed: u64) -> Self {
        Driver {
            data: data.clone(),
            seed,
            keys: Arc::new(Keys::new(data)),
            space: Arc::new(KeySpace::new(0)),
            runs: 0,
            deleted: false,
            directory: None,
            env: Env::real(),
        }
    }

    /// The same driver, which looks each second at the space that the files in `directory` take.
    #[must_use]
    pub fn watching(self, directory: &Path) -> Self {
        Driver { directory: Some(directory.to_owned()), ..self }
    }

    /// Does `run` on `engine`.
    ///
    /// # Errors
    /// The engine's; `Interrupted` if the observer says so; `Engine` if a value read under `verify` was
    /// wrong.
    pub fn run(&mut self, engine: &dyn Engine, run: &Run, observer: &dyn Observer) -> Result<Measured> {
        let definition = catalogue::find(&run.workload)?;
        let before = self.space.claimed();
        if definition.is_load() {
            self.space = Arc::new(KeySpace::new(0));
        } else if definition.needs_data && self.space.count() == 0 {
            return Err(Error::plan(format!("{}: the database is empty: load it first", run.workload)));
        }
        self.runs += 1;
        let (stop, background_stop) = (AtomicBool::new(false), AtomicBool::new(false));
        let threads = run.threads as usize + usize::from(definition.background.is_some());
        let round = Round {
            driver: self,
            engine,
            run,
            definition,
            // One seed for all threads and runs: any of them can check what another wrote.
            values: Values::new(self.seed, definition.value_bytes_max(&self.data)?.max(1), self.data.entropy),
            stop: &stop,
            background_stop: &background_stop,
            ready: Barrier::new(threads + 1),
        };
        let (mut measured, start) = round.go(observer)?;
        if run.until_quiescent && definition.writes {
            engine.control(Control::WaitUntilQuiescent).or_else(ignore_unsupported)?;
            measured.seconds_until_quiescent = (self.env.clock.now() - start).as_secs_f64();
            pad(&mut measured.timeline, measured.seconds_until_quiescent);
        }
        self.deleted |= measured.deleted;
        if definition.is_load() && self.space.claimed() < before {
            // A fill that was cut short, over keys that exist: they still do.
            self.space = Arc::new(KeySpace::new(before));
        }
        Ok(measured)
    }

    /// Keys that were written; all are live unless something was deleted.
    #[must_use]
    pub fn keys_written(&self) -> u64 {
        self.space.claimed()
    }
}

fn ignore_unsupported(error: Error) -> Result<()> {
    if matches!(error, Error::Unsupported { .. }) { Ok(()) } else { Err(error) }
}
