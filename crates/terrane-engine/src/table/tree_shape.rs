//! The tree of a table as pickers of jobs see it.

use terrane_base::{Moment, SeqNo};
use terrane_compaction::{RunShape, TableShape};
use terrane_levels::Metasnapshot;

use crate::table::Table;

/// A table's tree as the picker sees it.
pub(crate) fn shape_of<'t>(table: &Table, tree: &'t Metasnapshot, snapshots: &'t [SeqNo]) -> TableShape<'t> {
    TableShape {
        table: table.id,
        runs: tree.runs.iter().map(|run| RunShape { id: run.id, level: &*run.level }).collect(),
        levels: tree.levels.iter().map(|level| &**level as _).collect(),
        values: &tree.values,
        now: Moment(0),
        snapshots,
        heats: Vec::new(),
        scanned: table.scan_marks.ranges(),
        may_be_wide: true,
        keeps_depth: false,
        exceeds_memory: table.exceeds_memory(0),
        room_bytes: u64::MAX,
        collation: table.semantics.collation().clone(),
    }
}
