//! The fields of a plain entry before its key suffix.

use terrane_base::{SeqKind, varint};

use crate::wire;

/// Bytes of the shortest entry: three one-byte numbers and the sequence number.
pub(in crate::block) const ENTRY_BYTES_MIN: usize = 3 + SEQ_KIND_BYTES;
pub(in crate::block) const SEQ_KIND_BYTES: usize = 8;

/// Offsets and lengths of the parts of an entry.
#[derive(Clone, Copy, Debug)]
pub(in crate::block) struct Header {
    /// Leading bytes that the key shares with the key before it.
    pub(in crate::block) shared: usize,
    /// Bytes of the key's suffix, stored in the entry.
    pub(in crate::block) unshared: usize,
    pub(in crate::block) value_len: usize,
    /// Offset of the key's suffix.
    pub(in crate::block) suffix_at: usize,
}

impl Header {
    /// Decodes the header at `at`; does not check what follows it.
    #[inline]
    pub(in crate::block) fn decode(entries: &[u8], at: usize) -> Option<Header> {
        let rest = entries.get(at..)?;
        // Fast path for nearly every entry: short key parts, and a value below 16 KiB.
        if let Some(&[shared, unshared, low, high]) = rest.first_chunk()
            && (shared | unshared) < 0x80
        {
            let (shared, unshared) = (usize::from(shared), usize::from(unshared));
            if low < 0x80 {
                return Some(Header { shared, unshared, value_len: usize::from(low), suffix_at: at + 3 });
            }
            if high < 0x80 {
                let value_len = usize::from(low & 0x7f) | usize::from(high) << 7;
                return Some(Header { shared, unshared, value_len, suffix_at: at + 4 });
            }
        }
        Header::decode_long(rest, at)
    }

    #[cold]
    fn decode_long(rest: &[u8], at: usize) -> Option<Header> {
        let (shared, shared_len) = varint::get(rest)?;
        let rest = &rest[shared_len..];
        let (unshared, unshared_len) = varint::get(rest)?;
        let (value_len, value_len_len) = varint::get(&rest[unshared_len..])?;
        Some(Header {
            shared: shared as usize,
            unshared: unshared as usize,
            value_len: value_len as usize,
            suffix_at: at + shared_len + unshared_len + value_len_len,
        })
    }

    #[inline]
    pub(in crate::block) fn seq_kind_at(&self) -> usize {
        self.suffix_at + self.unshared
    }

    #[inline]
    pub(in crate::block) fn value_at(&self) -> usize {
        self.seq_kind_at() + SEQ_KIND_BYTES
    }

    /// Offset at which the entry ends.
    #[inline]
    pub(in crate::block) fn end(&self) -> usize {
        self.value_at() + self.value_len
    }

    /// The key's suffix; empty if it does not lie within `entries`, which a checked block rules out.
    #[inline]
    pub(in crate::block) fn suffix<'a>(&self, entries: &'a [u8]) -> &'a [u8] {
        entries.get(self.suffix_at..self.seq_kind_at()).unwrap_or_default()
    }

    /// As [`Header::suffix`].
    #[inline]
    pub(in crate::block) fn value<'a>(&self, entries: &'a [u8]) -> &'a [u8] {
        entries.get(self.value_at()..self.end()).unwrap_or_default()
    }

    /// Sequence number and kind; 0 if they do not lie within `entries`.
    #[inline]
    pub(in crate::block) fn seq_kind(&self, entries: &[u8]) -> SeqKind {
        SeqKind(wire::u64_at(entries, self.seq_kind_at()).unwrap_or(0))
    }
}
