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

/// The effect of a record on its key. The discriminants are part of the formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum RecordKind {
    /// Hides every older version of the key.
    Delete = 0,
    /// Sets the value.
    Put = 1,
    /// Single delete: cancels exactly one put of the key; a merge drops both.
    SingleDelete = 2,
    /// An operand that the table's merge operator folds with older versions.
    Merge = 3,
    /// Range delete: hides older versions of all keys in [key, value); the value is the end key.
    RangeDelete = 4,
    /// Sets the value; the stored bytes are a pointer to it ([`crate::value_pointer`]). In extents only.
    Pointer = 7,
    /// Sets the value until a moment ([`crate::stored`]).
    PutUntil = Self::EXPIRES | 1,
    /// An operand that counts until a moment.
    MergeUntil = Self::EXPIRES | 3,
    /// A pointer to a value that counts until a moment.
    PointerUntil = Self::EXPIRES | 7,
}

impl RecordKind {
    /// The bit of the number that says that the stored value begins with the time at which the record
    /// expires.
    pub const EXPIRES: u8 = 8;

    /// Returns true if the record has no value.
    #[inline]
    #[must_use]
    pub fn is_delete(self) -> bool {
        matches!(self, RecordKind::Delete | RecordKind::SingleDelete)
    }

    /// Returns true if the stored bytes are a pointer to the value.
    #[inline]
    #[must_use]
    pub fn is_pointer(self) -> bool {
        matches!(self, RecordKind::Pointer | RecordKind::PointerUntil)
    }

    /// The kind with this number, if this version of the engine knows it.
    #[inline]
    #[must_use]
    pub fn from_u8(number: u8) -> Option<Self> {
        match number {
            0 => Some(RecordKind::Delete),
            1 => Some(RecordKind::Put),
            2 => Some(RecordKind::SingleDelete),
            3 => Some(RecordKind::Merge),
            4 => Some(RecordKind::RangeDelete),
            7 => Some(RecordKind::Pointer),
            9 => Some(RecordKind::PutUntil),
            11 => Some(RecordKind::MergeUntil),
            15 => Some(RecordKind::PointerUntil),
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

    /// Returns true if this is a delete, single or not.
    #[inline]
    #[must_use]
    pub fn is_delete(self) -> bool {
        self.0 as u8 & !(RecordKind::SingleDelete as u8) == RecordKind::Delete as u8
    }

    /// Returns true if this sets the value without expiry, so that the stored bytes are the value.
    #[inline]
    #[must_use]
    pub fn is_plain_put(self) -> bool {
        self.0 as u8 == RecordKind::Put as u8
    }

    /// Returns true if the stored bytes are not simply the value: an operand, an expiring value
    /// ([`crate::stored`]), or a pointer to the value.
    #[inline]
    #[must_use]
    pub fn is_wrapped(self) -> bool {
        self.0 as u8 & (RecordKind::EXPIRES | 3) >= RecordKind::Merge as u8
    }

    /// Returns true if this is an operand of a merge.
    #[inline]
    #[must_use]
    pub fn is_merge(self) -> bool {
        self.0 as u8 & !RecordKind::EXPIRES == RecordKind::Merge as u8
    }

    /// Returns true if the stored bytes are a pointer to the value, which lies in a value table.
    #[inline]
    #[must_use]
    pub fn is_pointer(self) -> bool {
        self.0 as u8 & !RecordKind::EXPIRES == RecordKind::Pointer as u8
    }

    /// Returns true if the stored bytes are a pointer alone: one that does not expire.
    #[inline]
    #[must_use]
    pub fn is_plain_pointer(self) -> bool {
        self.0 as u8 == RecordKind::Pointer as u8
    }

    /// The same version with its value stored in its place instead of a pointer to it.
    #[inline]
    #[must_use]
    pub fn inlined(self) -> Self {
        debug_assert!(self.is_pointer(), "only a pointer is replaced by its value");
        SeqKind(self.0 & !u64::from(RecordKind::Pointer as u8 ^ RecordKind::Put as u8))
    }

    /// The same pointer without the moment at which it expires.
    #[inline]
    #[must_use]
    pub fn as_plain(self) -> Self {
        SeqKind(self.0 & !u64::from(RecordKind::EXPIRES))
    }

    /// The same put with a pointer in the place of its value.
    #[inline]
    #[must_use]
    pub fn separated(self) -> Self {
        debug_assert!(!self.is_pointer() && !self.is_merge() && !self.is_delete(), "only a put has a value");
        SeqKind(self.0 | u64::from(RecordKind::Pointer as u8))
    }

    /// The same position with another kind.
    #[inline]
    #[must_use]
    pub fn with_kind(self, kind: RecordKind) -> Self {
        SeqKind(self.0 & !0xff | kind as u64)
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
