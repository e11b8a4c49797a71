//! The limit of a table's space relative to its live data.
//!
//! A level has each key once. So at least the largest level is live, without its deletes and without as many
//! entries as the levels above it delete; everything else may be hidden. This estimate needs sums only, and
//! it never underestimates the hidden entries: keys that no other level has count as if one had. If the whole
//! is too large relative to that, everything moves towards the last level: overflow runs first, then the
//! largest level above the last. Each such job moves bytes down and never up, except if the tree is deeper
//! than necessary: then the last level moves up, as it would later anyway, and nothing moves down meanwhile.
//! In the end only deletes are left with nothing below them, which are dropped in place.

use super::Picker;
use crate::job::{JobKind, JobSpec};
use crate::shape::TableShape;

const PERMILLE: u64 = 1000;

/// Stored bytes of a table relative to a lower bound of the live ones, in thousandths; the greatest number if
/// nothing is live, 0 for a table without extents.
///
/// Versions that snapshots keep and expired entries count as live, and so does what range deletes hide.
#[must_use]
pub fn space_permille(shape: &TableShape<'_>) -> u64 {
    permille(stored_and_live(shape))
}

/// As [`space_permille`], value tables and their live values included.
#[must_use]
pub fn whole_space_permille(shape: &TableShape<'_>) -> u64 {
    let (stored, live) = stored_and_live(shape);
    let (values, live_entries) = shape.values.sums();
    let live_values = part(values.bytes, live_entries.min(values.entries), values.entries);
    permille((stored.saturating_add(values.bytes), live.saturating_add(live_values)))
}

/// Stored bytes of levels and runs, and the lower bound of the live ones.
fn stored_and_live(shape: &TableShape<'_>) -> (u64, u64) {
    let mut stored: u64 = shape.runs.iter().fold(0, |sum, run| sum.saturating_add(run.level.totals().bytes));
    let mut deletes_above: u64 =
        shape.runs.iter().fold(0, |sum, run| sum.saturating_add(run.level.totals().deletes));
    let mut live = 0;
    for level in &shape.levels {
        let totals = level.totals();
        let gone = totals.deletes.saturating_add(deletes_above);
        live = live.max(part(totals.bytes, totals.entries.saturating_sub(gone), totals.entries));
        stored = stored.saturating_add(totals.bytes);
        deletes_above = deletes_above.saturating_add(totals.deletes);
    }
    (stored, live)
}

fn permille((stored, live): (u64, u64)) -> u64 {
    match (stored, live) {
        (0, _) => 0,
        (_, 0) => u64::MAX,
        _ => part(stored, PERMILLE, live),
    }
}

/// `bytes * of / whole`; 0 if `whole` is 0.
fn part(bytes: u64, of: u64, whole: u64) -> u64 {
    let part = (u128::from(bytes) * u128::from(of)).checked_div(u128::from(whole)).unwrap_or(0);
    u64::try_from(part).unwrap_or(u64::MAX)
}

impl Picker<'_> {
    /// The job that brings the space of the table nearer to its limit.
    pub(super) fn space_job(&self) -> Option<JobSpec> {
        let percent_max = self.limits.space_percent_max;
        if percent_max == 0 || space_permille(self.shape) <= percent_max.saturating_mul(10) {
            return None;
        }
        let deepest = self.shape.deepest();
        if !self.shape.runs.is_empty() {
            return self.runs_job();
        }
        if deepest > self.targets.depth {
            return self.collapse_job();
        }
        // If a level has more deletes than that, at least one of its extents has as many.
        let permille = PERMILLE.saturating_sub(part(100, PERMILLE, percent_max)).max(1);
        let permille = permille.min(self.limits.deletes_permille);
        self.drain_job(deepest).or_else(|| self.deletes_job(deepest, permille))
    }

    /// Moves extents of the largest level above the last one level down.
    fn drain_job(&self, deepest: u8) -> Option<JobSpec> {
        let mut levels: Vec<u8> =
            (1..deepest).filter(|number| !self.shape.level(*number).is_empty()).collect();
        // If sizes are equal the deeper level first, because it is nearer to the end.
        levels.sort_by_key(|number| std::cmp::Reverse((self.shape.level(*number).totals().bytes, *number)));
        levels.into_iter().find_map(|number| {
            let start = self.next_free(number)?;
            let range = self.grow_down(number, start..start + 1, u64::MAX);
            debug_assert!(range.contains(&start), "the job would not have the extent that is free");
            self.move_down(JobKind::Level, number, range, false)
        })
    }
}
