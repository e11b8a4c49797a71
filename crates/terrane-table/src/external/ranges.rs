//! The range deletes of an external file that is being written. They come in any order among each other and
//! among the entries, whose extents are written already. So they are collected until the end and get extents
//! of their own.

use terrane_base::{Collation, Error, Result, key, verify};
use terrane_format::dump;
use terrane_format::extent::UNNUMBERED_SEQ;
use terrane_format::range_deletes::{END_BYTES_MAX, Fragment};
use terrane_storage::SLOT_BYTES;

/// Bytes of range deletes that fill an extent: the rest of its slot is for its other parts.
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
                "range delete from {} to before {}: the range is empty, its start must be less than its end",
                dump::text(start),
                dump::text(end)
            )));
        }
        Ok(Fragment { start: start.to_vec(), end: end.to_vec(), seqs: vec![UNNUMBERED_SEQ] })
    }

    /// Most slots that all of them take, `other` included.
    pub(super) fn slots_with(&self, other: Option<&Fragment>) -> usize {
        match self.bytes + other.map_or(0, Fragment::encoded_len) {
            0 => 0,
            // Each extent except the last is full up to less than one range delete.
            bytes => 1 + bytes / (EXTENT_RANGE_BYTES - FRAGMENT_BYTES_MAX),
        }
    }

    pub(super) fn push(&mut self, fragment: Fragment) {
        debug_assert!(fragment.encoded_len() <= FRAGMENT_BYTES_MAX, "extents are planned for shorter ones");
        self.bytes += fragment.encoded_len();
        self.fragments.push(fragment);
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// All of them in key order. Those that overlap or meet are joined, because they have one number.
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
        verify!(
            !collation.is_bytes() || joined.is_sorted_by(|a, b| a.end < b.start),
            "range deletes that meet are one"
        );
        joined
    }
}
