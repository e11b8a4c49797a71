//! Estimates the size of a range without reading its data.
//!
//! * Levels and runs: an extent within the range counts by its meta; the extents at the ends of the range, at
//!   most two in each sorted run, are estimated by their index blocks.
//! * Separated values: by the references of the same extents, and by what the value tables store for a byte
//!   of a live value on average.
//! * Memory: by walks of [`WALK_KEYS`] keys from the ends of the range, inward and outward
//!   ([`terrane_memtable::Measured`]).
//!
//! The count is of versions: deletes, and versions that newer ones or range deletes hide, count until a
//! compaction drops them. The answer includes a bound of its error.

use std::ops::Bound;
use std::sync::Arc;

use terrane_base::Result;
use terrane_levels::{Level, Totals, ValueTables};
use terrane_memtable::{Measured, Memtable};
use terrane_table::{Extent, Share};

use crate::read::scan::Bounds;
use crate::shared::Shared;
use crate::table::Table;

/// Keys that a walk in memory passes at most: a millisecond or less for all four.
const WALK_KEYS: usize = 4096;

/// A number that is not known exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// The estimate.
    pub value: u64,
    /// Bound of the error, for data that did not change meanwhile.
    pub error: u64,
}

impl Estimate {
    /// Returns true if `truth` is possible.
    ///
    /// ```
    /// # use terrane_engine::Estimate;
    /// let rows = Estimate { value: 1000, error: 50 };
    /// assert!(rows.admits(960) && !rows.admits(1100));
    /// ```
    #[must_use]
    pub fn admits(&self, truth: u64) -> bool {
        self.value.abs_diff(truth) <= self.error
    }

    fn add(&mut self, value: u64, error: u64) {
        self.value = self.value.saturating_add(value);
        self.error = self.error.saturating_add(error);
    }

    /// An estimate from a lower and an upper bound.
    fn add_between(&mut self, least: u64, greatest: u64) {
        debug_assert!(least <= greatest, "the bounds of an estimate are in order");
        let error = (greatest - least).div_ceil(2);
        self.add(least + (greatest - least) / 2, error);
    }
}

/// The estimated size of a range.
///
/// ```
/// # use terrane_engine::RangeEstimate;
/// fn show(range: &RangeEstimate) {
///     let bytes = range.bytes;
///     println!("{} bytes, {} more or less", bytes.value, bytes.error);
///     println!("{} of them in memory; {} versions", range.memory_bytes.value, range.entries.value);
/// }
/// # show(&RangeEstimate::default());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RangeEstimate {
    /// Bytes: of extents as stored, with their part of index and filter, of separated values as value tables
    /// store them, and of records in memory.
    pub bytes: Estimate,
    /// Of these bytes, those of records in memory.
    pub memory_bytes: Estimate,
    /// Of these bytes, those of separated values. They count as all values are compressed on average; the
    /// bound does not know how the values of the range are.
    pub value_bytes: Estimate,
    /// Versions of keys: those that are deletes, or hidden by newer ones, too.
    pub entries: Estimate,
}

impl Shared {
    /// Estimates the size of `bounds` in `table`. Reads no data block, and an index block only for extents
    /// that lie across the ends of the range and are not in the cache.
    ///
    /// # Errors
    /// `Io` or `Corrupt` from the store.
    pub fn approximate(&self, table: &Table, bounds: &Bounds) -> Result<RangeEstimate> {
        let mut estimate = RangeEstimate::default();
        if bounds.is_empty() {
            return Ok(estimate);
        }
        let view = table.pinned();
        let memtables = std::iter::once(&view.active).chain(&view.frozen);
        for memtable in memtables.chain(view.generations.iter().map(|generation| generation.index())) {
            estimate.add_memory(memtable, bounds);
        }
        for (_, level) in view.tree.places() {
            self.add_level(&mut estimate, (&view.tree.values, level), bounds)?;
        }
        debug_assert!(
            estimate.memory_bytes.value.max(estimate.value_bytes.value) <= estimate.bytes.value,
            "records in memory and separated values are parts of the bytes: {estimate:?}"
        );
        Ok(estimate)
    }

    fn add_level(
        &self,
        estimate: &mut RangeEstimate,
        (values, level): (&ValueTables<Arc<Extent>>, &Level),
        bounds: &Bounds,
    ) -> Result<()> {
        let (lower, upper) = bounds.as_slices();
        let mut within = level.overlapping(lower, upper);
        // Those at the ends may lie across them; the others lie between two that overlap the range.
        let mut ends = Vec::new();
        if !within.is_empty() {
            ends.push(within.start);
            within.start += 1;
        }
        if !within.is_empty() {
            within.end -= 1;
            ends.push(within.end);
        }
        debug_assert!(
            ends.iter().all(|end| !within.contains(end)),
            "an extent at an end of the range counts twice"
        );
        for end in ends {
            let extent = level.get(end);
            let meta = &extent.meta;
            let of_values = values.stored_bytes_of(Totals::of(meta).separated_bytes);
            if bounds.above_lower(&meta.smallest) && bounds.below_upper(&meta.largest) {
                estimate.bytes.add(u64::from(meta.bytes), 0);
                estimate.entries.add(meta.entries, 0);
                estimate.add_values(of_values, 0);
            } else {
                let share = extent.measure(&self.cache, lower, upper)?;
                estimate.bytes.add(share.bytes, share.bytes_error);
                estimate.entries.add(share.entries, share.entries_error);
                estimate.add_share_of_values(of_values, &share, meta.entries);
            }
        }
        let totals = level.totals_of(within);
        estimate.bytes.add(totals.bytes, 0);
        estimate.entries.add(totals.entries, 0);
        estimate.add_values(values.stored_bytes_of(totals.separated_bytes), 0);
        Ok(())
    }
}

impl RangeEstimate {
    fn add_values(&mut self, bytes: u64, error: u64) {
        // One more for the rounding of the division.
        let error = if bytes == 0 { error } else { error.saturating_add(1) };
        self.bytes.add(bytes, error);
        self.value_bytes.add(bytes, error);
    }

    /// Of an extent whose entries have values of these stored bytes, and of which a share is in the range:
    /// which values the share has is not known.
    fn add_share_of_values(&mut self, of_values: u64, share: &Share, entries: u64) {
        let mean = u128::from(of_values) * u128::from(share.entries) / u128::from(entries.max(1));
        let mean = u64::try_from(mean).unwrap_or(u64::MAX).min(of_values);
        let is_empty = share.entries == 0 && share.entries_error == 0;
        self.add_values(mean, if is_empty { 0 } else { mean.max(of_values - mean) });
    }

    fn add_memory(&mut self, memtable: &Memtable, bounds: &Bounds) {
        let (lower, upper) = bounds.as_slices();
        let Measured { entries_min, entries_max, bytes_min, bytes_max } =
            memtable.measure(lower, upper, WALK_KEYS);
        debug_assert!(entries_min <= entries_max && bytes_min <= bytes_max, "the least is above the most");
        self.entries.add_between(entries_min, entries_max);
        self.bytes.add_between(bytes_min, bytes_max);
        self.memory_bytes.add_between(bytes_min, bytes_max);
    }
}

impl Bounds {
    /// Both bounds, borrowed.
    pub(crate) fn as_slices(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (self.lower.as_ref().map(Vec::as_slice), self.upper.as_ref().map(Vec::as_slice))
    }

    /// Returns true if no key can lie within.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match (&self.lower, &self.upper) {
            (Bound::Included(lower), Bound::Included(upper)) => self.collation.lt(upper, lower),
            (Bound::Included(lower) | Bound::Excluded(lower), Bound::Excluded(upper))
            | (Bound::Excluded(lower), Bound::Included(upper)) => self.collation.le(upper, lower),
            _ => false,
        }
    }
}
