//! Writes an external file: extents as a compaction would write them, each from the start of a slot, then
//! their description.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_base::key_order::Order;
use terrane_base::stored::put_prefix;
use terrane_base::{
    Collation, Entry, Error, ExtentId, Kind, Moment, RecordKind, Result, SeqKind, key, verify,
};
use terrane_device::{Disk, File, OpenMode};
use terrane_format::dump;
use terrane_format::extent::{ANY_TABLE, ExtentMeta, UNNUMBERED_SEQ};
use terrane_format::external::{BYTEWISE, COMPARATOR, Contents, KEY_ORDER, MERGE_OPERATOR, Trailer};
use terrane_storage::{EXTENT_SLOTS_MAX, SLOT_BYTES};

use super::ranges::{EXTENT_RANGE_BYTES, PendingRanges};
use crate::writer::{ExtentWriter, WriterSettings};

/// The result of writing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExternalSummary {
    /// Number of entries.
    pub entries: u64,
    /// Number of range deletes; those that overlap or meet count as one.
    pub range_deletes: u64,
    /// Number of extents.
    pub extents: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// Builds an external file; without [`ExternalWriter::finish`] the file is removed.
#[derive(Debug)]
pub struct ExternalWriter {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    file: Arc<dyn File>,
    writer: ExtentWriter,
    collation: Collation,
    contents: Contents,
    /// The next free slot.
    slot: u32,
    last_key: Option<Vec<u8>>,
    ranges: PendingRanges,
    /// An operand, or a value with its prefix.
    stored: Vec<u8>,
    is_finished: bool,
    /// The error of an extent that could not be written: the file cannot be completed.
    failed: Option<Error>,
}

impl ExternalWriter {
    /// Creates the file `path`, which must not exist. Keys are encoded by `order`, if there is one;
    /// `operator` folds the operands of merges, if there are any.
    ///
    /// # Errors
    /// `Invalid` if `path` exists or a setting is out of range; `Io`.
    pub fn create(
        disk: Arc<dyn Disk>,
        path: &Path,
        settings: WriterSettings,
        (order, operator): (Option<&Order>, Option<&str>),
    ) -> Result<ExternalWriter> {
        let bytes = Collation::BYTES;
        let collation = order.map_or(&bytes, Order::collation);
        let writer = ExtentWriter::new(WriterSettings { table: ANY_TABLE, ..settings })?.ordered(collation);
        let file = disk.open(path, OpenMode::Create, false)?;
        let name = if collation.is_bytes() { KEY_ORDER } else { COMPARATOR };
        let mut options = vec![(name.to_owned(), order.map_or(BYTEWISE, Order::name).to_owned())];
        options.extend(operator.map(|operator| (MERGE_OPERATOR.to_owned(), operator.to_owned())));
        Ok(ExternalWriter {
            disk,
            path: path.to_owned(),
            file,
            writer,
            collation: collation.clone(),
            contents: Contents { options, ..Contents::default() },
            slot: 0,
            last_key: None,
            ranges: PendingRanges::default(),
            stored: Vec::new(),
            is_finished: false,
            failed: None,
        })
    }

    /// Adds a value, which expires at `until` unless that is never.
    ///
    /// # Errors
    /// `Invalid` if the key is not greater than the last one, or is beyond the limits; `Full` if the file
    /// would be too large; `Io`.
    pub fn put(&mut self, key: &[u8], value: &[u8], until: Moment) -> Result<()> {
        if until == Moment::NEVER {
            return self.add(key, RecordKind::Put, value);
        }
        self.add_prefixed(key, value, until, None)
    }

    /// Adds a delete: it hides the versions of the key in the database.
    ///
    /// # Errors
    /// As [`ExternalWriter::put`].
    pub fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.add(key, RecordKind::Delete, &[])
    }

    /// Adds a delete of the database's entries from `start` to before `end`. It hides no entry of the file.
    /// Range deletes may come in any order.
    ///
    /// # Errors
    /// `Invalid` if a key is beyond the limits or `start` is not less than `end`; `Full` if the file would be
    /// too large; an earlier error of an entry.
    pub fn delete_range(&mut self, start: &[u8], end: &[u8]) -> Result<()> {
        debug_assert!(!self.is_finished, "the file is whole and durable: nothing comes to it");
        let fragment = PendingRanges::checked(start, end, &self.collation)?;
        self.check_slots(usize::from(!self.writer.is_empty()) + self.ranges.slots_with(Some(&fragment)))?;
        self.ranges.push(fragment);
        Ok(())
    }

    /// Sets the merge operator from now on, for a caller that did not know at the beginning whether there
    /// would be operands.
    ///
    /// # Errors
    /// `Invalid` if the file has another operator.
    pub fn set_merge_operator(&mut self, operator: &str) -> Result<()> {
        match self.contents.option(MERGE_OPERATOR) {
            None => self.contents.options.push((MERGE_OPERATOR.to_owned(), operator.to_owned())),
            Some(known) if known == operator => {}
            Some(known) => {
                return Err(Error::invalid(format!(
                    "{}: the file was made for the merge operator {known}, not for {operator}",
                    self.path.display()
                )));
            }
        }
        debug_assert!(
            self.contents.option(MERGE_OPERATOR) == Some(operator),
            "operands would be combined by another operator"
        );
        Ok(())
    }

    /// Adds an operand.
    ///
    /// # Errors
    /// As [`ExternalWriter::put`], and `Invalid` for a file without a merge operator.
    pub fn merge(&mut self, key: &[u8], operand: &[u8]) -> Result<()> {
        if self.contents.option(MERGE_OPERATOR).is_none() {
            return Err(Error::invalid(format!(
                "{}: an operand needs a merge operator: set one before adding operands",
                self.path.display()
            )));
        }
        self.add_prefixed(key, operand, Moment::NEVER, Some(0))
    }

    fn add_prefixed(&mut self, key: &[u8], value: &[u8], until: Moment, span: Option<u64>) -> Result<()> {
        key::check_value(value)?;
        let mut stored = std::mem::take(&mut self.stored);
        stored.clear();
        let kind = put_prefix(&mut stored, until, span);
        stored.extend_from_slice(value);
        debug_assert!(
            stored.len() > value.len(),
            "a reader would take the first bytes of the value for its prefix"
        );
        let added = self.add(key, kind, &stored);
        self.stored = stored;
        added
    }

    fn add(&mut self, key: &[u8], kind: RecordKind, value: &[u8]) -> Result<()> {
        key::check_key(key)?;
        self.check_room(key.len(), value.len())?;
        if let Some(last) = &mut self.last_key {
            if self.collation.le(key, last) {
                return Err(Error::invalid(format!(
                    "{}: key {} does not come after {}: the entries of an external file are sorted, each key once",
                    self.path.display(),
                    dump::text(key),
                    dump::text(last)
                )));
            }
            last.clear();
            last.extend_from_slice(key);
        }
        if !self.writer.fits(key.len(), value.len()) {
            self.end_extent()?;
        }
        self.writer.add(Entry { key, seq_kind: SeqKind::new(UNNUMBERED_SEQ, kind), value })?;
        if self.last_key.is_none() {
            self.last_key = Some(key.to_vec());
        }
        debug_assert!(
            self.last_key.as_deref() == Some(key),
            "the order of the next entry would be checked against another one"
        );
        Ok(())
    }

    /// Checks that there is room for an entry: an accepted file can always be finished.
    fn check_room(&self, key_len: usize, value_len: usize) -> Result<()> {
        let is_open = !self.writer.is_empty();
        // An extent takes one slot, unless it holds a single larger entry; with index and filter.
        let bytes = 3 * key_len + value_len + SLOT_BYTES / 16;
        let joins = is_open && self.writer.fits(key_len, value_len);
        let needed = if joins { 0 } else { 1 + bytes / SLOT_BYTES };
        self.check_slots(usize::from(is_open) + needed + self.ranges.slots_with(None))
    }

    /// Checks that this many slots are left.
    fn check_slots(&self, needed: usize) -> Result<()> {
        debug_assert!(self.slot <= EXTENT_SLOTS_MAX, "an extent lies behind the last slot of the file");
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if self.slot as usize + needed <= EXTENT_SLOTS_MAX as usize {
            return Ok(());
        }
        let message = format!(
            "{}: a file holds {EXTENT_SLOTS_MAX} slots of {SLOT_BYTES} bytes at most: finish it and go on in another one",
            self.path.display()
        );
        Err(Error::new(Kind::Full, message))
    }

    /// Approximate bytes of the file so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let open = if self.writer.is_empty() { 0 } else { self.writer.estimated_bytes() as u64 };
        slot_offset(self.slot) + open + self.ranges.bytes() as u64
    }

    fn end_extent(&mut self) -> Result<()> {
        if self.writer.is_empty() {
            return Ok(());
        }
        let (bytes, meta) = self.writer.finish_bytes()?;
        let written = self.write_extent(&bytes, meta).map(|meta| {
            let list = match meta.range_deletes {
                None => &mut self.contents.extents,
                Some(_) => &mut self.contents.deletes,
            };
            list.push(meta);
        });
        debug_assert!(self.writer.is_empty(), "entries would be in this extent and in the next");
        self.writer.recycle(bytes);
        self.failed = written.as_ref().err().cloned();
        written
    }

    /// Writes the range deletes, each extent as full as possible. Requires: the last extent of entries is
    /// written.
    fn end_ranges(&mut self) -> Result<()> {
        debug_assert!(self.writer.is_empty(), "range deletes have extents of their own");
        for fragment in self.ranges.joined(&self.collation) {
            let bytes = self.writer.range_delete_bytes() + fragment.encoded_len();
            if bytes > EXTENT_RANGE_BYTES {
                self.end_extent()?;
            }
            self.writer.add_range_delete(fragment)?;
        }
        self.end_extent()
    }

    fn write_extent(&mut self, bytes: &[u8], meta: ExtentMeta) -> Result<ExtentMeta> {
        debug_assert!(self.slot + meta.slots <= EXTENT_SLOTS_MAX, "looked at before entries were taken");
        let at = slot_offset(self.slot);
        self.file.allocate(at, slot_offset(meta.slots))?;
        self.file.write_at(at, bytes)?;
        let id = ExtentId { file: 0, slot: self.slot };
        assert!(bytes.len() as u64 <= slot_offset(meta.slots), "extents lie one behind the other");
        self.slot += meta.slots;
        Ok(ExtentMeta { id, ..meta })
    }

    /// Writes the rest and makes the file durable.
    ///
    /// # Errors
    /// `Invalid` if nothing was added; `Full`, `Io`, and errors of earlier entries, except that the file was
    /// full. No file exists at the path then.
    pub fn finish(mut self) -> Result<ExternalSummary> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        self.end_extent()?;
        self.end_ranges()?;
        if self.contents.all().next().is_none() {
            let message =
                format!("{}: an external file needs at least one entry or range delete", self.path.display());
            return Err(Error::invalid(message));
        }
        verify!(
            !self.collation.is_bytes() || self.contents.extents.is_sorted_by(|a, b| a.largest < b.smallest),
            "extents of a file are in key order, and apart"
        );
        let contents = self.contents.encode();
        let contents_at = slot_offset(self.slot);
        let trailer = Trailer { contents_at, contents_len: contents.len() as u64 };
        let end = [&contents[..], &trailer.encode()].concat();
        self.file.allocate(contents_at, end.len() as u64)?;
        self.file.write_at(contents_at, &end)?;
        self.file.sync()?;
        self.disk.sync_dir(parent(&self.path))?;
        self.is_finished = true;
        Ok(ExternalSummary {
            entries: self.contents.extents.iter().map(|meta| meta.entries).sum(),
            range_deletes: self.contents.range_deletes(),
            extents: self.contents.all().count() as u64,
            bytes: contents_at + end.len() as u64,
        })
    }
}

impl Drop for ExternalWriter {
    fn drop(&mut self) {
        if !self.is_finished {
            // If it cannot be removed, it lacks a trailer and is not an external file.
            let _ = self.disk.remove(&self.path);
        }
    }
}

/// The directory of a file.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn slot_offset(slot: u32) -> u64 {
    u64::from(slot) * SLOT_BYTES as u64
}

#[cfg(test)]
mod tests {
    use terrane_device::MemDisk;

    use super::*;

    /// All accepted entries are in the file, however full it is; an entry that does not fit is refused.
    #[test]
    fn a_full_file_has_all_that_it_took() {
        let (disk, path): (Arc<dyn Disk>, _) = (Arc::new(MemDisk::new()), Path::new("/file"));
        let mut writer =
            ExternalWriter::create(disk.clone(), path, WriterSettings::default(), (None, None)).unwrap();
        writer.slot = EXTENT_SLOTS_MAX - 2;
        let mut taken = 0u64;
        let refused = loop {
            match writer.put(&taken.to_be_bytes(), &[7; 100_000], Moment::NEVER) {
                Ok(()) => taken += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(refused.kind(), Kind::Full);
        assert_eq!(
            writer.put(&[0xff; 9], &[], Moment::NEVER).map_err(|error| error.kind()),
            Ok(()),
            "a small one fits"
        );
        assert_eq!(writer.finish().unwrap().entries, taken + 1);
    }
}
