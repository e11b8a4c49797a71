//! A chunk: up to 128 neighbouring extents of a level, shared between the versions of the level.
//!
//! ```text
//! Chunk   heads of the groups' last largest keys, 1 line | common prefix, 1 line | -> groups, totals
//! Group   16 heads of largest keys, 2 lines | 16 heads of smallest keys, 2 lines | 16 extents, 2 lines
//! ```
//!
//! A *head* is the 8 bytes of a key after the common prefix of the chunk's keys. The first cache lines of all
//! chunks are adjacent in the level. In a level of any size that is not in the processor's cache, a lookup
//! misses for the group (whose lines are prefetched together) and for the extent. Whole keys are compared
//! only if heads are equal.
//!
//! Invariants: extents are sorted and disjoint; every group but the last is full; the heads of unused
//! elements are the greatest; a chunk is never empty.

use std::cmp::Ordering;
use std::fmt::Debug;
use std::sync::Arc;

use terrane_base::Collation;
use terrane_base::prefetch::prefetch_lines;
use terrane_format::extent::ExtentMeta;
use terrane_table::Extent;

use crate::decay::Decay;
use crate::fences::count_less;

/// Most extents in a chunk: a replacement copies this many pointers, and the array of chunks of a 1 TB level
/// still has fewer than 5,000 elements. Measurements in `docs/design/0004-manifest.md`.
pub(crate) const CHUNK_LEN_MAX: usize = GROUPS_MAX * GROUP_LEN;
/// A chunk that shrinks below this is joined with a neighbour.
pub(crate) const CHUNK_LEN_MIN: usize = CHUNK_LEN_MAX / 4;

/// Extents of a group, and groups of a chunk.
const GROUP_LEN: usize = 16;
const GROUPS_MAX: usize = 8;
/// Stored instead of a prefix length if a comparator orders the keys: all heads are the same then.
const BY_COMPARATOR: u32 = u32::MAX;
/// Bytes of the common prefix that are kept; the rest of it belongs to the heads.
const PREFIX_MAX: usize = 60;

/// An extent as a level holds it: opened for reading in the engine, only described in the manifest.
pub trait HasMeta: Clone + Send + Sync + Debug {
    /// The extent's description.
    fn meta(&self) -> &ExtentMeta;
}

/// The largest key of an extent. While its comparator is not available its range is unknown: then this is its
/// smallest key, by whose bytes such extents are sorted.
#[inline]
pub(crate) fn top(meta: &ExtentMeta) -> &[u8] {
    if meta.collation.is_missing() { &meta.smallest } else { &meta.largest }
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
    /// Data blocks.
    pub blocks: u64,
    /// Bytes of the data blocks before compression.
    pub raw_bytes: u64,
    /// Entries, deletes included.
    pub entries: u64,
    /// Entries that are deletes.
    pub deletes: u64,
    /// Fragments of range deletes.
    pub range_deletes: u64,
    /// Entries that expire.
    pub expiring: u64,
    /// Bytes of the separated values that entries point to.
    pub separated_bytes: u64,
}

impl Totals {
    /// The sums of one extent.
    #[must_use]
    pub fn of(meta: &ExtentMeta) -> Self {
        Totals {
            extents: 1,
            slots: u64::from(meta.slots),
            bytes: u64::from(meta.bytes),
            blocks: u64::from(meta.blocks),
            raw_bytes: meta.raw_bytes,
            entries: meta.entries,
            deletes: meta.deletes,
            range_deletes: meta.range_deletes.as_ref().map_or(0, |section| u64::from(section.fragments)),
            expiring: meta.expiry.map_or(0, |expiry| expiry.entries),
            separated_bytes: meta.references().iter().fold(0, |sum, it| sum.wrapping_add(it.bytes)),
        }
    }

    /// The sum of both. Wraps, because the numbers may come from a hostile file; subtracting gives the old
    /// sum again.
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
            blocks: with(self.blocks, other.blocks),
            raw_bytes: with(self.raw_bytes, other.raw_bytes),
            entries: with(self.entries, other.entries),
            deletes: with(self.deletes, other.deletes),
            range_deletes: with(self.range_deletes, other.range_deletes),
            expiring: with(self.expiring, other.expiring),
            separated_bytes: with(self.separated_bytes, other.separated_bytes),
        }
    }
}

/// Neighbouring extents. Never empty.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Chunk<E> {
    /// Heads of the largest keys of each group.
    tops: [u64; GROUPS_MAX],
    prefix: [u8; PREFIX_MAX],
    prefix_len: u32,
    groups: Arc<[Group<E>]>,
    len: usize,
    pub(crate) totals: Totals,
    /// When its extents reach which share of dead entries.
    pub(crate) decay: Decay,
}

#[derive(Debug)]
#[repr(C, align(64))]
struct Group<E> {
    largest: [u64; GROUP_LEN],
    smallest: [u64; GROUP_LEN],
    items: [Option<E>; GROUP_LEN],
}

impl<E> Clone for Chunk<E> {
    fn clone(&self) -> Self {
        Chunk { groups: self.groups.clone(), ..*self }
    }
}

impl<E: HasMeta> Group<E> {
    /// Requires: at most [`GROUP_LEN`] items, whose keys all have the first `prefix_len` bytes in common.
    fn new(items: &[E], prefix_len: usize) -> Self {
        let head_of = |at: usize, key: fn(&ExtentMeta) -> &[u8]| {
            let head = |meta: &ExtentMeta| meta.collation.head(&key(meta)[prefix_len..]);
            items.get(at).map_or(u64::MAX, |item| head(item.meta()))
        };
        Group {
            largest: std::array::from_fn(|at| head_of(at, top)),
            smallest: std::array::from_fn(|at| head_of(at, |meta| &meta.smallest)),
            items: std::array::from_fn(|at| items.get(at).cloned()),
        }
    }
}

impl<E: HasMeta> Chunk<E> {
    /// Requires: `items` is not empty, sorted and disjoint, and at most [`CHUNK_LEN_MAX`] long.
    pub(crate) fn new(items: &[E]) -> Self {
        assert!((1..=CHUNK_LEN_MAX).contains(&items.len()), "a chunk is neither empty nor too long");
        let totals = items.iter().fold(Totals::default(), |sum, item| sum.plus(Totals::of(item.meta())));
        let decay = Decay::of(items.iter().map(HasMeta::meta));
        let first = items[0].meta().smallest.as_slice();
        let collation = &items[0].meta().collation;
        let prefix_len = collation.common_len(first, top(items[items.len() - 1].meta())).min(PREFIX_MAX);
        let mut prefix = [0; PREFIX_MAX];
        prefix[..prefix_len].copy_from_slice(&first[..prefix_len]);
        let groups: Arc<[_]> = items.chunks(GROUP_LEN).map(|part| Group::new(part, prefix_len)).collect();
        let last = |part: &[E]| collation.head(&top(part[part.len() - 1].meta())[prefix_len..]);
        let mut tops = [u64::MAX; GROUPS_MAX];
        for (top, part) in tops.iter_mut().zip(items.chunks(GROUP_LEN)) {
            *top = last(part);
        }
        let prefix_len = if collation.is_bytes() { prefix_len as u32 } else { BY_COMPARATOR };
        assert!(groups.len() == items.len().div_ceil(GROUP_LEN), "every group but the last is full");
        debug_assert!(totals.extents == items.len() as u64, "each extent is counted once");
        Chunk { tops, prefix, prefix_len, groups, len: items.len(), totals, decay }
    }

    /// How many extents.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The extent at `index`. Requires: `index < len()`.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> &E {
        debug_assert!(index < self.len, "extent {index} is one of the chunk's {}", self.len);
        let item = &self.groups[index / GROUP_LEN].items[index % GROUP_LEN];
        item.as_ref().expect("places below the length are filled")
    }

    /// The extents in order.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &E> {
        self.groups.iter().flat_map(|group| group.items.iter().flatten())
    }

    /// Returns true if both are versions of a level's same chunk.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.groups, &other.groups)
    }

    /// Index of the first extent whose largest key is not less than `key`, or `len()`.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> usize {
        let found = match self.head_of(key) {
            Ok(wanted) => self.find_head(key, wanted),
            Err(Ordering::Less) => 0,
            Err(_) => self.len,
        };
        debug_assert!(
            self.is_first_not_less(found, key),
            "heads and whole keys lead to the same extent, not to {found}"
        );
        found
    }

    /// True if `found` is what [`Chunk::find`] has to return for `key`, which whole keys decide. What a
    /// comparator orders is not looked at: it may break its promise.
    fn is_first_not_less(&self, found: usize, key: &[u8]) -> bool {
        let largest = |index: usize| top(self.get(index).meta());
        let is_less_before = found.checked_sub(1).is_none_or(|before| largest(before) < key);
        self.prefix_len == BY_COMPARATOR || is_less_before && (found == self.len || largest(found) >= key)
    }

    /// The extent whose range includes `key`.
    #[inline]
    pub(crate) fn covering(&self, key: &[u8]) -> Option<&E> {
        // Every key of the chunk has the prefix: a key without it lies outside the chunk.
        let wanted = self.head_of(key).ok()?;
        let index = self.find_head(key, wanted);
        let group = self.groups.get(index / GROUP_LEN)?;
        let found = group.items[index % GROUP_LEN].as_ref()?;
        let is_covered = match group.smallest[index % GROUP_LEN].cmp(&wanted) {
            Ordering::Less => true,
            Ordering::Equal => found.meta().collation.le(&found.meta().smallest, key),
            Ordering::Greater => false,
        };
        let is_within = |meta: &ExtentMeta| meta.smallest.as_slice() <= key && top(meta) >= key;
        debug_assert!(
            !is_covered || self.prefix_len == BY_COMPARATOR || is_within(found.meta()),
            "an extent that covers a key has it between its smallest and its largest"
        );
        is_covered.then_some(found)
    }

    /// Key order of the table.
    pub(crate) fn collation(&self) -> &Collation {
        &self.get(0).meta().collation
    }

    pub(crate) fn smallest(&self) -> &[u8] {
        &self.get(0).meta().smallest
    }

    pub(crate) fn largest(&self) -> &[u8] {
        top(self.get(self.len - 1).meta())
    }

    /// The head of a key with the common prefix; for another key, the side of the chunk on which it lies.
    #[inline]
    fn head_of(&self, key: &[u8]) -> Result<u64, Ordering> {
        debug_assert!(
            self.prefix_len == BY_COMPARATOR || self.prefix_len as usize <= PREFIX_MAX,
            "a chunk keeps a prefix of {PREFIX_MAX} bytes at most, not of {}",
            self.prefix_len
        );
        let Some(prefix) = self.prefix.get(..self.prefix_len as usize) else { return Ok(0) };
        match key.strip_prefix(prefix) {
            Some(rest) => Ok(Collation::BYTES.head(rest)),
            // A key that is a part of the prefix comes before every key that has it.
            None => Err(key.cmp(prefix)),
        }
    }

    #[inline(always)]
    fn find_head(&self, key: &[u8], wanted: u64) -> usize {
        let at = count_less(&self.tops, wanted);
        let Some(group) = self.groups.get(at) else { return self.len };
        prefetch_lines(std::ptr::from_ref(group), size_of::<Group<E>>() / 64);
        let within = count_less(&group.largest, wanted);
        let index = at * GROUP_LEN + within;
        debug_assert!(index <= self.len, "places behind the length have the greatest heads");
        if within < GROUP_LEN && group.largest[within] == wanted {
            self.find_equal(key, wanted, index)
        } else {
            index
        }
    }

    /// Searches among extents whose largest keys have the wanted head, from `low` on, by whole keys.
    #[cold]
    fn find_equal(&self, key: &[u8], wanted: u64, mut low: usize) -> usize {
        let mut high = low;
        while high < self.len && self.groups[high / GROUP_LEN].largest[high % GROUP_LEN] == wanted {
            high += 1;
        }
        while low < high {
            let middle = low.midpoint(high);
            let meta = self.get(middle).meta();
            if meta.collation.lt(top(meta), key) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        debug_assert!(low <= self.len, "a place in the chunk, or behind it");
        low
    }
}
