//! Committing what a job produced: extents durable → their place in the cache → one manifest edit → the next
//! read view → inputs obsolete.
//!
//! The order is the invariant: an edit never names an extent that could be lost, and an input's slots go back
//! to the store only after the edit that removes it is durable and its last reader has left.

use std::sync::Arc;

use terrane_base::{Error, ExtentId, Kind, Result, verify};
use terrane_compaction::JobResult;
use terrane_format::manifest::{EditOp, Place};
use terrane_levels::{Change, Metasnapshot};
use terrane_table::Extent;

use crate::background::compaction::cache_transfer::Fresh;
use crate::background::job_log;
use crate::background::maintenance::Maintenance;
use crate::table::Table;
use crate::table::ledger::Leaves;
use crate::table::stopped::Left;

/// Trees with more extents are not walked at each installation.
const CHECKED_EXTENTS: u64 = 1024;

/// The installation of what a job produced, as part of its table.
#[derive(Clone, Copy)]
pub(crate) struct Install<'e> {
    pub(crate) engine: &'e Maintenance,
    pub(crate) table: &'e Table,
    pub(crate) result: &'e JobResult,
}

impl Install<'_> {
    /// Makes a job's result part of the table: `more` goes into the same edit; `kept` are the handles of what
    /// the job wrote here. Of memory nothing leaves.
    ///
    /// # Errors
    /// As [`Install::run_and_leave`].
    pub(crate) fn run(self, kept: Vec<Arc<Extent>>, more: Vec<EditOp>) -> Result<()> {
        self.run_and_leave(kept, more, &Leaves::Nothing)
    }

    /// As [`Install::run`]; what `leaves` memory goes from the same read view.
    ///
    /// # Errors
    /// `Cancelled` if the table was dropped meanwhile, `Poisoned` if background work on it has stopped; those
    /// of the manifest. What the job wrote goes back to the store then, unless the manifest is poisoned: it
    /// may name the extents. `Poisoned` if the manifest has the result and the read view cannot have it: that
    /// stops background work on the table.
    pub(crate) fn run_and_leave(
        self,
        kept: Vec<Arc<Extent>>,
        more: Vec<EditOp>,
        leaves: &Leaves<'_>,
    ) -> Result<()> {
        let Self { engine, table, result } = self;
        assert!(result.table == table.id, "the result of table {} is for {}", table.id, result.table);
        verify!(result.check());
        let mut ops = result.edit_ops();
        ops.extend(more);
        let fresh = self.prepare_extents(kept);
        // A drop waits until edit and read view agree again, or the edit finds the table dropped.
        let installing = table.installing.lock();
        let refused = if table.is_dropped() {
            Err(Error::new(Kind::Cancelled, format!("table {:?} was dropped", table.name)))
        } else {
            // What was merged by a comparator that failed may be out of order.
            table.refuse_if_stopped().and_then(|()| table.semantics.collation().check())
        };
        refused.inspect_err(|_| self.give_back())?;
        let appended = if ops.is_empty() || terrane_base::planted!(InstallWithoutEdit) {
            Ok(())
        } else {
            engine.append_edit(ops)
        };
        if let Err(error) = appended {
            if error.kind() != Kind::Poisoned {
                self.give_back();
            }
            return Err(error);
        }
        // The manifest has it: were it tried again, it would be there twice.
        let swapped = self.swap_tree(&fresh, leaves);
        let replaced = swapped.map_err(|error| table.stop(error.message(), Left::Edit))?;
        self.pass_heat_on(&replaced);
        for extent in replaced {
            extent.mark_obsolete();
        }
        drop(installing);
        job_log::installed(result);
        engine.refresh_debt();
        engine.memory.return_freed(&engine.options);
        Ok(())
    }

    /// Gives the extents that a job wrote back to the store.
    pub(crate) fn give_back(self) {
        debug_assert!(self.result.table == self.table.id, "the extents of another table go back");
        for meta in self.result.written() {
            // Slots that cannot be given back now are free after the next open: no edit names them.
            let _ = self.engine.store.free(meta.id, meta.slots);
        }
    }

    /// Puts the changed tree into the table's read view. Returns the extents that left it, value tables
    /// included.
    fn swap_tree(self, fresh: &Fresh, leaves: &Leaves<'_>) -> Result<Vec<Arc<Extent>>> {
        let Self { table, result, .. } = self;
        let mut edit = table.edit();
        let mut view = edit.view();
        let mut freed: Vec<Arc<Extent>> =
            result.freed().map(|removed| find(&view.tree, result, removed.id)).collect::<Result<_>>()?;
        let (tree, emptied) = view.tree.apply_listing(changes(&view.tree, result, fresh)?)?;
        view.tree = Arc::new(tree);
        debug_assert!(freed.len() == result.freed().count(), "each extent that goes is freed once");
        freed.extend(emptied);
        if let Leaves::Flushed(generation) = leaves {
            view.generations.retain(|kept| !std::ptr::eq(&**kept, *generation));
        }
        // A caller's comparator may break its promise; a walk over many extents for each job would take long.
        let is_checked =
            table.semantics.collation().is_bytes() && view.tree.totals().extents <= CHECKED_EXTENTS;
        verify!(!is_checked || view.tree.check().is_ok(), "extents of the new tree overlap");
        edit.replace_behind_edit(view, leaves)?;
        Ok(freed)
    }
}

/// Returns a result as changes of the tree. Re-linked extents keep their handle, and with it their cached
/// blocks; extents that the job wrote have their handle in `fresh`.
fn changes(tree: &Metasnapshot, result: &JobResult, fresh: &Fresh) -> Result<Vec<Change>> {
    let values = result.values.iter().map(|meta| {
        let extent = fresh.get(&meta.id).cloned();
        let extent =
            extent.ok_or_else(|| Error::invalid(format!("value table {} has no handle", meta.id)))?;
        Ok(Change::Add { place: Place::Values, extent })
    });
    let removed = result.removed.iter().map(|removed| {
        Ok(Change::Remove { place: removed.place, id: removed.id, smallest: removed.smallest.clone() })
    });
    let added = result.added.iter().map(|meta| {
        let extent = match fresh.get(&meta.id) {
            Some(extent) => extent.clone(),
            None => find(tree, result, meta.id)?,
        };
        Ok(Change::Add { place: result.target, extent })
    });
    values.chain(removed).chain(added).collect()
}

/// The handle of an extent that a result removes from its place.
pub(crate) fn find(tree: &Metasnapshot, result: &JobResult, id: ExtentId) -> Result<Arc<Extent>> {
    let removed = result.removed.iter().find(|removed| removed.id == id);
    let found = removed.and_then(|removed| tree.level(removed.place)?.covering(&removed.smallest).cloned());
    found.filter(|extent| extent.meta.id == id).ok_or_else(|| {
        Error::invalid(format!("a job's result names extent {id}, which is not where it should be"))
    })
}
