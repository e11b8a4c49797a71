//! Ranges of keys in claims, plans and requests.

use std::fmt;
use std::ops::Bound;

use terrane_base::Collation;
use terrane_format::extent::ExtentMeta;

/// Keys from `start` (inclusive) to `end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// First key of the range, inclusive.
    pub start: Vec<u8>,
    /// End of the range.
    pub end: Bound<Vec<u8>>,
    /// Key order of the table.
    pub collation: Collation,
}

impl KeyRange {
    /// Every key, in any order.
    #[must_use]
    pub fn all() -> Self {
        KeyRange { start: Vec::new(), end: Bound::Unbounded, collation: Collation::BYTES }
    }

    /// From `first` to `last`, both inclusive.
    #[must_use]
    pub fn closed(first: &[u8], last: &[u8]) -> Self {
        KeyRange { start: first.to_vec(), end: Bound::Included(last.to_vec()), collation: Collation::BYTES }
    }

    /// The same range with this key order.
    #[must_use]
    pub fn ordered(self, collation: &Collation) -> Self {
        KeyRange { collation: collation.clone(), ..self }
    }

    /// Returns true if a key is in the range.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.collation.le(&self.start, key) && !self.ends_before(key)
    }

    /// Returns true if the range ends before `key`.
    #[must_use]
    pub fn ends_before(&self, key: &[u8]) -> bool {
        match &self.end {
            Bound::Included(end) => self.collation.lt(end, key),
            Bound::Excluded(end) => self.collation.le(end, key),
            Bound::Unbounded => false,
        }
    }

    /// Returns true if both ranges may contain a common key.
    #[must_use]
    pub fn overlaps(&self, other: &KeyRange) -> bool {
        !self.ends_before(&other.start) && !other.ends_before(&self.start)
    }
}

/// `a..=m`, `a..m`, `a..`; bytes that do not print are escaped.
impl fmt::Display for KeyRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..", self.start.escape_ascii())?;
        match &self.end {
            Bound::Included(end) => write!(f, "={}", end.escape_ascii()),
            Bound::Excluded(end) => write!(f, "{}", end.escape_ascii()),
            Bound::Unbounded => Ok(()),
        }
    }
}

/// Smallest and largest key of extents of several sorted lists, growing as extents are added.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hull<'a> {
    bounds: Option<(&'a [u8], &'a [u8])>,
    collation: Option<&'a Collation>,
}

impl<'a> Hull<'a> {
    pub(crate) fn add(&mut self, meta: &'a ExtentMeta) {
        let (smallest, largest) = self.bounds.unwrap_or((&meta.smallest, &meta.largest));
        let collation = &meta.collation;
        let (first, last) = (collation.min(smallest, &meta.smallest), collation.max(largest, &meta.largest));
        debug_assert!(!collation.is_bytes() || first <= last, "extent {} ends before it begins", meta.id);
        self.bounds = Some((first, last));
        self.collation = Some(collation);
    }

    pub(crate) fn bounds(&self) -> Option<(&'a [u8], &'a [u8])> {
        self.bounds
    }

    pub(crate) fn to_range(self) -> Option<KeyRange> {
        let range = self.bounds.map(|(first, last)| KeyRange::closed(first, last))?;
        let range = range.ordered(self.collation.unwrap_or(&Collation::BYTES));
        debug_assert!(
            !range.collation.is_bytes() || !range.ends_before(&range.start),
            "the range of extents ends at its start or behind it"
        );
        Some(range)
    }
}
