//! Separated values: follows the pointer of an entry to the value table that has its value.
//!
//! A pointer is followed in the tree that it was found in: that tree has every value table that its extents
//! point into, and keeps it as long as a reader holds the tree. No epoch is held while a store is asked.

use std::sync::Arc;

use terrane_base::counters::{add, count};
use terrane_base::stored::PREFIX_BYTES_MAX;
use terrane_base::value_pointer::POINTER_BYTES_MAX;
use terrane_base::{Error, RecordKind, Result, SeqKind, SeqNo, Stored, ValuePointer, ValueTableId};
use terrane_levels::Metasnapshot;
use terrane_table::{Cache, Epoch, Probe};

use crate::table::semantics::{ReadClock, Shown};

/// Replaces the stored bytes of a pointer, which are `bytes` from `start` on, by those that an entry with the
/// value in its place would have. Returns the kind of such an entry.
///
/// # Errors
/// `Corrupt`, naming the value table, its file and the key, if the pointer leads nowhere; `Io`.
pub(crate) fn inline(
    tree: &Metasnapshot,
    cache: &Arc<Cache>,
    (key, seq_kind): (&[u8], SeqKind),
    (bytes, start): (&mut Vec<u8>, usize),
) -> Result<SeqKind> {
    debug_assert!(seq_kind.is_pointer(), "only a pointer is followed");
    let pointer_bytes = Stored::of_entry(seq_kind, &bytes[start..])?.value;
    let pointer = ValuePointer::decode(pointer_bytes)?;
    let prefix_end = bytes.len() - pointer_bytes.len();
    bytes.truncate(prefix_end);
    append(tree, cache, (key, seq_kind.seq()), pointer, bytes)?;
    Ok(seq_kind.inlined())
}

/// Whether a pointer, whose bytes are as stored, leads to a value: it has not expired.
///
/// # Errors
/// `Corrupt` if the bytes are no pointer.
pub(crate) fn leads_to_value(pointer: SeqKind, bytes: &[u8], now: &ReadClock<'_>) -> Result<bool> {
    let stored = Stored::of_entry(pointer, bytes)?;
    ValuePointer::decode(stored.value)?;
    Ok(!matches!(now.shown(pointer, bytes), Shown::Nothing))
}

/// Most stored bytes of an entry that is a pointer: the moment at which it expires, and the pointer.
const STORED_BYTES_MAX: usize = PREFIX_BYTES_MAX + POINTER_BYTES_MAX;

/// Replaces the stored bytes of a pointer that has not expired, which are `bytes` from `start` on, by the
/// value that it leads to, if everything on the way is cached; returns whether it did. If not, `bytes` are as
/// before, and [`inline`] reads what is missing or tells what is wrong.
///
/// Under the caller's epoch, so that the tree need not be kept by its count.
#[inline]
pub(crate) fn replace_cached(
    epoch: &Epoch,
    tree: &Metasnapshot,
    (key, seq_kind): (&[u8], SeqKind),
    (bytes, start): (&mut Vec<u8>, usize),
) -> bool {
    debug_assert!(seq_kind.is_pointer(), "only a pointer is followed");
    let Ok(stored) = Stored::of_entry(seq_kind, &bytes[start..]) else { return false };
    let Ok(pointer) = ValuePointer::decode(stored.value) else { return false };
    let Some(values) = tree.values.get(pointer.table) else { return false };
    let len = bytes.len() - start;
    let mut before = [0; STORED_BYTES_MAX];
    let Some(before) = before.get_mut(..len) else { return false };
    before.copy_from_slice(&bytes[start..]);
    bytes.truncate(start);
    let wanted = wanted(seq_kind.seq());
    let probe = values.extent.probe(epoch, key, None, wanted, bytes);
    let is_found = probe == Probe::Found(SeqKind::new(seq_kind.seq(), RecordKind::Put));
    if is_found && bytes.len() - start == pointer.len as usize {
        count(|cells| add(&cells.values_followed, 1));
        return true;
    }
    bytes.truncate(start);
    bytes.extend_from_slice(before);
    false
}

/// The number at which the value of the version `seq` is looked for.
#[inline]
pub(crate) fn wanted(seq: SeqNo) -> SeqNo {
    if terrane_base::planted!(ReadOtherValue) { SeqNo::MAX } else { seq }
}

/// Adds what was looked for to an error.
#[cold]
pub(crate) fn of_value(error: Error, key: &[u8], seq: SeqNo, table: ValueTableId) -> Error {
    let key = terrane_format::dump::text(key);
    error.context(format!("the value of key {key} at {seq} in value table {table}"))
}

/// Appends the value that `pointer`, of the version `seq` of `key`, leads to.
fn append(
    tree: &Metasnapshot,
    cache: &Arc<Cache>,
    (key, seq): (&[u8], SeqNo),
    pointer: ValuePointer,
    out: &mut Vec<u8>,
) -> Result<()> {
    let values = tree.values.get(pointer.table).ok_or_else(|| nowhere(key, seq, pointer))?;
    count(|cells| add(&cells.values_followed, 1));
    debug_assert!(values.number() == pointer.table, "the value table that was asked for");
    let start = out.len();
    let wanted = wanted(seq);
    let found = values.extent.get_hashed(cache, key, None, wanted, out);
    let found = found.map_err(|error| of_value(error, key, seq, pointer.table))?;
    let is_it =
        found == Some(SeqKind::new(seq, RecordKind::Put)) && out.len() - start == pointer.len as usize;
    if is_it || wanted != seq { Ok(()) } else { Err(values.extent.placed(nowhere(key, seq, pointer))) }
}

/// The error of a pointer that leads nowhere.
#[cold]
pub(crate) fn nowhere(key: &[u8], seq: SeqNo, pointer: ValuePointer) -> Error {
    let ValuePointer { table, len } = pointer;
    Error::corrupt(format!(
        "key {} at {seq}: value table {table} does not have its value of {len} bytes; restore a backup, or repair \
         the database",
        terrane_format::dump::text(key)
    ))
}
