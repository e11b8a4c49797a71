//! Compaction as the engine sees it: ask the picker, run the job, install the result.

pub(crate) mod cache_transfer;
pub(crate) mod install;
pub(crate) mod read_heavy;

use std::sync::Arc;

use terrane_base::{CompactionContext, CompactionFilter, Error, Kind, Result, SeqNo, callback};
use terrane_compaction::{
    Claims, Cursors, Heats, JobControl, JobKind as CompactionKind, JobResult, JobSpec, Limits, TableShape,
    Targets, Work, debt_bytes, is_scarce, pick, pick_due, pick_range,
};
use terrane_format::range_deletes::Fragment;
use terrane_levels::{Level, Metasnapshot};
use terrane_memtable::GlobalIndex;

use crate::background::compaction::install::Install;
use crate::background::job::Look;
use crate::background::maintenance::Maintenance;
use crate::observe::job_kind::JobKind;
use crate::observe::stats::add;
use crate::read::row_cache::forget_rows_within;
use crate::read::sampling::moment;
use crate::table::Table;
use crate::table::due::{Depth, NoJob, Stamp};
use crate::table::tree_shape::shape_of;

/// A level with more extents is not looked at: the list of their heats is made again for each job.
const LISTED_MAX: usize = 4096;

/// A table whose levels may have a job, and its levels at the look.
struct Candidate {
    table: Arc<Table>,
    stamp: Option<Stamp>,
    tree: Arc<Metasnapshot>,
}

impl Look<'_> {
    /// The most urgent job that no running one excludes, over the tables whose levels may have one; with
    /// `puts_off` only among those that are due. Notes tables that have none.
    pub(crate) fn pick_compaction(self, depth: Depth, puts_off: bool) -> Option<(Arc<Table>, JobSpec)> {
        let schedule = self.schedule;
        let depth = if schedule.is_paused() { Depth::Asked } else { depth };
        let tables = self.catalog.due_levels(depth);
        let snapshots = self.pins.list(|| self.journal.visible());
        let mut due: Vec<(u64, Candidate)> = Vec::new();
        for (table, stamp) in tables {
            if schedule.failures.holds((JobKind::Compact, Some(table.id))) {
                continue;
            }
            let tree = table.pinned().tree;
            let shape = shape_of(&table, &tree, &snapshots);
            let debt = debt_bytes(&shape, &table.settings().limits);
            due.push((debt, Candidate { table, stamp, tree }));
        }
        due.sort_by_key(|(debt, _)| std::cmp::Reverse(*debt));
        let rank = |(debt, one): &(u64, Candidate)| (std::cmp::Reverse(*debt), one.table.id);
        debug_assert!(due.is_sorted_by_key(rank), "of two tables with one debt the older one comes first");
        due.into_iter().find_map(|(_, candidate)| {
            let spec = self.pick_for(&candidate, &snapshots, puts_off)?;
            if candidate.stamp.is_none() {
                // Later looks would find it in turn only, and forget the failure of its job.
                candidate.table.note_levels();
            }
            Some((candidate.table, spec))
        })
    }

    /// A job that a caller asked for, or else one that the shape asks for unless the background is paused.
    fn pick_for(self, candidate: &Candidate, snapshots: &[SeqNo], puts_off: bool) -> Option<JobSpec> {
        let schedule = self.schedule;
        let Candidate { table, tree, .. } = candidate;
        let settings = table.settings();
        let limits = &settings.limits;
        let mut shape = self.shape_to_pick(table, tree, snapshots);
        let only_shapes = schedule.is_paused() || schedule.holds_ranges();
        let served = table.serve_requests(only_shapes, schedule.decides, |request| {
            // Not the tree of the candidate: it may be older than the request, and have nothing of its range.
            let tree = table.pinned().tree;
            pick_range(&self.shape_to_pick(table, &tree, snapshots), limits, &schedule.claims, request)
        });
        if served.is_fulfilled {
            self.background.scheduler.wake();
        }
        let follows_shape = !served.makes_shape && !schedule.is_paused() && limits.automatic;
        shape.keeps_depth = served.is_waiting;
        if follows_shape && served.job.is_none() {
            shape.may_be_wide = table.nothing_wide.lock().may_be_wide(&shape, tree, &settings);
        }
        let pick = if puts_off { pick_due } else { pick };
        let due =
            || follows_shape.then(|| pick(&shape, limits, &schedule.claims, &schedule.cursors)).flatten();
        let found = served.job.or_else(due);
        // Another look would find a job while less runs, after a pause or a request, or with more time.
        let is_restricted = schedule.is_paused() || served.is_waiting || puts_off && limits.automatic;
        if found.is_none() && !is_restricted && schedule.claims.is_idle(table.id) {
            self.note_no_level_job(candidate, snapshots);
        }
        let is_of_table = |spec: &JobSpec| spec.table == table.id;
        debug_assert!(
            found.as_ref().is_none_or(is_of_table),
            "a picker chooses for the table that it looks at"
        );
        found
    }

    /// The shape of a tree, with all that a picker looks at.
    fn shape_to_pick<'t>(
        self,
        table: &Table,
        tree: &'t Metasnapshot,
        snapshots: &'t [SeqNo],
    ) -> TableShape<'t> {
        let mut shape = shape_of(table, tree, snapshots);
        shape.heats = self.heats(tree, &table.settings().limits);
        if self.expires(tree) {
            shape.now = table.semantics.now();
        }
        shape.room_bytes = self.background.space.room_bytes(&self);
        let are_whole = shape.heats.is_empty() || shape.heats.len() == tree.levels.len();
        debug_assert!(are_whole, "the heat of a level stands at its number");
        shape
    }

    /// How often the extents of each level are read now, for the picker; nothing where reads are not counted,
    /// or where the level is not too large.
    fn heats(self, tree: &Metasnapshot, limits: &Limits) -> Vec<Heats> {
        if !self.options.experiments.hot_cold {
            return Vec::new();
        }
        debug_assert!(tree.levels.len() <= usize::from(u8::MAX), "a level has a number of one byte");
        let sizes: Vec<u64> = tree.levels.iter().map(|level| level.totals().bytes).collect();
        let targets = Targets::new(&sizes, limits);
        let moment = moment(self.env.clock.now());
        let of = |number: u8, level: &Level| {
            if level.len() > LISTED_MAX || level.totals().bytes <= targets.of(number) {
                return Heats::default();
            }
            Heats::new(level.iter().map(|extent| extent.heat.at(moment)).collect())
        };
        (1..).zip(&tree.levels).map(|(number, level)| of(number, level)).collect()
    }

    /// Notes that the levels of a table have no job, whatever runs.
    fn note_no_level_job(self, candidate: &Candidate, snapshots: &[SeqNo]) {
        let tree = &candidate.tree;
        let has_deletes = tree.places().any(|(_, level)| {
            let totals = level.totals();
            totals.deletes > 0 || totals.range_deletes > 0
        });
        // The last snapshot is the present moment; older ones may keep versions that deletes hide.
        let is_kept = has_deletes && snapshots.len() > 1;
        // With more room neighbours are gathered that are left now.
        let lacks_room = is_scarce(self.background.space.room_bytes(&self));
        if lacks_room {
            // For the next look: another program may have freed some.
            self.background.space.look_at_room(&self);
        }
        let is_for_now = is_kept || lacks_room || self.expires(tree) || self.options.experiments.hot_cold;
        let how = if is_for_now { NoJob::ForNow } else { NoJob::UntilChanged };
        self.catalog.sums().due().note_no_job(candidate.table.id, candidate.stamp, how);
    }

    /// Returns true if rows of these levels expire, and compactions take them out.
    fn expires(self, tree: &Metasnapshot) -> bool {
        self.options.experiments.expiry_compaction
            && tree.levels.iter().any(|level| level.totals().expiring > 0)
    }

    /// Returns true if each table whose levels have a job is among those that a look finds. Goes through all
    /// tables. Requires: no work runs in the background.
    pub(crate) fn finds_all_levels(self) -> bool {
        let snapshots = self.pins.list(|| self.journal.visible());
        let tables = self.catalog.all();
        let mut left_out =
            tables.iter().filter(|table| !table.is_stopped() && !self.catalog.finds_levels(table));
        left_out.all(|table| {
            let tree = table.pinned().tree;
            let shape = self.shape_to_pick(table, &tree, &snapshots);
            let job = pick(&shape, &table.settings().limits, &Claims::new(), &Cursors::new());
            job.is_none() || self.catalog.finds_levels(table)
        })
    }
}

/// A compaction, from its claim on.
#[derive(Clone, Copy)]
pub(crate) struct CompactionJob<'e> {
    pub(crate) engine: &'e Maintenance,
    pub(crate) table: &'e Table,
    pub(crate) spec: &'e JobSpec,
    pub(crate) control: &'e Arc<JobControl>,
}

impl CompactionJob<'_> {
    /// Runs it and makes its result part of the table.
    pub(crate) fn run(self) -> Result<()> {
        let Self { engine, table, spec, control } = self;
        debug_assert!(spec.table == table.id, "a job of table {} runs on {}", spec.table, table.id);
        engine.give_functions(table, control);
        control.number_values_with(engine.background.next_run.clone());
        let filter = filter_of(table, spec)?;
        if let Some(filter) = &filter {
            control.filter_with(filter.clone(), engine.pins.newest().unwrap_or_default());
        }
        let filtered;
        let merged = match &filter {
            Some(filter) => {
                filtered = spec.filtered_by(&**filter);
                &filtered
            }
            None => spec,
        };
        let done = self.merge(merged, filter.is_some());
        // What moved counted twice since it was installed, or is there again.
        engine.refresh_debt();
        // A job that failed or was cancelled has done work, too, which counts.
        let work = done.as_ref().map_or_else(|_| control.work(), |work| *work);
        self.count(&work);
        self.count_elsewhere();
        if let Some(mended) = &spec.mended {
            // Where it failed, too: it would meet the same again. Scans mark what they still meet.
            table.scan_marks.remove(&mended.range);
        }
        done?;
        if spec.kind == CompactionKind::Manual {
            table.advance_request(merged);
        }
        engine.store.reclaim()?;
        add(&engine.counters.compactions, 1);
        add(&engine.counters.compactions_elsewhere, u64::from(control.elsewhere().is_done));
        add(&table.counters.table_compactions, 1);
        Ok(())
    }

    /// Merges the inputs and installs what comes of them, part by part; `filters`: a filter may change rows.
    fn merge(&self, spec: &JobSpec, filters: bool) -> Result<Work> {
        let Self { engine, table, control, .. } = *self;
        debug_assert!(spec.table == table.id, "the extents of one table would be installed in another");
        let sinking = engine.write_control().begin_sinking(table, spec, control);
        let install =
            |result: &JobResult| Install { engine, table, result }.run(control.take_fresh(), Vec::new());
        let mut publish = |part: JobResult| {
            install(&part)?;
            if filters {
                // The job may fail after its part: rows that the filter has changed would stay cached.
                forget_rows_within(engine, table, spec.inputs.iter().flat_map(|input| &input.extents));
            }
            Ok(())
        };
        let result = engine.background.compactor.run_in_parts(spec, control, &mut publish)?;
        install(&result)?;
        if let Some(sinking) = sinking {
            sinking.end(table, engine.env.clock.now());
        }
        Ok(result.work)
    }

    /// Counts what workers on other machines were offered and did not do.
    fn count_elsewhere(&self) {
        let (counters, elsewhere) = (&self.engine.counters, self.control.elsewhere());
        add(&counters.compactions_fallen_back, u64::from(elsewhere.fell_back));
        add(&counters.compaction_attempts_lost, elsewhere.attempts_lost);
    }

    fn count(&self, work: &Work) {
        let Self { engine, table, spec, .. } = *self;
        debug_assert!(table.is_of(&engine.catalog), "the tables of a database sum up to its own counters");
        engine.count_work(work);
        if work.entries_filtered > 0 {
            // The newest version in the levels may be another one now, and rows of it may be cached.
            forget_rows_within(engine, table, spec.inputs.iter().flat_map(|input| &input.extents));
            add(&engine.counters.entries_filtered, work.entries_filtered);
        }
        add(&engine.counters.compaction_bytes_read, work.bytes_read);
        add(&engine.counters.compaction_bytes_written, work.bytes_written);
        add(&table.counters.table_compaction_bytes_read, work.bytes_read);
        add(&table.counters.table_compaction_bytes_written, work.bytes_written);
        add(&engine.counters.bytes_reused, work.bytes_relinked + work.bytes_copied);
    }
}

/// The compaction filter of a job: the table's, or the one that the table's gives for each.
///
/// # Errors
/// `Poisoned` if the table's panics, naming it.
fn filter_of(table: &Table, spec: &JobSpec) -> Result<Option<Arc<dyn CompactionFilter>>> {
    let Some(filter) = table.compaction_filter() else { return Ok(None) };
    let tree = table.pinned().tree;
    let runs: usize = tree.runs.iter().map(|run| run.level.len()).sum();
    let levels: usize = tree.levels.iter().map(|level| level.len()).sum();
    let inputs: usize = spec.inputs.iter().map(|input| input.extents.len()).sum();
    let mut context = CompactionContext::default();
    context.is_full = inputs == runs + levels;
    context.is_manual = spec.kind == CompactionKind::Manual;
    let own = callback::call(|| filter.for_compaction(context)).map_err(|_| {
        let why = format!("compaction filter {:?} panicked before a compaction", filter.name());
        Error::new(Kind::Poisoned, why)
    })?;
    Ok(Some(own.unwrap_or(filter)))
}

/// The range deletes of a generation: for each snapshot, and for those that come later, what it sees.
pub(crate) fn ranges_of(generation: &GlobalIndex, snapshots: &[SeqNo]) -> Vec<Fragment> {
    let Some(deletes) = generation.index().range_deletes() else { return Vec::new() };
    let (least, greatest) = deletes.seq_range().unwrap_or_default();
    let seeing = snapshots.iter().filter(|snapshot| (least..greatest).contains(*snapshot));
    let seen = seeing.chain([&SeqNo::MAX]).flat_map(|at| deletes.stretches(*at));
    seen.map(|stretch| Fragment {
        start: stretch.start.to_vec(),
        end: stretch.end.to_vec(),
        seqs: vec![stretch.seq],
    })
    .collect()
}

#[cfg(test)]
mod tests;
