//! Binary search over sorted keys that lie scattered in a larger structure.
//!
//! The first 8 bytes of each key, behind the prefix that all of them share, are kept side by side as numbers.
//! A search compares numbers in a few neighbouring cache lines, and whole keys only where heads are equal.

use std::ops::Range;

use terrane_base::prefetch::prefetch;

use crate::wire;

/// Heads of sorted keys.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    heads: Vec<u64>,
    /// What all keys have in common from the front; a copy, so that a search need not touch the first key.
    prefix: Box<[u8]>,
}

impl Heads {
    /// Heads of the keys that `key` gives for 0 to `count`. If they are not sorted, searches give any position.
    pub(crate) fn collect<'a>(count: usize, key: impl Fn(usize) -> &'a [u8]) -> Heads {
        let Some(last) = count.checked_sub(1) else { return Heads::default() };
        let prefix_len = wire::common_prefix(key(0), key(last));
        let heads =
            (0..count).map(|index| wire::head(key(index).get(prefix_len..).unwrap_or_default())).collect();
        Heads { heads, prefix: key(0)[..prefix_len].into() }
    }

    /// Splits the keys for a search: those in front of the range are less than `key`, those behind it greater,
    /// those in it are yet to be compared.
    #[inline]
    pub(crate) fn undecided(&self, key: &[u8]) -> Range<usize> {
        let Some(rest) = key.strip_prefix(&*self.prefix) else {
            // `key` leaves the prefix, or is a part of it: it lies on one side of all keys.
            return if *key < *self.prefix { 0..0 } else { self.heads.len()..self.heads.len() };
        };
        let head = wire::head(rest);
        let low = self.heads.partition_point(|other| *other < head);
        let equal = self.heads[low..].iter().take_while(|other| **other == head).count();
        low..low + equal
    }

    /// Asks for the lines in which a search begins.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch(self.prefix.as_ptr());
        let quarter = self.heads.len() / 4;
        for part in 1..4 {
            prefetch(self.heads.as_ptr().wrapping_add(part * quarter));
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.heads.capacity() * size_of::<u64>() + self.prefix.len()
    }
}
