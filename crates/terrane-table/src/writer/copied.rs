//! Blocks that are copied as they are stored: what the extent says of their entries.

use terrane_base::Result;
use terrane_device::keep_buffer;
use terrane_format::extent::Expiry;
use terrane_format::index::IndexRow;

use super::ExtentWriter;
use crate::loader::{copy_of, open_stored};

impl ExtentWriter {
    /// Notes the entries of a block: their keys for the filter, when they expire, what they refer to.
    pub(super) fn note_entries_of(&mut self, row: &IndexRow<'_>, stored: &[u8]) -> Result<()> {
        debug_assert!(stored.len() == row.stored_len as usize, "the caller compared the bytes with the row");
        let block = open_stored(row, copy_of(stored), false)?;
        let mut cursor = std::mem::take(&mut self.cursor);
        cursor.seek_first(&block);
        while let Some(entry) = cursor.entry(&block) {
            if self.settings.filter_bits_per_key > 0 {
                self.push_hash(entry.key);
            }
            if !terrane_base::planted!(ForgetExpiry) {
                Expiry::note(&mut self.moments, entry.seq_kind, entry.value);
            }
            if !terrane_base::planted!(ForgetCopiedReference) {
                self.references.note(&entry);
            }
            cursor.next(&block);
        }
        self.cursor = cursor;
        keep_buffer(block.into_bytes());
        Ok(())
    }
}
