//! Separated values: follows the pointer of an entry to the value table that has its value.
//!
//! A pointer is followed in the tree that it was found in: that tree has every value table that its extents
//! point into, and keeps it as long as a reader holds the tree. No epoch is held while a store is asked.

use std::sync::Arc;

use terrane_base::counters::{add, count};
use terrane_base::stored::put_prefix;
use terrane_base::{Error, Moment, RecordKind, Result, SeqKind, SeqNo, Stored, ValuePointer, ValueTableId};
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

/// Returns true if a pointer, whose bytes are as stored, leads to a value: it has not expired.
///
/// # Errors
/// `Corrupt` if the bytes are not a pointer.
pub(crate) fn leads_to_value(pointer: SeqKind, bytes: &[u8], now: &ReadClock<'_>) -> Result<bool> {
    let stored = Stored::of_entry(pointer, bytes)?;
    ValuePointer::decode(stored.value)?;
    Ok(!matches!(now.shown(pointer, bytes), Shown::Nothing))
}

/// Replaces the stored bytes of a pointer, which are `bytes` from `start` on, by the value that it leads to,
/// if it has not expired and everything on the way is cached; returns true if it did. If not, `bytes` are as
/// before, and [`inline`] reads the missing blocks or returns the error.
///
/// Under the caller's epoch, so that the tree need not be kept by its count.
#[inline]
pub(crate) fn replace_cached(
    epoch: &Epoch,
    tree: &Metasnapshot,
    (key, seq_kind): (&[u8], SeqKind),
    now: &ReadClock<'_>,
    (bytes, start): (&mut Vec<u8>, usize),
) -> bool {
    debug_assert!(seq_kind.is_pointer(), "only a pointer is followed");
    let stored = match seq_kind.is_plain_pointer() {
        true => Some((Moment::NEVER, &bytes[start..])),
        false => unexpired(seq_kind, &bytes[start..], now),
    };
    let pointer = stored.and_then(|(until, stored)| Some((until, ValuePointer::read(stored)?)));
    let Some((expires_at, pointer)) = pointer else { return false };
    let Some(values) = tree.values.get(pointer.table) else { return false };
    bytes.truncate(start);
    let wanted = wanted(seq_kind.seq());
    let there = pointer.position.and_then(|at| values.extent.probe_at(epoch, at, key, wanted, bytes));
    let found = there.or_else(|| match values.extent.probe(epoch, key, None, wanted, bytes) {
        Probe::Found(found) => Some(found),
        _ => None,
    });
    let is_found = found == Some(SeqKind::new(seq_kind.seq(), RecordKind::Put));
    if is_found && bytes.len() - start == pointer.len as usize {
        count(|cells| {
            add(&cells.values_followed, 1);
            // Others were counted by the search.
            add(&cells.data_blocks_searched, u64::from(there.is_some()));
        });
        return true;
    }
    bytes.truncate(start);
    put_prefix(bytes, expires_at, None);
    pointer.encode(bytes);
    false
}

/// The moment at which a pointer expires, and the pointer; `None` if that is over, or the bytes are damaged.
#[inline(never)]
fn unexpired<'b>(seq_kind: SeqKind, stored: &'b [u8], now: &ReadClock<'_>) -> Option<(Moment, &'b [u8])> {
    let is_shown = !matches!(now.shown(seq_kind, stored), Shown::Nothing);
    let stored = Stored::of_entry(seq_kind, stored).ok()?;
    is_shown.then_some((stored.expires_at, stored.value))
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
    let ValuePointer { table, len, .. } = pointer;
    Error::corrupt(format!(
        "key {} at {seq}: value table {table} does not have its value of {len} bytes; restore a backup, or repair \
         the database",
        terrane_format::dump::text(key)
    ))
}
