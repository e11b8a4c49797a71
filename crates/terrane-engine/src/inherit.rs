//! Incremental replacement, before the picture that shows the result of a job: what the job wrote takes
//! the place of what was cached of its inputs ([`terrane_table::Inheritance`]), or at least its index blocks and filters
//! are loaded.

use std::collections::HashMap;
use std::sync::Arc;

use terrane_base::{ExtentId, Result};
use terrane_compaction::JobResult;
use terrane_levels::Metasnapshot;
use terrane_table::{Extent, Inheritance, ObjectKind};

use crate::engine::Engine;
use crate::install::find;
use crate::stats::add;
use crate::table::Table;

/// Handles of the extents that a job wrote.
pub(crate) type Fresh = HashMap<ExtentId, Arc<Extent>>;

impl Engine {
    /// Makes handles for what a job wrote, and lets them take over what is cached of its inputs. Reads the store, so no
    /// lock is held.
    pub(crate) fn prepare_extents(&self, table: &Table, result: &JobResult) -> Fresh {
        let extents = result.written().map(|meta| Extent::new(meta.clone(), self.store.clone()));
        let extents: Vec<_> = extents.collect();
        if self.options.incremental_replacement {
            // A block that cannot be read is reported to whoever asks for it.
            let _ = self.replace_cached(&table.pinned().tree, result, &extents);
        } else if self.options.warm_outputs {
            let _ = self.warm_outputs(&extents);
        }
        extents.into_iter().map(|extent| (extent.meta.id, extent)).collect()
    }

    /// Index blocks and filters only: every read of an extent needs them, and who comes first would wait for both.
    /// Without a cached index block nobody reads: a load pays nothing.
    fn warm_outputs(&self, extents: &[Arc<Extent>]) -> Result<()> {
        if self.cache.holds(ObjectKind::Index) == 0 {
            return Ok(());
        }
        extents.iter().try_for_each(|extent| extent.warm(&self.cache))
    }

    fn replace_cached(&self, tree: &Metasnapshot, result: &JobResult, extents: &[Arc<Extent>]) -> Result<()> {
        let inputs: Vec<_> =
            result.freed().map(|removed| find(tree, result, removed.id)).collect::<Result<_>>()?;
        let mut inheritance = Inheritance::of(inputs.iter(), &self.cache);
        for extent in extents {
            let blocks = inheritance.pass_on(extent, &self.cache)?;
            add(&self.counters.blocks_replaced, blocks);
        }
        Ok(())
    }
}
