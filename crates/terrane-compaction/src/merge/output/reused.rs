//! Parts that the output takes undecoded: stored blocks, and whole extents.

use std::sync::Arc;

use terrane_base::Result;
use terrane_format::extent::ExtentMeta;
use terrane_format::index::IndexRow;

use super::{Output, extent_max, out_of_order};
use crate::job::Work;

impl Output<'_> {
    /// Adds a stored block; `is_wrapped`: of an extent with entries that expire, or pointers. Requires: its
    /// keys are greater than all before.
    pub(in crate::merge) fn add_block(
        &mut self,
        row: &IndexRow<'_>,
        stored: &[u8],
        is_wrapped: bool,
        work: &mut Work,
    ) -> Result<()> {
        debug_assert!(
            self.is_sound(),
            "the counts of the output fit what it has, before a block of {} bytes",
            stored.len()
        );
        self.take_ranges_before(row.first_key, work)?;
        let is_full =
            !self.writer.fits_block(row, is_wrapped) || self.open_bytes() + stored.len() > self.limit;
        if !self.writer.is_empty() && (is_full || self.cut_is_due) {
            self.close(Some(row.first_key), work)?;
        }
        if self.writer.has_entries() && self.spec.collation().le(row.first_key, self.writer.last_key()) {
            return Err(out_of_order(self.spec.collation()));
        }
        self.take_ranges_to(row.first_key)?;
        self.writer.add_block(row, stored, is_wrapped)?;
        self.take_ranges_to(row.last_key)?;
        self.slack = 0;
        work.blocks_copied += 1;
        work.bytes_copied += u64::from(row.stored_len);
        work.entries_out += u64::from(row.entries);
        Ok(())
    }

    /// Adds an extent without copying it. Requires: its keys are greater than all before.
    pub(in crate::merge) fn relink(&mut self, meta: &ExtentMeta, work: &mut Work) -> Result<()> {
        self.take_ranges_before(&meta.smallest, work)?;
        self.close(Some(&meta.smallest), work)?;
        let is_new = self.relinked.insert(meta.id);
        assert!(is_new, "extent {} would have two owners", meta.id);
        self.push(Arc::new(meta.clone()))?;
        self.covered_to = self.spec.collation().successor(&meta.largest);
        work.extents_relinked += 1;
        work.bytes_relinked += u64::from(meta.bytes);
        work.entries_in += meta.entries;
        work.entries_out += meta.entries;
        Ok(())
    }

    /// Announces that `bytes` more will be copied, after which the extent should end: they and the current
    /// extent are divided evenly into as few extents as possible.
    pub(in crate::merge) fn balance(&mut self, bytes: usize) {
        let total = self.open_bytes() + bytes;
        let max = extent_max(self.spec);
        let extents = total.div_ceil(max);
        if extents > 1 {
            // A little more than the share, so that the last extent is not split.
            self.limit = (total / extents + self.spec.output.block_bytes).min(max);
            self.slack = 0;
        }
        debug_assert!(self.limit <= max, "an extent is not too long: {}", self.limit);
    }
}
