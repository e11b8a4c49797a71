//! Background work: a worker (`workers.rs`) looks for the most urgent job (`next_work.rs`), takes it in the
//! schedule (`scheduler.rs`) and runs it.
//!
//! Jobs (`job.rs`): flushes (`flush/`), compactions (`compaction/`), journal segments (`journal/`), work for
//! idle times (`idle.rs`), attempts on a full device (`space.rs`), scrubbing (`scrub.rs`). `retry.rs`
//! remembers failures, `quarantine.rs` damaged inputs, `state/` what parts keep. Callers ask by
//! `requests.rs`, writers by `relief.rs`. `xtask/engine.txt` has the layers.

pub(crate) mod compaction;
mod damage;
pub(crate) mod flush;
pub(crate) mod idle;
pub(crate) mod job;
pub(crate) mod job_log;
pub(crate) mod journal;
pub(crate) mod maintenance;
mod next_job;
mod next_work;
pub(crate) mod quarantine;
mod relief;
pub(crate) mod requests;
pub(crate) mod retry;
pub(crate) mod scheduler;
pub(crate) mod scrub;
pub(crate) mod space;
pub(crate) mod state;
mod workers;

use std::sync::Arc;

use terrane_base::env::Env;
use terrane_base::sync::atomic::AtomicU64;
use terrane_compaction::{Compactor, LocalCompactor};
use terrane_storage::Store;

use crate::background::scheduler::Scheduler;
use crate::background::state::idle_watch::IdleWatch;
use crate::background::state::load::ReadHeavy;
use crate::background::state::scrubber::Scrubber;
use crate::background::state::space_attempts::SpaceAttempts;
use crate::observe::io_accounting::Flows;
use crate::observe::ticker::Ticker;

/// Makes a compactor that may run jobs elsewhere; what it is given runs them on the calling thread, and is to
/// run those that run nowhere else. It is called once, before the background starts.
pub type MakeCompactor = Box<dyn FnOnce(LocalCompactor) -> Arc<dyn Compactor> + Send>;

/// The state of the background.
pub(crate) struct Background {
    /// Running jobs, jobs that may run, and the workers.
    pub(crate) scheduler: Arc<Scheduler>,
    /// When jobs that only reads gain by stop and begin.
    pub(crate) adapting: ReadHeavy,
    /// Since when no writer writes.
    pub(crate) idle_watch: IdleWatch,
    /// Attempts to give space back to a device that is full.
    pub(crate) space: SpaceAttempts,
    /// How far scrubbing is.
    pub(crate) scrubber: Scrubber,
    /// Runs compaction jobs, here or elsewhere.
    pub(crate) compactor: Arc<dyn Compactor>,
    /// Runs the jobs that bring memory into the levels.
    pub(crate) flusher: LocalCompactor,
    /// Shares metrics with other processes.
    pub(crate) page_writer: Ticker,
    /// Looks whether another writer has taken the database over, where its lock cannot see to that.
    pub(crate) writer_watch: Ticker,
    /// Does the upkeep of parts that lie elsewhere, such as the collection of garbage.
    pub(crate) upkeep: Ticker,
    /// Number of the next overflow run or value table.
    pub(crate) next_run: Arc<AtomicU64>,
}

impl Background {
    /// A background that does nothing yet, for the extents of a store; overflow runs get numbers from
    /// `next_run` on. `make` makes what runs compaction jobs out of the compactor of this process.
    pub(crate) fn new(
        env: &Env,
        flows: &Flows,
        extents: &Arc<dyn Store>,
        (next_run, make): (u64, Option<MakeCompactor>),
    ) -> Background {
        let local = LocalCompactor::new(flows.compaction(extents));
        let compactor: Arc<dyn Compactor> = match make {
            None => Arc::new(local),
            Some(make) => make(local),
        };
        Background {
            scheduler: Arc::new(Scheduler::new(env.spawn.clone())),
            adapting: ReadHeavy::default(),
            idle_watch: IdleWatch::default(),
            space: SpaceAttempts::default(),
            scrubber: Scrubber::default(),
            compactor,
            flusher: LocalCompactor::new(flows.flush(extents)),
            page_writer: Ticker::default(),
            writer_watch: Ticker::default(),
            upkeep: Ticker::default(),
            next_run: Arc::new(AtomicU64::new(next_run)),
        }
    }
}
