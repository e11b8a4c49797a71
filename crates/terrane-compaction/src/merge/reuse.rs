//! Blocks and extents that a merge reuses undecoded. `docs/design/0005-compaction.md` explains the rules.

use terrane_format::block::INTERVALS_MAX;
use terrane_format::extent::ExtentMeta;
use terrane_format::index::IndexRow;

use crate::job::{JobKind, JobSpec};

/// At most one in this many reused entries may be a delete that could be dropped now.
const DROPPABLE_SHARE: u64 = 8;

/// A block is full with one part in this many of the bytes of a block. So blocks of data beyond memory, which
/// have half of the bytes of others and end before an entry that would make them longer, are full for both.
const FULL_SHARE: usize = 3;

/// How an extent that overlaps no other source is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reuse {
    /// Re-link it.
    Relink,
    /// Copy its blocks, so that no small extent is left before it.
    Blocks,
    /// Decide block by block.
    None,
}

/// Decides about an extent, while `open_bytes` of output wait to become an extent.
pub(super) fn of_extent(spec: &JobSpec, meta: &ExtentMeta, open_bytes: usize) -> Reuse {
    let is_as_wanted =
        !spec.rewrites && meta.compression == spec.output.compression && !spec.moves_values_of(meta);
    let dead = meta.deletes + expiring(spec, meta);
    if !is_as_wanted || drops_deletes(spec, dead, meta.entries, &meta.smallest, &meta.largest) {
        return Reuse::None;
    }
    // A re-linked extent would stay as small as it is.
    if spec.kind == JobKind::Gather {
        return Reuse::Blocks;
    }
    let are_worth_slots =
        is_worth_a_slot(spec, open_bytes as u64) && is_worth_a_slot(spec, meta.bytes.into());
    if open_bytes == 0 || are_worth_slots { Reuse::Relink } else { Reuse::Blocks }
}

/// Returns true if this many bytes may become an extent of their own if there is a choice.
pub(super) fn is_worth_a_slot(spec: &JobSpec, bytes: u64) -> bool {
    bytes >= spec.extent_bytes_max / 2
}

/// Returns true if an extent of this many bytes wastes little of its slot, as far as it may be long.
pub(super) fn is_nearly_a_slot(spec: &JobSpec, bytes: u64) -> bool {
    bytes >= spec.extent_bytes_max / 4 * 3
}

/// Returns true if a block that overlaps no other source is copied. `compression` is that of its extent.
pub(super) fn copies_block(spec: &JobSpec, meta: &ExtentMeta, row: &IndexRow<'_>) -> bool {
    // In an extent that is numbered as a whole the blocks do not contain the numbers.
    let is_numbered = meta.is_numbered() && !terrane_base::planted!(CopyNumberedBlock);
    let is_as_wanted = !spec.rewrites
        && !is_numbered
        && meta.compression == spec.output.compression
        && !spec.moves_values_of(meta);
    // Small blocks come from borders of earlier merges; decoded, they are joined with their neighbours.
    // Blocks of pointers are small because they end after as many entries as they can have intervals.
    let is_full_of_pointers = meta.references.is_some() && row.entries as usize >= INTERVALS_MAX;
    let is_full = is_full_of_pointers || row.raw_len as usize >= spec.output.block_bytes / FULL_SHARE;
    // It is not known which blocks contain them.
    let (deletes, entries) = (u64::from(row.deletes) + expiring(spec, meta), u64::from(row.entries));
    is_as_wanted && is_full && !drops_deletes(spec, deletes, entries, row.first_key, row.last_key)
}

/// Entries of an extent that may have expired, for a job that drops such.
fn expiring(spec: &JobSpec, meta: &ExtentMeta) -> u64 {
    meta.expiry.filter(|_| spec.drops_deletes).map_or(0, |expiry| expiry.entries)
}

/// Returns true if enough deletes of keys `first` to `last` could be dropped to be worth decoding.
fn drops_deletes(spec: &JobSpec, deletes: u64, entries: u64, first: &[u8], last: &[u8]) -> bool {
    let are_many = if spec.drops_deletes { deletes > 0 } else { deletes * DROPPABLE_SHARE > entries };
    are_many && !is_below(spec, first, last)
}

/// Returns true if a deeper level may hold any of the keys `first` to `last`.
fn is_below(spec: &JobSpec, first: &[u8], last: &[u8]) -> bool {
    let next = spec.below.partition_point(|range| range.ends_before(first));
    spec.below.get(next).is_some_and(|range| spec.collation().le(&range.start, last))
}
