//! How far a shape is from its limits: level targets, scores, debt. It uses whole numbers only, so that every
//! machine decides alike.
//!
//! # Targets
//! The depth is the least number of levels that can hold all bytes below L0, if L1 holds `level_base_bytes`
//! and every other level `level_fanout` times the one above it. The factor between levels is then made as
//! small as that depth allows: it is the same for all of them, and the targets add up to the existing bytes.
//! So L1 always gets at least the whole base, the last level is as large as necessary, and there is never an
//! unnecessary level. A tree that shrank keeps its depth until it would fit with a quarter to spare, so that
//! a size near the border does not move data back and forth.

use crate::limits::{DEPTH_MAX, Limits};
use crate::shape::TableShape;

/// The largest size that each level should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Targets {
    /// Number of the level that should be the last; at least 1.
    pub depth: u8,
    /// How many times larger a level's target is than that of the level above, in thousandths.
    pub factor_milli: u64,
    /// Largest size of each level above the last, in bytes; the first is that of L1.
    bytes: Vec<u64>,
}

impl Targets {
    /// Targets for levels of these sizes, the first being L1.
    #[must_use]
    pub fn new(level_bytes: &[u64], limits: &Limits) -> Self {
        let total: u64 = level_bytes.iter().fold(0, |sum, bytes| sum.saturating_add(*bytes));
        let deepest = level_bytes.iter().rposition(|bytes| *bytes > 0).map_or(0, |index| index + 1);
        let depth =
            depth_for(total, limits).max(deepest.min(depth_for(total.saturating_add(total / 4), limits)));
        let factor_milli = factor_milli(total, depth, limits);
        let mut bytes = Vec::with_capacity(depth);
        let mut target = limits.level_base_bytes;
        for _ in 1..depth {
            bytes.push(target);
            target = scale(target, factor_milli);
        }
        debug_assert!((1..=DEPTH_MAX).contains(&depth), "a tree of {depth} levels");
        debug_assert!(bytes.len() + 1 == depth && bytes.is_sorted(), "a deeper level holds as much, or more");
        Targets { depth: depth as u8, factor_milli, bytes }
    }

    /// Largest size of level `number` in bytes; the last level has no limit.
    #[must_use]
    pub fn of(&self, number: u8) -> u64 {
        usize::from(number)
            .checked_sub(1)
            .and_then(|index| self.bytes.get(index))
            .copied()
            .unwrap_or(u64::MAX)
    }
}

/// Least number of levels for `total` bytes.
fn depth_for(total: u64, limits: &Limits) -> usize {
    let mut depth = 1;
    let mut level = limits.level_base_bytes;
    let mut holds = level;
    while holds < total && depth < DEPTH_MAX {
        level = level.saturating_mul(limits.level_fanout);
        holds = holds.saturating_add(level);
        depth += 1;
    }
    depth
}

/// The largest factor, in thousandths, at which `depth` levels together are not larger than `total`; at least
/// 1.
fn factor_milli(total: u64, depth: usize, limits: &Limits) -> u64 {
    let sum = |factor| {
        let levels =
            std::iter::successors(Some(limits.level_base_bytes), |bytes| Some(scale(*bytes, factor)));
        levels.take(depth).fold(0, u64::saturating_add)
    };
    let (mut low, mut high) = (1000, limits.level_fanout.saturating_mul(1000));
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if sum(middle) <= total {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    debug_assert!(low >= 1000, "a level is no smaller than the one above it");
    low
}

fn scale(bytes: u64, factor_milli: u64) -> u64 {
    u64::try_from(u128::from(bytes) * u128::from(factor_milli) / 1000).unwrap_or(u64::MAX)
}

/// How full a level is, in thousandths of its target.
pub(crate) fn score_milli(bytes: u64, target: u64) -> u64 {
    if target == u64::MAX {
        return 0;
    }
    u64::try_from(u128::from(bytes) * 1000 / u128::from(target.max(1))).unwrap_or(u64::MAX)
}

/// Bytes that compaction must still read until the shape is within its limits; 0 if it is.
///
/// Overflow runs count as a whole, with what they overlap in L1. The bytes of a level beyond its target count
/// with what they overlap in the level below, as if both were spread evenly, and are then added to that
/// level.
#[must_use]
pub fn debt_bytes(shape: &TableShape<'_>, limits: &Limits) -> u64 {
    let mut bytes: Vec<u64> = shape.levels.iter().map(|level| level.totals().bytes).collect();
    let run_bytes = shape.runs.iter().fold(0u64, |sum, run| sum.saturating_add(run.level.totals().bytes));
    if bytes.is_empty() {
        bytes.push(0);
    }
    let mut debt = if run_bytes > 0 { run_bytes.saturating_add(bytes[0]) } else { 0 };
    bytes[0] = bytes[0].saturating_add(run_bytes);
    let targets = Targets::new(&bytes, limits);
    for index in 0..bytes.len() {
        let excess = bytes[index].saturating_sub(targets.of(index as u8 + 1));
        let Some(below) = bytes.get_mut(index + 1).filter(|_| excess > 0) else { continue };
        // The overlapped share of the level below equals the moved share of this one.
        let (excess_wide, level_bytes) = (u128::from(excess), u128::from(*below));
        *below = below.saturating_add(excess);
        let met = level_bytes * excess_wide / u128::from(bytes[index]);
        debt = debt.saturating_add(excess).saturating_add(u64::try_from(met).unwrap_or(u64::MAX));
    }
    debt
}
