//! The bytes of a write batch, as RocksDB lays them out.
//!
//! ```text
//! batch   := sequence number (8 bytes) count (4 bytes) record*            numbers with the least byte first
//! record  := tag [family] field*           family: varint, if the tag has one; field: varint length, bytes
//! ```
//!
//! | tag | with a family | record | fields |
//! |---|---|---|---|
//! | 0 | 4 | delete | key |
//! | 1 | 5 | put | key, value |
//! | 2 | 6 | merge | key, operand |
//! | 3 | | data for the log alone; not counted | data |
//! | 7 | 8 | single delete | key |
//! | 15 | 14 | range delete | start, end |
//! | 13 | | nothing; not counted | |
//!
//! Bytes of callers are read without trust: a length or a tag that is wrong is a failure.

use crate::ffi::failure::{Failure, Result};

/// Bytes before the first record.
pub(crate) const HEADER_BYTES: usize = 12;
const COUNT_AT: usize = 8;
/// Most bytes of a length.
const VARINT_BYTES_MAX: usize = 5;

const DELETE: u8 = 0;
const PUT: u8 = 1;
const MERGE: u8 = 2;
const LOG_DATA: u8 = 3;
const FAMILY_DELETE: u8 = 4;
const FAMILY_PUT: u8 = 5;
const FAMILY_MERGE: u8 = 6;
const SINGLE_DELETE: u8 = 7;
const FAMILY_SINGLE_DELETE: u8 = 8;
const NOTHING: u8 = 13;
const FAMILY_RANGE_DELETE: u8 = 14;
const RANGE_DELETE: u8 = 15;

/// The kind of a record, with its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change<'b> {
    Put(&'b [u8], &'b [u8]),
    Merge(&'b [u8], &'b [u8]),
    Delete(&'b [u8]),
    SingleDelete(&'b [u8]),
    RangeDelete(&'b [u8], &'b [u8]),
    LogData(&'b [u8]),
}

impl<'b> Change<'b> {
    /// The same change of another key; as it is where it is of none or of several.
    pub(crate) fn of_key<'k>(self, key: &'k [u8]) -> Change<'k>
    where
        'b: 'k,
    {
        match self {
            Change::Put(_, value) => Change::Put(key, value),
            Change::Merge(_, operand) => Change::Merge(key, operand),
            Change::Delete(_) => Change::Delete(key),
            Change::SingleDelete(_) => Change::SingleDelete(key),
            Change::RangeDelete(..) | Change::LogData(_) => self,
        }
    }
}

/// The bytes of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    bytes: Vec<u8>,
}

impl Layout {
    pub(crate) fn new() -> Layout {
        Layout { bytes: vec![0; HEADER_BYTES] }
    }

    /// Bytes of a caller; too few are filled up to an empty batch.
    pub(crate) fn of(bytes: &[u8]) -> Layout {
        let mut bytes = bytes.to_vec();
        bytes.resize(bytes.len().max(HEADER_BYTES), 0);
        Layout { bytes }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.truncate(HEADER_BYTES);
        self.bytes.fill(0);
    }

    pub(crate) fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes.min(1 << 30));
    }

    /// How many records are counted.
    pub(crate) fn count(&self) -> u32 {
        let count = self.bytes[COUNT_AT..HEADER_BYTES].try_into().expect("the header is always there");
        u32::from_le_bytes(count)
    }

    fn set_count(&mut self, count: u32) {
        self.bytes[COUNT_AT..HEADER_BYTES].copy_from_slice(&count.to_le_bytes());
    }

    /// Counts one more record.
    #[inline]
    fn count_one(&mut self) {
        let count = &mut self.bytes[COUNT_AT..HEADER_BYTES];
        let count: &mut [u8; 4] = count.try_into().expect("the header is always there");
        *count = u32::from_le_bytes(*count).wrapping_add(1).to_le_bytes();
    }

    pub(crate) fn set_seq(&mut self, seq: u64) {
        self.bytes[..COUNT_AT].copy_from_slice(&seq.to_le_bytes());
    }

    /// Cuts the batch back to what it was.
    pub(crate) fn cut(&mut self, len: usize, count: u32) {
        self.bytes.truncate(len.max(HEADER_BYTES));
        self.set_count(count);
    }

    /// Adds a record of a family. Into the exported function, which knows what record it is.
    #[inline(always)]
    pub(crate) fn push(&mut self, family: u32, change: Change<'_>) {
        // Numbers of one byte, as nearly always: a look at the room for all that stands before the key.
        if let Change::Put(key, value) = change
            && family < 0x80
            && key.len() < 0x80
        {
            self.bytes.reserve(3 + key.len() + VARINT_BYTES_MAX + value.len());
            // Of a known length each, so that no call copies them.
            match family {
                0 => self.bytes.extend_from_slice(&[PUT, key.len() as u8]),
                _ => self.bytes.extend_from_slice(&[FAMILY_PUT, family as u8, key.len() as u8]),
            }
            self.bytes.extend_from_slice(key);
            self.push_field(value);
            self.count_one();
            return;
        }
        self.push_any(family, change);
    }

    #[inline(never)]
    fn push_any(&mut self, family: u32, change: Change<'_>) {
        let (plain, with_family, first, second) = match change {
            Change::Put(key, value) => (PUT, FAMILY_PUT, key, Some(value)),
            Change::Merge(key, operand) => (MERGE, FAMILY_MERGE, key, Some(operand)),
            Change::Delete(key) => (DELETE, FAMILY_DELETE, key, None),
            Change::SingleDelete(key) => (SINGLE_DELETE, FAMILY_SINGLE_DELETE, key, None),
            Change::RangeDelete(start, end) => (RANGE_DELETE, FAMILY_RANGE_DELETE, start, Some(end)),
            Change::LogData(data) => (LOG_DATA, LOG_DATA, data, None),
        };
        let is_log_data = plain == LOG_DATA;
        if family == 0 || is_log_data {
            self.bytes.push(plain);
        } else {
            self.bytes.push(with_family);
            push_varint(&mut self.bytes, family);
        }
        self.push_field(first);
        if let Some(second) = second {
            self.push_field(second);
        }
        if !is_log_data {
            self.count_one();
        }
    }

    #[inline]
    fn push_field(&mut self, field: &[u8]) {
        // Fields are shorter than 4 GiB in RocksDB's layout; longer ones are refused when the batch is
        // written.
        push_varint(&mut self.bytes, u32::try_from(field.len()).unwrap_or(u32::MAX));
        self.bytes.extend_from_slice(field);
    }

    /// The records, in order; ends after a failure.
    pub(crate) fn records(&self) -> Records<'_> {
        self.records_from(HEADER_BYTES)
    }

    /// The records from this place on.
    pub(crate) fn records_from(&self, at: usize) -> Records<'_> {
        Records { rest: self.bytes.get(at..).unwrap_or_default(), is_over: false }
    }

    /// The put that is all that there is.
    #[inline]
    pub(crate) fn only_put(&self) -> Option<Put<'_>> {
        let (put, rest) = take_put(&self.bytes[HEADER_BYTES..])?;
        rest.is_empty().then_some(put)
    }

    /// The records, in order, each with its place; ends before a failure.
    pub(crate) fn placed_records(&self) -> impl Iterator<Item = (usize, u32, Change<'_>)> {
        let mut records = self.records();
        std::iter::from_fn(move || {
            let at = self.bytes.len() - records.rest.len();
            let (family, change) = records.next()?.ok()?;
            Some((at, family, change))
        })
    }

    /// Where each key in the batch ends, its family, and how long it is; both ends of a range.
    pub(crate) fn placed_keys(&self) -> Result<Vec<(usize, u32, usize)>> {
        let mut keys = Vec::new();
        for record in self.records() {
            let (family, change) = record?;
            let (first, second) = match change {
                Change::Put(key, _)
                | Change::Merge(key, _)
                | Change::Delete(key)
                | Change::SingleDelete(key) => (key, None),
                Change::RangeDelete(start, end) => (start, Some(end)),
                Change::LogData(_) => continue,
            };
            for key in std::iter::once(first).chain(second) {
                // Records lie in these bytes.
                let at = key.as_ptr().addr() - self.bytes.as_ptr().addr();
                keys.push((at + key.len(), family, key.len()));
            }
        }
        Ok(keys)
    }

    /// Puts other bytes in the place of those from `at` on, which are there.
    pub(crate) fn overwrite(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Checks that as many records are there as are counted.
    #[cfg(test)]
    fn check(&self) -> Result<()> {
        let mut found = 0_u32;
        for record in self.records() {
            found += u32::from(!matches!(record?.1, Change::LogData(_)));
        }
        if found != self.count() {
            return Err(Failure::corrupt("WriteBatch has wrong count"));
        }
        Ok(())
    }
}

#[inline]
fn push_varint(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[inline]
fn take_varint(bytes: &mut &[u8]) -> Option<u32> {
    // As a rule it is short.
    if let Some((&byte, rest)) = bytes.split_first()
        && byte < 0x80
    {
        *bytes = rest;
        return Some(byte.into());
    }
    take_long_varint(bytes)
}

fn take_long_varint(bytes: &mut &[u8]) -> Option<u32> {
    let mut number = 0_u64;
    for shift in (0..35).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return u32::try_from(number).ok();
        }
    }
    None
}

#[inline]
fn take_field<'b>(bytes: &mut &'b [u8]) -> Option<&'b [u8]> {
    let len = take_varint(bytes)? as usize;
    let (field, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(field)
}

/// The family, the key and the value of a put.
pub(crate) type Put<'b> = (u32, &'b [u8], &'b [u8]);

/// The put at the beginning of `bytes`, and the bytes behind it; none if there is something else, or nothing
/// whole.
#[inline(always)]
fn take_put(bytes: &[u8]) -> Option<(Put<'_>, &[u8])> {
    let (tag, mut rest) = bytes.split_first()?;
    let family = match *tag {
        PUT => 0,
        FAMILY_PUT => take_varint(&mut rest)?,
        _ => return None,
    };
    let (key, value) = (take_field(&mut rest)?, take_field(&mut rest)?);
    Some(((family, key, value), rest))
}

/// Walks over records: the number of the family, and the change.
pub(crate) struct Records<'b> {
    rest: &'b [u8],
    is_over: bool,
}

impl<'b> Records<'b> {
    /// The puts of one family that come next; ends before the first record that is something else.
    #[inline]
    pub(crate) fn puts(&mut self, id: u32) -> impl Iterator<Item = (&'b [u8], &'b [u8])> {
        std::iter::from_fn(move || {
            let ((_, key, value), rest) = take_put(self.rest).filter(|((family, ..), _)| *family == id)?;
            self.rest = rest;
            Some((key, value))
        })
    }

    #[inline]
    fn take(&mut self, tag: u8) -> Option<(u32, Change<'b>)> {
        let rest = &mut self.rest;
        let family = match tag {
            FAMILY_DELETE | FAMILY_PUT | FAMILY_MERGE | FAMILY_SINGLE_DELETE | FAMILY_RANGE_DELETE => {
                take_varint(rest)?
            }
            _ => 0,
        };
        let first = take_field(rest)?;
        let change = match tag {
            PUT | FAMILY_PUT => Change::Put(first, take_field(rest)?),
            MERGE | FAMILY_MERGE => Change::Merge(first, take_field(rest)?),
            DELETE | FAMILY_DELETE => Change::Delete(first),
            SINGLE_DELETE | FAMILY_SINGLE_DELETE => Change::SingleDelete(first),
            RANGE_DELETE | FAMILY_RANGE_DELETE => Change::RangeDelete(first, take_field(rest)?),
            LOG_DATA => Change::LogData(first),
            _ => return None,
        };
        Some((family, change))
    }
}

impl<'b> Iterator for Records<'b> {
    type Item = Result<(u32, Change<'b>)>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.is_over {
                return None;
            }
            let (tag, rest) = self.rest.split_first()?;
            self.rest = rest;
            if *tag == NOTHING {
                continue;
            }
            let is_known = *tag <= FAMILY_SINGLE_DELETE || matches!(*tag, RANGE_DELETE | FAMILY_RANGE_DELETE);
            let record = is_known.then(|| self.take(*tag)).flatten();
            self.is_over = record.is_none();
            let what = if is_known { "bad WriteBatch record" } else { "unknown WriteBatch tag" };
            return Some(record.ok_or_else(|| Failure::corrupt(format_args!("{what} ({tag})"))));
        }
    }
}

#[cfg(test)]
mod tests;
