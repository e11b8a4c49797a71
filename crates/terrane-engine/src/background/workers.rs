//! Background work: a pool of workers asks the engine for the most urgent piece of work that no running one
//! excludes, runs it, and asks again.
//!
//! Steps of a look for work: 1. a worker copies the schedule ([`Schedule::copy_for`]) under its lock; 2. it
//! decides, without that lock, from the copy and from the read views of the tables in which work may be due
//! ([`crate::table::due`]): [`Look`]; 3. under the lock again, it takes what it found, if
//! nothing has changed in the schedule since the copy; else it decides again. One worker decides at a time
//! (`adaptation`), so no new job changes the schedule meanwhile: only jobs that end, steps of flushes and
//! calls of users do, and the worker ends its decision after them.
//!
//! A job that fails is tried again after a pause that doubles. Callers that wait look at copies.

use std::sync::Arc;

use terrane_base::env::Step;
use terrane_base::{Error, Kind, Result, verify};
use terrane_compaction::JobControl;

use crate::background::compaction::CompactionJob;
use crate::background::flush::FlushJob;
use crate::background::flush::merge_frozen::SettleJob;
use crate::background::job::{Job, Look};
use crate::background::job_log::Watched;
use crate::background::maintenance::{Maintenance, MaintenanceRef};
use crate::background::scheduler::{Running, Schedule};
use crate::background::scrub::ScrubJob;
use crate::background::space::StepOfSpace;
use crate::background::state::load::Adaptation;
use crate::observe::job_kind::JobKinds;
use crate::observe::stats::add;
use crate::read::row_cache::rest_rows;
use crate::reentrancy::{Working, works_for};
use crate::table::due::Depth;
use crate::table::stopped::Left;

/// The number of a piece of work, the work, and its control.
type Taken = (u64, Job, Arc<JobControl>);

/// The schedule has changed since it was copied; with its number now.
struct Changed(u64);

impl Maintenance {
    /// Starts the workers, which keep `engine`, the owner of this, while they work.
    pub(crate) fn start_workers(&self, engine: &MaintenanceRef) -> Result<()> {
        assert!(std::ptr::eq(self, engine.part()), "workers keep the database that they work on");
        for number in 0..self.options.background_threads {
            // Workers hold the engine only while they look for work and do it, so that dropping the last
            // handle ends them. Did they hold it while they wait, two of them would hold it in turn, for
            // ever.
            let engine = Arc::downgrade(engine);
            let scheduler = self.background.scheduler.clone();
            if let Some(stepper) = self.env.spawn.stepper() {
                let step = move || {
                    scheduler.do_handed_over();
                    engine.upgrade().map_or(Step::Ended, |engine| engine.work_step())
                };
                stepper.add(&format!("terrane-{number}"), Box::new(step));
                continue;
            }
            let nice = self.options.experiments.background_nice as u8;
            let body = move || {
                if nice > 0 {
                    // Where the system refuses, only the order of threads on the processors differs.
                    terrane_device::lower_priority(nice);
                }
                loop {
                    let seen = scheduler.signals();
                    scheduler.do_handed_over();
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

    /// Runs one piece of work, if there is one. Ends when the pool closes.
    pub(crate) fn work_step(&self) -> Step {
        let is_worker = || works_for(self.instance()) || self.env.spawn.stepper().is_some();
        debug_assert!(is_worker(), "a callback of a job could wait for the job on any other thread");
        self.readers.look(self.env.clock.now());
        self.write_control().look_at_stall();
        self.memory.tick_of_background();
        let Some((id, work, control)) = self.take_work() else {
            return if self.background.scheduler.inspect(|schedule| schedule.closing) {
                Step::Ended
            } else {
                Step::Idle
            };
        };
        let subject = (work.kind(), work.table());
        let watched = Watched::begin(self, &work, &control);
        // A panic ends the job, not the worker: what the job held is released, and callers that wait get the
        // error.
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
        if result.as_ref().is_err_and(Error::lacks_space) {
            // What it has written lies in free slots. The device, which is full, needs them.
            let _ = self.reclaim_idle();
        }
        if work.changes_room() {
            self.background.space.look_at_room(self);
        }
        let result = result.map_err(|error| self.blamed(work.table(), error));
        if result.is_ok() {
            self.background.space.note_done(work.kind());
        }
        let now = self.env.clock.now();
        watched.end(self, &work, &control, &result, now);
        self.memory.return_freed(&self.options);
        self.background.scheduler.finish(id, subject, result, now);
        if is_failed {
            self.throttle.wake();
        }
        Step::Worked
    }

    /// Finds a piece of work and takes it.
    fn take_work(&self) -> Option<Taken> {
        let mut adaptation = self.background.scheduler.adaptation.lock();
        loop {
            let mut copy = self.background.scheduler.copy_for(self.catalog.due_ids());
            if copy.closing {
                return None;
            }
            copy.decides = true;
            let version = copy.version;
            copy.failures.look(self.env.clock.now());
            let found = if copy.paused {
                Look { engine: self, schedule: &copy }.next_asked()
            } else {
                self.next_due(&mut copy, &mut adaptation)
            };
            let asks_flush = adaptation.takes_asked_flush();
            match self.take(copy, found) {
                Ok(taken) => {
                    add(&self.counters.adaptive_flushes, u64::from(asks_flush && taken.is_some()));
                    return taken;
                }
                Err(Changed(later)) => {
                    assert!(later > version, "a decision from copy {version} is void in state {later}");
                }
            }
        }
    }

    /// Takes the job that a decision from `copy` found, and the changes that the decision made in the copy:
    /// failures of jobs that are not wanted any more are forgotten.
    ///
    /// # Errors
    /// If the schedule has changed since: the decision is void.
    fn take(&self, copy: Schedule, found: Option<Job>) -> std::result::Result<Option<Taken>, Changed> {
        let mut schedule = self.background.scheduler.schedule.lock();
        if schedule.version != copy.version {
            if let Some(Job::Reclaim) = found {
                // It would not be found again.
                self.background.idle_watch.reclaim_again();
            }
            return Err(Changed(schedule.version));
        }
        schedule.failures = copy.failures;
        let Some(work) = found else { return Ok(None) };
        if work.leaves_space() {
            self.background.idle_watch.reclaim_again();
        }
        schedule.version += 1;
        schedule.next_id += 1;
        let id = schedule.next_id;
        let control = Arc::new(self.new_control());
        let (claim, advance) = match &work {
            Job::Compact(table, spec) | Job::Adapt(table, spec) => {
                let claim = schedule.claims.take(spec.claim());
                // The claims are those of the copy. A comparator of a caller may contradict itself; its job
                // then ends with the error of that.
                let is_trusted = table.semantics.collation().is_bytes();
                assert!(claim.is_some() || !is_trusted, "a picker chose what a job holds: {spec:?}");
                (claim, schedule.cursors.advance(spec))
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
        Ok(Some((id, work, control)))
    }

    /// The next piece of work; scrubbing where nothing else is due.
    fn next_due(&self, schedule: &mut Schedule, adaptation: &mut Adaptation) -> Option<Job> {
        debug_assert!(schedule.decides, "a caller that only asks begins no job");
        adaptation.observe(self, schedule.failures.now());
        rest_rows(self);
        let is_filling = self.write_control().is_filling() || self.throttle.is_making_room();
        let puts_off = self.write_control().puts_off();
        let look = Look { engine: self, schedule };
        let work = look.next_work(Depth::Some, is_filling, puts_off);
        if schedule.flushes_only {
            return work;
        }
        if work.is_none() && schedule.is_idle() {
            schedule.failures.forget_obsolete(JobKinds::AWAITED);
        }
        let work = work.or_else(|| Look { engine: self, schedule }.idle_work());
        let work = work.or_else(|| self.next_adaptive(schedule, adaptation));
        work.or_else(|| Look { engine: self, schedule }.next_scrub())
    }
}

impl Job {
    /// Runs to its end on the calling thread; `control` pauses and cancels it.
    pub(crate) fn run(&self, engine: &Maintenance, control: &Arc<JobControl>) -> Result<()> {
        debug_assert!(
            self.on().is_none_or(|table| table.is_of(&engine.catalog)),
            "a job of another database"
        );
        match self {
            Job::Freeze(table) => engine.freeze(table).map(drop),
            Job::Settle(table) => SettleJob { engine, table, control }.run(),
            Job::Flush(table) => FlushJob { engine, table, control }.run(),
            Job::Compact(table, spec) => CompactionJob { engine, table, spec, control }.run(),
            Job::Adapt(table, spec) => CompactionJob { engine, table, spec, control }.run_for_reads(),
            Job::Scrub => ScrubJob { engine, control }.run(),
            Job::Trim => engine.trim_unless_held().map(drop),
            Job::Reclaim => engine.reclaim_idle(),
            Job::GiveSpaceBack { is_flushed } => {
                StepOfSpace::take(engine, *is_flushed);
                Ok(())
            }
        }
    }
}
