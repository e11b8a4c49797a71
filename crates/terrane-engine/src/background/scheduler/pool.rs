//! The pool of workers as its callers and its jobs see it: wake, wait, pause, cancel, close.

use std::sync::Arc;
use std::time::Duration;
use terrane_base::sync::atomic::{AtomicU64, Ordering};

use terrane_base::env::{Joiner, Spawn};
use terrane_base::sync::{Condvar, Mutex, MutexGuard};
use terrane_base::{Error, Kind, Result, TableId};
use terrane_compaction::{CancelCause, ClaimId};

use super::schedule::Schedule;
use crate::background::retry::Subject;
use crate::background::state::load::Adaptation;
use crate::observe::job_kind::JobKinds;

/// How often an idle worker looks without being woken.
const IDLE: Duration = Duration::from_millis(100);

/// Work that is not a job.
type HandedOver = Box<dyn FnOnce() + Send>;

/// The pool of workers and what it runs.
pub(crate) struct Scheduler {
    /// Runs the work of the pool on a thread that waits for it, if there are no threads.
    spawn: Arc<dyn Spawn>,
    pub(in crate::background) schedule: Mutex<Schedule>,
    changed: Condvar,
    /// The loads of the tables. Held by the worker that decides; taken before `schedule`.
    pub(in crate::background) adaptation: Mutex<Adaptation>,
    /// Counts wake-ups, so that none is lost between looking for work and going to sleep.
    signals: AtomicU64,
    handed_over: Mutex<Option<HandedOver>>,
    pub(crate) workers: Mutex<Vec<Box<dyn Joiner>>>,
}

impl Scheduler {
    /// A pool without workers; `spawn` is the door to threads.
    pub(crate) fn new(spawn: Arc<dyn Spawn>) -> Self {
        Scheduler {
            spawn,
            schedule: Mutex::default(),
            changed: Condvar::new(),
            adaptation: Mutex::default(),
            signals: AtomicU64::new(0),
            handed_over: Mutex::default(),
            workers: Mutex::default(),
        }
    }

    /// Lets an idle worker look for work. Takes no lock: writers call it.
    pub(crate) fn wake(&self) {
        self.signals.fetch_add(1, Ordering::AcqRel);
        self.changed.notify_all();
    }

    /// Has a worker do this between two jobs.
    pub(crate) fn hand_over(&self, work: HandedOver) {
        let before = self.handed_over.lock().replace(work);
        assert!(before.is_none(), "a database has one last handle");
        self.wake();
    }

    /// Does what was handed over, if anything was. Called by a worker that holds nothing of the database.
    pub(in crate::background) fn do_handed_over(&self) {
        // Not under the lock: the work closes the pool.
        let work = self.handed_over.lock().take();
        work.into_iter().for_each(|work| work());
    }

    /// Takes the schedule to change it.
    pub(in crate::background) fn change(&self) -> MutexGuard<'_, Schedule> {
        let mut schedule = self.schedule.lock();
        schedule.version += 1;
        schedule
    }

    /// A copy of the schedule to decide from, with the cursors of these tables.
    pub(crate) fn copy_for(&self, tables: impl IntoIterator<Item = TableId>) -> Schedule {
        self.schedule.lock().copy_for(tables)
    }

    /// Returns true if the schedule is as it was when it was copied.
    pub(crate) fn is_unchanged(&self, copy: &Schedule) -> bool {
        self.schedule.lock().version == copy.version
    }

    /// Looks at the state under the lock.
    pub(crate) fn inspect<R>(&self, look: impl FnOnce(&Schedule) -> R) -> R {
        look(&self.schedule.lock())
    }

    /// With `paused`, gives out only jobs that callers asked for and pauses running jobs; else goes on.
    pub(crate) fn set_paused(&self, paused: bool) {
        let mut schedule = self.change();
        let paused = paused && !schedule.draining;
        schedule.paused = paused;
        debug_assert!(!(schedule.paused && schedule.draining), "the last flush would wait for ever");
        for running in &schedule.running {
            if paused { running.control.pause() } else { running.control.resume() }
        }
        drop(schedule);
        self.wake();
    }

    /// Resumes all work; from now on nothing pauses it.
    pub(crate) fn drain(&self) {
        self.change().draining = true;
        self.set_paused(false);
    }

    /// From now on only memory is brought into the levels; merges are cancelled, so that no flush waits for
    /// one.
    pub(crate) fn flush_only(&self) {
        self.change().flushes_only = true;
        self.cancel(JobKinds::MERGES, CancelCause::Closing);
    }

    /// Cancels jobs of these kinds that run now; it may be chosen again.
    pub(crate) fn cancel(&self, kinds: JobKinds, cause: CancelCause) {
        debug_assert!(
            !matches!(cause, CancelCause::Dropped),
            "a drop would end the jobs of other tables, too"
        );
        let schedule = self.schedule.lock();
        for running in schedule.running.iter().filter(|running| kinds.has(running.kind)) {
            running.control.cancel(cause);
        }
    }

    /// Cancels what runs for a table that was dropped.
    pub(crate) fn cancel_table(&self, table: TableId) {
        self.adaptation.lock().forget(table);
        let mut schedule = self.change();
        for running in schedule.running.iter().filter(|running| running.table == Some(table)) {
            running.control.cancel(CancelCause::Dropped);
        }
        schedule.cursors.forget(table);
        schedule.quarantine.forget(table);
        schedule.failures.forget_table(table);
        let is_forgotten = || schedule.failures.lasting().all(|one| one.subject.1 != Some(table));
        debug_assert!(is_forgotten(), "a table that is gone fails for ever");
    }

    /// Notes damage in a table's levels.
    pub(crate) fn quarantine(&self, table: TableId, error: Error) {
        self.change().quarantine.add(table, error);
    }

    /// Gives a claim up and lets waiters look again.
    pub(crate) fn release(&self, claim: ClaimId) {
        self.change().claims.release(claim);
        self.wake();
    }

    /// Waits until `done` returns true. It is called after every change, under the lock, because it may
    /// change the schedule.
    ///
    /// # Errors
    /// The error of `done`, or `Cancelled` when the pool closes first.
    pub(crate) fn wait_until(&self, mut done: impl FnMut(&mut Schedule) -> Result<bool>) -> Result<()> {
        let mut schedule = self.schedule.lock();
        loop {
            if done(&mut schedule)? {
                schedule.version += 1;
                return Ok(());
            }
            if schedule.closing {
                return Err(closing());
            }
            match self.spawn.stepper() {
                Some(stepper) => terrane_base::sync::unlocked(&mut schedule, || stepper.pass(IDLE)),
                None => drop(self.changed.wait_for(&mut schedule, IDLE)),
            }
        }
    }

    /// As [`Self::wait_until`], without the lock: `done` looks at a copy of the schedule.
    ///
    /// # Errors
    /// As [`Self::wait_until`].
    pub(crate) fn wait_for(&self, mut done: impl FnMut(&Schedule) -> Result<bool>) -> Result<()> {
        loop {
            let seen = self.signals();
            let copy = self.copy_for([]);
            if done(&copy)? {
                return Ok(());
            }
            let mut schedule = self.schedule.lock();
            if schedule.closing {
                return Err(closing());
            }
            match self.spawn.stepper() {
                Some(stepper) => terrane_base::sync::unlocked(&mut schedule, || stepper.pass(IDLE)),
                None if self.signals() == seen => drop(self.changed.wait_for(&mut schedule, IDLE)),
                None => {}
            }
        }
    }

    /// Cancels everything and waits for the workers to end, but for one that calls it itself.
    pub(crate) fn close(&self) {
        {
            let mut schedule = self.change();
            schedule.closing = true;
            for running in &schedule.running {
                running.control.cancel(CancelCause::Closing);
            }
        }
        self.changed.notify_all();
        for worker in self.workers.lock().drain(..) {
            worker.join();
        }
    }

    /// How many wake-ups there were.
    pub(crate) fn signals(&self) -> u64 {
        self.signals.load(Ordering::Acquire)
    }

    /// Waits for a wake-up after the `seen` ones, for a while.
    pub(crate) fn wait_for_signal(&self, seen: u64) {
        debug_assert!(seen <= self.signals(), "{seen} wake-ups were seen that did not come");
        let mut schedule = self.schedule.lock();
        if !schedule.closing && self.signals.load(Ordering::Acquire) == seen {
            self.changed.wait_for(&mut schedule, IDLE);
        }
    }

    /// Notes the end of a piece of work.
    pub(in crate::background) fn finish(
        &self,
        id: u64,
        subject: Subject,
        mut result: Result<()>,
        now: Duration,
    ) {
        let mut schedule = self.change();
        schedule.failures.look(now);
        if let Some(index) = schedule.running.iter().position(|running| running.id == id) {
            let done = schedule.running.swap_remove(index);
            if let (Err(error), Some(table)) = (&result, done.claim.and(done.table))
                && error.kind() == Kind::Corrupt
                && !terrane_base::planted!(RetryDamagedWork)
            {
                // It would meet the same again: the claim stays, and keeps the picker away.
                schedule.quarantine.add(table, error.clone());
                result = Ok(());
            } else if let Some(claim) = done.claim {
                schedule.claims.release(claim);
                if let (Err(_), Some(advance)) = (&result, done.advance) {
                    // The next attempt must begin where this one did: the inputs that its last part divided
                    // are there twice until then.
                    schedule.cursors.retreat(advance);
                }
            }
        }
        schedule.failures.note(subject, id, result);
        debug_assert!(schedule.running.iter().all(|running| running.id != id), "a job ends once");
        drop(schedule);
        self.wake();
    }
}

fn closing() -> Error {
    Error::new(Kind::Cancelled, "the database is closing")
}
