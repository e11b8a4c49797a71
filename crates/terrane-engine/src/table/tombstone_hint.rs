//! Remembers that a tree has no wide range tombstone until the tree, its settings or the snapshots change.

use std::sync::{Arc, Weak};

use terrane_base::SeqNo;
use terrane_compaction::{TableShape, has_wide};
use terrane_levels::Metasnapshot;

use crate::table::settings::TableSettings;

/// The tree, settings and snapshots with which a search found no such range delete.
#[derive(Debug, Default)]
pub(crate) struct TombstoneHint {
    tree: Weak<Metasnapshot>,
    settings: Weak<TableSettings>,
    /// The snapshots below `upto`; those that came later see all of the tree.
    snapshots: Vec<SeqNo>,
    upto: SeqNo,
}

impl TombstoneHint {
    /// Returns true if `shape`, which is that of `tree`, may have range deletes over much data. Requires: the
    /// last snapshot of the shape is the visible number.
    pub(crate) fn may_be_wide(
        &mut self,
        shape: &TableShape<'_>,
        tree: &Arc<Metasnapshot>,
        settings: &Arc<TableSettings>,
    ) -> bool {
        let are_in_order = || shape.snapshots.is_sorted_by(|a, b| a < b);
        debug_assert!(are_in_order(), "snapshots are in ascending order");
        let below =
            |upto: SeqNo| shape.snapshots.iter().copied().take_while(move |snapshot| *snapshot < upto);
        let is_same = std::ptr::eq(self.tree.as_ptr(), Arc::as_ptr(tree))
            && std::ptr::eq(self.settings.as_ptr(), Arc::as_ptr(settings))
            && below(self.upto).eq(self.snapshots.iter().copied());
        if is_same {
            return false;
        }
        if has_wide(shape, &settings.limits) {
            return true;
        }
        let upto = shape.snapshots.last().copied().unwrap_or_default();
        let snapshots = below(upto).collect();
        *self =
            TombstoneHint { tree: Arc::downgrade(tree), settings: Arc::downgrade(settings), snapshots, upto };
        false
    }
}
