//! How dead values give their space back.
//!
//! Dead values of a value table are removed with it, once its live values have moved. To move them late is
//! cheap: more of them are dead by then. So values move only as far as the value tables would take more than
//! they may ([`Limits::value_space_permille`]), those of the value tables first that are worth it most
//! ([`worth`]).
//!
//! 1. *With other jobs*: a job that hides entries makes their values dead. It expects as many as it can hide,
//!    and moves as many live values as are needed for the value tables to take [`RIDE_PERCENT`] of the
//!    allowed excess once it is done, less a reserve ([`RESERVE_BYTES`]). It writes the pointers anyway. So
//!    collection is a part of the jobs that need it, and writers are slowed by the debt of these jobs, and by
//!    the bytes above the limit (`debt.rs`).
//! 2. *By a job of its own* ([`JobKind::Collect`]) from [`OWN_PERCENT`] of the allowed excess on: for
//!    value tables that no job meets, or of which each job meets a small part. Its inputs are the
//!    extents of one level that point into the value table with the most dead entries; their keys stay
//!    in that level. Above the limit it comes before every other job.
//!
//! A value that an entry of an overflow run hides counts as live until both meet in a merge. So the runs are
//! due, as few as they are, once they may hide values for [`HIDDEN_PERCENT`] of the allowed excess.
//!
//! A job moves values for at most the room that is left below the limit, and for at least
//! [`MOVED_BYTES_MIN`]. So the value tables take at most the limit, and for the time of a job that much more.
//!
//! Fewer than [`COLLECTED_BYTES_MIN`] are collected once more than a third of them is dead, and more than
//! [`SMALL_DEAD_BYTES`]: that costs little, and a small database stays small.
//!
//! DiffKV moves the live values of every value table that has 300 dead entries per thousand, as soon as a
//! compaction meets it; and a value table whose keys no compaction takes is never collected.
//!
//! [`Limits::value_space_permille`]: crate::Limits
//! [`JobKind::Collect`]: crate::JobKind

use std::cmp::Reverse;
use std::ops::Range;

use terrane_base::ValueTableId;
use terrane_format::extent::ExtentMeta;
use terrane_format::manifest::Place;

use super::{Met, MetTables};
use crate::job::{JobKind, JobSpec};
use crate::pick::build::{JobDraft, Slice};
use crate::pick::{Picker, STEP_BYTES};
use crate::shape::{LevelView, RunShape, TableShape};

const PERMILLE: u64 = 1000;
/// The share of the allowed excess that is left by jobs that move values as they pass.
const RIDE_PERCENT: u64 = 80;
/// The share of the allowed excess from which a job of its own collects.
const OWN_PERCENT: u64 = 90;
/// Room below these shares that jobs leave for what comes until the next one: a flush, and what that makes
/// dead beyond its plan.
const RESERVE_BYTES: u64 = 12 << 20;
/// The reserve is at most the allowed excess by this.
const RESERVE_SHARE: u64 = 16;
/// The share of the allowed excess that values may have which entries of overflow runs hide.
const HIDDEN_PERCENT: u64 = 25;
/// Fewer stored bytes of value tables have more room for dead values: [`small_limit`].
pub(super) const COLLECTED_BYTES_MIN: u64 = 8 << 20;
/// Dead values that a table with few bytes of value tables may always have.
const SMALL_DEAD_BYTES: u64 = 128 << 10;
/// A job may move so many stored bytes of values however little room is left.
pub(super) const MOVED_BYTES_MIN: u64 = STEP_BYTES;
/// A value table with fewer dead entries per thousand is not collected by jobs that meet it: the bytes that
/// move would be ten times the bytes that are given back.
const DEAD_PERMILLE_MIN: u64 = 100;
/// Value tables that a job of its own considers, those with the most dead entries first.
const VICTIMS_MAX: usize = 64;

/// Stored bytes of value tables per thousand bytes that their live entries need; 1000 for a table without
/// any.
#[must_use]
pub fn value_space_permille(shape: &TableShape<'_>) -> u64 {
    let (totals, live) = shape.values.sums();
    let live_bytes = part(totals.bytes, live, totals.entries.max(1));
    match (totals.bytes, live_bytes) {
        (0, _) => PERMILLE,
        (_, 0) => u64::MAX,
        (bytes, live) => part(bytes, PERMILLE, live),
    }
}

/// The limit with only so many percent of the excess that it allows.
pub(super) fn limit_at(limit_permille: u64, percent: u64) -> u64 {
    PERMILLE + limit_permille.saturating_sub(PERMILLE).saturating_mul(percent) / 100
}

/// Most stored bytes of value tables where jobs plan with `percent` of the excess that the limit allows, less
/// the reserve.
fn planned_bytes(live_bytes: u64, limit_permille: u64, percent: u64) -> u64 {
    let excess = part(live_bytes, limit_permille.saturating_sub(PERMILLE), PERMILLE);
    let reserve = RESERVE_BYTES.min(excess / RESERVE_SHARE);
    debug_assert!(percent * RESERVE_SHARE >= 100, "the reserve is a part of {percent} % of the excess");
    live_bytes.saturating_add(part(excess, percent, 100).saturating_sub(reserve))
}

/// Most stored bytes of value tables of which `live_bytes` are live, below [`COLLECTED_BYTES_MIN`].
fn small_limit(live_bytes: u64) -> u64 {
    live_bytes.saturating_add(live_bytes / 2).saturating_add(SMALL_DEAD_BYTES)
}

/// `bytes * of / whole`.
pub(super) fn part(bytes: u64, of: u64, whole: u64) -> u64 {
    debug_assert!(whole > 0, "a part of nothing");
    u64::try_from(u128::from(bytes) * u128::from(of) / u128::from(whole)).unwrap_or(u64::MAX)
}

/// Dead entries per thousand of a value table.
fn dead_permille(meta: &ExtentMeta, live_entries: u64) -> u64 {
    part(meta.entries.saturating_sub(live_entries), PERMILLE, meta.entries.max(1))
}

/// Value of collecting a value table with so many dead entries per thousand: the space that it gives back by
/// its cost, times the age. In a new one that dies fast more is dead soon; the live values of an old one will
/// live (Rosenblum and Ousterhout, "The Design and Implementation of a Log-Structured File System", SOSP
/// 1991).
fn worth(dead: u64, age: u64) -> u64 {
    let age = if terrane_base::planted!(CollectTooYoung) { 1 } else { age };
    dead.saturating_mul(age).saturating_mul(PERMILLE) / (2 * PERMILLE).saturating_sub(dead).max(1)
}

/// Entries of an extent that point into value tables.
pub(super) fn pointers_of(meta: &ExtentMeta) -> u64 {
    meta.references().iter().map(|reference| reference.entries).sum()
}

impl Met<'_> {
    /// Stored bytes of `entries` of its values.
    fn bytes_of(&self, entries: u64) -> u64 {
        part(u64::from(self.meta.bytes), entries.min(self.meta.entries), self.meta.entries.max(1))
    }
}

impl Picker<'_> {
    /// The value tables of those met that a job collects, by number. It may hide `dying` entries.
    pub(super) fn collected(&self, met: &MetTables<'_>, dying: u64) -> Vec<ValueTableId> {
        let newest = met.keys().next_back().map_or(0, |number| number.0);
        let mut victims: Vec<(u64, ValueTableId, Met<'_>)> =
            met.iter().map(|(number, met)| (dead_permille(met.meta, met.live), *number, *met)).collect();
        victims.sort_by_cached_key(|(dead, number, _)| (Reverse(worth(*dead, newest - number.0)), *number));
        let (mut needed, mut room) = (self.value_excess(dying), self.value_room().max(MOVED_BYTES_MIN));
        let dead_min = match self.has_few_values() {
            // Which value tables the dying entries point into is not known before; of few bytes all may move.
            true if dying > 0 => 0,
            true => 1,
            false => DEAD_PERMILLE_MIN,
        };
        let mut collected = Vec::new();
        for (dead, number, met) in victims {
            let is_garbage = dead > self.limits.value_garbage_permille;
            // Of the others, only what this job can free, or most of it: else both copies would stay.
            let is_useful = needed > 0 && dead >= dead_min && met.here >= met.live.div_ceil(2);
            let moved = met.bytes_of(met.here);
            if !(is_garbage || is_useful && moved <= room) {
                continue;
            }
            debug_assert!(met.here <= met.live, "{} of {} pointers into {number}", met.here, met.live);
            room = room.saturating_sub(moved);
            needed = needed.saturating_sub(met.bytes_of(met.meta.entries.saturating_sub(met.live)));
            collected.push(number);
        }
        collected.sort_unstable();
        debug_assert!(collected.is_sorted_by(|a, b| a < b), "a value table is collected once");
        collected
    }

    /// Stored bytes of value tables that jobs should free once `dying` more entries are dead.
    fn value_excess(&self, dying: u64) -> u64 {
        let (totals, live) = self.shape.values.sums();
        let limit = self.limits.value_space_permille;
        if limit == 0 {
            return 0;
        }
        let live_bytes = part(totals.bytes, live.saturating_sub(dying), totals.entries.max(1));
        totals.bytes.saturating_sub(match self.has_few_values() {
            true => small_limit(live_bytes),
            false => planned_bytes(live_bytes, limit, RIDE_PERCENT),
        })
    }

    /// Returns true if so few bytes of value tables are there that [`small_limit`] holds for them.
    pub(super) fn has_few_values(&self) -> bool {
        self.shape.values.sums().0.bytes < COLLECTED_BYTES_MIN
    }

    /// The values that overflow runs may hide, in thousandths of those that they may. Each of their pointers
    /// hides one deeper value at most.
    pub(in crate::pick) fn hidden_score(&self) -> u64 {
        let (totals, live) = self.shape.values.sums();
        let limit = self.limits.value_space_permille;
        let is_forgotten = terrane_base::planted!(RunsHideNothing);
        let is_off = limit == 0 || totals.bytes < COLLECTED_BYTES_MIN || is_forgotten;
        if is_off || self.shape.runs.is_empty() {
            return 0;
        }
        let pointers =
            |run: &RunShape<'_>| (0..run.level.len()).map(|index| pointers_of(run.level.meta(index))).sum();
        let pointing = self.shape.runs.iter().map(pointers).fold(0, u64::saturating_add);
        let below = live.saturating_sub(pointing);
        debug_assert!(pointing <= live, "{pointing} pointers of runs, of {live} in all");
        let may = part(below, limit_at(limit, HIDDEN_PERCENT) - PERMILLE, PERMILLE);
        part(pointing.min(below), PERMILLE, may.max(1))
    }

    /// Stored bytes that value tables may take more before they reach the limit.
    pub(super) fn value_room(&self) -> u64 {
        let (totals, live) = self.shape.values.sums();
        let live_bytes = part(totals.bytes, live, totals.entries.max(1));
        match self.limits.value_space_permille {
            0 => u64::MAX,
            limit => part(live_bytes, limit, PERMILLE).saturating_sub(totals.bytes),
        }
    }

    /// A job that collects, if the value tables take nearly too many bytes for their live values; with
    /// `is_late` only if they take too many.
    pub(in crate::pick) fn collect_job(&self, is_late: bool) -> Option<JobSpec> {
        let limit = self.limits.value_space_permille;
        let (totals, live) = self.shape.values.sums();
        let live_bytes = part(totals.bytes, live, totals.entries.max(1));
        let is_above = match self.has_few_values() {
            true => !is_late && self.value_excess(0) > 0,
            false if is_late => totals.bytes > part(live_bytes, limit, PERMILLE),
            false => totals.bytes > planned_bytes(live_bytes, limit, OWN_PERCENT),
        };
        if limit == 0 || !self.limits.value_collect_jobs || !is_above {
            return None;
        }
        self.victims().into_iter().find_map(|number| self.collect(number))
    }

    /// The value tables with the most dead entries, most first.
    fn victims(&self) -> Vec<ValueTableId> {
        let mut victims: Vec<(u64, ValueTableId)> = Vec::new();
        self.shape.values.each(&mut |meta, live| {
            let dead = dead_permille(meta, live);
            if let Some(section) = meta.value_table.filter(|_| dead > 0) {
                victims.push((dead, section.number));
            }
        });
        victims.sort_unstable_by_key(|(dead, number)| (Reverse(*dead), *number));
        victims.truncate(VICTIMS_MAX);
        debug_assert!(victims.iter().all(|(dead, _)| *dead <= PERMILLE), "a share of the entries");
        victims.into_iter().map(|(_, number)| number).collect()
    }

    /// The job over extents of one level that point into this value table, deepest level first.
    fn collect(&self, number: ValueTableId) -> Option<JobSpec> {
        let (values, _) = self.shape.values.values(number)?;
        let points = |meta: &ExtentMeta| meta.references().iter().any(|it| it.table == number);
        for target in (1..=self.shape.deepest()).rev() {
            let level = self.shape.level(target);
            let over = crate::shape::overlapping(level, &values.smallest, &values.largest);
            let Some(first) = over.clone().find(|index| points(level.meta(*index))) else { continue };
            let range = self.grow_collection(level, first, over.end, &points);
            debug_assert!(range.contains(&first), "the job would not have the extent that points there");
            let slices = vec![Slice { place: Place::Level(target), level, range }];
            let kind = JobKind::Collect;
            let draft = JobDraft { kind, slices, target, drops_deletes: false, rewrites: false };
            let job = self.build(draft).map(|mut spec| {
                let values = spec.values.iter_mut().find(|values| values.number() == number);
                values.expect("the extents point into it").is_rewritten = true;
                spec
            });
            if job.is_some() {
                return job;
            }
        }
        None
    }

    /// The neighbours that point into the same value table, as many as a job takes.
    fn grow_collection(
        &self,
        level: &dyn LevelView,
        first: usize,
        end: usize,
        points: &dyn Fn(&ExtentMeta) -> bool,
    ) -> Range<usize> {
        let mut last = first;
        let mut bytes = u64::from(level.meta(first).bytes);
        while last + 1 < end && points(level.meta(last + 1)) {
            bytes = bytes.saturating_add(u64::from(level.meta(last + 1).bytes));
            if bytes > self.limits.job_bytes_max {
                break;
            }
            last += 1;
        }
        debug_assert!(first <= last && last < end, "extents {first} to {last} of those before {end}");
        first..last + 1
    }
}
