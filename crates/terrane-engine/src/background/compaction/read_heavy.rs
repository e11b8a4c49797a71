//! Follows the load: while a table is mostly read, the background flushes its memory and merges its levels,
//! as far as reads gain by it; when writers come it stops.
//!
//! Steps of the worker that decides: 1. every [`TICK`] it takes the counts of each table that was used, or
//! whose load is not at rest ([`terrane_compaction::adapt`]); 2. when nothing else is due or running, the
//! first table whose reads gain by a step gets the step ([`terrane_compaction::pick_fewer_runs`]); 3. after a
//! job the background rests for as long as the job took: half a processor at most. A running job is cancelled
//! as soon as writers have brought [`STOP_BYTES`] since it began, wait for memory, or a caller asks for a
//! flush or a pause; all that is lost then is what the job read and wrote.
//!
//! No caller waits for this work: a database may be quiescent and begin it later.

use std::sync::Arc;
use std::time::Duration;
use terrane_base::sync::atomic::Ordering;

use terrane_base::options::AdaptiveShape;
use terrane_base::{Result, verify};
use terrane_compaction::{CancelCause, Counted, Fewer, Load, MemoryTier, Mode, TableShape, pick_fewer_runs};

use crate::background::compaction::CompactionJob;
use crate::background::job::{Job, Look};
use crate::background::maintenance::Maintenance;
use crate::background::scheduler::Schedule;
use crate::background::state::load::{Adaptation, Watched};
use crate::observe::job_kind::{JobKind, JobKinds};
use crate::observe::stats::add;
use crate::table::Table;
use crate::table::read_view::ReadView;
use crate::table::tree_shape::shape_of;

/// How often the load is looked at.
const TICK: Duration = Duration::from_millis(100);
/// Bytes that writers may bring while a job runs that they do not need.
const STOP_BYTES: u64 = 1 << 20;

impl Adaptation {
    /// Takes the counts since the last look, if that was long enough ago.
    pub(crate) fn observe(&mut self, engine: &Maintenance, now: Duration) {
        if engine.options.adaptive_shape == AdaptiveShape::Off {
            return;
        }
        let elapsed = self.looked.map(|looked| now.saturating_sub(looked));
        if elapsed.is_some_and(|elapsed| elapsed < TICK) {
            return;
        }
        self.looked = Some(now);
        let used = engine.catalog.sums().due().take_used();
        let Some(elapsed) = elapsed else {
            // The time of counts before the first look is not known.
            for table in engine.catalog.all() {
                let watched = Watched { counted: counted_from_now(&table), ..Watched::default() };
                self.tables.insert(table.id, watched);
            }
            return;
        };
        self.moving.extend(used);
        let (tables, guard) = (&mut self.tables, terrane_base::epoch::pin());
        self.moving.retain(|id| {
            let Some(table) = engine.catalog.get(*id, &guard) else {
                tables.remove(id);
                return false;
            };
            let watched = tables.entry(*id).or_default();
            let counted = counted_from_now(table);
            let since = counted.since(watched.counted);
            watched.counted = counted;
            watched.follow(engine, table, since, elapsed);
            !watched.load.is_at_rest()
        });
        verify!(self.is_sound());
    }
}

impl Watched {
    fn follow(&mut self, engine: &Maintenance, table: &Table, since: Counted, elapsed: Duration) {
        debug_assert!(elapsed >= TICK, "a load is averaged over ticks, not over {elapsed:?}");
        let before = self.load.mode;
        let load = self.load.observe(engine.options.adaptive_shape, since, elapsed.as_millis() as u64);
        self.load = load;
        if load.mode != before {
            add(&engine.counters.adaptive_switches, 1);
        }
        // Relaxed: for displays only.
        table.load.is_read_heavy.store(load.mode == Mode::ReadHeavy, Ordering::Relaxed);
        table.load.runs_per_read_milli.store(load.runs_per_read_milli(), Ordering::Relaxed);
    }
}

impl Maintenance {
    /// A step that gives a table that is mostly read fewer sorted runs, when the background has nothing else
    /// to do.
    pub(crate) fn next_adaptive(&self, schedule: &mut Schedule, adaptation: &mut Adaptation) -> Option<Job> {
        debug_assert!(schedule.decides, "a caller that only asks begins no job");
        let now = schedule.failures.now().as_micros() as u64;
        let rests = now < self.background.adapting.rests_until.load(Ordering::Relaxed);
        let is_off = self.options.adaptive_shape == AdaptiveShape::Off;
        // While anything fails, nothing is done that need not be.
        if is_off || rests || !schedule.is_idle() || schedule.has_failures() {
            return None;
        }
        let guard = terrane_base::epoch::pin();
        let step = adaptation.moving.iter().find_map(|id| {
            let table = self.catalog.get(*id, &guard).filter(|table| !table.is_stopped())?;
            let load = &adaptation.tables.get(id)?.load;
            let is_held = schedule.failures.holds((JobKind::Adapt, Some(table.id)));
            let is_left_alone = is_held || schedule.quarantine.of(table.id).is_some();
            if is_left_alone || load.mode == Mode::WriteFriendly {
                return None;
            }
            Look { engine: self, schedule: &*schedule }.step_for(table, load)
        });
        drop(guard);
        if let Some(job) = &step {
            adaptation.has_worked = true;
            adaptation.asks_flush = !matches!(job, Job::Adapt(..));
            return step;
        }
        // What failed is not wanted any more.
        schedule.failures.forget_obsolete(JobKinds::of(&[JobKind::Adapt]));
        if std::mem::take(&mut adaptation.has_worked) {
            self.background.idle_watch.reclaim_again();
        }
        None
    }

    /// Stops a job that only reads gain by, if writers came while it runs. Called by writers now and then.
    #[inline]
    pub(crate) fn stop_for_writers(&self) {
        let stop_at = self.background.adapting.stop_at.load(Ordering::Relaxed);
        if terrane_base::planted!(AdaptAgainstWriters) {
            return;
        }
        if stop_at != u64::MAX && self.written.bytes() >= stop_at {
            self.give_up_adapting();
        }
    }

    /// Stops a job that only reads gain by, for a caller that waits for the background.
    pub(crate) fn give_up_adapting(&self) {
        if self.background.adapting.stop_at.swap(u64::MAX, Ordering::Relaxed) != u64::MAX {
            self.background.scheduler.cancel(JobKinds::of(&[JobKind::Adapt]), CancelCause::Unneeded);
        }
    }
}

impl Look<'_> {
    fn step_for(self, table: &Arc<Table>, load: &Load) -> Option<Job> {
        debug_assert!(load.mode != Mode::WriteFriendly, "a table that is written keeps its shape");
        let view = table.pinned();
        let snapshots = self.pins.list(|| self.journal.visible());
        let room_bytes = self.background.space.room_bytes(&self);
        let shape = TableShape { room_bytes, ..shape_of(table, &view.tree, &snapshots) };
        let memory = memory_tier(&view, self.memory.budget().generation_bytes());
        let policy = self.options.adaptive_shape;
        let limits = &table.settings().limits;
        match pick_fewer_runs(&shape, memory, limits, &self.schedule.claims, load, policy)? {
            Fewer::Merge(spec) => Some(Job::Adapt(table.clone(), *spec)),
            Fewer::Flush => self.flush_for_reads(table, &view),
        }
    }

    /// Asks for a flush of the table's memory; returns the first step of it, if that can be done now.
    fn flush_for_reads(self, table: &Arc<Table>, view: &ReadView) -> Option<Job> {
        debug_assert!(
            self.schedule.is_idle(),
            "a table is flushed for reads when nothing else is to be done"
        );
        let is_held = self.schedule.holds_any(JobKinds::TO_LEVELS, table.id);
        if is_held || (view.active.is_empty() && view.generations.is_empty()) {
            return None;
        }
        table.want_flush(self.journal.visible());
        if view.active.is_empty() {
            return Some(Job::Flush(table.clone()));
        }
        Some(Job::Freeze(table.clone()))
    }
}

/// A job that only reads gain by: after it the background rests as long as it took.
struct Adapting<'e> {
    engine: &'e Maintenance,
    started: Duration,
}

impl<'e> Adapting<'e> {
    /// A job that only reads gain by is under way while the guard lives: writers may stop it.
    fn begin(engine: &'e Maintenance) -> Adapting<'e> {
        let written = engine.written.bytes();
        let is_other = || engine.background.adapting.stop_at.load(Ordering::Relaxed) != u64::MAX;
        debug_assert!(!is_other(), "writers stop one job that only reads gain by, not two");
        // Relaxed, as below: a writer that sees it late goes at most a quantum beyond it.
        engine.background.adapting.stop_at.store(written.saturating_add(STOP_BYTES), Ordering::Relaxed);
        Adapting { engine, started: engine.env.clock.now() }
    }
}

impl Drop for Adapting<'_> {
    fn drop(&mut self) {
        let adapting = &self.engine.background.adapting;
        adapting.stop_at.store(u64::MAX, Ordering::Relaxed);
        let now = self.engine.env.clock.now();
        let rests_until = now + now.saturating_sub(self.started);
        adapting.rests_until.store(rests_until.as_micros() as u64, Ordering::Relaxed);
    }
}

impl CompactionJob<'_> {
    /// Runs it as one that only reads gain by.
    pub(crate) fn run_for_reads(self) -> Result<()> {
        let engine = self.engine;
        let adapting = Adapting::begin(engine);
        let done = self.run();
        if done.is_ok() {
            add(&engine.counters.adaptive_jobs, 1);
        }
        drop(adapting);
        done
    }
}

/// The counts of a table so far. Records in memory count as written: a flush takes some off, and the look
/// after it sees no writes.
fn counted(table: &Table) -> Counted {
    let view = table.pinned();
    let memtables = std::iter::once(&view.active).chain(&view.frozen);
    let (records, bytes) = memtables
        .map(|memtable| (memtable.entry_count(), memtable.record_bytes()))
        .chain(view.generations.iter().map(|index| (index.entry_count(), index.record_bytes())))
        .fold((0, 0), |(records, sum), (count, bytes)| (records + count, sum + bytes));
    Counted { records, bytes, ..table.load.counted() }
}

/// The same, and has the table listed when it is used again.
fn counted_from_now(table: &Table) -> Counted {
    table.load.leave_list();
    counted(table)
}

fn memory_tier(view: &ReadView, flush_bytes: u64) -> MemoryTier {
    let memtables = std::iter::once(&view.active).chain(&view.frozen);
    let memtables = memtables.map(|memtable| memtable.record_bytes());
    let all = memtables.chain(view.generations.iter().map(|index| index.record_bytes()));
    let filled: Vec<u64> = all.filter(|bytes| *bytes > 0).collect();
    MemoryTier { runs: filled.len() as u64, bytes: filled.iter().sum(), flush_bytes }
}
