//! Background work: a pool of workers asks the engine for the most urgent piece of work that no running one
//! excludes, runs it, and asks again.
//!
//! What may run is decided under one short lock, never held while work runs: [`Engine::next_work`] looks at
//! the pictures and at what runs. Order of urgency: switch full memtables (short), merge or flush memory,
//! compact levels by score, trim the journal. A job that fails is tried again after a pause that doubles.

use std::sync::Arc;
use std::time::Duration;
use terrane_base::sync::atomic::{AtomicU64, Ordering};

use terrane_base::env::{Joiner, Spawn, Step};
use terrane_base::sync::{Condvar, Mutex};
use terrane_base::{Error, Kind, Result, TableId, verify};
use terrane_compaction::{CancelCause, ClaimId, JobControl};

use crate::background::job::Job;
use crate::background::retry::Subject;
use crate::engine::Engine;
use crate::observe::job_kind::JobKinds;
use crate::observe::stats::add;
use crate::table::stopped::Left;
pub(crate) use schedule::{Running, Schedule};

/// How often an idle worker looks without being woken.
const IDLE: Duration = Duration::from_millis(100);

/// The pool of workers and what it runs.
pub(crate) struct Scheduler {
    /// Who runs the work of the pool while somebody waits for it, if there are no threads.
    spawn: Arc<dyn Spawn>,
    schedule: Mutex<Schedule>,
    changed: Condvar,
    /// Counts wake-ups, so that none is lost between looking for work and going to sleep.
    signals: AtomicU64,
    pub(crate) workers: Mutex<Vec<Box<dyn Joiner>>>,
}

impl Scheduler {
    /// A pool without workers; `spawn` is the door to threads.
    pub(crate) fn new(spawn: Arc<dyn Spawn>) -> Self {
        Scheduler {
            spawn,
            schedule: Mutex::default(),
            changed: Condvar::new(),
            signals: AtomicU64::new(0),
            workers: Mutex::default(),
        }
    }

    /// Lets an idle worker look for work. Takes no lock: writers call it.
    pub(crate) fn wake(&self) {
        self.signals.fetch_add(1, Ordering::AcqRel);
        self.changed.notify_all();
    }

    /// Lets waiters look again. For callers that hold the schedule.
    pub(crate) fn notify(&self) {
        self.changed.notify_all();
    }

    /// Looks at the state under the lock.
    pub(crate) fn inspect<R>(&self, look: impl FnOnce(&Schedule) -> R) -> R {
        look(&self.schedule.lock())
    }

    /// Gives out nothing but what is asked for by name, and pauses what runs; or goes on.
    pub(crate) fn set_paused(&self, paused: bool) {
        let mut schedule = self.schedule.lock();
        let paused = paused && !schedule.draining;
        schedule.paused = paused;
        for running in &schedule.running {
            if paused { running.control.pause() } else { running.control.resume() }
        }
        drop(schedule);
        self.wake();
    }

    /// Resumes all work; from now on nothing pauses it.
    pub(crate) fn drain(&self) {
        self.schedule.lock().draining = true;
        self.set_paused(false);
    }

    /// From now on only memory is brought into the levels; merges are cancelled, so that no flush waits for
    /// one.
    pub(crate) fn flush_only(&self) {
        self.schedule.lock().flushes_only = true;
        self.cancel(JobKinds::MERGES, CancelCause::Closing);
    }

    /// Cancels jobs of these kinds that run now; it may be chosen again.
    pub(crate) fn cancel(&self, kinds: JobKinds, cause: CancelCause) {
        let schedule = self.schedule.lock();
        for running in schedule.running.iter().filter(|running| kinds.has(running.kind)) {
            running.control.cancel(cause);
        }
    }

    /// Cancels what runs for a table that was dropped.
    pub(crate) fn cancel_table(&self, table: TableId) {
        let mut schedule = self.schedule.lock();
        for running in schedule.running.iter().filter(|running| running.table == Some(table)) {
            running.control.cancel(CancelCause::Dropped);
        }
        schedule.cursors.forget(table);
        schedule.adaptation.forget(table);
        schedule.quarantine.forget(table);
        schedule.failures.forget_table(table);
    }

    /// Notes damage in a table's levels.
    pub(crate) fn quarantine(&self, table: TableId, error: Error) {
        self.schedule.lock().quarantine.add(table, error);
    }

    /// Gives a claim up and lets waiters look again.
    pub(crate) fn release(&self, claim: ClaimId) {
        self.schedule.lock().claims.release(claim);
        self.wake();
    }

    /// Waits until `done` says so, looking again after every change.
    ///
    /// # Errors
    /// What `done` returns, or `Cancelled` when the pool closes first.
    pub(crate) fn wait_until(&self, mut done: impl FnMut(&mut Schedule) -> Result<bool>) -> Result<()> {
        let mut schedule = self.schedule.lock();
        loop {
            if done(&mut schedule)? {
                return Ok(());
            }
            if schedule.closing {
                return Err(Error::new(Kind::Cancelled, "the database is closing"));
            }
            match self.spawn.stepper() {
                Some(stepper) => terrane_base::sync::unlocked(&mut schedule, || stepper.pass(IDLE)),
                None => drop(self.changed.wait_for(&mut schedule, IDLE)),
            }
        }
    }

    /// Cancels everything and waits for the workers to end.
    pub(crate) fn close(&self) {
        {
            let mut schedule = self.schedule.lock();
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
        let mut schedule = self.schedule.lock();
        if !schedule.closing && self.signals.load(Ordering::Acquire) == seen {
            self.changed.wait_for(&mut schedule, IDLE);
        }
    }

    fn finish(&self, id: u64, subject: Subject, mut result: Result<()>, now: Duration) {
        let mut schedule = self.schedule.lock();
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
                    // The next attempt must begin where this one did: parts that it published are there twice
                    // until then.
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

impl Engine {
    /// Runs one piece of work, if there is one. Ends when the pool closes.
    pub(crate) fn work_step(&self) -> Step {
        self.look_at_readers();
        self.look_at_stall();
        self.memory.tick_of_background();
        let Some((id, work, control)) = self.take_work() else {
            return if self.scheduler.inspect(|schedule| schedule.closing) {
                Step::Ended
            } else {
                Step::Idle
            };
        };
        let subject = (work.kind(), work.table());
        let watched = self.begin_watch(&work, &control);
        // A panic ends the job, not the worker: what the job held is released, and whoever waits is told.
        let run = std::panic::AssertUnwindSafe(|| {
            let run = || work.run(self, &control);
            if work.needs_memory() { self.memory.during_job(run) } else { run() }
        });
        let result = std::panic::catch_unwind(run).unwrap_or_else(|_| {
            let what = format!("background work panicked ({})", work.kind());
            Err(match work.on() {
                Some(table) => table.stop(what, Left::Unknown),
                None => Error::new(Kind::Poisoned, format!("{what}: reopen the database")),
            })
        });
        let is_failed = result.as_ref().is_err_and(|error| error.kind() != Kind::Cancelled);
        if is_failed {
            // Before anyone can see that the work has ended.
            add(&self.counters.background_errors, 1);
        }
        let result = result.map_err(|error| self.blamed(work.table(), error));
        let now = self.env.clock.now();
        self.end_watch(watched, &work, &control, &result, now);
        self.return_freed_memory();
        self.scheduler.finish(id, subject, result, now);
        if is_failed {
            self.throttle.wake();
        }
        Step::Worked
    }

    fn take_work(&self) -> Option<(u64, Job, Arc<JobControl>)> {
        let mut schedule = self.scheduler.schedule.lock();
        if schedule.closing {
            return None;
        }
        schedule.failures.look(self.env.clock.now());
        let work = if schedule.paused { self.next_asked(&schedule)? } else { self.next_due(&mut schedule)? };
        if work.leaves_space() {
            self.idle_watch.reclaim_again();
        }
        schedule.next_id += 1;
        let id = schedule.next_id;
        let control = Arc::new(self.new_control());
        let (claim, advance) = match &work {
            Job::Compact(_, spec) | Job::Adapt(_, spec) => {
                (schedule.claims.take(spec.claim()), schedule.cursors.advance(spec))
            }
            _ => (None, None),
        };
        schedule.running.push(Running {
            id,
            kind: work.kind(),
            table: work.table(),
            claim,
            is_manual: work.is_manual(),
            advance,
            control: control.clone(),
        });
        verify!(schedule.check());
        Some((id, work, control))
    }

    /// The next piece of work; scrubbing where nothing else is due.
    fn next_due(&self, schedule: &mut Schedule) -> Option<Job> {
        self.observe_loads(schedule);
        self.rest_rows();
        let work = self.next_work(schedule, self.is_filling(), self.puts_off());
        if schedule.flushes_only {
            return work;
        }
        if work.is_none() && schedule.is_idle() {
            schedule.failures.forget_settled(JobKinds::AWAITED);
        }
        let work = work.or_else(|| self.idle_work(schedule));
        work.or_else(|| self.next_adaptive(schedule)).or_else(|| self.next_scrub(schedule))
    }

    /// The most urgent piece of work that nothing running excludes. While memory `is_filling` up, no
    /// compaction that would take the last worker from memory; with `puts_off`, none that is not due. Pure
    /// but for loading pictures.
    fn next_work(&self, schedule: &Schedule, is_filling: bool, puts_off: bool) -> Option<Job> {
        let tables = self.worked_tables();
        let is_free = !is_filling || schedule.leaves_a_worker(self.options.background_threads);
        let compacts = is_free && !schedule.flushes_only;
        let compaction = || compacts.then(|| self.pick_compaction(&tables, schedule, puts_off)).flatten();
        self.next_memory_work(&tables, schedule)
            .or_else(|| compaction().map(|(table, spec)| Job::Compact(table, spec)))
            .or_else(|| self.next_trim(schedule))
    }

    /// Whether nothing runs, nothing wants to, and nothing waits to be tried again.
    pub(crate) fn has_nothing_to_do(&self, schedule: &Schedule) -> bool {
        schedule.is_idle() && !schedule.has_failures() && self.next_work(schedule, false, false).is_none()
    }
}

pub(crate) mod flush_hold;
mod range_pause;
mod schedule;
#[cfg(test)]
mod tests;
