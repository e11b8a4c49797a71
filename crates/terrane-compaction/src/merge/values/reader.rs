//! Reads separated values in key order: one position in each value table, which only goes forward.

use std::collections::BTreeMap;

use terrane_base::{Entry, Error, Result, SeqNo, ValuePointer, ValueTableId};
use terrane_format::block::{Block, BlockCursor};
use terrane_table::ExtentScanner;

use crate::compactor::ExtentSource;
use crate::job::{JobSpec, Work};

/// Bytes that all open value tables of a job may hold for reading.
const CHUNKS_BYTES_MAX: usize = 8 << 20;
/// Bytes that a value table reads at once, at least and at most.
const CHUNK_BYTES_MIN: usize = 32 << 10;
const CHUNK_BYTES_MAX: usize = 512 << 10;

/// See the [module](self).
pub(in crate::merge) struct ValueReader<'a> {
    spec: &'a JobSpec,
    extents: &'a dyn ExtentSource,
    chunk_bytes: u32,
    open: BTreeMap<ValueTableId, Position>,
}

/// A position in a value table.
struct Position {
    scanner: ExtentScanner,
    /// The block that is decoded.
    block: Option<(usize, Block)>,
    cursor: BlockCursor,
}

impl<'a> ValueReader<'a> {
    pub(super) fn new(spec: &'a JobSpec, extents: &'a dyn ExtentSource) -> Self {
        let tables = spec.values.len().max(1);
        let chunk_bytes = (CHUNKS_BYTES_MAX / tables).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX) as u32;
        ValueReader { spec, extents, chunk_bytes, open: BTreeMap::new() }
    }

    /// Appends the value of an entry that is a pointer to `out`.
    ///
    /// # Errors
    /// `Corrupt`, naming the value table and the key, if it does not have the value; those of the store.
    pub(super) fn fetch(
        &mut self,
        entry: &Entry<'_>,
        pointer: &ValuePointer,
        out: &mut Vec<u8>,
        work: &mut Work,
    ) -> Result<()> {
        let values = self.spec.values_of(pointer.table).ok_or_else(|| unknown(entry, pointer.table))?;
        debug_assert!(self.open.len() <= self.spec.values.len(), "only inputs are open");
        if !self.open.contains_key(&pointer.table) {
            self.close_behind(entry.key);
            let extent = self.extents.extent(&values.meta)?;
            let scanner = ExtentScanner::new(extent, self.chunk_bytes)?;
            work.bytes_read += u64::from(values.meta.index.len);
            let position = Position { scanner, block: None, cursor: BlockCursor::new() };
            self.open.insert(pointer.table, position);
        }
        let position = self.open.get_mut(&pointer.table).expect("it was opened if it was not open");
        let found = position.find(entry.key, entry.seq_kind.seq(), pointer.len, out, work)?;
        if found { Ok(()) } else { Err(lost(entry, pointer.table)) }
    }

    /// Closes the value tables that end before `key`: later entries are behind it.
    fn close_behind(&mut self, key: &[u8]) {
        let (spec, collation) = (self.spec, self.spec.collation());
        self.open.retain(|number, _| {
            spec.values_of(*number).is_some_and(|values| collation.le(key, &values.meta.largest))
        });
    }
}

impl Position {
    /// Appends the value of this version; returns false if it is not there.
    fn find(&mut self, key: &[u8], seq: SeqNo, len: u32, out: &mut Vec<u8>, work: &mut Work) -> Result<bool> {
        let mut at = self.scanner.rows().find(key);
        loop {
            if at >= self.scanner.rows().len() {
                return Ok(false);
            }
            if self.block.as_ref().is_none_or(|(open, _)| *open != at) {
                work.bytes_read += u64::from(self.scanner.rows().row(at).stored_len);
                self.block = Some((at, self.scanner.block(at)?));
            }
            let Some((_, block)) = &self.block else { return Ok(false) };
            debug_assert!(
                self.block.as_ref().is_some_and(|(open, _)| *open == at),
                "the value is sought in the block that the index names"
            );
            self.cursor.seek(block, key, seq);
            if let Some(found) = self.cursor.entry(block) {
                let is_it = found.key == key
                    && found.seq_kind.seq() == seq
                    && found.seq_kind.is_plain_put()
                    && found.value.len() == len as usize;
                out.extend_from_slice(if is_it { found.value } else { &[] });
                return Ok(is_it);
            }
            // Its versions may go on in the next block.
            if !self.scanner.rows().goes_on(at) {
                return Ok(false);
            }
            at += 1;
        }
    }
}

/// The error of a pointer into a value table that the job does not know.
#[cold]
pub(super) fn unknown(entry: &Entry<'_>, table: ValueTableId) -> Error {
    Error::corrupt(format!(
        "key {} points into value table {table}, which its extent does not name",
        terrane_format::dump::text(entry.key)
    ))
}

#[cold]
fn lost(entry: &Entry<'_>, table: ValueTableId) -> Error {
    Error::corrupt(format!(
        "value table {table} does not have the value of key {} at {}",
        terrane_format::dump::text(entry.key),
        entry.seq_kind.seq()
    ))
}
