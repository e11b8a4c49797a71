//! Search over sorted keys that lie scattered in a larger structure.
//!
//! The first 8 bytes of each key, behind the prefix that all of them share, are numbers in a search tree: a root of
//! 16, and below it leaves of 8 for as many layers as it takes (one for 128 keys, two for 1024). A search compares a
//! node at once and touches one or two cache lines for each, and whole keys only where heads are equal.

use std::ops::Range;

use terrane_base::key;
use terrane_base::prefetch::prefetch;

use crate::rank::{self, LEAF, LEAF_HEAD_BYTES, ROOT};
use crate::wire;

/// Most layers below the root: more heads than a `u32` counts need no more.
const LAYERS_MAX: usize = 11;

/// Heads of sorted keys. The leaves are bytes of their own, wherever their owner puts them.
#[derive(Clone, Debug)]
pub(crate) struct Heads<L = Vec<u8>> {
    root: [u64; ROOT],
    /// The layers below the root, the lowest first: leaves of little-endian numbers, each padded with its largest.
    leaves: L,
    /// Leaves of the lowest layer; none where the root has all heads.
    leaf_count: usize,
    count: usize,
    /// What all keys have in common from the front: a range of the bytes that the keys lie in.
    prefix: Range<usize>,
}

impl Default for Heads {
    fn default() -> Self {
        Heads { root: [0; ROOT], leaves: Vec::new(), leaf_count: 0, count: 0, prefix: 0..0 }
    }
}

impl Heads {
    /// Heads of the keys that `key` gives for 0 to `count`, the first of which lies at `first_at` in the bytes that
    /// searches are given. If the keys are not sorted, searches give any position.
    pub(crate) fn collect<'a>(count: usize, first_at: usize, key: impl Fn(usize) -> &'a [u8]) -> Heads {
        let Some(last) = count.checked_sub(1) else { return Heads::default() };
        let prefix_len = key::common_len(key(0), key(last));
        // Keys out of order need not have the prefix.
        let head = |at: usize| key::head_behind(key(at), prefix_len.min(key(at).len()));
        let mut heads: Vec<u64> = (0..count).map(head).collect();
        let prefix = first_at..first_at + prefix_len;
        let mut tree = Heads { count, prefix, leaf_count: lowest_leaves(count), ..Heads::default() };
        tree.leaves.reserve_exact(leaves_bytes(count));
        while heads.len() > ROOT {
            heads = tree.add_layer(&heads);
        }
        tree.root = [heads.last().copied().unwrap_or(0); ROOT];
        tree.root[..heads.len()].copy_from_slice(&heads);
        tree
    }

    /// Adds a layer of leaves; returns the first head of each.
    fn add_layer(&mut self, heads: &[u64]) -> Vec<u64> {
        let leaves = heads.chunks(LEAF);
        let mut firsts = Vec::with_capacity(leaves.len());
        for leaf in leaves {
            firsts.push(leaf[0]);
            let last = leaf[leaf.len() - 1];
            let padded = leaf.iter().copied().chain(std::iter::repeat(last)).take(LEAF);
            self.leaves.extend(padded.flat_map(u64::to_le_bytes));
        }
        firsts
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.leaves.capacity()
    }
}

impl<L: AsRef<[u8]>> Heads<L> {
    /// The same with its leaves in other memory: what `place` makes of them.
    pub(crate) fn place<M>(&self, place: impl FnOnce(&[u8]) -> M) -> Heads<M> {
        let Heads { root, leaf_count, count, ref prefix, .. } = *self;
        Heads { root, leaves: place(self.leaves.as_ref()), leaf_count, count, prefix: prefix.clone() }
    }

    /// Splits the keys for a search: those in front of the range are less than `key`, those behind it greater,
    /// those in it are yet to be compared. `bytes` are those that the keys lie in.
    #[inline]
    pub(crate) fn undecided(&self, key: &[u8], bytes: &[u8]) -> Range<usize> {
        let prefix = bytes.get(self.prefix.clone()).unwrap_or_default();
        if !key.starts_with(prefix) {
            // `key` leaves the prefix, or is a part of it: it lies on one side of all keys.
            return if key < prefix { 0..0 } else { self.count..self.count };
        }
        let head = key::head_behind(key, prefix.len());
        let low = head.checked_sub(1).map_or(0, |below| self.at_most(below));
        let equal = (low..self.count).take_while(|at| self.head(*at) == head).count();
        low..low + equal
    }

    /// How many heads are at most `head`.
    #[inline]
    fn at_most(&self, head: u64) -> usize {
        let rank = match self.leaf_count {
            0 => rank::root(&self.root, head),
            1..=ROOT => {
                rank::tree::<LEAF_HEAD_BYTES>(&self.root, self.leaves.as_ref(), self.leaf_count, head)
            }
            _ => self.at_most_deep(head),
        };
        rank.min(self.count)
    }

    fn at_most_deep(&self, head: u64) -> usize {
        // Where each layer starts, and how many leaves it has, the lowest first.
        let mut layers = [(0, self.leaf_count); LAYERS_MAX];
        let mut top = 0;
        while layers[top].1 > ROOT {
            let (start, leaves) = layers[top];
            top += 1;
            layers[top] = (start + leaves, leaves.div_ceil(LEAF));
        }
        let mut at = rank::root(&self.root, head);
        for (start, leaves) in layers[..=top].iter().rev() {
            let Some(leaf) = at.min(*leaves).checked_sub(1) else { return 0 };
            at = leaf * LEAF + rank::leaf(self.leaf(start + leaf), head);
        }
        at
    }

    #[inline]
    fn leaf(&self, leaf: usize) -> &[u8; LEAF_HEAD_BYTES] {
        &self.leaves.as_ref().as_chunks().0[leaf]
    }

    /// The head of key `at`, which is less than the count.
    #[inline]
    fn head(&self, at: usize) -> u64 {
        if self.leaf_count == 0 {
            return self.root[at];
        }
        // The lowest layer stands first.
        let leaves = self.leaves.as_ref();
        wire::u64_at(leaves, at * size_of::<u64>()).expect("every key has a head in the lowest layer")
    }

    /// Asks for the lines in which a search begins, but for those of the tree's own struct.
    #[inline]
    pub(crate) fn prefetch(&self, bytes: &[u8]) {
        prefetch(bytes.as_ptr().wrapping_add(self.prefix.start));
        prefetch(self.leaves.as_ref().as_ptr());
    }

    /// The first of the neighbouring keys among which a search for `key` will end, if one look at the root tells, and
    /// how many they are. A guess: keys without the common prefix give anything.
    #[inline]
    pub(crate) fn neighbours(&self, key: &[u8]) -> Range<usize> {
        if !(1..=ROOT).contains(&self.leaf_count) || key.len() < self.prefix.len() {
            return 0..0;
        }
        let below = key::head_behind(key, self.prefix.len()).saturating_sub(1);
        let leaf = rank::root(&self.root, below).min(self.leaf_count).saturating_sub(1);
        leaf * LEAF..(leaf * LEAF + LEAF).min(self.count)
    }
}

/// Leaves of the lowest layer over `count` heads.
fn lowest_leaves(count: usize) -> usize {
    if count > ROOT { count.div_ceil(LEAF) } else { 0 }
}

/// Bytes of the leaves over `count` heads, in all layers.
pub(crate) fn leaves_bytes(count: usize) -> usize {
    let mut heads = count;
    let mut leaves = 0;
    while heads > ROOT {
        heads = heads.div_ceil(LEAF);
        leaves += heads;
    }
    leaves * LEAF_HEAD_BYTES
}
