//! Incremental replacement, before the read view that shows the result of a job: what the job wrote takes the
//! place of what was cached of its inputs ([`terrane_table::CacheTransfer`]).
//!
//! Its index blocks and filters are cached since it wrote them ([`terrane_table::FreshExtents`]). Those of a
//! worker on another machine are loaded, if there are readers.
//!
//! A job in parts ([`terrane_compaction`]) gives up most of its inputs at its end: until then readers find
//! the newest of them there. The cached blocks of these inputs go to all that the job wrote, earlier parts
//! included.

use std::collections::HashMap;
use std::sync::Arc;

use terrane_base::{ExtentId, Result};
use terrane_compaction::JobResult;
use terrane_levels::Metasnapshot;
use terrane_table::{CacheTransfer, Extent, ObjectKind};

use crate::background::compaction::install::find;
use crate::observe::stats::add;
use crate::read::successors::successors_of;
use crate::shared::Shared;
use crate::table::Table;

/// Handles of the extents that a job wrote.
pub(crate) type Fresh = HashMap<ExtentId, Arc<Extent>>;

impl Shared {
    /// Makes handles for the extents that a job wrote, those that were `kept` and others; they take over the
    /// cached blocks of its inputs. Reads the store, so no lock is held.
    pub(crate) fn prepare_extents(&self, table: &Table, result: &JobResult, kept: Vec<Arc<Extent>>) -> Fresh {
        let mut kept: Fresh = kept.into_iter().map(|extent| (extent.meta.id, extent)).collect();
        let mut from_elsewhere = Vec::new();
        let extents = result.written().map(|meta| {
            // A worker elsewhere may have written into slots that an attempt here had before.
            let own = kept.remove(&meta.id).filter(|own| own.meta == *meta);
            own.unwrap_or_else(|| {
                let extent = Extent::new(meta.clone(), self.store.clone());
                from_elsewhere.push(extent.clone());
                extent
            })
        });
        let extents: Vec<_> = extents.collect();
        debug_assert!(kept.is_empty(), "extents that the job wrote are not in its result: {kept:?}");
        // A block that cannot be read is reported to the reader that asks for it.
        if self.options.experiments.warm_outputs {
            let _ = self.warm_outputs(&from_elsewhere);
        }
        if self.options.experiments.incremental_replacement {
            let _ = self.replace_cached(&table.pinned().tree, result, &extents);
        }
        let count = extents.len();
        let fresh: Fresh = extents.into_iter().map(|extent| (extent.meta.id, extent)).collect();
        debug_assert_eq!(fresh.len(), count, "two extents of one result lie in one place");
        fresh
    }

    /// Index blocks and filters only: every read of an extent needs them, and the first reader would wait for
    /// both. Without any cached data block there are no readers, so a load gains nothing.
    fn warm_outputs(&self, extents: &[Arc<Extent>]) -> Result<()> {
        if self.cache.holds(ObjectKind::Data) == 0 {
            return Ok(());
        }
        extents.iter().try_for_each(|extent| extent.warm(&self.cache))
    }

    fn replace_cached(&self, tree: &Metasnapshot, result: &JobResult, extents: &[Arc<Extent>]) -> Result<()> {
        debug_assert_eq!(
            extents.len(),
            result.written().count(),
            "what a job wrote has handles, and nothing else"
        );
        let inputs: Vec<_> =
            result.freed().map(|removed| find(tree, result, removed.id)).collect::<Result<_>>()?;
        let mut transfer = CacheTransfer::of(inputs.iter(), &self.cache);
        // What was cached of the inputs are keys and pointers.
        let keyed = extents.iter().filter(|extent| extent.meta.value_table.is_none());
        for extent in successors_of(tree, result, &inputs).iter().chain(keyed) {
            let blocks = transfer.pass_on(extent, &self.cache)?;
            add(&self.counters.blocks_replaced, blocks);
        }
        Ok(())
    }
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
}
