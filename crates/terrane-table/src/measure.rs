//! How much of an extent lies within a range, by its index block.
//!
//! A block all of whose keys are within counts whole. One that the range cuts counts half, which is off by the other half at
//! most. What an extent has beside its data blocks is dealt to them by their bytes.

use std::ops::Bound;
use std::sync::Arc;

use terrane_base::Result;

use crate::cache::Cache;
use crate::extent::Extent;
use crate::loader::Loader;

/// What of an extent lies within a range: the truth is not further off than the error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Stored bytes.
    pub bytes: u64,
    /// By how much they may be off.
    pub bytes_error: u64,
    /// Entries.
    pub entries: u64,
    /// By how much they may be off.
    pub entries_error: u64,
}

impl Extent {
    /// How much of the extent lies between two keys. Reads its index block unless that is in the cache.
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
        let whole = u128::from(self.meta.bytes);
        let dealt = |bytes: u64| u64::try_from(u128::from(bytes) * whole / u128::from(data.max(1)));
        share.bytes = dealt(share.bytes).unwrap_or(u64::MAX);
        // One more for what the divisions left out.
        share.bytes_error = dealt(share.bytes_error).unwrap_or(u64::MAX) + 1;
        Ok(share)
    }
}
