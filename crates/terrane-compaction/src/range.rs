//! Ranges of keys, as claims, plans and requests hold them.

use std::fmt;
use std::ops::Bound;

use terrane_format::extent::ExtentMeta;

/// Keys from `start` (inclusive) to `end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// First key of the range, inclusive.
    pub start: Vec<u8>,
    /// Where the range ends.
    pub end: Bound<Vec<u8>>,
}

impl KeyRange {
    /// Every key.
    #[must_use]
    pub fn all() -> Self {
        KeyRange { start: Vec::new(), end: Bound::Unbounded }
    }

    /// From `first` to `last`, both inclusive.
    #[must_use]
    pub fn closed(first: &[u8], last: &[u8]) -> Self {
        KeyRange { start: first.to_vec(), end: Bound::Included(last.to_vec()) }
    }

    /// Whether a key is in the range.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.start.as_slice() <= key && !self.ends_before(key)
    }

    /// Whether the range ends before `key`.
    #[must_use]
    pub fn ends_before(&self, key: &[u8]) -> bool {
        match &self.end {
            Bound::Included(end) => end.as_slice() < key,
            Bound::Excluded(end) => end.as_slice() <= key,
            Bound::Unbounded => false,
        }
    }

    /// Whether both ranges have room for a common key.
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

/// Smallest and largest key over extents of several sorted lists, growing as they are added.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hull<'a> {
    bounds: Option<(&'a [u8], &'a [u8])>,
}

impl<'a> Hull<'a> {
    pub(crate) fn add(&mut self, meta: &'a ExtentMeta) {
        let (smallest, largest) = self.bounds.unwrap_or((&meta.smallest, &meta.largest));
        self.bounds = Some((smallest.min(&meta.smallest), largest.max(&meta.largest)));
    }

    pub(crate) fn bounds(&self) -> Option<(&'a [u8], &'a [u8])> {
        self.bounds
    }

    pub(crate) fn to_range(self) -> Option<KeyRange> {
        self.bounds.map(|(first, last)| KeyRange::closed(first, last))
    }
}
