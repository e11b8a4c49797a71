//! The pointer that stands in the place of a separated value.
//!
//! ```text
//! pointer  = table:varint len:varint position?
//! position = block:varint entry:varint
//! ```
//!
//! `table` is the number of a value table ([`ValueTableId`]), `len` the bytes of the value. The value itself
//! lies in the value table under the same key and sequence number as the entry that has the pointer: so a
//! pointer that leads into a wrong table finds nothing, never the value of another key or version. The
//! pointer does not say where the table lies: the table may move without a change of the pointer.
//!
//! The position says where in the value table the value was written, so that a reader need not search for it.
//! It is only a hint: a reader compares key and number with those of the entry there, and searches where they
//! differ, or where a pointer has no position (extents of versions 5 to 8).
//!
//! Invariant: decoding is total, and accepts only what [`ValuePointer::encode`] writes.

use crate::{Error, Result, ValueTableId, key, varint};

/// Most bytes of a pointer.
pub const POINTER_BYTES_MAX: usize = varint::LONG_BYTES_MAX + 3 * varint::BYTES_MAX;

/// Where in its value table a value was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValuePosition {
    /// The data block, from 0 on.
    pub block: u32,
    /// The entry in the block, from 0 on.
    pub entry: u32,
}

/// Where a separated value lies, and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValuePointer {
    /// The value table.
    pub table: ValueTableId,
    /// Bytes of the value.
    pub len: u32,
    /// Where it lies there, if the writer said so.
    pub position: Option<ValuePosition>,
}

impl ValuePointer {
    /// Appends the pointer to `out`.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::put_long(out, self.table.0);
        varint::put(out, self.len);
        if let Some(ValuePosition { block, entry }) = self.position {
            varint::put(out, block);
            varint::put(out, entry);
        }
    }

    /// Decodes what [`ValuePointer::encode`] has written.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are cut or too long, or the value would be longer than a value may be.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<ValuePointer> {
        ValuePointer::read(bytes).ok_or_else(|| ValuePointer::broken(bytes))
    }

    /// As [`ValuePointer::decode`], for the short way of reads: `None` where the bytes are wrong.
    #[inline(always)]
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<ValuePointer> {
        let (table, rest) = take(bytes)?;
        let (len, rest) = take(rest)?;
        let len = u32::try_from(len).ok().filter(|len| *len as usize <= key::VALUE_BYTES_MAX)?;
        let position = if rest.is_empty() { None } else { Some(ValuePosition::decode(rest)?) };
        Some(ValuePointer { table: ValueTableId(table), len, position })
    }

    #[cold]
    fn broken(bytes: &[u8]) -> Error {
        Error::corrupt(format!("invalid value pointer of {} bytes", bytes.len()))
    }
}

impl ValuePosition {
    /// Decodes the end of a pointer, which is not empty; `None` if the bytes are cut or too long.
    #[inline(always)]
    fn decode(bytes: &[u8]) -> Option<ValuePosition> {
        let (block, rest) = take(bytes)?;
        let (entry, rest) = take(rest)?;
        let position = ValuePosition { block: u32::try_from(block).ok()?, entry: u32::try_from(entry).ok()? };
        rest.is_empty().then_some(position)
    }
}

/// A number at the front of `bytes`, and the bytes behind it; numbers below 2^14, which most are, without a
/// loop.
#[inline(always)]
fn take(bytes: &[u8]) -> Option<(u64, &[u8])> {
    match bytes {
        [low, rest @ ..] if *low < 0x80 => Some((u64::from(*low), rest)),
        [low, high, rest @ ..] if *high < 0x80 => Some((u64::from(low & 0x7f) | u64::from(*high) << 7, rest)),
        _ => take_long(bytes),
    }
}

#[inline(never)]
fn take_long(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (value, taken) = varint::get_long(bytes)?;
    Some((value, bytes.get(taken..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_is_decoded_from_its_own_bytes_only() {
        let largest = ValuePosition { block: u32::MAX, entry: u32::MAX };
        let positions = [None, Some(ValuePosition { block: 0, entry: 0 }), Some(largest)];
        for (table, len) in [(0, 0), (127, 128), (1 << 40, 1 << 20), (u64::MAX, key::VALUE_BYTES_MAX as u32)]
        {
            for position in positions {
                let pointer = ValuePointer { table: ValueTableId(table), len, position };
                let mut bytes = Vec::new();
                pointer.encode(&mut bytes);
                assert!(bytes.len() <= POINTER_BYTES_MAX);
                assert_eq!(ValuePointer::decode(&bytes).unwrap(), pointer);
                assert_eq!(ValuePointer::read(&bytes), Some(pointer));
                let cut = &bytes[..bytes.len() - 1];
                assert!(ValuePointer::decode(cut).is_err(), "cut: {pointer:?}");
                bytes.push(0);
                assert!(ValuePointer::decode(&bytes).is_err(), "with a byte behind it: {pointer:?}");
            }
        }
        assert_eq!(
            ValuePointer::decode(&[7; 4]).unwrap().position,
            Some(ValuePosition { block: 7, entry: 7 })
        );
        assert!(ValuePointer::decode(&[7; 3]).is_err(), "half a position");
    }

    #[test]
    fn a_pointer_to_more_than_a_value_may_have_is_refused() {
        let mut bytes = Vec::new();
        varint::put_long(&mut bytes, 7);
        varint::put_long(&mut bytes, key::VALUE_BYTES_MAX as u64 + 1);
        assert!(ValuePointer::decode(&bytes).is_err());
        assert_eq!(ValuePointer::read(&bytes), None);
    }
}
