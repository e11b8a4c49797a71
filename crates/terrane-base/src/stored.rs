//! The prefix of a user's value in records and entries of some kinds.
//!
//! ```text
//! put, delete, single delete, range delete:  value
//! put until:                   expires_at value
//! pointer:                                pointer to the value
//! pointer until:               expires_at pointer to the value
//! merge:                       span operand
//! merge until:                 expires_at span operand
//! ```
//!
//! * `expires_at` is a time in milliseconds since 1970, as a varint (LEB128) of at most 64 bits. From that
//!   time on the record counts as a delete. Milliseconds take 6 bytes where microseconds take 8, and clocks
//!   do not agree better than that.
//! * `span` is the number of sequence numbers below its own that the operand includes, as a varint: 0 for one
//!   that a user wrote, more for one into which others were folded. If a crash or a running flush leaves an
//!   operand in two places, once alone and once folded, the span tells that it is the same
//!   (`docs/design/0020-merge-and-expiry.md`).
//!
//! Invariant: decoding is total, and never reads beyond what it is given.

use crate::{Error, RecordKind, Result, SeqKind, SeqNo, varint};

/// Most bytes in front of a value: two varints.
pub const PREFIX_BYTES_MAX: usize = 2 * varint::LONG_BYTES_MAX;

/// A moment in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub u64);

impl Moment {
    /// A moment that never comes.
    pub const NEVER: Moment = Moment(u64::MAX);
}

/// The parts of a stored value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored<'a> {
    /// From when on the record is a delete; [`Moment::NEVER`] for a kind that does not expire.
    pub expires_at: Moment,
    /// How many sequence numbers below its own an operand stands for.
    pub span: u64,
    /// The user's value or operand; of a pointer its bytes ([`crate::value_pointer`]).
    pub value: &'a [u8],
}

impl<'a> Stored<'a> {
    /// Takes apart the stored bytes of a record of `kind`.
    ///
    /// # Errors
    /// `Corrupt` if it is too short for its kind.
    #[inline]
    pub fn decode(kind: RecordKind, bytes: &'a [u8]) -> Result<Stored<'a>> {
        let (expires, is_merge) = match kind {
            RecordKind::Delete | RecordKind::Put | RecordKind::SingleDelete | RecordKind::RangeDelete => {
                (false, false)
            }
            RecordKind::Pointer => (false, false),
            RecordKind::PutUntil | RecordKind::PointerUntil => (true, false),
            RecordKind::Merge => (false, true),
            RecordKind::MergeUntil => (true, true),
        };
        let mut stored = Stored { expires_at: Moment::NEVER, span: 0, value: bytes };
        if expires {
            stored.expires_at = Moment(stored.take()?);
        }
        if is_merge {
            stored.span = stored.take()?;
        }
        Ok(stored)
    }

    /// [`Stored::decode`] of an entry.
    ///
    /// # Errors
    /// `Corrupt` as there, for a kind that this version does not know, and for a span beyond the entry's
    /// number.
    #[inline]
    pub fn of_entry(seq_kind: SeqKind, bytes: &'a [u8]) -> Result<Stored<'a>> {
        let kind = seq_kind
            .kind()
            .ok_or_else(|| Error::corrupt("entry of a kind that this version does not know"))?;
        let stored = Stored::decode(kind, bytes)?;
        if stored.span > seq_kind.seq().0 {
            return Err(Error::corrupt(format!(
                "operand {} stands for {} numbers below its own",
                seq_kind.seq(),
                stored.span
            )));
        }
        Ok(stored)
    }

    /// Returns true if the record becomes a delete at some moment. Ask it before the clock: most do not.
    #[inline]
    #[must_use]
    pub fn expires(&self) -> bool {
        self.expires_at != Moment::NEVER
    }

    /// Returns true if the record is a delete at moment `now`.
    #[inline]
    #[must_use]
    pub fn is_expired(&self, now: Moment) -> bool {
        self.expires_at <= now && self.expires() && !crate::planted!(ReadExpired)
    }

    /// The least sequence number that the record stands for, if its own is `seq`.
    #[inline]
    #[must_use]
    pub fn first(&self, seq: SeqNo) -> SeqNo {
        SeqNo(seq.0.saturating_sub(self.span))
    }

    #[inline]
    fn take(&mut self) -> Result<u64> {
        let (number, taken) = varint::get_long(self.value).ok_or_else(|| {
            Error::corrupt("value is too short for its kind: the number in front of it is cut or too long")
        })?;
        self.value = &self.value[taken..];
        Ok(number)
    }
}

/// Appends what stands in front of a value: the moment unless it is [`Moment::NEVER`], and the span of an
/// operand. Returns the kind.
#[inline]
pub fn put_prefix(out: &mut Vec<u8>, expires_at: Moment, span: Option<u64>) -> RecordKind {
    let expires = expires_at != Moment::NEVER;
    if expires {
        varint::put_long(out, expires_at.0);
    }
    match (span, expires) {
        (None, false) => RecordKind::Put,
        (None, true) => RecordKind::PutUntil,
        (Some(span), _) => {
            varint::put_long(out, span);
            if expires { RecordKind::MergeUntil } else { RecordKind::Merge }
        }
    }
}
