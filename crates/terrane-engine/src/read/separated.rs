//! Separated values: follows the pointer of an entry to the value table that has its value.
//!
//! A pointer is followed in the tree that it was found in: that tree has every value table that its extents
//! point into, and keeps it as long as a reader holds the tree. No epoch is held meanwhile.

use std::sync::Arc;

use terrane_base::counters::{add, count};
use terrane_base::{Error, Result, SeqKind, SeqNo, Stored, ValuePointer};
use terrane_levels::Metasnapshot;
use terrane_table::Cache;

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
    let wanted = if terrane_base::planted!(ReadOtherValue) { SeqNo::MAX } else { seq };
    let found = values.extent.get_hashed(cache, key, None, wanted, out)?;
    let is_it = found == Some(SeqKind::new(seq, terrane_base::RecordKind::Put))
        && out.len() - start == pointer.len as usize;
    if is_it || wanted != seq { Ok(()) } else { Err(values.extent.placed(nowhere(key, seq, pointer))) }
}

#[cold]
fn nowhere(key: &[u8], seq: SeqNo, pointer: ValuePointer) -> Error {
    let ValuePointer { table, len } = pointer;
    Error::corrupt(format!(
        "key {} at {seq}: value table {table} does not have its value of {len} bytes; restore a backup, or repair \
         the database",
        terrane_format::dump::text(key)
    ))
}

/// What a scan follows pointers with.
#[derive(Clone, Debug)]
pub(crate) struct Separated {
    tree: Arc<Metasnapshot>,
    cache: Arc<Cache>,
}

impl Separated {
    /// What follows the pointers of a tree; `None` if it has none: most scans take no part in the counts of
    /// tree and cache for it.
    pub(crate) fn of(tree: &Arc<Metasnapshot>, cache: &Arc<Cache>) -> Option<Self> {
        (!tree.values.is_empty()).then(|| Separated { tree: tree.clone(), cache: cache.clone() })
    }

    /// As [`inline`], in the tree of the scan.
    pub(crate) fn inline(&self, key: &[u8], seq_kind: SeqKind, bytes: &mut Vec<u8>) -> Result<SeqKind> {
        inline(&self.tree, &self.cache, (key, seq_kind), (bytes, 0))
    }
}
