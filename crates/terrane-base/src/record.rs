//! One record as it lies in a batch and, unchanged, in a segment.
//!
//! ```text
//! kind u8 | table varint | key length varint | value length varint | key | value
//! ```
//!
//! A delete has value length 0. The value of a range delete is the first key after its range, which is not
//! empty. The prefix of the value of an operand or of an expiring record is described in [`crate::stored`];
//! here it is a part of the value. The sequence number is not stored: it is the number of the batch's first
//! record plus the record's index in the batch.

use crate::stored::Stored;
use crate::{Error, RecordKind, Result, TableId, key, varint};

/// A record, its key and value borrowed from the encoded bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The kind of the change.
    pub kind: RecordKind,
    /// The table that it changes.
    pub table: TableId,
    /// User key.
    pub key: &'a [u8],
    /// User value as it is stored ([`crate::stored`]); empty for a delete, the first key behind for a range
    /// delete.
    pub value: &'a [u8],
}

/// The fields in front of a record's key, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The kind of the change.
    pub kind: RecordKind,
    /// The table that it changes.
    pub table: TableId,
    /// Bytes of the key.
    pub key_len: usize,
    /// Bytes of the value.
    pub value_len: usize,
    /// Bytes of the header itself: the key starts here.
    pub header_len: usize,
}

/// Key of the records of no table that are data for the log.
const LOG_DATA: &[u8] = b"log data";

/// Most bytes that a header takes.
pub const HEADER_BYTES_MAX: usize = 1 + 3 * varint::BYTES_MAX;

impl Header {
    /// Bytes of the whole record.
    #[inline]
    #[must_use]
    pub fn record_len(&self) -> usize {
        self.header_len + self.key_len + self.value_len
    }

    /// Decodes the header at the front of `bytes`; does not look at what follows it.
    ///
    /// Part of each caller for the numbers of most records: a call would pass the header through memory.
    #[inline(always)]
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Header> {
        let (&kind, rest) = bytes.split_first()?;
        // Pointers to values stand in extents only.
        let kind = RecordKind::from_u8(kind).filter(|kind| !kind.is_pointer())?;
        // Most records have numbers of one byte each.
        if let [table, key_len, value_len, ..] = *rest
            && table | key_len | value_len < varint::ONE_BYTE_END
        {
            let (key_len, value_len) = (key_len.into(), value_len.into());
            return Some(Header { kind, table: TableId(table.into()), key_len, value_len, header_len: 4 });
        }
        Header::decode_long(kind, rest)
    }

    /// [`Header::decode`] for numbers of any length, which follow the kind.
    #[inline(never)]
    fn decode_long(kind: RecordKind, rest: &[u8]) -> Option<Header> {
        let (table, table_len) = varint::get(rest)?;
        let rest = rest.get(table_len..)?;
        let (key_len, key_len_len) = varint::get(rest)?;
        let rest = rest.get(key_len_len..)?;
        let (value_len, value_len_len) = varint::get(rest)?;
        Some(Header {
            kind,
            table: TableId(table),
            key_len: key_len as usize,
            value_len: value_len as usize,
            header_len: 1 + table_len + key_len_len + value_len_len,
        })
    }
}

impl<'a> Record<'a> {
    /// Data for readers of the journal: a record of no table, which no lookup finds.
    #[must_use]
    pub fn of_log_data(data: &'a [u8]) -> Record<'a> {
        Record { kind: RecordKind::Put, table: TableId::NONE, key: LOG_DATA, value: data }
    }

    /// The data, if it is a record of such.
    #[inline]
    #[must_use]
    pub fn log_data(&self) -> Option<&'a [u8]> {
        let is_log_data = self.table == TableId::NONE && self.kind == RecordKind::Put && self.key == LOG_DATA;
        is_log_data.then_some(self.value)
    }

    /// Bytes that [`Record::encode`] appends.
    #[inline]
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        1 + varint::len(self.table.0)
            + varint::len(self.key.len() as u32)
            + varint::len(self.value.len() as u32)
            + self.key.len()
            + self.value.len()
    }

    /// Appends the record to `out`. Requires: key and value within the limits of [`crate::key`].
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        match (self.table.0, self.key.len(), self.value.len()) {
            // Of one byte each: appended in one piece.
            (table @ 0..0x80, key_len @ 0..0x80, value_len @ 0..0x80) => {
                out.extend_from_slice(&[self.kind as u8, table as u8, key_len as u8, value_len as u8]);
            }
            (table, key_len, value_len) => {
                out.push(self.kind as u8);
                varint::put(out, table);
                varint::put(out, key_len as u32);
                varint::put(out, value_len as u32);
            }
        }
        out.extend_from_slice(self.key);
        out.extend_from_slice(self.value);
    }

    /// Decodes the record at the front of `bytes`; also returns how many bytes it took.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are not a record within the limits.
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Result<(Record<'a>, usize)> {
        let header =
            Header::decode(bytes).ok_or_else(|| Error::corrupt("record header is cut or unknown"))?;
        if header.key_len > key::KEY_BYTES_MAX || header.value_len > key::VALUE_BYTES_MAX {
            return Err(Error::corrupt("record of a size beyond the limits"));
        }
        if header.kind.is_delete() && header.value_len != 0 {
            return Err(Error::corrupt("delete record with a value"));
        }
        let body = bytes.get(header.header_len..header.record_len());
        let body = body.ok_or_else(|| Error::corrupt("record is cut"))?;
        let (key, value) = body.split_at(header.key_len);
        // Which of its ends comes first only its table knows: one that ends before it begins deletes nothing.
        if header.kind == RecordKind::RangeDelete && (key == value || key::check_key(value).is_err()) {
            return Err(Error::corrupt("range delete of a range that is empty or too long"));
        }
        Stored::decode(header.kind, value)?;
        Ok((Record { kind: header.kind, table: header.table, key, value }, header.record_len()))
    }
}
