//! Jobs for workers on other machines: a durable table of jobs in the bucket of the database.
//!
//! It relies on the creation of an absent object alone. The writer of the database is the *coordinator*: it
//! offers a job and opens attempts at it. A *worker* needs the bucket and nothing else: it claims an attempt,
//! gives signs of life, and reports. A report has an effect only when the coordinator publishes it through
//! the manifest, so a worker that was given up, or whose coordinator was replaced, changes nothing.
//!
//! * `names.rs`: names of the objects; * `object.rs`: their bytes. * `table.rs`: the table, and the owner of
//!   each object. * `coordinator.rs`: offers jobs, and reads their outcomes.
//! * `claim.rs`: the calls of a worker on the table.
//! * `compactor.rs`, `settings.rs`: runs the compactions of a writer on workers; `worker.rs`: a worker that
//!   merges; `payload.rs`: the content of an offer; `outcome.rs`: that of a report; `ends.rs`: whether the
//!   report is true.
//!
//! Which worker is alive is decided by the clock of the object store, from the times of creation in lists. A
//! wrong decision costs work and nothing else.

mod claim;
mod compactor;
mod coordinator;
mod ends;
pub(crate) mod fuzzing;
mod names;
mod object;
mod outcome;
mod payload;
mod settings;
mod table;
mod worker;

pub use claim::{Beat, Claim, OpenAttempt, Presence};
pub use compactor::BucketCompactor;
pub use coordinator::{Coordinator, JobState, SeenWorker};
pub use settings::BucketCompactorSettings;
pub use table::JobTable;
pub use worker::{Ended, JobLine, Step, Stop, Worker, WorkerSettings};

/// Names a job: the epoch of the writer that offers it, and its count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId {
    /// The epoch of the writer.
    pub epoch: u64,
    /// Counts the jobs of an epoch, from 1.
    pub number: u64,
}
