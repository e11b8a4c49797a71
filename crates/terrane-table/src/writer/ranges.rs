//! The range deletes of the current extent. They cover its entries and are written after its filter.

use terrane_base::{Error, Result};
use terrane_format::range_deletes::{Fragment, TRAILER_BYTES};

use super::ExtentWriter;

impl ExtentWriter {
    /// Adds a range of keys with the numbers of the range deletes that cover it.
    ///
    /// # Errors
    /// `Invalid` if it begins before the end of the one before.
    pub fn add_range_delete(&mut self, fragment: Fragment) -> Result<()> {
        let overlaps = |last: &Fragment| self.collation.lt(&fragment.start, &last.end);
        if self.range_deletes.last().is_some_and(overlaps) {
            return Err(Error::invalid("range deletes are added in order and do not overlap").of_order());
        }
        if self.range_deletes.is_empty() {
            self.range_bytes = TRAILER_BYTES;
        }
        debug_assert!(!fragment.seqs.is_empty(), "a range delete has a number");
        self.range_bytes += fragment.encoded_len();
        self.range_deletes.push(fragment);
        Ok(())
    }

    /// Number of range deletes so far.
    #[must_use]
    pub fn range_delete_count(&self) -> usize {
        self.range_deletes.len()
    }

    /// Bytes of the range deletes so far.
    #[must_use]
    pub fn range_delete_bytes(&self) -> usize {
        self.range_bytes
    }

    /// Cuts the last range delete at `end`, and returns the part after it.
    pub fn cut_range_delete(&mut self, end: &[u8]) -> Option<Fragment> {
        let collation = &self.collation;
        let last = self.range_deletes.last_mut().filter(|last| collation.lt(end, &last.end))?;
        let behind = Fragment { start: collation.max(&*last.start, end).to_vec(), ..last.clone() };
        if collation.le(end, &last.start) {
            self.range_deletes.pop();
        } else {
            last.end = end.to_vec();
        }
        debug_assert!(!behind.seqs.is_empty(), "the part behind hides as much as the part before");
        Some(behind)
    }

    pub(super) fn is_ranged(&self) -> bool {
        !self.range_deletes.is_empty()
    }
}
