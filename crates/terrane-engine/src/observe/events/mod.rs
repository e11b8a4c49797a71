//! Events: what happens in a database, delivered to the listeners that the program added.
//!
//! The thread that causes an event puts it into a queue, under a short lock and without a wait. A thread of
//! their own takes events out in order and calls the listeners, outside of every lock and epoch. So a slow
//! listener delays only the listeners; if the queue is full, events are dropped and counted. A panic of a
//! listener loses only that call. The thread counts as a background thread ([`crate::reentrancy`]): calls
//! that would wait for the background are refused there.

pub(crate) mod checkpoint;
mod listening;

pub use checkpoint::Checkpoint;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use terrane_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use terrane_base::env::{Joiner, Step};
use terrane_base::sync::{Condvar, Mutex};
use terrane_base::{Error, ExtentId, SeqNo};
use terrane_compaction::{CancelCause, JobControl};

use crate::observe::extent_summary::ExtentSummary;
use crate::observe::job_kind::JobKind;
use crate::reentrancy::{Working, works_for};

/// Events that wait at most; further ones are left out.
const QUEUE_MAX: usize = 4096;

/// A flush or a compaction, at its beginning.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JobBegan {
    /// Name of the table.
    pub table: String,
    /// Its kind: flush, compact or adapt.
    pub work: JobKind,
    /// Number of the job: each has its own, from 1, in the order in which they begin.
    pub id: u64,
    /// The uppermost level that is merged and the level that the result goes to, 0 for overflow runs; `None`
    /// of a flush.
    pub levels: Option<(u8, u8)>,
    /// The extents that are merged; none of a flush, which finds them range by range.
    pub inputs: Vec<ExtentSummary>,
}

/// A flush or a compaction, at its end.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JobEnded {
    /// Name of the table.
    pub table: String,
    /// Its kind: flush, compact or adapt.
    pub work: JobKind,
    /// Number of the job, as at its beginning.
    pub id: u64,
    /// See [`JobBegan::levels`].
    pub levels: Option<(u8, u8)>,
    /// How long it took.
    pub took: Duration,
    /// Bytes that it read.
    pub bytes_read: u64,
    /// Bytes that it wrote.
    pub bytes_written: u64,
    /// Entries of all inputs.
    pub entries_in: u64,
    /// Entries of all outputs.
    pub entries_out: u64,
    /// See [`JobBegan::inputs`].
    pub inputs: Vec<ExtentSummary>,
    /// Extents that left the tree by it.
    pub removed: Vec<ExtentId>,
    /// Extents that it wrote and that are part of the tree, in the order in which they became that.
    pub written: Vec<ExtentSummary>,
    /// Extents that it only moved to another level, as they are there.
    pub moved: Vec<ExtentSummary>,
    /// The records that a flush moved out of memory, if it came to its end.
    pub flushed: Option<Flushed>,
    /// Why it did not come to its end; `Cancelled` is not a failure.
    pub error: Option<Error>,
    /// Why it was cancelled, if `error` is of the kind `Cancelled`.
    pub cancelled: Option<CancelCause>,
}

/// The records that a flush moved out of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Flushed {
    /// Versions of keys.
    pub entries: u64,
    /// Bytes of their records.
    pub bytes: u64,
    /// Number of the first record that it can have.
    pub seq_min: SeqNo,
    /// Number of the last record that it can have.
    pub seq_max: SeqNo,
}

/// A memtable that accepts no further records.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemtableFrozen {
    /// Name of the table.
    pub table: String,
    /// Versions in it; writers that are not done yet may add a few.
    pub entries: u64,
    /// Bytes of their records, as far.
    pub bytes: u64,
    /// Number of the first record that it can have.
    pub first_seq: SeqNo,
}

/// The reason why writers are held back.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StallCause {
    /// The memory of all tables.
    Memory,
    /// The debt of the levels of the table with this name.
    Backlog(String),
}

/// Writers begin to be held back, after no writer was for a second.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StallBegan {
    /// The reason why the first of them was held back.
    pub cause: StallCause,
    /// How far the background is behind.
    pub pressure: f64,
}

/// No writer was held back for a second.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StallEnded {
    /// From the first to the last moment at which a writer was held back.
    pub lasted: Duration,
    /// How long writers were held back in that time, added up.
    pub held_back: Duration,
}

/// Work of the background that failed. It is tried again, or left alone if it met damage.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WorkFailed {
    /// Name of the table, if it was for one.
    pub table: Option<String>,
    /// One word: freeze, settle, flush, compact, adapt, trim, scrub, reclaim.
    pub work: JobKind,
    /// Why.
    pub error: Error,
}

/// Hears what happens to a database. Every method does nothing unless it is written.
///
/// Methods are called one after the other, in the order of events, on one thread of the background. Reading
/// the database is fine there; a call that changes it, or waits for its background, is refused with
/// `Invalid`: hand it to a thread of your own. A listener that keeps a handle of the database, such as a
/// table, keeps it open: let it keep a weak one, which `Db::downgrade` returns.
///
/// ```
/// # use std::sync::atomic::{AtomicU64, Ordering};
/// # use terrane_engine::{JobEnded, Listener, StallBegan, WorkFailed};
/// /// Counts what flushes write, and logs what an operator wants to know.
/// #[derive(Default)]
/// struct Watch {
///     flushed_bytes: AtomicU64,
/// }
///
/// impl Listener for Watch {
///     fn flush_ended(&self, job: &JobEnded) {
///         self.flushed_bytes.fetch_add(job.bytes_written, Ordering::Relaxed);
///     }
///
///     fn stall_began(&self, stall: &StallBegan) {
///         eprintln!("writers are held back: {:?}", stall.cause);
///     }
///
///     fn work_failed(&self, failure: &WorkFailed) {
///         eprintln!("{}: {}", failure.work.name(), failure.error);
///     }
/// }
/// # let _: Box<dyn Listener> = Box::new(Watch::default());
/// ```
pub trait Listener: Send + Sync {
    /// A flush begins.
    fn flush_began(&self, _job: &JobBegan) {}
    /// A flush has ended.
    fn flush_ended(&self, _job: &JobEnded) {}
    /// A memtable accepts no further records: it waits to be flushed.
    fn memtable_frozen(&self, _memtable: &MemtableFrozen) {}
    /// A compaction begins.
    fn compaction_began(&self, _job: &JobBegan) {}
    /// A compaction has ended.
    fn compaction_ended(&self, _job: &JobEnded) {}
    /// Writers begin to be held back.
    fn stall_began(&self, _stall: &StallBegan) {}
    /// Writers are not held back any more.
    fn stall_ended(&self, _stall: &StallEnded) {}
    /// Work of the background has failed.
    fn work_failed(&self, _failure: &WorkFailed) {}
    /// A table was created.
    fn table_created(&self, _name: &str) {}
    /// A table was dropped.
    fn table_dropped(&self, _name: &str) {}
    /// A checkpoint was made.
    fn checkpoint_made(&self, _checkpoint: &Checkpoint) {}
}

/// One thing that happened.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    JobBegan(JobBegan),
    JobEnded(JobEnded),
    MemtableFrozen(MemtableFrozen),
    StallBegan(StallBegan),
    StallEnded(StallEnded),
    WorkFailed(WorkFailed),
    TableCreated(String),
    TableDropped(String),
    CheckpointMade(Checkpoint),
}

impl Event {
    fn deliver_to(&self, listener: &dyn Listener) {
        match self {
            Event::JobBegan(job) if job.work == JobKind::Flush => listener.flush_began(job),
            Event::JobBegan(job) => listener.compaction_began(job),
            Event::JobEnded(job) if job.work == JobKind::Flush => listener.flush_ended(job),
            Event::JobEnded(job) => listener.compaction_ended(job),
            Event::MemtableFrozen(memtable) => listener.memtable_frozen(memtable),
            Event::StallBegan(stall) => listener.stall_began(stall),
            Event::StallEnded(stall) => listener.stall_ended(stall),
            Event::WorkFailed(failure) => listener.work_failed(failure),
            Event::TableCreated(name) => listener.table_created(name),
            Event::TableDropped(name) => listener.table_dropped(name),
            Event::CheckpointMade(checkpoint) => listener.checkpoint_made(checkpoint),
        }
    }
}

/// The queue of events, and the listeners.
#[derive(Default)]
pub(crate) struct Events {
    /// True if there is a listener. It is the only check of an event without listeners.
    is_heard: AtomicBool,
    queue: Mutex<Queue>,
    changed: Condvar,
    dropped: AtomicU64,
    panics: AtomicU64,
    /// Jobs that began.
    jobs: AtomicU64,
    thread: Mutex<Option<Box<dyn Joiner>>>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Event>,
    listeners: Vec<Arc<dyn Listener>>,
    is_closing: bool,
    /// Events that were queued, and events that listeners got.
    put: u64,
    delivered: u64,
    /// Flushes that run, by their numbers: their results are visible before the event of their end is queued.
    flushes: BTreeMap<u64, Arc<JobControl>>,
}

impl Queue {
    /// Invariant: an event that listeners got was queued, and waits no longer. Callers wait for a count of
    /// them.
    fn is_sound(&self) -> bool {
        self.waiting.len() <= QUEUE_MAX && self.delivered + self.waiting.len() as u64 <= self.put
    }
}

impl Events {
    /// Queues an event if there is a listener. May be called under locks: it does not wait.
    #[inline]
    pub(crate) fn enqueue(&self, event: impl FnOnce() -> Event) {
        // Relaxed: a listener gets the events after its addition, in the order that the adding thread sees.
        if self.is_heard.load(Ordering::Relaxed) {
            self.push(event());
        }
    }

    #[cold]
    fn push(&self, event: Event) {
        let mut queue = self.queue.lock();
        if queue.is_closing || queue.waiting.len() >= QUEUE_MAX {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        queue.waiting.push_back(event);
        queue.put += 1;
        debug_assert!(queue.is_sound(), "{} events were delivered of {}", queue.delivered, queue.put);
        self.changed.notify_all();
    }

    /// Returns true if there is a listener.
    pub(crate) fn are_heard(&self) -> bool {
        // Relaxed: as in `enqueue`.
        self.is_heard.load(Ordering::Relaxed)
    }

    /// The number of a job that begins.
    pub(crate) fn next_job(&self) -> u64 {
        self.jobs.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Events that were left out, and listeners that panicked.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.dropped.load(Ordering::Relaxed), self.panics.load(Ordering::Relaxed))
    }

    /// Tells the next event. `Ended` once the queue is closed and empty; `Idle` if it is empty.
    fn step(&self, instance: u64) -> Step {
        let _working = Working::of(instance);
        let (event, listeners) = {
            let mut queue = self.queue.lock();
            match queue.waiting.pop_front() {
                Some(event) => (Some(event), queue.listeners.clone()),
                // They may hold the database.
                None if queue.is_closing => (None, std::mem::take(&mut queue.listeners)),
                None => return Step::Idle,
            }
        };
        let Some(event) = event else { return Step::Ended };
        for listener in listeners {
            let call = std::panic::AssertUnwindSafe(|| event.deliver_to(&*listener));
            if std::panic::catch_unwind(call).is_err() {
                self.panics.fetch_add(1, Ordering::Relaxed);
                tracing::error!(target: "terrane::listener", event = ?event, "a listener panicked");
            }
        }
        {
            let mut queue = self.queue.lock();
            queue.delivered += 1;
            debug_assert!(queue.is_sound(), "{} events were delivered of {}", queue.delivered, queue.put);
        }
        self.changed.notify_all();
        Step::Worked
    }

    /// Delivers events until the queue is closed.
    fn run(&self, instance: u64) {
        loop {
            match self.step(instance) {
                Step::Worked => {}
                Step::Ended => return,
                Step::Idle => {
                    let mut queue = self.queue.lock();
                    if queue.waiting.is_empty() && !queue.is_closing {
                        self.changed.wait(&mut queue);
                    }
                }
            }
        }
    }

    /// Accepts no further events, and waits until listeners got those in the queue, unless a listener itself
    /// closes.
    pub(crate) fn close(&self, instance: u64) {
        self.queue.lock().is_closing = true;
        self.changed.notify_all();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread
            && !works_for(instance)
        {
            thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
