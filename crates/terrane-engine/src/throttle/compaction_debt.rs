//! Compaction debt: the debt of the levels, as it changes while jobs run.
//!
//! The unit is a full generation of the global index: the debt is the number of generations in overflow runs
//! that wait to be merged into level 1. A dump adds one and a merge removes several, both at their end; a
//! rate that followed the number of runs would jump. So the finished share of a running job counts already,
//! and the debt changes smoothly.
//!
//! All bytes here are bytes as writers brought them. A run of compressed blocks has about half as many bytes.
//! A rate for writers in bytes of runs would be half of what the levels can take. The bytes of a run are
//! those of its extents together with the separated values that they point to: without the values a run of
//! long ones would have a hundredth of what writers brought.

use std::sync::Arc;
use std::time::Duration;
use terrane_base::TableId;
use terrane_base::sync::Mutex;
use terrane_base::sync::atomic::{AtomicU64, Ordering};
use terrane_compaction::{JobControl, JobSpec, debt_bytes, value_debt_permille};
use terrane_format::extent::ExtentMeta;
use terrane_format::manifest::Place;
use terrane_levels::Totals;

use crate::table::Table;
use crate::throttle::Throttle;
use crate::throttle::control::WriteControl;

/// Level bases of compaction debt that count as the limit.
const DEBT_BASES: f64 = 16.0;
/// So many runs count as one generation, however small they are: each is searched.
const SMALL_RUNS: f64 = 2.0;
/// The backlog of a table without debt. A table without automatic compaction has none either, however many
/// runs it has: waiting would not make them fewer.
const NONE: f64 = -1.0;
/// Upper bound for the bytes brought for a thousand bytes of a run, because the ratio of a nearly empty run
/// says little.
const BROUGHT_PERMILLE_MAX: u64 = 20_000;

/// Running jobs that change the overflow runs.
#[derive(Debug, Default)]
pub(crate) struct CompactionDebt {
    moving: Mutex<Vec<Moving>>,
    /// Bytes of the last generation that was dumped: of a full one only a part, the rest was its index.
    run_bytes: AtomicU64,
    /// Bytes that writers brought for a thousand bytes of runs, averaged over the last dumps; 0 before the
    /// first.
    brought_permille: AtomicU64,
}

/// One running job.
#[derive(Debug)]
struct Moving {
    table: TableId,
    control: Arc<JobControl>,
    /// Entries that it reads.
    entries: u64,
    /// Bytes, as they were brought, that it adds to the runs, or takes from them.
    bytes: f64,
}

impl Moving {
    fn bytes_so_far(&self) -> f64 {
        let share = self.control.work().entries_in as f64 / self.entries.max(1) as f64;
        self.bytes * share.min(1.0)
    }
}

impl CompactionDebt {
    /// By how much jobs under way have changed the bytes of a table's runs so far.
    fn moved(&self, table: TableId) -> f64 {
        let moving = self.moving.lock();
        moving.iter().filter(|one| one.table == table).map(Moving::bytes_so_far).sum()
    }

    /// The tables that have jobs under way.
    fn tables(&self) -> Vec<TableId> {
        self.moving.lock().iter().map(|one| one.table).collect()
    }

    /// Notes that a generation of `brought` bytes became a run of `stored`.
    fn dumped(&self, brought: u64, stored: u64) {
        let now = (brought.saturating_mul(1000) / stored.max(1)).clamp(1, BROUGHT_PERMILLE_MAX);
        // Relaxed: measures. One job at a time dumps.
        let before = self.brought_permille.load(Ordering::Relaxed);
        let average = if before == 0 { now } else { (before * 3 + now) / 4 };
        debug_assert!((1..=BROUGHT_PERMILLE_MAX).contains(&average), "{average} of {brought} and {stored}");
        self.brought_permille.store(average, Ordering::Relaxed);
    }

    /// How many bytes writers brought for `stored` bytes of runs; as many before the first dump.
    fn brought(&self, stored: u64) -> f64 {
        let permille = self.brought_permille.load(Ordering::Relaxed);
        debug_assert!(
            permille <= BROUGHT_PERMILLE_MAX,
            "{permille} bytes were brought for a thousand of runs"
        );
        stored as f64 * if permille == 0 { 1.0 } else { permille as f64 / 1000.0 }
    }

    fn begin(&self, moving: Moving) -> RunsMoving<'_> {
        debug_assert!(moving.bytes.is_finite(), "{moving:?}");
        let control = moving.control.clone();
        self.moving.lock().push(moving);
        RunsMoving { debt: self, control }
    }
}

/// A job that changes what lies in overflow runs, as long as this lives.
struct RunsMoving<'d> {
    debt: &'d CompactionDebt,
    control: Arc<JobControl>,
}

impl Drop for RunsMoving<'_> {
    fn drop(&mut self) {
        self.debt.moving.lock().retain(|one| !Arc::ptr_eq(&one.control, &self.control));
    }
}

/// A generation that is being dumped. Without [`Dump::end`] it has failed.
pub(crate) struct Dump<'d> {
    moving: RunsMoving<'d>,
    bytes: u64,
}

impl Dump<'_> {
    /// The dump is a part of the tree, as a run of these extents.
    pub(crate) fn end(self, extents: &[Arc<ExtentMeta>]) {
        self.moving.debt.dumped(self.bytes, stored_bytes(extents.iter().map(|meta| &**meta)));
    }
}

/// A compaction that takes from overflow runs. Without [`Sinking::end`] it has failed.
pub(crate) struct Sinking<'e> {
    _moving: RunsMoving<'e>,
    brought: f64,
}

impl Sinking<'_> {
    /// The job has taken its inputs out of the runs.
    pub(crate) fn end(self, table: &Table, now: Duration) {
        table.pressure.sank(self.brought as u64, now);
    }
}

impl Throttle {
    /// A dump of a generation of `bytes` in `entries`, which count as they are written, is under way while
    /// the guard lives.
    pub(crate) fn begin_dump(
        &self,
        table: TableId,
        control: &Arc<JobControl>,
        (bytes, entries): (u64, u64),
    ) -> Dump<'_> {
        // Relaxed: a measure.
        self.compaction_debt.run_bytes.store(bytes, Ordering::Relaxed);
        let moving = Moving { table, control: control.clone(), entries, bytes: bytes as f64 };
        Dump { moving: self.compaction_debt.begin(moving), bytes }
    }
}

impl<'e> WriteControl<'e> {
    /// A compaction is under way while the guard lives: the bytes that it takes from overflow runs count as
    /// it goes. `None` if it takes nothing from them.
    pub(crate) fn begin_sinking(
        &self,
        table: &Table,
        spec: &JobSpec,
        control: &Arc<JobControl>,
    ) -> Option<Sinking<'e>> {
        debug_assert!(spec.table == table.id, "runs of table {} sink for {}", spec.table, table.id);
        let from_runs = spec.inputs.iter().filter(|input| matches!(input.place, Place::Run(_)));
        let bytes = stored_bytes(from_runs.flat_map(|input| &input.extents));
        if bytes == 0 {
            return None;
        }
        let metas = spec.inputs.iter().flat_map(|input| &input.extents);
        let entries = metas.map(|meta| meta.entries).sum();
        let debt = &self.throttle.compaction_debt;
        let brought = debt.brought(bytes);
        let moving = Moving { table: spec.table, control: control.clone(), entries, bytes: -brought };
        self.refresh_backlog(table, self.env.clock.now());
        Some(Sinking { _moving: debt.begin(moving), brought })
    }

    /// Computes the debt of the levels of tables, from 0, where their writers begin to be slowed, to 1 at
    /// their limit: of the tables that changed, that have jobs under way, and of some that have debt
    /// ([`crate::throttle::table_debts`]). Returns the most of all tables, and whether writers of any table
    /// are slowed.
    pub(super) fn refresh_backlogs(&self) -> (f64, bool) {
        let now = self.env.clock.now();
        self.readers.tick(now);
        let (throttle, guard) = (&self.throttle, terrane_base::epoch::pin());
        let mut looked: Vec<TableId> = self.catalog.sums().take_changed();
        looked.extend(throttle.compaction_debt.tables());
        looked.extend(throttle.table_debts.next());
        looked.sort_unstable();
        looked.dedup();
        for id in looked {
            match self.catalog.get(id, &guard) {
                Some(table) => self.refresh_backlog(table, now),
                None => throttle.table_debts.forget(id),
            }
        }
        let (most, slows) = throttle.table_debts.most();
        debug_assert!(most >= NONE, "a backlog of {most} is shorter than none");
        if terrane_base::planted!(SlowAllTables) {
            for table in self.catalog.all() {
                table.pressure.set_backlog(most);
            }
        }
        (most, slows)
    }

    /// Looks how far the levels of one table are.
    fn refresh_backlog(&self, table: &Table, now: Duration) {
        self.throttle.table_debts.note(table.id, || {
            let runs = table.view(&terrane_base::epoch::pin()).tree.runs.len() as u64;
            let limits = &table.settings().limits;
            table.pressure.look(now, limits.automatic && runs >= limits.overflow_runs_trigger);
            let backlog = self.backlog_of(table);
            (backlog, table.pressure.set_backlog(backlog))
        });
    }

    fn backlog_of(&self, table: &Table) -> f64 {
        let tree = table.view(&terrane_base::epoch::pin()).tree.clone();
        let settings = table.settings();
        let limits = &settings.limits;
        if !limits.automatic {
            return NONE;
        }
        let of_runs = tree.runs.iter().map(|run| stored_in(&run.level.totals()));
        let bytes = of_runs.fold(0, u64::saturating_add);
        let bytes = (self.throttle.compaction_debt.brought(bytes)
            + self.throttle.compaction_debt.moved(table.id))
        .max(0.0);
        let run_bytes = self
            .throttle
            .compaction_debt
            .run_bytes
            .load(Ordering::Relaxed)
            .max(self.memory.generation_limit() / 2);
        debug_assert!(run_bytes > 0, "a full generation has bytes, or a backlog is not a number");
        let generations = (bytes / run_bytes as f64).max(tree.runs.len() as f64 / SMALL_RUNS);
        let (start, end) = (limits.overflow_runs_trigger as f64, settings.overflow_runs_max as f64);
        let of_runs = backlog_of_runs(generations, start, end);
        let shape = crate::table::tree_shape::shape_of(table, &tree, &[]);
        let debt = debt_bytes(&shape, limits) as f64;
        let of_levels = debt / (DEBT_BASES * settings.level_base_bytes as f64);
        let of_values = value_debt_permille(&shape, limits) as f64 / 1000.0;
        of_runs.max(of_levels.max(of_values) * 2.0 - 1.0)
    }
}

/// Stored bytes of the extents of runs, with the separated values that they point to.
fn stored_bytes<'e>(extents: impl Iterator<Item = &'e ExtentMeta>) -> u64 {
    extents.map(|meta| stored_in(&Totals::of(meta))).fold(0, u64::saturating_add)
}

/// The same of sums over extents.
fn stored_in(totals: &Totals) -> u64 {
    totals.bytes.saturating_add(totals.separated_bytes)
}

/// The backlog of overflow runs that are so many generations: 0 at the start, 1 at the end of pacing.
fn backlog_of_runs(generations: f64, start: f64, end: f64) -> f64 {
    if generations > 0.0 { ((generations - start) / (end - start).max(1.0)).max(NONE) } else { NONE }
}

#[cfg(test)]
mod tests {
    use terrane_base::ValueTableId;
    use terrane_format::extent::{Handle, Reference, ReferenceSection};

    use super::*;

    #[test]
    fn a_table_without_runs_has_no_backlog_whatever_the_options() {
        for end in 1..=64 {
            let start = (end / 2) as f64;
            assert!(backlog_of_runs(0.0, start, end as f64) <= NONE, "overflow_runs_max={end}");
            assert!(backlog_of_runs(0.5, start, end as f64) >= NONE, "overflow_runs_max={end}");
        }
        assert!((backlog_of_runs(10.0, 5.0, 10.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn runs_count_as_what_writers_brought() {
        let backlog = CompactionDebt::default();
        assert!((backlog.brought(1000) - 1000.0).abs() < 1e-6, "opened with runs");
        backlog.dumped(30_000, 15_000);
        assert!((backlog.brought(1000) - 2000.0).abs() < 1e-6, "stored in half of the space");
        backlog.dumped(30_000, 5_000);
        assert!((backlog.brought(1000) - 3000.0).abs() < 1e-6, "averaged");
        backlog.dumped(u64::MAX, 0);
        assert!(backlog.brought(1000) < 8000.0, "one run without anything in it says little");
    }

    #[test]
    fn long_values_count_although_their_run_is_small() {
        let values = Reference { table: ValueTableId(1), entries: 10, bytes: 160_000 };
        let section = ReferenceSection { part: Handle::default(), list: vec![values] };
        let meta = ExtentMeta { bytes: 400, references: Some(Box::new(section)), ..ExtentMeta::default() };
        let throttle = Throttle::default();
        let control = Arc::new(JobControl::new(terrane_base::env::Env::real().clock, None));
        throttle.begin_dump(TableId(0), &control, (163_000, 10)).end(&[Arc::new(meta.clone())]);
        let brought = throttle.compaction_debt.brought(stored_bytes([&meta].into_iter()));
        assert!((brought - 163_000.0).abs() < 2_000.0, "{brought} bytes of 163,000 count");

        // The numbers of a hostile file.
        let values = Reference { bytes: u64::MAX / 2 + 1, ..values };
        let section = ReferenceSection { part: Handle::default(), list: vec![values] };
        let hostile = ExtentMeta { references: Some(Box::new(section)), ..meta };
        assert_eq!(stored_bytes([&hostile, &hostile].into_iter()), u64::MAX);
    }
}
