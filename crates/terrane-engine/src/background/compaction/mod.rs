//! Compaction as the engine sees it: ask the picker, run the job, install the result.

pub(crate) mod cache_transfer;
pub(crate) mod install;
pub(crate) mod read_heavy;

use std::sync::Arc;

use terrane_base::{CompactionContext, CompactionFilter, Error, Kind, Result, SeqNo, callback};
use terrane_compaction::{
    Compactor, JobControl, JobKind as CompactionKind, JobResult, JobSpec, debt_bytes, pick, pick_due,
    pick_range,
};
use terrane_format::range_deletes::Fragment;
use terrane_levels::Metasnapshot;
use terrane_memtable::GlobalIndex;

use crate::background::scheduler::Schedule;
use crate::engine::Engine;
use crate::observe::job_kind::JobKind;
use crate::observe::stats::add;
use crate::table::Table;
use crate::table::tree_shape::shape_of;

impl Engine {
    /// The most urgent job over all tables that can run beside what runs; with `puts_off` only among those
    /// that are due.
    pub(crate) fn pick_compaction(
        &self,
        tables: &[Arc<Table>],
        schedule: &Schedule,
        puts_off: bool,
    ) -> Option<(Arc<Table>, JobSpec)> {
        let snapshots = self.pins.list(|| self.journal.visible());
        let mut due: Vec<(u64, &Arc<Table>, Arc<Metasnapshot>)> = Vec::new();
        for table in
            tables.iter().filter(|table| !schedule.failures.holds((JobKind::Compact, Some(table.id))))
        {
            let tree = table.pinned().tree;
            let shape = shape_of(table, &tree, &snapshots);
            due.push((debt_bytes(&shape, &table.settings().limits), table, tree));
        }
        due.sort_by_key(|(debt, ..)| std::cmp::Reverse(*debt));
        due.into_iter().find_map(|(_, table, tree)| {
            let spec = self.pick_for(table, &tree, &snapshots, schedule, puts_off)?;
            Some((table.clone(), spec))
        })
    }

    /// A job that somebody asked for, or else one that the shape asks for unless the background is paused.
    fn pick_for(
        &self,
        table: &Table,
        tree: &Arc<Metasnapshot>,
        snapshots: &[SeqNo],
        schedule: &Schedule,
        puts_off: bool,
    ) -> Option<JobSpec> {
        let mut shape = shape_of(table, tree, snapshots);
        let settings = table.settings();
        let limits = &settings.limits;
        shape.heats = self.heats(tree, limits);
        let expires = tree.levels.iter().any(|level| level.totals().expiring > 0);
        if expires && self.options.experiments.expiry_compaction {
            shape.now = table.sense.now();
        }
        let served = table.serve_requests(schedule.is_paused() || schedule.holds_ranges(), |request| {
            pick_range(&shape, limits, &schedule.claims, request)
        });
        if served.is_fulfilled {
            self.background.scheduler.notify();
        }
        let follows_shape = !served.makes_shape && !schedule.is_paused() && limits.automatic;
        if follows_shape && served.job.is_none() {
            shape.may_be_wide = table.nothing_wide.lock().may_be_wide(&shape, tree, &settings);
        }
        let pick = if puts_off { pick_due } else { pick };
        let due =
            || follows_shape.then(|| pick(&shape, limits, &schedule.claims, &schedule.cursors)).flatten();
        served.job.or_else(due)
    }

    /// Runs a compaction job and makes its result part of the table.
    pub(crate) fn compact(&self, table: &Table, spec: &JobSpec, control: &Arc<JobControl>) -> Result<()> {
        self.give_functions(table, control);
        let filter = filter_of(table, spec)?;
        if let Some(filter) = &filter {
            control.filter_with(filter.clone(), self.pins.newest().unwrap_or_default());
        }
        let whole;
        let spec = match filter.is_some_and(|filter| filter.sees_all()) {
            true => {
                whole = JobSpec { rewrites: true, ..spec.clone() };
                &whole
            }
            false => spec,
        };
        let done = self.write_control().while_sinking(table, spec, control, || {
            let mut publish = |part: JobResult| self.install(table, &part, Vec::new());
            let result = self.background.compactor.run_in_parts(spec, control, &mut publish)?;
            self.install(table, &result, Vec::new()).map(|()| result.work)
        });
        // What a job did that came to no end was done, too.
        let work = done.as_ref().map_or_else(|_| control.work(), |work| *work);
        self.count_settled(&work);
        if work.entries_filtered > 0 {
            // What was newest in the levels is so no more, and rows of it may be cached.
            self.forget_rows_within(table, spec.inputs.iter().flat_map(|input| &input.extents));
            add(&self.counters.entries_filtered, work.entries_filtered);
        }
        add(&self.counters.compaction_bytes_read, work.bytes_read);
        add(&self.counters.compaction_bytes_written, work.bytes_written);
        add(&table.counters.table_compaction_bytes_read, work.bytes_read);
        add(&table.counters.table_compaction_bytes_written, work.bytes_written);
        add(&self.counters.bytes_reused, work.bytes_relinked + work.bytes_copied);
        done?;
        if spec.kind == CompactionKind::Manual {
            table.advance_request(spec);
        }
        self.store.reclaim()?;
        add(&self.counters.compactions, 1);
        add(&table.counters.table_compactions, 1);
        Ok(())
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
