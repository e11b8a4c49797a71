//! Search over sorted keys that are scattered in a larger structure.
//!
//! The *head* of a key is its first 8 bytes after the prefix that all keys share, as a number. Heads form a
//! search tree: a root of 16, below it leaves of 8, in as many layers as needed (one for 128 keys, two for
//! 1024). A search compares a whole node at once and touches one or two cache lines per node; it compares
//! whole keys only if heads are equal.

use std::ops::Range;

use terrane_base::key;
use terrane_base::prefetch::prefetch;

use crate::rank::{self, LEAF, LEAF_HEAD_BYTES, ROOT};
use crate::wire;

/// Most layers below the root: enough for as many heads as a `u32` can count.
const LAYERS_MAX: usize = 11;

/// Heads of sorted keys. The owner decides in which memory the leaves lie.
#[derive(Clone, Debug)]
pub(crate) struct Heads<L = Vec<u8>> {
    root: [u64; ROOT],
    /// The layers below the root, lowest first: leaves of little-endian numbers, each padded with its
    /// largest.
    leaves: L,
    /// Leaves of the lowest layer; 0 if the root holds all heads.
    leaf_count: usize,
    count: usize,
    /// The common prefix of all keys: a range of the bytes that contain the keys.
    prefix: Range<usize>,
}

impl Default for Heads {
    fn default() -> Self {
        Heads { root: [0; ROOT], leaves: Vec::new(), leaf_count: 0, count: 0, prefix: 0..0 }
    }
}

impl Heads {
    /// Collects the heads of the keys `key(0)` to `key(count - 1)`; the first key lies at `first_at` in the
    /// bytes that searches get. If the keys are not sorted, searches return arbitrary positions.
    pub(crate) fn collect<'a>(count: usize, first_at: usize, key: impl Fn(usize) -> &'a [u8]) -> Heads {
        let Some(last) = count.checked_sub(1) else { return Heads::default() };
        let prefix_len = key::common_len(key(0), key(last));
        // Keys that are out of order may lack the prefix.
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
    /// The same heads with their leaves in other memory, as `place` returns it.
    pub(crate) fn place<M>(&self, place: impl FnOnce(&[u8]) -> M) -> Heads<M> {
        let Heads { root, leaf_count, count, ref prefix, .. } = *self;
        Heads { root, leaves: place(self.leaves.as_ref()), leaf_count, count, prefix: prefix.clone() }
    }

    /// Splits the keys for a search: those before the range are less than `key`, those after it greater,
    /// those in it must be compared. `bytes` are the bytes that contain the keys.
    #[inline(always)]
    pub(crate) fn undecided(&self, key: &[u8], bytes: &[u8]) -> Range<usize> {
        let prefix = bytes.get(self.prefix.clone()).unwrap_or_default();
        if !key.starts_with(prefix) {
            // `key` does not begin with the prefix, or is shorter: it comes before or after all keys.
            return if key < prefix { 0..0 } else { self.count..self.count };
        }
        let head = key::head_behind(key, prefix.len());
        // Not by a closure, which would be a call.
        let low = if head == 0 { 0 } else { self.at_most(head - 1) };
        let equal = (low..self.count).take_while(|at| self.head(*at) == head).count();
        low..low + equal
    }

    /// The number of heads that are at most `head`.
    #[inline(always)]
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

    #[inline(never)]
    fn at_most_deep(&self, head: u64) -> usize {
        // The start of each layer and its number of leaves, lowest layer first.
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
        // The lowest layer is stored first.
        let leaves = self.leaves.as_ref();
        wire::u64_at(leaves, at * size_of::<u64>()).expect("every key has a head in the lowest layer")
    }

    /// Prefetches the lines that a search reads first, except those of this struct.
    #[inline]
    pub(crate) fn prefetch(&self, bytes: &[u8]) {
        prefetch(bytes.as_ptr().wrapping_add(self.prefix.start));
        prefetch(self.leaves.as_ref().as_ptr());
    }

    /// The range of neighbouring keys in which a search for `key` will end, estimated from the root alone. If
    /// the keys lack the common prefix, the range is arbitrary.
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

/// Leaves of the lowest layer for `count` heads.
fn lowest_leaves(count: usize) -> usize {
    if count > ROOT { count.div_ceil(LEAF) } else { 0 }
}

/// Bytes of the leaves of all layers for `count` heads.
pub(crate) fn leaves_bytes(count: usize) -> usize {
    let mut heads = count;
    let mut leaves = 0;
    while heads > ROOT {
        heads = heads.div_ceil(LEAF);
        leaves += heads;
    }
    leaves * LEAF_HEAD_BYTES
}
