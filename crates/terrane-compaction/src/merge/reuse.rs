//! What a merge takes over without decoding it. `docs/design/0005-compaction.md` argues the rules.

use terrane_format::extent::ExtentMeta;
use terrane_format::index::IndexRow;
use terrane_storage::SLOT_BYTES;

use crate::job::{JobKind, JobSpec};

/// Of what is reused, at most one entry in this many may be a delete that could be dropped now.
const DROPPABLE_SHARE: u64 = 8;

/// What to do with an extent that meets no other source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reuse {
    /// It goes over as it is.
    Relink,
    /// Its blocks go over, so that no small extent is left in front of it.
    Blocks,
    /// Its blocks are looked at one by one.
    None,
}

/// Decides over an extent, while `open_bytes` of output wait to become an extent.
pub(super) fn of_extent(spec: &JobSpec, meta: &ExtentMeta, open_bytes: usize) -> Reuse {
    let is_as_wanted = !spec.rewrites && meta.compression == spec.output.compression;
    let dead = meta.deletes + expiring(spec, meta);
    if !is_as_wanted || drops_deletes(spec, dead, meta.entries, &meta.smallest, &meta.largest) {
        return Reuse::None;
    }
    // A re-linked extent would stay as small as it is.
    if spec.kind == JobKind::Gather {
        return Reuse::Blocks;
    }
    let are_worth_slots = is_worth_a_slot(open_bytes as u64) && is_worth_a_slot(meta.bytes.into());
    if open_bytes == 0 || are_worth_slots { Reuse::Relink } else { Reuse::Blocks }
}

/// Whether so many bytes may become an extent of their own where there is a choice.
pub(super) fn is_worth_a_slot(bytes: u64) -> bool {
    bytes >= SLOT_BYTES as u64 / 2
}

/// Whether an extent of so many bytes wastes little of its slot.
pub(super) fn is_nearly_a_slot(bytes: u64) -> bool {
    bytes >= SLOT_BYTES as u64 / 4 * 3
}

/// Whether a block that meets no other source is copied. `compression` is that of its extent.
pub(super) fn copies_block(spec: &JobSpec, meta: &ExtentMeta, row: &IndexRow<'_>) -> bool {
    // Where an extent has the number for all of its entries, its blocks have none.
    let is_numbered = meta.is_numbered() && !terrane_base::planted!(CopyNumberedBlock);
    let is_as_wanted = !spec.rewrites && !is_numbered && meta.compression == spec.output.compression;
    // Small blocks come from borders of earlier merges; decoded, they become one with their neighbours.
    let is_full = row.raw_len as usize >= spec.output.block_bytes / 2;
    // Which blocks have them nobody knows.
    let (deletes, entries) = (u64::from(row.deletes) + expiring(spec, meta), u64::from(row.entries));
    is_as_wanted && is_full && !drops_deletes(spec, deletes, entries, row.first_key, row.last_key)
}

/// Entries of an extent that may have expired, for a job that drops such.
fn expiring(spec: &JobSpec, meta: &ExtentMeta) -> u64 {
    meta.expiry.filter(|_| spec.drops_deletes).map_or(0, |expiry| expiry.entries)
}

/// Whether enough deletes could be dropped from keys `first` to `last` to make decoding worth it.
fn drops_deletes(spec: &JobSpec, deletes: u64, entries: u64, first: &[u8], last: &[u8]) -> bool {
    let are_many = if spec.drops_deletes { deletes > 0 } else { deletes * DROPPABLE_SHARE > entries };
    are_many && !is_below(spec, first, last)
}

/// Whether a deeper level may hold any of the keys `first` to `last`.
fn is_below(spec: &JobSpec, first: &[u8], last: &[u8]) -> bool {
    let next = spec.below.partition_point(|range| range.ends_before(first));
    spec.below.get(next).is_some_and(|range| spec.collation().le(&range.start, last))
}
