//! A chunk: up to 128 neighbouring extents of a level, shared between the versions of the level.

use std::fmt::Debug;
use std::sync::Arc;

use terrane_format::extent::ExtentMeta;
use terrane_table::Extent;

use crate::fences::Fences;

/// Most extents in a chunk: a replacement copies this many pointers, and the array of chunks of a 1 TB level
/// still has under 5,000 places. Figures in `docs/design/0004-manifest.md`.
pub(crate) const CHUNK_LEN_MAX: usize = 128;
/// Chunks that shrink below this take in a neighbour.
pub(crate) const CHUNK_LEN_MIN: usize = CHUNK_LEN_MAX / 4;

/// An extent as a level holds it: open for reading in the engine, a mere description in the manifest.
pub trait HasMeta: Clone + Send + Sync + Debug {
    /// The extent's description.
    fn meta(&self) -> &ExtentMeta;
}

impl HasMeta for Arc<ExtentMeta> {
    fn meta(&self) -> &ExtentMeta {
        self
    }
}

impl HasMeta for Arc<Extent> {
    fn meta(&self) -> &ExtentMeta {
        &self.meta
    }
}

/// Sums over extents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// How many extents.
    pub extents: u64,
    /// Slots of 2 MB that they occupy.
    pub slots: u64,
    /// Stored bytes.
    pub bytes: u64,
    /// Bytes of keys and values before compression.
    pub raw_bytes: u64,
    /// Entries, deletes included.
    pub entries: u64,
    /// Entries that are deletes.
    pub deletes: u64,
}

impl Totals {
    /// The sums of one extent.
    #[must_use]
    pub fn of(meta: &ExtentMeta) -> Self {
        Totals {
            extents: 1,
            slots: u64::from(meta.slots),
            bytes: u64::from(meta.bytes),
            raw_bytes: meta.raw_bytes,
            entries: meta.entries,
            deletes: meta.deletes,
        }
    }

    /// Both together. Wraps, for the numbers may come from a hostile file; what was added can be taken off.
    #[must_use]
    pub fn plus(self, other: Totals) -> Totals {
        self.combine(other, u64::wrapping_add)
    }

    /// Without `other`.
    #[must_use]
    pub fn minus(self, other: Totals) -> Totals {
        self.combine(other, u64::wrapping_sub)
    }

    fn combine(self, other: Totals, with: impl Fn(u64, u64) -> u64) -> Totals {
        Totals {
            extents: with(self.extents, other.extents),
            slots: with(self.slots, other.slots),
            bytes: with(self.bytes, other.bytes),
            raw_bytes: with(self.raw_bytes, other.raw_bytes),
            entries: with(self.entries, other.entries),
            deletes: with(self.deletes, other.deletes),
        }
    }
}

/// Neighbouring extents. Never empty.
#[derive(Debug)]
pub(crate) struct Chunk<E> {
    pub(crate) items: Box<[E]>,
    /// Over the largest keys.
    fences: Fences,
    pub(crate) totals: Totals,
}

impl<E: HasMeta> Chunk<E> {
    /// Requires: `items` is not empty, sorted and disjoint.
    pub(crate) fn new(items: &[E]) -> Self {
        assert!(!items.is_empty(), "a chunk is never empty");
        let totals = items.iter().fold(Totals::default(), |sum, item| sum.plus(Totals::of(item.meta())));
        let fences = Fences::new(items.iter().map(|item| item.meta().largest.as_slice()));
        Chunk { items: items.into(), fences, totals }
    }

    /// Index of the first extent whose largest key is not less than `key`.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> usize {
        self.fences.find(key, |index| &self.items[index].meta().largest)
    }

    pub(crate) fn smallest(&self) -> &[u8] {
        &self.items[0].meta().smallest
    }

    pub(crate) fn largest(&self) -> &[u8] {
        &self.items[self.items.len() - 1].meta().largest
    }
}
