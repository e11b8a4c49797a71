//! Looking closely at some reads: how many sorted runs they search, and which extents they end in.
//!
//! One in [`sampling::EVERY`] reads of a thread is looked at; the others write nothing that another thread
//! sees. The counters of its thread say what a sampled read did, so its way is the same as that of
//! every other read. The samples of a table ([`TableLoad`]) say what its tree should be good for
//! (`background/compaction/read_heavy.rs`), those of an extent whether it should stay in an upper level.
//!
//! A job's outputs take over the heat of its inputs, each its share: what was hot stays hot under a new name.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use terrane_base::sync::atomic::Ordering;

use terrane_base::counters::count;
use terrane_base::options::AdaptiveShape;
use terrane_base::{Result, sampling};
use terrane_compaction::{Heats, JobResult, Limits, Targets};
use terrane_format::extent::ExtentMeta;
use terrane_format::filter::hash as key_hash;
use terrane_levels::{Level, Metasnapshot};
use terrane_table::Extent;

use crate::read::get::ReadMode;
use crate::read::successors::successors_of;
use crate::shared::Shared;
use crate::table::Table;
use crate::table::read_view::ReadView;

/// Time after which a sample counts half.
const HALF_LIFE: Duration = Duration::from_secs(8);
/// A level with more extents is not looked at: the list of their heats is made again for each job.
const LISTED_MAX: usize = 4096;

/// Counts of the calling thread's reads up to now.
#[derive(Clone, Copy)]
struct Done {
    reads: u64,
    runs: u64,
    /// Extents whose blocks were searched.
    extents: u64,
}

impl Done {
    fn so_far() -> Done {
        count(|cells| Done {
            reads: cells.reads.get(),
            runs: cells.runs_searched.get(),
            extents: cells.index_blocks_searched.get(),
        })
    }

    fn since(self, earlier: Done) -> Done {
        debug_assert!(
            self.reads >= earlier.reads && self.runs >= earlier.runs && self.extents >= earlier.extents,
            "the counters of a thread only grow"
        );
        Done {
            reads: self.reads.wrapping_sub(earlier.reads),
            runs: self.runs.wrapping_sub(earlier.runs),
            extents: self.extents.wrapping_sub(earlier.extents),
        }
    }
}

impl Shared {
    /// Returns true if the read that begins now is to be looked at.
    #[inline]
    pub(crate) fn samples_now(&self) -> bool {
        // In this order a read that is not due, as most are not, looks at nothing but the thread's cells.
        sampling::is_due() && self.samples()
    }

    /// Returns true if anybody wants to know.
    pub(crate) fn samples(&self) -> bool {
        let options = &self.options;
        !options.read_only && (options.experiments.hot_cold || options.adaptive_shape != AdaptiveShape::Off)
    }

    /// A read of `keys` that is looked at.
    #[cold]
    pub(crate) fn sampled<T>(
        &self,
        table: &Table,
        keys: &[&[u8]],
        mode: ReadMode,
        read: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let before = Done::so_far();
        let answer = read();
        let done = Done::so_far().since(before);
        debug_assert!(
            answer.is_err() || keys.is_empty() || done.reads > 0,
            "a read that ends well is counted"
        );
        table.load.add_reads(done.reads, done.runs);
        self.catalog.sums().count_reads(done.reads);
        table.note_used();
        // Which of several keys searched which extents is not known; one is as good a sample as many.
        if let ([key], true) = (keys, self.options.experiments.hot_cold && done.extents > 0) {
            let epoch = terrane_table::enter();
            self.warm(&table.view(epoch.guard()).tree, key, mode, done.extents);
        }
        answer
    }

    /// Counts the placing of a scan over `view`, if it is one of those that are looked at.
    pub(crate) fn sample_scan(&self, table: &Table, view: &ReadView, memory_runs: u32) {
        if !self.samples_now() {
            return;
        }
        let levels = view.tree.places().filter(|(_, level)| !level.is_empty()).count();
        let runs = u64::from(memory_runs) + levels as u64;
        table.load.seeks.fetch_add(sampling::EVERY, Ordering::Relaxed);
        table.load.seek_runs.fetch_add(runs * sampling::EVERY, Ordering::Relaxed);
        self.catalog.sums().count_seek();
        table.note_used();
    }

    /// Adds a sample to the first `searched` extents that a read of `key` has to search.
    fn warm(&self, tree: &Metasnapshot, key: &[u8], mode: ReadMode, searched: u64) {
        debug_assert!(searched > 0, "a read that searched no extent makes none warm");
        let hash = mode.filters.then(|| key_hash(key));
        let extents = tree.places().filter_map(|(_, level)| level.covering(key));
        let moment = self.moment();
        for extent in extents.filter(|extent| extent.may_hold(hash)).take(searched as usize) {
            extent.heat.add(1, moment);
        }
    }

    /// Half-lives since the clock's beginning.
    pub(crate) fn moment(&self) -> u32 {
        (self.env.clock.now().as_millis() / HALF_LIFE.as_millis()) as u32
    }

    /// How often the extents of each level are read now, for the picker; nothing where reads are not counted,
    /// or where the level is not too large.
    pub(crate) fn heats(&self, tree: &Metasnapshot, limits: &Limits) -> Vec<Heats> {
        if !self.options.experiments.hot_cold {
            return Vec::new();
        }
        let sizes: Vec<u64> = tree.levels.iter().map(|level| level.totals().bytes).collect();
        let targets = Targets::new(&sizes, limits);
        let moment = self.moment();
        let of = |number: u8, level: &Level| {
            if level.len() > LISTED_MAX || level.totals().bytes <= targets.of(number) {
                return Heats::default();
            }
            Heats::new(level.iter().map(|extent| extent.heat.at(moment)).collect())
        };
        (1..).zip(&tree.levels).map(|(number, level)| of(number, level)).collect()
    }

    /// Hands the heat of extents that a job replaced to those that it wrote, which are in `tree` now.
    pub(crate) fn pass_heat_on(&self, tree: &Metasnapshot, result: &JobResult, replaced: &[Arc<Extent>]) {
        if !self.options.experiments.hot_cold || replaced.is_empty() || terrane_base::planted!(ForgetHeat) {
            return;
        }
        let moment = self.moment();
        let keyed = replaced.iter().filter(|extent| extent.meta.value_table.is_none());
        let inputs: Vec<_> = keyed.map(|extent| (&extent.meta, extent.heat.at(moment))).collect();
        let heirs = successors_of(tree, result, replaced);
        let outputs: Vec<&ExtentMeta> = heirs.iter().map(|extent| &extent.meta).collect();
        let shares = shares(&inputs, &outputs);
        debug_assert!(
            shares.iter().map(|share| u64::from(*share)).sum::<u64>()
                <= inputs.iter().map(|(_, heat)| u64::from(*heat)).sum(),
            "outputs take over heat of the inputs and get no other"
        );
        for (extent, share) in heirs.iter().zip(shares) {
            extent.heat.add(share, moment);
        }
    }
}

/// The heat of each of `outputs`, which are in key order: the heat of an input is divided among those whose
/// keys it overlaps, by their bytes.
fn shares(inputs: &[(&ExtentMeta, u32)], outputs: &[&ExtentMeta]) -> Vec<u32> {
    let mut shares = vec![0u32; outputs.len()];
    for (input, heat) in inputs {
        let over = overlapping(outputs, input);
        let bytes: u64 = outputs[over.clone()].iter().map(|meta| u64::from(meta.bytes)).sum();
        for index in over {
            let share = u64::from(*heat) * u64::from(outputs[index].bytes) / bytes.max(1);
            shares[index] = shares[index].saturating_add(share as u32);
        }
    }
    shares
}

fn overlapping(outputs: &[&ExtentMeta], input: &ExtentMeta) -> Range<usize> {
    let start = outputs.partition_point(|meta| meta.collation.lt(&meta.largest, &input.smallest));
    let end = outputs.partition_point(|meta| meta.collation.le(&meta.smallest, &input.largest));
    start..end.max(start)
}

#[cfg(test)]
mod tests {

    use terrane_base::{ExtentId, SeqNo};

    use super::*;

    fn meta(first: &str, last: &str, bytes: u32) -> ExtentMeta {
        ExtentMeta {
            id: ExtentId { file: 1, slot: 0 },
            bytes,
            raw_bytes: bytes.into(),
            smallest: first.into(),
            largest: last.into(),
            seq_min: SeqNo(1),
            seq_max: SeqNo(1),
            entries: 1,
            blocks: 1,
            ..ExtentMeta::default()
        }
    }

    #[test]
    fn outputs_share_the_heat_of_what_they_overlap_by_bytes() {
        let inputs = [meta("a", "f", 1), meta("g", "k", 1), meta("b", "c", 1), meta("x", "z", 1)];
        let heats = [90, 7, 4, 50];
        let inputs: Vec<_> = inputs.iter().zip(heats).collect();
        let outputs = [meta("a", "c", 100), meta("d", "g", 200), meta("h", "l", 50)];
        let outputs: Vec<_> = outputs.iter().collect();
        // a..f: 30 and 60; g..k: 5 and 1, of 250 bytes; b..c: all; x..z: everything of it was dropped.
        assert_eq!(shares(&inputs, &outputs), [34, 65, 1]);
        assert_eq!(shares(&inputs, &[]), [0u32; 0]);
    }
}
