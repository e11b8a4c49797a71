//! Sizes of the current extent and of its writer, and the position of its last entry.

use terrane_base::{Error, Moment, Result, ValuePosition};
use terrane_format::extent::{self, Form};
use terrane_format::filter;
use terrane_storage::{EXTENT_SLOTS_MAX, SLOT_BYTES};

use super::{ExtentWriter, ROW_FIXED_MAX};

impl ExtentWriter {
    /// Where the next block begins.
    pub(super) fn block_offset(&self) -> Result<u32> {
        let limit = EXTENT_SLOTS_MAX as usize * SLOT_BYTES;
        if self.bytes.len() >= limit {
            return Err(Error::invalid(format!("extent is longer than {limit} bytes: end it earlier")));
        }
        Ok(self.bytes.len() as u32)
    }

    /// Where the last entry that was added will lie. Requires: it was not a block that was copied.
    #[must_use]
    pub fn position(&self) -> ValuePosition {
        let entries = self.block.entry_count();
        assert!(entries > 0, "the last entry is in the open block");
        ValuePosition { block: self.index.len() as u32, entry: entries - 1 }
    }

    /// Bytes of memory that the writer holds.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
            + self.block.memory_bytes()
            + self.index.memory_bytes()
            + self.encoder.memory_bytes()
            + self.hashes.capacity() * size_of::<u64>()
            + self.moments.capacity() * size_of::<Moment>()
            + self.prefixes.memory_bytes()
            + self.smallest.capacity()
            + self.last_key.capacity()
            + self.origin_bytes_max()
    }

    /// The longest footer that the extent may get: later entries may expire or be pointers.
    #[inline]
    pub(super) fn form_max(&self) -> Form {
        let has_origin = self.has_origin();
        match self.settings.value_table {
            Some(_) => Form { has_values: true, has_origin, ..Form::default() },
            None => {
                let points = self.settings.may_point || !self.references.is_empty();
                Form { is_ranged: self.is_ranged(), expires: true, points, has_origin, ..Form::default() }
            }
        }
    }

    #[inline]
    pub(super) fn extent_bytes_with(&self, added: usize) -> usize {
        extent::extent_bytes_with(self.content_bytes() + added, self.form_max())
    }

    #[inline]
    pub(super) fn content_bytes(&self) -> usize {
        let open_block = match self.block.is_empty() {
            true => 0,
            false => self.block.bytes_max() + ROW_FIXED_MAX + 2 * self.key_len_max(),
        };
        self.bytes.len()
            + open_block
            + self.index.estimated_bytes()
            + self.filter_bytes()
            + self.range_bytes
            + self.references.bytes_max()
            + self.origin_bytes_max()
    }

    /// Bytes of the part that says where the extent comes from, at most.
    #[inline]
    fn origin_bytes_max(&self) -> usize {
        self.origin.as_ref().map_or(0, |(_, bytes_max)| *bytes_max)
    }

    #[inline]
    fn key_len_max(&self) -> usize {
        self.block.first_key().len().max(self.block.last_key().len())
    }

    #[inline]
    pub(super) fn filter_bytes(&self) -> usize {
        self.filter_bytes_with(0)
    }

    /// Bytes of the filter with this many additional hashes.
    pub(super) fn filter_bytes_with(&self, added: usize) -> usize {
        let hashes = self.hashes.len() + self.prefixes.len() + added;
        match filter::encoded_len(hashes, self.settings.filter_bits_per_key) {
            0 => 0,
            bytes => bytes + filter::name_len(self.prefixes.extractor_name()),
        }
    }
}
