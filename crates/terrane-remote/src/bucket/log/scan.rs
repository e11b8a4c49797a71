//! Reads the records of a file, and judges its end.
//!
//! A record that is not as it was written ends the file. In the last file that is a tail which was never
//! acknowledged, unless a record behind it says that it was durable: then it is damage.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use terrane_base::{Error, Result};
use terrane_device::File;

use super::record::{self, ALIGN, FILE_HEADER_BYTES, FileHeader, Found, HEADER_BYTES, LOG_AT, Tag, padded};

/// Bytes that are read at once.
const READ_BYTES: u64 = 1 << 20;

/// Takes a record, the names of a deletion, and where its payload begins.
pub(super) type TakeRecord<'a> = &'a mut dyn FnMut(&Found, &[&str], u64) -> Result<()>;

/// The end of the records of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// Where the next record would begin.
    pub(super) at: u64,
    /// Its number.
    pub(super) next: u64,
    /// Its parent.
    pub(super) parent: u64,
    /// From here on no mark says that records were durable.
    pub(super) unsure_from: u64,
}

/// A file of which a part is in memory.
pub(super) struct Reading {
    file: Arc<dyn File>,
    len: u64,
    start: u64,
    bytes: Vec<u8>,
}

impl Reading {
    pub(super) fn new(file: Arc<dyn File>) -> Result<Reading> {
        let len = file.len()?;
        Ok(Reading { file, len, start: 0, bytes: Vec::new() })
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    fn path(&self) -> &Path {
        self.file.path()
    }

    /// So many bytes from `at` on; `None` if the file ends before.
    pub(super) fn get(&mut self, at: u64, len: u64) -> Result<Option<&[u8]>> {
        let Some(end) = at.checked_add(len).filter(|end| *end <= self.len) else { return Ok(None) };
        if at < self.start || end > self.start + self.bytes.len() as u64 {
            let bytes = READ_BYTES.max(len).min(self.len - at);
            self.bytes.resize(bytes as usize, 0);
            self.start = at;
            self.file.read_at(at, &mut self.bytes)?;
        }
        let from = (at - self.start) as usize;
        debug_assert!(from + len as usize <= self.bytes.len(), "it was read");
        Ok(Some(&self.bytes[from..from + len as usize]))
    }

    /// The header of the file.
    ///
    /// # Errors
    /// `Corrupt`, `Invalid` with the file; `Io`.
    pub(super) fn file_header(&mut self) -> Result<FileHeader> {
        let bytes: Option<[u8; FILE_HEADER_BYTES]> =
            self.get(0, FILE_HEADER_BYTES as u64)?.and_then(|bytes| bytes.try_into().ok());
        let header = match bytes {
            Some(bytes) => FileHeader::decode(&bytes),
            None => Err(Error::corrupt("a file of a log that ends in its header")),
        };
        header.map_err(|error| error.at(self.path().display().to_string(), 0))
    }

    /// The record at a place, if there is one, whatever its number.
    fn record(&mut self, at: u64) -> Result<Option<Found>> {
        let front = self.get(at, HEADER_BYTES as u64)?.and_then(|front| front.try_into().ok());
        let Some(front) = front else { return Ok(None) };
        let len = (HEADER_BYTES + record::name_bytes(&front)) as u64;
        Ok(self.get(at, len)?.and_then(record::decode))
    }

    /// Returns true if the payload of a record is as it was written.
    fn is_sound(&mut self, found: &Found, at: u64) -> Result<bool> {
        let (mut checksum, mut done) = (0, 0);
        while done < found.header.len {
            let len = READ_BYTES.min(found.header.len - done);
            let Some(bytes) = self.get(at + done, len)? else { return Ok(false) };
            checksum = crc32c::crc32c_append(checksum, bytes);
            done += len;
        }
        Ok(checksum == found.header.checksum)
    }

    /// Reads the records one behind the other, and gives them to `take`. Of the last file payloads are
    /// checked, too; the others were synced before the next one began, and a read checks them.
    ///
    /// # Errors
    /// `Corrupt` with file and offset for what `take` refuses; `Io`.
    pub(super) fn records(
        &mut self,
        header: &FileHeader,
        is_last: bool,
        take: TakeRecord<'_>,
    ) -> Result<End> {
        let front = FILE_HEADER_BYTES as u64;
        let mut end = End { at: front, next: header.first, parent: header.parent, unsure_from: front };
        // Records that no later one has in its mark, with their places.
        let mut unsure = VecDeque::new();
        while let Some(found) = self.record(end.at)? {
            let front = record::Header::front_bytes(&found.name);
            let payload_at = end.at + front;
            let is_next = found.header.log == header.log
                && found.header.number == end.next
                && found.header.parent == end.parent
                && payload_at.checked_add(found.header.len).is_some_and(|end| end <= self.len);
            let is_deletion = found.header.tag == Tag::Delete;
            if !is_next || (is_last || is_deletion) && !self.is_sound(&found, payload_at)? {
                break;
            }
            let place = self.path().display().to_string();
            let taken = if is_deletion {
                let payload = self.get(payload_at, found.header.len)?.unwrap_or_default();
                record::decode_names(payload).and_then(|names| take(&found, &names, payload_at))
            } else {
                take(&found, &[], payload_at)
            };
            taken.map_err(|error| error.at(place, end.at))?;
            let at = padded(payload_at + found.header.len);
            assert!(at > end.at, "a record has bytes");
            unsure.push_back((end.next, end.at));
            while unsure.front().is_some_and(|(number, _)| *number <= found.header.durable) {
                unsure.pop_front();
            }
            let unsure_from = unsure.front().map_or(at, |(_, at)| *at);
            end = End { at, next: end.next + 1, parent: found.hash, unsure_from };
        }
        Ok(end)
    }

    /// Checks that what lies behind the end of the last file was never durable.
    ///
    /// # Errors
    /// `Corrupt` with file and offset; `Io`.
    pub(super) fn judge(&mut self, header: &FileHeader, end: &End) -> Result<()> {
        let mut at = end.at + ALIGN;
        while let Some(log) = self.get(at + LOG_AT.start as u64, 8)? {
            let is_of_log = record::u64_at(log, 0) == header.log;
            let found = if is_of_log { self.record(at)? } else { None };
            // What an opening before cut off has smaller marks than the records that came later.
            let tells =
                found.filter(|found| found.header.log == header.log && found.header.durable >= end.next);
            if let Some(found) = tells.filter(|_| !terrane_base::planted!(CutLoggedDamage)) {
                let text = format!(
                    "record {} of the log was durable, as record {} says, and is damaged: restore the \
                     directory",
                    end.next, found.header.number
                );
                return Err(Error::corrupt(text).at(self.path().display().to_string(), end.at));
            }
            at += ALIGN;
        }
        Ok(())
    }
}
