//! Commit order: 56-bit sequence numbers, and the kind of a record, packed together in 64 bits.

use std::fmt;

/// Position in the commit order. Each record of a batch has its own; 0 means "before everything".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeqNo(pub u64);

impl SeqNo {
    /// The largest sequence number: a read at `MAX` sees everything.
    pub const MAX: SeqNo = SeqNo((1 << 56) - 1);
}

impl fmt::Display for SeqNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// What a record does to its key. The discriminants are part of the formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum RecordKind {
    /// Hides every older version of the key.
    Delete = 0,
    /// Sets the value.
    Put = 1,
    /// Hides every older version of every key from its key on to before its value, which is a key as well.
    RangeDelete = 4,
}

impl RecordKind {
    /// The kind with this number, if this version of the engine knows it.
    #[inline]
    #[must_use]
    pub fn from_u8(number: u8) -> Option<Self> {
        match number {
            0 => Some(RecordKind::Delete),
            1 => Some(RecordKind::Put),
            4 => Some(RecordKind::RangeDelete),
            _ => None,
        }
    }
}

/// Sequence number (high 56 bits) and kind (low 8 bits) in one word, as blocks and memtables hold it.
///
/// Ordered by sequence number first. Entries of one key are sorted newest first, that is, descending.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeqKind(pub u64);

impl SeqKind {
    /// Packs a sequence number and a kind.
    #[inline]
    #[must_use]
    pub fn new(seq: SeqNo, kind: RecordKind) -> Self {
        debug_assert!(seq <= SeqNo::MAX);
        SeqKind(seq.0 << 8 | kind as u64)
    }

    /// The sequence number.
    #[inline]
    #[must_use]
    pub fn seq(self) -> SeqNo {
        SeqNo(self.0 >> 8)
    }

    /// The kind, if this version of the engine knows it.
    #[inline]
    #[must_use]
    pub fn kind(self) -> Option<RecordKind> {
        RecordKind::from_u8(self.0 as u8)
    }

    /// Whether this is a delete.
    #[inline]
    #[must_use]
    pub fn is_delete(self) -> bool {
        self.0 as u8 == RecordKind::Delete as u8
    }
}

impl fmt::Debug for SeqKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            Some(kind) => write!(f, "#{}{kind:?}", self.seq().0),
            None => write!(f, "#{}?{}", self.seq().0, self.0 as u8),
        }
    }
}
