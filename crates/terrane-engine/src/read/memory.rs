//! Point reads of the memory tier: memtable, frozen memtables, generations.

use terrane_base::counters::{add, count};
use terrane_base::{RecordKind, SeqKind, SeqNo};
use terrane_format::filter::hash as key_hash;
use terrane_memtable::Memtable;

use crate::read::hidden::is_hidden;
use crate::read::value_target::ValueTarget;
use crate::table::read_view::ReadView;

/// A key, the hash of it for filters, and the number that a read sees up to.
type KeyAt<'r> = (&'r [u8], u64, SeqNo);

/// The newest version in the memory tier; its bytes go to the target. Counts the read where it ends here.
#[inline(always)]
pub(crate) fn get_from_memory(
    view: &ReadView,
    key: KeyAt<'_>,
    target: &mut impl ValueTarget,
) -> Option<SeqKind> {
    // Apart from the others, so that the shortest read counts with constants.
    if let Some(found) = get_from_memtable(&view.active, key, target) {
        debug_assert!(found.seq() <= key.2, "a read sees a later commit");
        count_read(1);
        return Some(found);
    }
    if view.frozen.is_empty() && view.generations.is_empty() {
        return None;
    }
    get_from_older(view, key, target)
}

/// As [`get_from_memory`], of frozen memtables and generations.
#[inline(never)]
fn get_from_older(view: &ReadView, key: KeyAt<'_>, target: &mut impl ValueTarget) -> Option<SeqKind> {
    debug_assert!(
        !view.frozen.is_empty() || !view.generations.is_empty(),
        "the active memtable is asked by the caller"
    );
    for (index, memtable) in view.frozen.iter().enumerate() {
        if let Some(found) = get_from_memtable(memtable, key, target) {
            count_read(2 + index as u64);
            return Some(found);
        }
    }
    for (index, generation) in view.generations.iter().enumerate() {
        if let Some(found) = get_from_memtable(generation.index(), key, target) {
            count_read((2 + view.frozen.len() + index) as u64);
            return Some(found);
        }
    }
    None
}

/// As [`get_from_memory`], of one source. Where a range delete hides what it has, that is the version, as a
/// delete.
#[inline]
fn get_from_memtable(
    memtable: &Memtable,
    (key, hash, seq): KeyAt<'_>,
    target: &mut impl ValueTarget,
) -> Option<SeqKind> {
    debug_assert!(hash == key_hash(key), "filters are asked with the hash of the key");
    let found = memtable.get_hashed(key, hash, seq);
    if memtable.range_deletes().is_some()
        && let Some(hidden) = memtable.hidden(key, seq)
        && is_hidden(found.map(|version| version.seq_kind), Some(hidden))
    {
        return Some(SeqKind::new(hidden, RecordKind::Delete));
    }
    let version = found?;
    target.put(version.seq_kind, version.value);
    Some(version.seq_kind)
}

/// Sorted runs in memory that a read has looked into when it goes on to the levels.
#[inline]
pub(crate) fn memory_runs(view: &ReadView) -> u64 {
    (1 + view.frozen.len() + view.generations.len()) as u64
}

/// Counts a point read and the sorted runs it looked into.
#[inline]
pub(crate) fn count_read(runs: u64) {
    count_reads(1, runs);
}

/// Counts point reads and the sorted runs they looked into.
#[inline]
pub(crate) fn count_reads(reads: u64, runs: u64) {
    count(|cells| {
        add(&cells.reads, reads);
        add(&cells.runs_searched, runs);
    });
}
