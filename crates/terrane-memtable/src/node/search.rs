//! Search among the keys of a node: words of eight key or index bytes, without a branch per byte.

use terrane_base::sync::atomic::{AtomicU64, Ordering};

use super::{Body, Child, Node};

impl<'t> Node<'t> {
    /// The children of a node of the smallest kind, which is a single cache line, in no order; nothing for
    /// other kinds.
    #[inline]
    pub(crate) fn smallest(self) -> impl Iterator<Item = Child<'t>> {
        let (slots, terminal) = match self.body() {
            Body::N4(node) => (&node.slots[..], Some(&node.head.terminal)),
            _ => (&[][..], None),
        };
        // A slot that is not taken yet is empty.
        terminal.into_iter().chain(slots).map(|slot| slot.load().child())
    }
}

/// The keys of a Node4 or Node16 in order of arrival.
pub(super) struct SmallKeys {
    pub(super) bytes: [u8; 16],
    pub(super) count: usize,
}

impl SmallKeys {
    /// The smallest key from `from` on.
    pub(super) fn byte_from(&self, from: usize) -> Option<u8> {
        // Written so that the compiler uses 16 lanes without a branch; absent lanes are 256.
        let lane = |(index, &key): (usize, &u8)| {
            if index < self.count && usize::from(key) >= from { u16::from(key) } else { 256 }
        };
        let least = self.bytes.iter().enumerate().map(lane).fold(256, u16::min);
        u8::try_from(least).ok()
    }

    /// The greatest key below `below`.
    pub(super) fn byte_below(&self, below: usize) -> Option<u8> {
        let lane = |(index, &key): (usize, &u8)| {
            if index < self.count && usize::from(key) < below { i16::from(key) } else { -1 }
        };
        let greatest = self.bytes.iter().enumerate().map(lane).fold(-1, i16::max);
        u8::try_from(greatest).ok()
    }
}

/// The smallest byte from `from` on with an entry in a Node48's index.
pub(super) fn index_from(index: &[AtomicU64; 32], from: usize) -> Option<u8> {
    let first = from / 8;
    for (at, word) in index.iter().enumerate().skip(first) {
        let mut word = word.load(Ordering::Acquire);
        if at == first {
            word &= u64::MAX << (8 * (from % 8));
        }
        if word != 0 {
            return Some((at * 8) as u8 + (word.trailing_zeros() / 8) as u8);
        }
    }
    None
}

/// The greatest byte below `below` with an entry in a Node48's index.
pub(super) fn index_below(index: &[AtomicU64; 32], below: usize) -> Option<u8> {
    for at in (0..below.div_ceil(8)).rev() {
        let mut word = index[at].load(Ordering::Acquire);
        if below < at * 8 + 8 {
            word &= !(u64::MAX << (8 * (below % 8)));
        }
        if word != 0 {
            return Some((at * 8) as u8 + 7 - (word.leading_zeros() / 8) as u8);
        }
    }
    None
}

/// Index of the first byte of `word` that equals `byte`; 8 if none does.
#[inline]
pub(super) fn position(word: u64, byte: u8) -> usize {
    const LOW_BITS: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let differences = word ^ (u64::from(byte) * 0x0101_0101_0101_0101);
    // Sets the top bit of exactly the zero bytes: no carry leaves a byte (Warren, Hacker's Delight, 6-1).
    let zeros = !(((differences & LOW_BITS) + LOW_BITS) | differences | LOW_BITS);
    (zeros.trailing_zeros() / 8) as usize
}

#[inline]
pub(super) fn byte_at(word: u64, index: u8) -> u8 {
    (word >> (8 * index)) as u8
}
