//! How extents are built.

use terrane_base::options::{BlockEncoding, Compression};
use terrane_base::{Error, Result, TableId};
use terrane_format::extent::ValueSection;
use terrane_storage::SLOT_BYTES;

use super::ExtentWriter;

/// How an extent is built. Plain data; see the options of the same names in `terrane_base::options`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterSettings {
    /// The table that the extents belong to.
    pub table: TableId,
    /// Bytes of a data block before compression; an entry that is larger gets a block of its own.
    pub block_bytes: usize,
    /// Layout of data blocks.
    pub block_encoding: BlockEncoding,
    /// Bits of filter per key; 0 for no filter.
    pub filter_bits_per_key: u32,
    /// Codec that is tried on every block.
    pub compression: Compression,
    /// Level of Zstandard, where that is the codec; `None` for its default.
    pub zstd_level: Option<u8>,
    /// The section of the extent as a value table, if it is one.
    pub value_table: Option<ValueSection>,
    /// True if entries may be pointers to values: room is kept for the list of their value tables.
    pub may_point: bool,
}

impl Default for WriterSettings {
    fn default() -> Self {
        WriterSettings {
            table: TableId::DEFAULT,
            block_bytes: 16 << 10,
            block_encoding: BlockEncoding::TwoLayer,
            filter_bits_per_key: 10,
            compression: Compression::None,
            zstd_level: None,
            value_table: None,
            may_point: false,
        }
    }
}

impl WriterSettings {
    /// # Errors
    /// `Invalid` if the size of blocks is out of range.
    pub(super) fn check(&self) -> Result<()> {
        let (found, most) = (self.block_bytes, SLOT_BYTES / 2);
        if (1..=most).contains(&found) {
            return Ok(());
        }
        Err(Error::invalid(format!("block_bytes={found}: accepted is 1 to {most} bytes")))
    }
}

impl ExtentWriter {
    /// Sets the size of blocks of the extents from here on. Requires: none is open.
    ///
    /// # Errors
    /// `Invalid` if it is out of range.
    pub fn set_block_bytes(&mut self, block_bytes: usize) -> Result<()> {
        debug_assert!(self.is_empty(), "the blocks of an extent have one size");
        let settings = WriterSettings { block_bytes, ..self.settings };
        settings.check()?;
        self.settings = settings;
        Ok(())
    }
}
