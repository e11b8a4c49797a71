//! Where a scan begins and ends.

use std::ops::Bound;

use terrane_base::{Collation, key};

/// Where a scan begins and ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Least key.
    pub lower: Bound<Vec<u8>>,
    /// Greatest key.
    pub upper: Bound<Vec<u8>>,
    /// How the keys are ordered.
    pub collation: Collation,
}

impl Bounds {
    /// All keys, in whatever order.
    #[must_use]
    pub fn all() -> Self {
        Bounds { lower: Bound::Unbounded, upper: Bound::Unbounded, collation: Collation::BYTES }
    }

    /// Bytes of its keys.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let of = |bound: &Bound<Vec<u8>>| match bound {
            Bound::Included(key) | Bound::Excluded(key) => key.len() as u64,
            Bound::Unbounded => 0,
        };
        of(&self.lower) + of(&self.upper)
    }

    /// All keys that begin with `prefix`.
    #[must_use]
    pub fn prefix(prefix: &[u8]) -> Self {
        let upper = match key::prefix_end(prefix) {
            Some(end) => Bound::Excluded(end),
            None => Bound::Unbounded,
        };
        Bounds { lower: Bound::Included(prefix.to_vec()), upper, collation: Collation::BYTES }
    }

    /// Returns true if every key within the bounds begins with `prefix`.
    pub(crate) fn are_within(&self, prefix: &[u8]) -> bool {
        if !self.collation.is_bytes() {
            return false;
        }
        let (Bound::Included(lower) | Bound::Excluded(lower)) = &self.lower else { return prefix.is_empty() };
        lower.starts_with(prefix)
            && key::prefix_end(prefix).is_none_or(|end| match &self.upper {
                Bound::Included(upper) => upper.starts_with(prefix),
                Bound::Excluded(upper) => *upper <= end,
                Bound::Unbounded => false,
            })
    }

    /// Returns true if `key` is at or above the lower bound.
    #[inline]
    #[must_use]
    pub fn above_lower(&self, key: &[u8]) -> bool {
        self.collation.is_above(key, self.lower.as_ref().map(Vec::as_slice))
    }

    /// Returns true if `key` is at or below the upper bound.
    #[inline]
    #[must_use]
    pub fn below_upper(&self, key: &[u8]) -> bool {
        match &self.upper {
            Bound::Excluded(bound) if terrane_base::planted!(WrongUpperBound) => {
                self.collation.le(key, bound)
            }
            upper => self.collation.is_below(key, upper.as_ref().map(Vec::as_slice)),
        }
    }
}
