//! Search over sorted keys that lie scattered in a larger structure.
//!
//! The first 8 bytes of each key, behind the prefix that all of them share, are numbers in a search tree: a root of
//! 16, and below it leaves of 8 for as many layers as it takes (one for 128 keys, two for 1024). A search compares a
//! node at once and touches one or two cache lines for each, and whole keys only where heads are equal.

use std::ops::Range;

use terrane_base::prefetch::prefetch;

use crate::rank::{self, LEAF, LEAF_HEAD_BYTES, ROOT};
use crate::wire;

/// Heads of sorted keys.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    root: [u64; ROOT],
    /// The layers below the root, the lowest first: leaves of little-endian numbers, each padded with its largest.
    leaves: Vec<u8>,
    /// Where each of the layers starts in `leaves`, counted in leaves, and how many it has.
    layers: Vec<(usize, usize)>,
    count: usize,
    /// What all keys have in common from the front; a copy, so that a search need not touch the first key.
    prefix: Box<[u8]>,
}

impl Heads {
    /// Heads of the keys that `key` gives for 0 to `count`. If they are not sorted, searches give any position.
    pub(crate) fn collect<'a>(count: usize, key: impl Fn(usize) -> &'a [u8]) -> Heads {
        let Some(last) = count.checked_sub(1) else { return Heads::default() };
        let prefix_len = wire::common_prefix(key(0), key(last));
        // Keys out of order need not have the prefix.
        let head = |at: usize| wire::head_behind(key(at), prefix_len.min(key(at).len()));
        let mut heads: Vec<u64> = (0..count).map(head).collect();
        let mut tree = Heads { count, prefix: key(0)[..prefix_len].into(), ..Heads::default() };
        while heads.len() > ROOT {
            heads = tree.add_layer(&heads);
        }
        tree.root = [heads.last().copied().unwrap_or(0); ROOT];
        tree.root[..heads.len()].copy_from_slice(&heads);
        tree.leaves.shrink_to_fit();
        tree
    }

    /// Adds a layer of leaves; returns the first head of each.
    fn add_layer(&mut self, heads: &[u64]) -> Vec<u64> {
        let leaves = heads.chunks(LEAF);
        self.layers.push((self.leaves.len() / LEAF_HEAD_BYTES, leaves.len()));
        let mut firsts = Vec::with_capacity(leaves.len());
        for leaf in leaves {
            firsts.push(leaf[0]);
            let last = leaf[leaf.len() - 1];
            let padded = leaf.iter().copied().chain(std::iter::repeat(last)).take(LEAF);
            self.leaves.extend(padded.flat_map(u64::to_le_bytes));
        }
        firsts
    }

    /// Splits the keys for a search: those in front of the range are less than `key`, those behind it greater,
    /// those in it are yet to be compared.
    #[inline]
    pub(crate) fn undecided(&self, key: &[u8]) -> Range<usize> {
        if !key.starts_with(&self.prefix) {
            // `key` leaves the prefix, or is a part of it: it lies on one side of all keys.
            return if *key < *self.prefix { 0..0 } else { self.count..self.count };
        }
        let head = wire::head_behind(key, self.prefix.len());
        let low = head.checked_sub(1).map_or(0, |below| self.at_most(below));
        let equal = (low..self.count).take_while(|at| self.head(*at) == head).count();
        low..low + equal
    }

    /// How many heads are at most `head`.
    #[inline]
    fn at_most(&self, head: u64) -> usize {
        let rank = match self.layers.as_slice() {
            [] => rank::root(&self.root, head),
            [(_, leaves)] => rank::tree::<LEAF_HEAD_BYTES>(&self.root, &self.leaves, *leaves, head),
            layers => self.at_most_deep(layers, head),
        };
        rank.min(self.count)
    }

    fn at_most_deep(&self, layers: &[(usize, usize)], head: u64) -> usize {
        let mut at = rank::root(&self.root, head);
        for (start, leaves) in layers.iter().rev() {
            let Some(leaf) = at.min(*leaves).checked_sub(1) else { return 0 };
            at = leaf * LEAF + rank::leaf(self.leaf(start + leaf), head);
        }
        at
    }

    #[inline]
    fn leaf(&self, leaf: usize) -> &[u8; LEAF_HEAD_BYTES] {
        &self.leaves.as_chunks().0[leaf]
    }

    /// The head of key `at`, which is less than the count.
    #[inline]
    fn head(&self, at: usize) -> u64 {
        if self.layers.is_empty() {
            return self.root[at];
        }
        // The lowest layer stands first.
        wire::u64_at(&self.leaves, at * size_of::<u64>()).expect("every key has a head in the lowest layer")
    }

    /// Asks for the lines in which a search begins, but for those of the tree's own struct.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch(self.prefix.as_ptr());
        prefetch(self.leaves.as_ptr());
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.leaves.capacity() + self.layers.capacity() * size_of::<(usize, usize)>() + self.prefix.len()
    }
}
