//! Pickers: pure functions from shape, limits and claims to a job or nothing.
//!
//! Steps of [`pick`]:
//! 1. range deletes over much data move down, which frees more than it writes (`wide.rs`);
//! 2. value tables with dead values, while they take more space than their limit (`values/collect.rs`);
//! 3. score the due ones: overflow runs against their trigger, levels against their targets;
//! 4. try the due levels by score, the upper one first if scores are equal;
//! 5. levels above the largest, while the table takes more space than its limit (`space.rs`);
//! 6. value tables with dead values, while they take nearly as much space as they may;
//! 7. if nothing is due: the remaining overflow runs, ranges in which scans met too many value tables
//!    (`values/mend.rs`), a tree that is too deep, extents full of deletes, small neighbours.
//!
//! The first step that finds extents which no running job holds makes the job. Every kind makes the shape
//! strictly better by its own measure, so repeated picking and running ends.
//!
//! No picker walks a whole level for a due job: it checks up to [`WINDOW`] extents after the level's cursor
//! for a free one. For a table without automatic compaction ([`Limits::automatic`]) none of this applies:
//! only requested jobs are picked ([`pick_range`]). `docs/design/0005-compaction.md` explains the choices.

mod build;
mod flush;
mod hot;
mod idle;
mod level;
mod manual;
mod read_heavy;
mod room;
mod runs;
mod space;
mod values;
mod wide;

use std::collections::BTreeMap;

use terrane_base::TableId;
use terrane_format::manifest::Place;

use crate::claims::Claims;
use crate::job::{JobKind, JobSpec};
use crate::limits::Limits;
use crate::score::{Targets, score_milli};
use crate::shape::{LevelView, TableShape};

use runs::THROUGH_FACTOR;

pub use flush::{FlushPlan, STEP_BYTES, plan_dump, plan_flush};
pub use hot::Heats;
pub use manual::{RangeRequest, RangeStep, pick_range};
pub use read_heavy::{Fewer, MemoryTier, pick_fewer_runs};
pub use room::is_scarce;
pub use runs::RUNS_MAX;
pub use space::{space_permille, whole_space_permille};
pub use values::{value_debt_permille, value_space_permille};

/// Extents that are tried as the start of a job before the level counts as busy.
pub const WINDOW: usize = 64;

/// For each level the position at which the next job starts its search, so that all of a level gets its turn.
/// Kept in memory only: a lost cursor only costs fairness.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursors {
    keys: BTreeMap<(TableId, u8), Vec<u8>>,
}

impl Cursors {
    /// Cursors at the front of every level.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the cursor after the extents of a claimed job. Returns the step, for undoing it; `None` for a
    /// job without a cursor.
    pub fn advance(&mut self, spec: &JobSpec) -> Option<Advance> {
        let input = spec.inputs.first()?;
        let last = input.extents.last()?;
        let number = match (spec.kind, input.place) {
            (JobKind::Runs, Place::Run(_)) => 0,
            (JobKind::Level | JobKind::Gather | JobKind::Deletes, Place::Level(number)) => number,
            _ => return None,
        };
        let (level, to) = ((spec.table, number), last.largest.clone());
        let from = self.keys.insert(level, to.clone());
        Some(Advance { level, from, to })
    }

    /// Moves a cursor back to its position before a job that did not finish, unless another job has moved it
    /// since.
    pub fn retreat(&mut self, advance: Advance) {
        let Advance { level, from, to } = advance;
        if self.keys.get(&level) != Some(&to) {
            return;
        }
        match from {
            Some(key) => self.keys.insert(level, key),
            None => self.keys.remove(&level),
        };
    }

    /// The cursors of some tables.
    #[must_use]
    pub fn of(&self, tables: impl IntoIterator<Item = TableId>) -> Cursors {
        let of_table = |table| self.keys.range((table, 0)..=(table, u8::MAX));
        let keys = tables.into_iter().flat_map(of_table).map(|(level, key)| (*level, key.clone()));
        let of_tables = Cursors { keys: keys.collect() };
        debug_assert!(of_tables.keys.len() <= self.keys.len(), "a part has cursors that the whole has not");
        of_tables
    }

    /// Removes a dropped table.
    pub fn forget(&mut self, table: TableId) {
        self.keys.retain(|(of, _), _| *of != table);
    }

    /// Index of the first extent after the cursor of a level; 0 after the last one.
    fn start(&self, shape: &TableShape<'_>, number: u8) -> usize {
        self.start_in(shape.table, number, shape.level(number))
    }

    /// As [`Self::start`], for any overflow run: all of them have one cursor, that of level 0.
    fn start_in_run(&self, table: TableId, run: &dyn LevelView) -> usize {
        self.start_in(table, 0, run)
    }

    fn start_in(&self, table: TableId, number: u8, level: &dyn LevelView) -> usize {
        let Some(key) = self.keys.get(&(table, number)) else { return 0 };
        let found = level.find(key);
        let is_done = found < level.len() && level.meta(found).largest == *key;
        debug_assert!(found <= level.len(), "a place in the level, or behind it");
        let start = found + usize::from(is_done);
        if start < level.len() { start } else { 0 }
    }
}

/// The step by which a job has moved a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advance {
    level: (TableId, u8),
    from: Option<Vec<u8>>,
    to: Vec<u8>,
}

/// State shared by the picking functions.
struct Picker<'a> {
    shape: &'a TableShape<'a>,
    limits: &'a Limits,
    claims: &'a Claims,
    cursors: &'a Cursors,
    targets: Targets,
    /// Bytes of each level without those that running jobs move away; the first is L1.
    level_bytes: Vec<u64>,
    /// True if only due jobs are picked, because writers write much.
    puts_off: bool,
    /// Entries that come from memory.
    arriving: u64,
}

/// The next job for a table, if there is one that can run beside the claimed ones.
///
/// After claiming [`JobSpec::claim`], call [`Cursors::advance`].
#[must_use]
pub fn pick(shape: &TableShape<'_>, limits: &Limits, claims: &Claims, cursors: &Cursors) -> Option<JobSpec> {
    if terrane_base::planted!(ImpurePicker) && terrane_base::planted::alternates() {
        return None;
    }
    if !limits.automatic {
        return None;
    }
    let picker = Picker::new(shape, limits, claims, cursors);
    picker.due_job().or_else(|| picker.idle_job())
}

/// As [`pick`], but only due jobs. While writers write much, optional work would have to be repeated with the
/// next generation.
#[must_use]
pub fn pick_due(
    shape: &TableShape<'_>,
    limits: &Limits,
    claims: &Claims,
    cursors: &Cursors,
) -> Option<JobSpec> {
    if !limits.automatic {
        return None;
    }
    let picker = Picker { puts_off: true, ..Picker::new(shape, limits, claims, cursors) };
    picker.due_job()
}

/// Returns true if range deletes cover so much data that they should move down early, whatever running jobs
/// hold. A pure function of levels, snapshots and limits, so a negative answer holds until one of these
/// changes.
#[must_use]
pub fn has_wide(shape: &TableShape<'_>, limits: &Limits) -> bool {
    limits.automatic && Picker::new(shape, limits, &Claims::new(), &Cursors::new()).has_wide()
}

/// The due levels and their urgency, in thousandths: 1000 is at the limit. The most urgent comes first.
#[must_use]
pub fn scores(shape: &TableShape<'_>, limits: &Limits) -> Vec<(u8, u64)> {
    let (claims, cursors) = (Claims::new(), Cursors::new());
    let picker = Picker::new(shape, limits, &claims, &cursors);
    let mut scores: Vec<(u8, u64)> = (0..=shape.levels.len() as u8)
        .map(|number| (number, picker.score(number)))
        .filter(|(_, score)| *score > 0)
        .collect();
    scores.sort_by_key(|(number, score)| (std::cmp::Reverse(*score), *number));
    scores
}

impl<'a> Picker<'a> {
    fn new(shape: &'a TableShape<'a>, limits: &'a Limits, claims: &'a Claims, cursors: &'a Cursors) -> Self {
        let sizes: Vec<u64> = shape.levels.iter().map(|level| level.totals().bytes).collect();
        let targets = Targets::new(&sizes, limits);
        let leaving = |index: usize| claims.leaving(shape.table, Place::Level(index as u8 + 1));
        let level_bytes =
            sizes.iter().enumerate().map(|(index, bytes)| bytes.saturating_sub(leaving(index))).collect();
        debug_assert!(shape.runs.is_sorted_by(|a, b| a.id > b.id), "the newest run is the first");
        Picker { shape, limits, claims, cursors, targets, level_bytes, puts_off: false, arriving: 0 }
    }

    /// How full a level is, in thousandths of its limit; level 0 means the overflow runs.
    fn score(&self, number: u8) -> u64 {
        match usize::from(number).checked_sub(1) {
            None => {
                let by_number =
                    self.shape.runs.len() as u64 * 1000 / self.limits.overflow_runs_trigger.max(1);
                by_number.max(self.hidden_score())
            }
            Some(index) => {
                let bytes = self.level_bytes.get(index).copied().unwrap_or(0);
                score_milli(bytes, self.targets.of(number))
            }
        }
    }

    /// Due levels, the most urgent first; 0 means the overflow runs.
    fn due(&self) -> Vec<u8> {
        debug_assert!(u8::try_from(self.shape.levels.len()).is_ok(), "a byte numbers the levels");
        let mut due: Vec<(u64, u8)> = Vec::new();
        for number in 0..=self.shape.levels.len() as u8 {
            let score = self.score(number);
            // A level may be exactly as large as its target; runs are due at the trigger.
            let is_due = match number {
                0 => score >= 1000,
                // The next merge of overflow runs will move it along.
                1 if self.puts_off && self.can_pass_through() => score > 1000 * THROUGH_FACTOR,
                _ => self.excess(number) > 0,
            };
            if is_due {
                due.push((score, number));
            }
        }
        due.sort_by_key(|(score, number)| (std::cmp::Reverse(*score), *number));
        due.into_iter().map(|(_, number)| number).collect()
    }

    /// Bytes of a level beyond its target.
    fn excess(&self, number: u8) -> u64 {
        let bytes = usize::from(number).checked_sub(1).and_then(|index| self.level_bytes.get(index));
        bytes.map_or(0, |bytes| bytes.saturating_sub(self.targets.of(number)))
    }

    /// The most urgent job that does not wait for idle time.
    fn due_job(&self) -> Option<JobSpec> {
        self.wide_job()
            .or_else(|| self.collect_job(true))
            .or_else(|| self.due().into_iter().find_map(|due| self.run(due)))
            .or_else(|| self.space_job())
            .or_else(|| self.collect_job(false))
    }

    fn run(&self, number: u8) -> Option<JobSpec> {
        if number == 0 { self.runs_job() } else { self.level_job(number) }
    }
}
