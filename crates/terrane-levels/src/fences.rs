//! Fences: upper bounds of a sorted array, searched by their 8-byte heads.
//!
//! The heads are adjacent in memory, so a search reads a few cache lines instead of one key per probe. The
//! common prefix of all fences is left out, or keys such as `user0001` would all have one head.
//!
//! Every 16th head is repeated among the *samples*: a search counts the samples that are less, then the heads
//! of one stretch that are less, without a branch that could be mispredicted.

use std::cmp::Ordering;
use std::ops::Range;

use terrane_base::key::head;
use terrane_base::{Collation, verify};

#[derive(Clone, Debug, Default)]
pub(crate) struct Fences {
    /// The bytes that every fence starts with.
    prefix: Box<[u8]>,
    /// Bytes of each fence after the prefix, big-endian, padded with zeros: never descending.
    heads: Vec<u64>,
    /// The last head of each full stretch.
    samples: Vec<u64>,
    /// Key order of the table. With a comparator heads say nothing and whole keys are compared.
    collation: Collation,
}

/// Heads in a stretch: two cache lines.
const STRETCH: usize = 16;
/// Up to this many samples are counted; more are searched.
const SAMPLES_COUNTED_MAX: usize = 64;

impl Fences {
    /// Replaces a range of fences by fences of `keys`. [`Fences::refresh_prefix`] must follow.
    pub(crate) fn splice<'k>(&mut self, range: Range<usize>, keys: impl Iterator<Item = &'k [u8]>) {
        debug_assert!(
            range.start <= range.end && range.end <= self.heads.len(),
            "fences {range:?} of {}",
            self.heads.len()
        );
        // A key without the prefix changes the common prefix, so `refresh_prefix` starts over.
        let head_of = |key: &[u8]| key.strip_prefix(&self.prefix[..]).map_or(0, head);
        self.heads.splice(range, keys.map(head_of));
    }

    /// Starts over if the prefix is not the common prefix of the first and the last key any more.
    pub(crate) fn refresh_prefix<'k>(&mut self, collation: &Collation, key: impl Fn(usize) -> &'k [u8]) {
        self.collation = collation.clone();
        let count = self.heads.len();
        let (first, last) = if count == 0 { (&[][..], &[][..]) } else { (key(0), key(count - 1)) };
        let prefix_len = collation.common_len(first, last);
        if first[..prefix_len] != self.prefix[..] {
            self.prefix = first[..prefix_len].into();
            self.heads = (0..count).map(|index| head(&key(index)[prefix_len..])).collect();
        }
        self.samples = samples_of(&self.heads);
        verify!(!collation.is_bytes() || self.heads.is_sorted(), "the search would miss extents");
    }

    /// Index of the first fence that is not less than `key`, or the number of fences; `full` returns a whole
    /// fence, and is called only if heads are equal.
    #[inline(always)]
    pub(crate) fn find<'k>(&self, key: &[u8], full: impl Fn(usize) -> &'k [u8]) -> usize {
        if !self.collation.is_bytes() {
            return self.first_whole_not_less(key, (0, self.heads.len()), full);
        }
        let front = &key[..key.len().min(self.prefix.len())];
        match front.cmp(&self.prefix) {
            Ordering::Less => return 0,
            Ordering::Greater => return self.heads.len(),
            Ordering::Equal => {}
        }
        let wanted = head(&key[front.len()..]);
        let low = self.first_not_less(wanted);
        if self.heads.get(low) != Some(&wanted) {
            debug_assert!(self.is_first_not_less(low, key, full), "the heads lead to another fence");
            return low;
        }
        let high = low + self.heads[low..].partition_point(|&head| head == wanted);
        let found = self.first_whole_not_less(key, (low, high), &full);
        debug_assert!(self.is_first_not_less(found, key, full), "equal heads lead to another fence");
        found
    }

    /// True if `found` is the first fence that is not less than `key`, which whole keys decide.
    fn is_first_not_less<'k>(&self, found: usize, key: &[u8], full: impl Fn(usize) -> &'k [u8]) -> bool {
        let is_less_before = found.checked_sub(1).is_none_or(|before| full(before) < key);
        is_less_before && (found == self.heads.len() || full(found) >= key)
    }

    /// As [`Fences::find`] among a range of fences, by whole keys.
    fn first_whole_not_less<'k>(
        &self,
        key: &[u8],
        (mut low, mut high): (usize, usize),
        full: impl Fn(usize) -> &'k [u8],
    ) -> usize {
        debug_assert!(low <= high, "keys {low}..{high} are searched");
        while low < high {
            let middle = low.midpoint(high);
            if self.collation.lt(full(middle), key) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Key order of the table.
    #[inline]
    pub(crate) fn collation(&self) -> &Collation {
        &self.collation
    }

    #[inline]
    fn first_not_less(&self, wanted: u64) -> usize {
        debug_assert!(self.samples.len() == self.heads.len() / STRETCH, "each full stretch has a sample");
        let stretch = if self.samples.len() <= SAMPLES_COUNTED_MAX {
            count_less(&self.samples, wanted)
        } else {
            self.samples.partition_point(|&sample| sample < wanted)
        };
        let start = stretch * STRETCH;
        let end = self.heads.len().min(start + STRETCH);
        start + count_less(&self.heads[start..end], wanted)
    }
}

fn samples_of(heads: &[u64]) -> Vec<u64> {
    heads.chunks_exact(STRETCH).map(|stretch| stretch[STRETCH - 1]).collect()
}

/// Number of `heads` that are less than `wanted`.
#[inline]
pub(crate) fn count_less(heads: &[u64], wanted: u64) -> usize {
    heads.iter().map(|head| usize::from(*head < wanted)).sum()
}
