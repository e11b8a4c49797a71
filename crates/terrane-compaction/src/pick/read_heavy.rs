//! Fewer sorted runs for a table that is mostly read: memory is flushed into the levels, then each level is
//! merged into the next non-empty one, as long as it pays.
//!
//! Overflow runs are not handled here: they are merged whenever nothing is due. From the top down, because an
//! upper level is smaller: it costs least, and saves every read a run. Moving a level into an empty one gains
//! nothing, so the price is that of merging with the next non-empty level.

use terrane_base::options::AdaptiveShape;
use terrane_storage::SLOT_BYTES;

use super::{Cursors, Picker};
use crate::adapt::{Load, Mode};
use crate::claims::Claims;
use crate::job::{JobKind, JobSpec};
use crate::limits::Limits;
use crate::shape::{TableShape, bytes_of, overlapping};

/// Input of one job. Small, so that it ends soon when writers come, and the next one is paced.
const JOB_BYTES_MAX: u64 = 16 * SLOT_BYTES as u64;

/// The part of a table that is only in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryTier {
    /// Sorted runs that are not empty.
    pub runs: u64,
    /// Bytes of their records.
    pub bytes: u64,
    /// Bytes that are written before the tier is flushed anyway.
    pub flush_bytes: u64,
}

/// A step towards fewer sorted runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fewer {
    /// Flush the memory.
    Flush,
    /// Run this job.
    Merge(Box<JobSpec>),
}

/// The next step towards fewer sorted runs, if one pays and can run beside the claimed jobs.
#[must_use]
pub fn pick_fewer_runs(
    shape: &TableShape<'_>,
    memory: MemoryTier,
    limits: &Limits,
    claims: &Claims,
    load: &Load,
    policy: AdaptiveShape,
) -> Option<Fewer> {
    // A run less in memory is one more on disk, where nothing merges them.
    if load.mode == Mode::WriteFriendly || !limits.automatic {
        return None;
    }
    let levels: Vec<u8> = (1..=shape.deepest()).filter(|number| !shape.level(*number).is_empty()).collect();
    // Reads search the active memtable, and count it, even if it is empty.
    let runs = memory.runs.max(1) + shape.runs.len() as u64 + levels.len() as u64;
    let level_1 = shape.level(1).totals().bytes;
    // While writers write there is always a run in memory.
    let flushes = memory.bytes > 0 && load.recent.records == 0;
    if flushes && load.pays(policy, memory.bytes.saturating_add(level_1), runs, memory.flush_bytes) {
        return Some(Fewer::Flush);
    }
    let limits = Limits { job_bytes_max: limits.job_bytes_max.min(JOB_BYTES_MAX), ..limits.clone() };
    let cursors = Cursors::new();
    let picker = Picker::new(shape, &limits, claims, &cursors);
    let pairs = levels.iter().zip(levels.iter().skip(1));
    let mut paying = pairs.filter(|(upper, lower)| {
        load.pays(policy, picker.merge_bytes(**upper, **lower), runs, memory.flush_bytes)
    });
    let job = paying.find_map(|(upper, _)| picker.push_down(*upper))?;
    Some(Fewer::Merge(Box::new(job)))
}

impl Picker<'_> {
    /// Bytes of a whole level and of the extents that it overlaps in another.
    fn merge_bytes(&self, upper: u8, lower: u8) -> u64 {
        debug_assert!(upper < lower, "level {upper} lies above level {lower}");
        let (upper, lower) = (self.shape.level(upper), self.shape.level(lower));
        let Some(last) = upper.len().checked_sub(1) else { return 0 };
        let met = overlapping(lower, &upper.meta(0).smallest, &upper.meta(last).largest);
        upper.totals().bytes.saturating_add(bytes_of(lower, met))
    }

    /// Moves as much of a level one level down as one job may.
    fn push_down(&self, number: u8) -> Option<JobSpec> {
        let level = self.shape.level(number);
        let start =
            (0..level.len().min(super::WINDOW)).find(|start| self.can_move(number, *start..start + 1))?;
        let range = self.grow_down(number, start..start + 1, level.totals().bytes);
        debug_assert!(range.contains(&start), "the job would not have the extent that is free");
        self.move_down(JobKind::Adapt, number, range, false)
    }
}
