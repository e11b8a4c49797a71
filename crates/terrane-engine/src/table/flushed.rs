//! How an edit says that every record up to a number is in the levels, of whichever table.

use terrane_base::{SeqNo, TableId};
use terrane_format::manifest::EditOp;
use terrane_levels::Manifest;

/// The operations that say that every record up to `seq` is in the levels, of all tables. `behind` returns
/// the tables, at most so many, of which the manifest does not say so yet.
///
/// Of one table they name it; of more they are one operation, which costs the same for any number of tables.
pub(crate) fn flushed_up_to(
    manifest: &Manifest,
    seq: SeqNo,
    behind: impl Fn(usize) -> Vec<TableId>,
) -> Vec<EditOp> {
    let first = behind(2);
    let all = EditOp::FlushedAll { seq };
    // A manifest that cannot begin a new file, which the operation needs once, may have room for an edit: a
    // full device gets space by trims. A manifest that cannot be written any more returns that error from the
    // edit.
    if first.len() > 1 && manifest.reach_version(all.version()).is_ok() {
        return vec![all];
    }
    let each = if first.len() > 1 { behind(usize::MAX) } else { first };
    each.into_iter().map(|table| EditOp::Flushed { table, seq }).collect()
}
