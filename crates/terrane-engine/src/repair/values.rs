//! Separated values of a damaged database: what its value tables have, found by number, key and sequence
//! number.
//!
//! A value that cannot be read is a loss of that key alone; the number of a value table may stand in two
//! extents if the edit that listed one of them never was, so all are asked.

use std::collections::BTreeMap;
use std::sync::Arc;

use terrane_base::{Error, Result, SeqKind, SeqNo, Stored, TableId, ValuePointer, ValueTableId};
use terrane_format::block::BlockCursor;
use terrane_table::{Extent, ExtentScanner};

use crate::repair::{Loss, Repair};

/// Reads each block by itself: its neighbours may be damaged.
const ONE_BLOCK: u32 = 1;
/// Value tables that are kept open.
const OPEN_MAX: usize = 64;

/// The value tables that were found.
#[derive(Default)]
pub(super) struct ValueTablesFound {
    tables: BTreeMap<ValueTableId, Vec<Arc<Extent>>>,
    open: BTreeMap<ValueTableId, Vec<Result<ExtentScanner>>>,
}

impl ValueTablesFound {
    /// Adds an extent, if it is a value table.
    pub(super) fn add(&mut self, extent: Arc<Extent>) {
        if let Some(section) = extent.meta.value_table {
            self.tables.entry(section.number).or_default().push(extent);
        }
    }

    /// Appends the value of a version.
    fn find(&mut self, key: &[u8], seq: SeqNo, pointer: ValuePointer, out: &mut Vec<u8>) -> Result<()> {
        if !self.open.contains_key(&pointer.table) && self.open.len() >= OPEN_MAX {
            self.open.clear();
        }
        let extents = self.tables.get(&pointer.table).map_or(&[][..], Vec::as_slice);
        let open = || extents.iter().map(|extent| ExtentScanner::new(extent.clone(), ONE_BLOCK)).collect();
        debug_assert!(self.open.len() <= OPEN_MAX, "{} value tables are open", self.open.len());
        let mut error = None;
        for scanner in self.open.entry(pointer.table).or_insert_with(open) {
            let found = match scanner {
                Ok(scanner) => find_in(scanner, key, seq, pointer.len, out),
                Err(failed) => Err(failed.clone()),
            };
            match found {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(failed) => error = Some(failed),
            }
        }
        Err(error.unwrap_or_else(|| Error::corrupt("the value is missing from all value tables found")))
    }
}

impl Repair<'_> {
    /// The version with its value in the place of a pointer, by the first of the `pointers` that leads to it;
    /// `None`, and a loss, if none does.
    pub(super) fn inlined(
        &mut self,
        table: TableId,
        (key, seq_kind): (&[u8], SeqKind),
        pointers: &[&[u8]],
    ) -> Option<(SeqKind, Vec<u8>)> {
        let mut read = |bytes: &[u8]| {
            let stored = Stored::of_entry(seq_kind, bytes)?;
            let pointer = ValuePointer::decode(stored.value)?;
            let mut inlined = bytes[..bytes.len() - stored.value.len()].to_vec();
            self.values.find(key, seq_kind.seq(), pointer, &mut inlined)?;
            Ok((seq_kind.inlined(), inlined))
        };
        let mut lost = None;
        for bytes in pointers {
            let read: Result<(SeqKind, Vec<u8>)> = read(bytes);
            match read {
                Ok(inlined) => return Some(inlined),
                Err(error) => lost = Some(error),
            }
        }
        debug_assert_ne!(lost.is_some(), pointers.is_empty(), "each pointer leads to a value or an error");
        if let Some(error) = lost {
            let (table, keys) = (self.name_of(table), Some((key.to_vec(), key.to_vec())));
            let error = error.context("the value of a key, which is stored apart from it, cannot be read");
            self.report.lose_keys(Loss { table, keys, entries: Some(1), error });
        }
        None
    }
}

/// Appends the value of a version; returns false if the value table does not have it.
fn find_in(scanner: &mut ExtentScanner, key: &[u8], seq: SeqNo, len: u32, out: &mut Vec<u8>) -> Result<bool> {
    let mut cursor = BlockCursor::new();
    let mut failed = None;
    for at in scanner.rows().find(key)..scanner.rows().len() {
        let block = match scanner.block(at) {
            Ok(block) => block,
            // A row that stands for blocks without one ends with the first key behind them.
            Err(error) if scanner.rows().goes_on(at) && scanner.rows().last_key(at) == key => {
                failed = Some(error);
                continue;
            }
            Err(error) => return Err(error),
        };
        cursor.seek(&block, key, seq);
        if let Some(entry) = cursor.entry(&block) {
            let is_it = entry.key == key
                && entry.seq_kind.seq() == seq
                && entry.seq_kind.is_plain_put()
                && entry.value.len() == len as usize;
            if is_it {
                out.extend_from_slice(entry.value);
                return Ok(true);
            }
            break;
        }
    }
    failed.map_or(Ok(false), Err)
}
