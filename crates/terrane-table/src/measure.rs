//! Estimates how much of an extent lies within a range, from its index block.
//!
//! A block whose keys are all within the range counts as a whole. A block that a bound cuts counts as half,
//! with an error of at most the other half. The extent's other bytes are distributed over its data blocks.

use std::ops::Bound;
use std::sync::Arc;

use terrane_base::Result;

use crate::cache::Cache;
use crate::extent::Extent;
use crate::loader::Loader;

/// The part of an extent within a range, with the largest possible error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Stored bytes.
    pub bytes: u64,
    /// Largest error of the bytes.
    pub bytes_error: u64,
    /// Entries.
    pub entries: u64,
    /// Largest error of the entries.
    pub entries_error: u64,
}

impl Extent {
    /// Estimates the part of the extent between two keys. Reads its index block unless that is cached.
    ///
    /// # Errors
    /// As [`Extent::get`].
    pub fn measure(&self, cache: &Arc<Cache>, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Result<Share> {
        let is_above = |key: &[u8]| self.meta.collation.is_above(key, lower);
        let is_below = |key: &[u8]| self.meta.collation.is_below(key, upper);
        let loader = Loader { extent: self, cache: self.bind(cache), fill_cache: true };
        let owner = loader.index()?;
        let rows = &owner.index().rows;
        let (mut share, mut data) = (Share::default(), 0);
        for at in 0..rows.len() {
            let row = rows.row(at);
            let (bytes, entries) = (u64::from(row.stored_len), u64::from(row.entries));
            data += bytes;
            if is_above(row.first_key) && is_below(row.last_key) {
                share.bytes += bytes;
                share.entries += entries;
            } else if is_above(row.last_key) && is_below(row.first_key) {
                share.bytes += bytes / 2;
                share.bytes_error += bytes.div_ceil(2);
                share.entries += entries / 2;
                share.entries_error += entries.div_ceil(2);
            }
        }
        debug_assert!(
            share.bytes + share.bytes_error <= data,
            "a part and its error are not more than the whole"
        );
        let whole = u128::from(self.meta.bytes);
        let dealt = |bytes: u64| u64::try_from(u128::from(bytes) * whole / u128::from(data.max(1)));
        share.bytes = dealt(share.bytes).unwrap_or(u64::MAX);
        // One more for the rounding of the divisions.
        share.bytes_error = dealt(share.bytes_error).unwrap_or(u64::MAX) + 1;
        Ok(share)
    }
}
