//! Entries of a two-layer block, and the encoding of sequence number and kind.

use terrane_base::{SeqKind, varint};

use super::HEAD_BYTES;
use crate::wire;

/// Bits of the kind, below the sequence number. A kind that does not fit needs another encoding.
const KIND_BITS: u32 = 4;

/// How sequence numbers are stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct NumberCode {
    /// Subtracted from every sequence number.
    base: u64,
    /// Mask of the bits of a number of `bytes` bytes.
    mask: u64,
    pub(super) bytes: usize,
}

impl NumberCode {
    /// Requires: `1 <= bytes <= 8`.
    pub(super) fn new(base: u64, bytes: usize) -> NumberCode {
        NumberCode { base, mask: u64::MAX >> (64 - 8 * bytes.clamp(1, HEAD_BYTES)), bytes }
    }

    /// The shortest code for sequence numbers from `min` to `max`; if `min > max`, the code for no numbers.
    pub(super) fn fitting(min: u64, max: u64) -> NumberCode {
        let largest = max.saturating_sub(min) << KIND_BITS | ((1 << KIND_BITS) - 1);
        NumberCode::new(min, (u64::BITS - largest.leading_zeros()).div_ceil(8) as usize)
    }

    pub(super) fn base(self) -> u64 {
        self.base
    }

    /// The number at `at`. The 8 bytes always exist, because the trailer is longer.
    #[inline]
    pub(super) fn decode(self, bytes: &[u8], at: usize) -> SeqKind {
        self.of_word(wire::u64_at(bytes, at).unwrap_or(0))
    }

    /// The number with which this word begins.
    #[inline]
    pub(super) fn of_word(self, word: u64) -> SeqKind {
        let number = word & self.mask;
        let seq = self.base.wrapping_add(number >> KIND_BITS);
        SeqKind(seq << 8 | number & ((1 << KIND_BITS) - 1))
    }

    /// As [`NumberCode::decode`]; `None` if the sequence number has more than 56 bits.
    #[inline]
    pub(super) fn decode_checked(self, bytes: &[u8], at: usize) -> Option<SeqKind> {
        let number = wire::u64_at(bytes, at)? & self.mask;
        let seq = self.base.checked_add(number >> KIND_BITS)?;
        let is_possible = seq <= terrane_base::SeqNo::MAX.0;
        is_possible.then_some(SeqKind(seq << 8 | number & ((1 << KIND_BITS) - 1)))
    }

    /// Encodes a number; the lowest `bytes` bytes are stored. Requires: the sequence number is in the range
    /// of this code.
    #[inline]
    pub(super) fn encode(self, seq_kind: SeqKind) -> u64 {
        (seq_kind.seq().0 - self.base) << KIND_BITS | seq_kind.0 & ((1 << KIND_BITS) - 1)
    }
}

/// Offsets and lengths of the parts of an entry, from the start of the block.
#[derive(Clone, Copy, Debug)]
pub(in crate::block) struct Parts {
    /// Key bytes after prefix and part that are stored elsewhere: in the head, or in the previous key.
    pub(in crate::block) shared: usize,
    /// Key bytes stored in the entry: the suffix.
    pub(in crate::block) unshared: usize,
    pub(in crate::block) suffix_at: usize,
    pub(super) value_at: usize,
    pub(super) value_len: usize,
}

impl Parts {
    /// Decodes the fields before the suffix of the first entry of an interval, which is at `at`.
    #[inline]
    pub(super) fn first(bytes: &[u8], at: usize, number: NumberCode) -> Option<Parts> {
        // Fast path for nearly every entry: a short key, and a value below 16 KiB. The 8 bytes always exist,
        // as for numbers.
        let word = wire::u64_at(bytes, at)?;
        let [len, low, high, ..] = word.to_le_bytes().map(usize::from);
        if word & 0x8080 == 0 {
            return Some(Parts::of_first(len, low, at + 2, number));
        }
        if word & 0x80_00_80 == 0 {
            return Some(Parts::of_first(len, low & 0x7f | high << 7, at + 3, number));
        }
        Parts::first_long(bytes.get(at..)?, at, number)
    }

    #[cold]
    fn first_long(rest: &[u8], at: usize, number: NumberCode) -> Option<Parts> {
        let (len, len_len) = varint::get(rest)?;
        let (value_len, value_len_len) = varint::get(&rest[len_len..])?;
        Some(Parts::of_first(len as usize, value_len as usize, at + len_len + value_len_len, number))
    }

    #[inline]
    fn of_first(len: usize, value_len: usize, suffix_at: usize, number: NumberCode) -> Parts {
        let shared = len.min(HEAD_BYTES);
        Parts::new(shared, len - shared, value_len, suffix_at, number)
    }

    #[inline]
    fn new(shared: usize, unshared: usize, value_len: usize, suffix_at: usize, number: NumberCode) -> Parts {
        Parts { shared, unshared, suffix_at, value_at: suffix_at + unshared + number.bytes, value_len }
    }

    /// As [`Parts::first`], for any other entry.
    #[inline]
    pub(super) fn rest(bytes: &[u8], at: usize, number: NumberCode) -> Option<Parts> {
        let word = wire::u64_at(bytes, at)?;
        let [shared, unshared, low, high, ..] = word.to_le_bytes().map(usize::from);
        if word & 0x80_80_80 == 0 {
            return Some(Parts::new(shared, unshared, low, at + 3, number));
        }
        if word & 0x80_00_80_80 == 0 {
            return Some(Parts::new(shared, unshared, low & 0x7f | high << 7, at + 4, number));
        }
        Parts::rest_long(bytes.get(at..)?, at, number)
    }

    #[cold]
    fn rest_long(rest: &[u8], at: usize, number: NumberCode) -> Option<Parts> {
        let (shared, shared_len) = varint::get(rest)?;
        let rest = &rest[shared_len..];
        let (unshared, unshared_len) = varint::get(rest)?;
        let (value_len, value_len_len) = varint::get(&rest[unshared_len..])?;
        let suffix_at = at + shared_len + unshared_len + value_len_len;
        Some(Parts::new(shared as usize, unshared as usize, value_len as usize, suffix_at, number))
    }

    #[inline]
    pub(super) fn number_at(&self) -> usize {
        self.suffix_at + self.unshared
    }

    /// Offset at which the entry ends.
    #[inline]
    pub(super) fn end(&self) -> usize {
        self.value_at + self.value_len
    }

    #[inline]
    pub(super) fn suffix<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes.get(self.suffix_at..self.suffix_at + self.unshared).unwrap_or_default()
    }

    /// Bytes of the key after prefix and part.
    #[inline]
    pub(in crate::block) fn key_len(&self) -> usize {
        self.shared + self.unshared
    }
}
