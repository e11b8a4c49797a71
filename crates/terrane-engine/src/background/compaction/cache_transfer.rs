//! Incremental replacement, before the read view that shows the result of a job: what the job wrote takes the
//! place of what was cached of its inputs ([`terrane_table::CacheTransfer`]).
//!
//! Its index blocks and filters are cached since it wrote them ([`terrane_table::FreshExtents`]). Those of a
//! worker on another machine are loaded, if there are readers.
//!
//! A job in parts ([`terrane_compaction`]) gives up most of its inputs at its end: until then readers find
//! the newest of them there. The cached blocks of these inputs go to all that the job wrote, earlier parts
//! included.
//!
//! Behind that read view, the outputs take over the heat of the inputs, each its share: what was hot stays
//! hot under a new name.

use std::collections::{HashMap, HashSet};
use std::ops::Bound::Included;
use std::ops::Range;
use std::sync::Arc;

use terrane_base::{Collation, ExtentId, Result};
use terrane_compaction::JobResult;
use terrane_format::extent::ExtentMeta;
use terrane_levels::Metasnapshot;
use terrane_table::{CacheTransfer, Extent, ObjectKind};

use crate::background::compaction::install::{Install, find};
use crate::observe::stats::add;
use crate::read::sampling::moment;

/// Handles of the extents that a job wrote.
pub(crate) type Fresh = HashMap<ExtentId, Arc<Extent>>;

impl Install<'_> {
    /// Makes handles for the extents that a job wrote, those that were `kept` and others; they take over the
    /// cached blocks of its inputs. Reads the store, so no lock is held.
    pub(super) fn prepare_extents(self, kept: Vec<Arc<Extent>>) -> Fresh {
        let Self { engine, table, result } = self;
        let mut kept: Fresh = kept.into_iter().map(|extent| (extent.meta.id, extent)).collect();
        let mut from_elsewhere = Vec::new();
        let extents = result.written().map(|meta| {
            // A worker elsewhere may have written into slots that an attempt here had before.
            let own = kept.remove(&meta.id).filter(|own| own.meta == *meta);
            own.unwrap_or_else(|| {
                let extent = Extent::new(meta.clone(), engine.store.clone());
                from_elsewhere.push(extent.clone());
                extent
            })
        });
        let extents: Vec<_> = extents.collect();
        debug_assert!(kept.is_empty(), "extents that the job wrote are not in its result: {kept:?}");
        // A block that cannot be read is reported to the reader that asks for it.
        if engine.options.experiments.warm_outputs {
            let _ = self.warm_outputs(&from_elsewhere);
        }
        if engine.options.experiments.incremental_replacement {
            let _ = self.replace_cached(&table.pinned().tree, &extents);
        }
        let count = extents.len();
        let fresh: Fresh = extents.into_iter().map(|extent| (extent.meta.id, extent)).collect();
        debug_assert_eq!(fresh.len(), count, "two extents of one result lie in one place");
        fresh
    }

    /// Index blocks and filters only: every read of an extent needs them, and the first reader would wait for
    /// both. Without any cached data block there are no readers, so a load gains nothing.
    fn warm_outputs(self, extents: &[Arc<Extent>]) -> Result<()> {
        let cache = &self.engine.cache;
        if cache.holds(ObjectKind::Data) == 0 {
            return Ok(());
        }
        extents.iter().try_for_each(|extent| extent.warm(cache))
    }

    fn replace_cached(self, tree: &Metasnapshot, extents: &[Arc<Extent>]) -> Result<()> {
        let Self { engine, result, .. } = self;
        debug_assert_eq!(
            extents.len(),
            result.written().count(),
            "what a job wrote has handles, and nothing else"
        );
        let inputs: Vec<_> =
            result.freed().map(|removed| find(tree, result, removed.id)).collect::<Result<_>>()?;
        let mut transfer = CacheTransfer::of(inputs.iter(), &engine.cache);
        // What was cached of the inputs are keys and pointers.
        let keyed = extents.iter().filter(|extent| extent.meta.value_table.is_none());
        for extent in successors_of(tree, result, &inputs).iter().chain(keyed) {
            let blocks = transfer.pass_on(extent, &engine.cache)?;
            add(&engine.counters.blocks_replaced, blocks);
        }
        Ok(())
    }

    /// Hands the heat of extents that a job replaced to those that it wrote, which are in the tree now.
    pub(super) fn pass_heat_on(self, replaced: &[Arc<Extent>]) {
        let Self { engine, table, result } = self;
        if !engine.options.experiments.hot_cold || replaced.is_empty() || terrane_base::planted!(ForgetHeat) {
            return;
        }
        let moment = moment(engine.env.clock.now());
        let keyed = replaced.iter().filter(|extent| extent.meta.value_table.is_none());
        let inputs: Vec<_> = keyed.map(|extent| (&extent.meta, extent.heat.at(moment))).collect();
        let heirs = successors_of(&table.pinned().tree, result, replaced);
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

/// The extents that the target of a job holds of the keys of `inputs`, which go with its `result`, in key
/// order: those that the job wrote, earlier parts included, as far as `tree` has them. Whatever else was
/// there the job has replaced.
fn successors_of(tree: &Metasnapshot, result: &JobResult, inputs: &[Arc<Extent>]) -> Vec<Arc<Extent>> {
    let Some(target) = tree.level(result.target) else { return Vec::new() };
    let leaves: HashSet<ExtentId> = result.removed.iter().map(|removed| removed.id).collect();
    let overlapping = |input: &Arc<Extent>| {
        let (smallest, largest) = (Included(&*input.meta.smallest), Included(&*input.meta.largest));
        target.range(target.overlapping(smallest, largest))
    };
    let mut successors: Vec<_> = inputs.iter().flat_map(overlapping).cloned().collect();
    let mut seen = HashSet::new();
    successors.retain(|extent| !leaves.contains(&extent.meta.id) && seen.insert(extent.meta.id));
    let collation = successors.first().map_or(Collation::BYTES, |extent| extent.meta.collation.clone());
    collation.sort_by_key(&mut successors, |extent| &extent.meta.smallest);
    successors
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
    use std::path::Path;

    use terrane_base::{SeqNo, TableId};
    use terrane_compaction::{Removed, Work};
    use terrane_device::{Disk, MemDisk};
    use terrane_format::extent::ExtentMeta;
    use terrane_format::manifest::Place;
    use terrane_levels::Change;
    use terrane_storage::{LocalStore, Store, StoreSettings};

    use super::*;

    fn extent(store: &Arc<dyn Store>, slot: u32, first: &str, last: &str) -> Arc<Extent> {
        let meta = ExtentMeta {
            id: ExtentId { file: 1, slot },
            bytes: 1,
            raw_bytes: 1,
            smallest: first.into(),
            largest: last.into(),
            seq_min: SeqNo(1),
            seq_max: SeqNo(1),
            entries: 1,
            blocks: 1,
            ..ExtentMeta::default()
        };
        Extent::new(meta, store.clone())
    }

    #[test]
    fn earlier_parts_of_a_job_are_heirs_of_what_goes_at_its_end() {
        let disk = Arc::new(MemDisk::new());
        disk.create_dir(Path::new("data")).expect("a directory");
        let store = LocalStore::open(disk, Path::new("data"), StoreSettings::default()).expect("a store");
        let store: Arc<dyn Store> = Arc::new(store);
        let of = |slot, first, last| extent(&store, slot, first, last);
        let [run, part, other, last, far] =
            [of(1, "b", "p"), of(2, "a", "e"), of(3, "f", "h"), of(4, "i", "q"), of(5, "r", "z")];
        let add = |place, extent: &Arc<Extent>| Change::Add { place, extent: extent.clone() };
        let level = Place::Level(2);
        let mut changes = vec![add(Place::Run(1), &run)];
        changes.extend([&part, &other, &last, &far].map(|extent| add(level, extent)));
        let tree = Metasnapshot::new().apply(changes).expect("a tree");
        let gone = |place, extent: &Extent| Removed {
            place,
            id: extent.meta.id,
            smallest: extent.meta.smallest.clone(),
        };
        let result = JobResult {
            values: Vec::new(),
            table: TableId(1),
            target: level,
            removed: vec![gone(Place::Run(1), &run), gone(level, &last)],
            added: Vec::new(),
            relinked: Vec::new(),
            work: Work::default(),
            next: None,
        };
        let found = successors_of(&tree, &result, &[run, last]);
        let found: Vec<u32> = found.iter().map(|extent| extent.meta.id.slot).collect();
        assert_eq!(found, [2, 3], "in key order, without what goes itself and what holds other keys");
    }

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
