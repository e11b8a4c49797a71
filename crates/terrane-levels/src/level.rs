//! A level: a sorted array of extents whose key ranges do not overlap, in chunks.
//!
//! ```text
//! Level   heads of the chunks' largest keys [u64]   chunks [Chunk], side by side
//! Chunk   heads of its groups, prefix               groups of 16 extents with their heads, up to 128 extents
//! ```
//!
//! Invariants, checked when a level is created:
//! 1. `smallest <= largest` in each extent, and `largest < smallest` of the next extent.
//! 2. No chunk is empty or longer than `CHUNK_LEN_MAX`.
//! 3. Fences, starts and totals match the chunks.
//!
//! A level is immutable once shared: [`Level::replace`] makes a new one that shares every chunk it does not
//! change. Only an unshared level is changed in place (while a manifest is loaded).

use std::ops::{Bound, Range};
use std::sync::Arc;

use terrane_base::{ExtentId, Moment, Result, verify};
use terrane_format::extent::ExtentMeta;
use terrane_table::{Extent, ExtentList};

use crate::chunk::{CHUNK_LEN_MAX, Chunk, HasMeta, Totals};
use crate::fences::Fences;

/// A level of at most so many extents is checked after each change, a longer one after one of so many.
const CHECKED_LEN: usize = 256;

/// A level: extents sorted by key whose ranges do not overlap, in chunks that versions of the level share.
///
/// Immutable once shared; [`Level::replace`] makes a new one.
#[derive(Debug)]
pub struct Level<E = Arc<Extent>> {
    pub(crate) chunks: Vec<Chunk<E>>,
    /// Index of each chunk's first extent.
    pub(crate) starts: Vec<u32>,
    /// Over the chunks' largest keys.
    pub(crate) fences: Fences,
    pub(crate) totals: Totals,
}

/// An extent that [`Level::replace`] removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removal<'a> {
    /// Its id.
    pub id: ExtentId,
    /// Its smallest key, by which it is found.
    pub smallest: &'a [u8],
}

impl<E> Default for Level<E> {
    fn default() -> Self {
        Level { chunks: Vec::new(), starts: Vec::new(), fences: Fences::default(), totals: Totals::default() }
    }
}

impl<E> Clone for Level<E> {
    fn clone(&self) -> Self {
        Level {
            chunks: self.chunks.clone(),
            starts: self.starts.clone(),
            fences: self.fences.clone(),
            totals: self.totals,
        }
    }
}

impl<E: HasMeta> Level<E> {
    /// A level without extents.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A level of `extents`, in any order.
    ///
    /// # Errors
    /// `Invalid` if two of them overlap.
    pub fn from_extents(extents: Vec<E>) -> Result<Self> {
        let mut level = Self::default();
        level.replace_in_place(&[], extents)?;
        Ok(level)
    }

    /// The level without `removed` and with `added`, each in any order. Shares every chunk that neither
    /// touches: costs O(changed x chunk length + chunks).
    ///
    /// # Errors
    /// `Invalid` if an extent to be removed is missing or named twice, or if extents of the result would
    /// overlap.
    pub fn replace(&self, removed: &[Removal<'_>], added: Vec<E>) -> Result<Self> {
        let added_count = added.len();
        let mut level = self.clone();
        level.replace_in_place(removed, added)?;
        debug_assert!(level.len() + removed.len() == self.len() + added_count, "each change is made once");
        Ok(level)
    }

    /// As [`Level::replace`], in place. Unchanged after an error. Returns the removed extents.
    pub(crate) fn replace_in_place(&mut self, removed: &[Removal<'_>], added: Vec<E>) -> Result<Vec<E>> {
        let (plan, gone) = self.plan(removed, added)?;
        self.carry_out(plan);
        // Sampled: edits that add one extent each would take quadratic time. A caller's comparator may break
        // its promise.
        let is_checked = self.len() <= CHECKED_LEN || self.len().is_multiple_of(CHECKED_LEN);
        verify!(!is_checked || !self.fences.collation().is_bytes() || self.check().is_ok());
        Ok(gone)
    }

    /// Number of extents.
    #[must_use]
    pub fn len(&self) -> usize {
        self.totals.extents as usize
    }

    /// Returns true if there are no extents.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Sums over all extents.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// The extent at `index`. Requires: `index < len()`.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> &E {
        let chunk = self.chunk_of(index);
        self.chunks[chunk].get(index - self.starts[chunk] as usize)
    }

    /// The extents in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &E> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    /// The extents at a range of indexes, in order. Requires: the range is within `0..len()`.
    pub fn range(&self, range: Range<usize>) -> impl Iterator<Item = &E> {
        let chunk = if range.is_empty() { self.chunks.len() } else { self.chunk_of(range.start) };
        debug_assert!(range.end <= self.len() || range.is_empty(), "{range:?} of {} extents", self.len());
        let skip = range.start - self.starts.get(chunk).map_or(range.start, |start| *start as usize);
        self.chunks[chunk..].iter().flat_map(|chunk| chunk.iter()).skip(skip).take(range.len())
    }

    /// Index of the first extent whose largest key is not less than `key`, or `len()`: the only extent that
    /// may hold `key`.
    #[inline]
    #[must_use]
    pub fn find(&self, key: &[u8]) -> usize {
        let chunk = self.find_chunk(key);
        match self.chunks.get(chunk) {
            Some(found) => {
                let within = found.find(key);
                debug_assert!(
                    within < found.len() || !self.fences.collation().is_bytes(),
                    "the fence of chunk {chunk} is the largest key of its last extent"
                );
                self.starts[chunk] as usize + within
            }
            None => self.len(),
        }
    }

    /// The only extent that may hold `key`: the one whose range includes it.
    #[inline]
    #[must_use]
    pub fn covering(&self, key: &[u8]) -> Option<&E> {
        self.chunks.get(self.find_chunk(key))?.covering(key)
    }

    /// Indexes of the extents that may have keys within bounds, by their smallest and largest keys.
    #[must_use]
    pub fn overlapping(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Range<usize> {
        let start = match lower {
            Bound::Unbounded => 0,
            Bound::Included(key) => self.find(key),
            Bound::Excluded(key) => {
                let found = self.find(key);
                found + usize::from(found < self.len() && self.get(found).meta().largest == key)
            }
        };
        let starts_by = |key: &[u8], inclusive: bool| {
            let found = self.find(key);
            let collation = self.fences.collation();
            let reaches = |smallest: &[u8]| collation.lt(smallest, key) || (inclusive && smallest == key);
            found + usize::from(found < self.len() && reaches(&self.get(found).meta().smallest))
        };
        let end = match upper {
            Bound::Unbounded => self.len(),
            Bound::Included(key) => starts_by(key, true),
            Bound::Excluded(key) => starts_by(key, false),
        };
        debug_assert!(start <= self.len() && end <= self.len(), "places in the level: {start}..{end}");
        start..end.max(start)
    }

    /// Sums over the extents at a range of indexes; looks only into the chunks at its ends. Requires: it is
    /// within `0..len()`.
    #[must_use]
    pub fn totals_of(&self, range: Range<usize>) -> Totals {
        debug_assert!(range.end <= self.len(), "{range:?} of {} extents", self.len());
        let mut sum = Totals::default();
        let mut at = range.start;
        while at < range.end {
            let chunk = self.chunk_of(at);
            let start = self.starts[chunk] as usize;
            let end = start + self.chunks[chunk].len();
            if at == start && end <= range.end {
                sum = sum.plus(self.chunks[chunk].totals);
            } else {
                for index in at..end.min(range.end) {
                    sum = sum.plus(Totals::of(self.chunks[chunk].get(index - start).meta()));
                }
            }
            at = end;
        }
        sum
    }

    /// Index of the first extent from `from` on that has range deletes; reads only chunks that have any.
    #[must_use]
    pub fn next_ranged(&self, from: usize) -> Option<usize> {
        if self.totals.range_deletes == 0 {
            return None;
        }
        let may_have = |chunk: &Chunk<E>| chunk.totals.range_deletes > 0;
        let found = self.next_within(from, may_have, &|meta| meta.range_deletes.is_some());
        debug_assert!(
            found.is_none_or(|at| (from..self.len()).contains(&at)),
            "a walk over the level would not end"
        );
        found
    }

    /// Index of the first extent from `from` on that is `wanted`, among those with range deletes or with
    /// `permille` of their entries dead at `now` (deletes or expired entries); reads only chunks that may
    /// have such extents.
    #[must_use]
    pub fn next_decayed(
        &self,
        from: usize,
        permille: u64,
        now: Moment,
        wanted: &dyn Fn(&ExtentMeta) -> bool,
    ) -> Option<usize> {
        let may_have =
            |chunk: &Chunk<E>| chunk.totals.range_deletes > 0 || chunk.decay.may_reach(permille, now);
        self.next_within(from, may_have, wanted)
    }

    /// Index of the first extent from `from` on that is `wanted`, in chunks that may have one.
    fn next_within(
        &self,
        from: usize,
        may_have: impl Fn(&Chunk<E>) -> bool,
        wanted: &dyn Fn(&ExtentMeta) -> bool,
    ) -> Option<usize> {
        if from >= self.len() {
            return None;
        }
        let first = self.chunk_of(from);
        debug_assert!(self.starts[first] as usize <= from, "extent {from} lies before its chunk");
        let chunks = self.chunks[first..].iter().zip(&self.starts[first..]);
        chunks.filter(|(chunk, _)| may_have(chunk)).find_map(|(chunk, start)| {
            let start = *start as usize;
            let skipped = from.saturating_sub(start);
            let mut extents = chunk.iter().enumerate().skip(skipped);
            extents.find(|(_, extent)| wanted(extent.meta())).map(|(at, _)| start + at)
        })
    }

    /// Number of chunks.
    #[must_use]
    pub fn chunk_count(&self) -> usize {
        self.chunks.len()
    }

    /// Number of chunks that the level shares with `other`.
    #[must_use]
    pub fn shared_chunk_count(&self, other: &Self) -> usize {
        // Both sides are in key order, and a shared chunk begins with the same key.
        let mut theirs = other.chunks.iter().peekable();
        let is_shared = |chunk: &&Chunk<E>| {
            let collation = self.fences.collation();
            while theirs.next_if(|their| collation.lt(their.smallest(), chunk.smallest())).is_some() {}
            theirs.peek().is_some_and(|their| their.is_same(chunk))
        };
        self.chunks.iter().filter(is_shared).count()
    }

    /// A level of the same shape with the extents that `make` returns for these.
    ///
    /// # Errors
    /// Any error of `make`.
    pub fn try_map<F: HasMeta>(&self, mut make: impl FnMut(&E) -> Result<F>) -> Result<Level<F>> {
        let mut chunks = Vec::with_capacity(self.chunks.len());
        for chunk in &self.chunks {
            let items = chunk.iter().map(&mut make).collect::<Result<Vec<F>>>()?;
            chunks.push(Chunk::new(&items));
        }
        assert!(chunks.iter().zip(&self.chunks).all(|(made, from)| made.len() == from.len()), "one for one");
        Ok(Level { chunks, starts: self.starts.clone(), fences: self.fences.clone(), totals: self.totals })
    }

    /// Checks every invariant of the module's head.
    ///
    /// # Errors
    /// `Invalid`, naming the extents that break one.
    pub fn check(&self) -> Result<()> {
        let mut last: Option<&E> = None;
        let mut totals = Totals::default();
        for (chunk, &start) in self.chunks.iter().zip(&self.starts) {
            assert!((1..=CHUNK_LEN_MAX).contains(&chunk.len()), "chunk length out of bounds");
            assert_eq!(u64::from(start), totals.extents, "chunk starts at the wrong index");
            for item in chunk.iter() {
                crate::replace::check_order(last, item)?;
                last = Some(item);
            }
            totals = totals.plus(chunk.totals);
        }
        assert_eq!(totals, self.totals, "totals differ from those of the chunks");
        assert_eq!(self.chunks.len(), self.starts.len(), "one start for each chunk");
        Ok(())
    }

    /// Index of the first chunk whose largest key is not less than `key`.
    #[inline]
    pub(crate) fn find_chunk(&self, key: &[u8]) -> usize {
        self.fences.find(key, |index| self.chunks[index].largest())
    }

    /// The chunk that holds the extent at `index`.
    #[inline]
    pub(crate) fn chunk_of(&self, index: usize) -> usize {
        debug_assert!(index < self.len());
        self.starts.partition_point(|&start| start as usize <= index) - 1
    }
}

/// Equal if the extents have equal metas; the division into chunks does not count.
impl<E: HasMeta> PartialEq for Level<E> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().zip(other.iter()).all(|(a, b)| a.meta() == b.meta())
    }
}

impl ExtentList for Level {
    fn len(&self) -> usize {
        Level::len(self)
    }

    fn extent(&self, index: usize) -> &Arc<Extent> {
        self.get(index)
    }

    fn find(&self, key: &[u8]) -> usize {
        Level::find(self, key)
    }
}
