//! The range deletes of an external file that is being written. They come in any order, among each other and among the entries,
//! whose extents are in the file already: so they are kept until the end and get extents of their own.

use terrane_base::{Collation, Error, Result, key};
use terrane_format::dump;
use terrane_format::extent::UNNUMBERED_SEQ;
use terrane_format::range_deletes::{END_BYTES_MAX, Fragment};
use terrane_storage::SLOT_BYTES;

/// Bytes of range deletes with which an extent is full: the rest of its slot is for what else it has.
pub(super) const EXTENT_RANGE_BYTES: usize = SLOT_BYTES - SLOT_BYTES / 8;
/// Bytes that one range delete takes at most, with its lengths and its number.
const FRAGMENT_BYTES_MAX: usize = 2 * END_BYTES_MAX + 32;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct PendingRanges {
    fragments: Vec<Fragment>,
    bytes: usize,
}

impl PendingRanges {
    /// The range from `start` to before `end` as a range delete without a number.
    ///
    /// # Errors
    /// `Invalid` if a key is beyond the limits, or no key lies in between.
    pub(super) fn checked(start: &[u8], end: &[u8], collation: &Collation) -> Result<Fragment> {
        key::check_key(start)?;
        key::check_key(end)?;
        if collation.le(end, start) {
            return Err(Error::invalid(format!(
                "range delete from {} to before {}: no key lies in between, the first one must be less than the second",
                dump::text(start),
                dump::text(end)
            )));
        }
        Ok(Fragment { start: start.to_vec(), end: end.to_vec(), seqs: vec![UNNUMBERED_SEQ] })
    }

    /// Slots that all of them take at most, and `other` with them.
    pub(super) fn slots_with(&self, other: Option<&Fragment>) -> usize {
        match self.bytes + other.map_or(0, Fragment::encoded_len) {
            0 => 0,
            // Each extent but the last one is full but for less than one range delete.
            bytes => 1 + bytes / (EXTENT_RANGE_BYTES - FRAGMENT_BYTES_MAX),
        }
    }

    pub(super) fn push(&mut self, fragment: Fragment) {
        self.bytes += fragment.encoded_len();
        self.fragments.push(fragment);
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// All of them in key order; those that overlap or meet are one, for they have one number.
    pub(super) fn joined(&mut self, collation: &Collation) -> Vec<Fragment> {
        let mut fragments = std::mem::take(&mut self.fragments);
        collation.sort_by_key(&mut fragments, |fragment| &fragment.start);
        let mut joined: Vec<Fragment> = Vec::new();
        for fragment in fragments {
            match joined.last_mut() {
                Some(last) if collation.le(&fragment.start, &last.end) => {
                    if collation.lt(&last.end, &fragment.end) {
                        last.end = fragment.end;
                    }
                }
                _ => joined.push(fragment),
            }
        }
        joined
    }
}
