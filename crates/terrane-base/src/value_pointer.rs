//! The pointer that stands in the place of a separated value.
//!
//! ```text
//! pointer = table:varint len:varint
//! ```
//!
//! `table` is the number of a value table ([`ValueTableId`]), `len` the bytes of the value. The value itself
//! lies in the value table under the same key and sequence number as the entry that has the pointer: so a
//! pointer that leads into a wrong table finds nothing, never the value of another key or version. Where in
//! the table it lies is not said, and where the table lies neither: both may move without a change of the
//! pointer.
//!
//! Invariant: decoding is total, and accepts only what [`ValuePointer::encode`] writes.

use crate::{Error, Result, ValueTableId, key, varint};

/// Most bytes of a pointer.
pub const POINTER_BYTES_MAX: usize = varint::LONG_BYTES_MAX + varint::BYTES_MAX;

/// Where a separated value lies, and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValuePointer {
    /// The value table.
    pub table: ValueTableId,
    /// Bytes of the value.
    pub len: u32,
}

impl ValuePointer {
    /// Appends the pointer to `out`.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::put_long(out, self.table.0);
        varint::put(out, self.len);
    }

    /// Decodes what [`ValuePointer::encode`] has written.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are cut or too long, or the value would be longer than a value may be.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<ValuePointer> {
        let decoded = varint::get_long(bytes).and_then(|(table, taken)| {
            let (len, rest) = varint::get(&bytes[taken..])?;
            (taken + rest == bytes.len()).then_some(ValuePointer { table: ValueTableId(table), len })
        });
        match decoded {
            Some(pointer) if pointer.len as usize <= key::VALUE_BYTES_MAX => Ok(pointer),
            _ => Err(Error::corrupt(format!("a pointer to a value cannot be {} such bytes", bytes.len()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_is_decoded_from_its_own_bytes_only() {
        for (table, len) in [(0, 0), (127, 128), (1 << 40, 1 << 20), (u64::MAX, key::VALUE_BYTES_MAX as u32)]
        {
            let pointer = ValuePointer { table: ValueTableId(table), len };
            let mut bytes = Vec::new();
            pointer.encode(&mut bytes);
            assert!(bytes.len() <= POINTER_BYTES_MAX);
            assert_eq!(ValuePointer::decode(&bytes).unwrap(), pointer);
            assert!(ValuePointer::decode(&bytes[..bytes.len() - 1]).is_err(), "cut");
            bytes.push(0);
            assert!(ValuePointer::decode(&bytes).is_err(), "with a byte behind it");
        }
    }

    #[test]
    fn a_pointer_to_more_than_a_value_may_have_is_refused() {
        let mut bytes = Vec::new();
        varint::put_long(&mut bytes, 7);
        varint::put_long(&mut bytes, key::VALUE_BYTES_MAX as u64 + 1);
        assert!(ValuePointer::decode(&bytes).is_err());
    }
}
