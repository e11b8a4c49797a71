//! Values that a merge separates from their entries, and separated ones that it moves or reads.
//!
//! 1. A value that is long enough goes into the value table that is open, and its entry keeps a pointer.
//! 2. A pointer into a value table that the job rewrites ([`ValueInput::is_rewritten`]), or in a range of
//!    keys that it mends ([`JobSpec::mended`]), is followed, and its value is treated as in 1. Nothing else
//!    has to be looked up for that: the entry survived the merge, so the value is live, and the new pointer
//!    goes where the old one was (compaction-triggered merge; Li et al., "Differentiated Key-Value Storage
//!    Management for Balanced I/O Performance", USENIX ATC 2021).
//! 3. Any other pointer stays as it is.
//!
//! Entries come in key order, so the values of one job lie in two sorted groups, of value tables that do not
//! overlap: those that moved apart from those that are new. A value that has lived long enough to move will
//! live longer than most new ones; among new values it would have to move again when these are dead.
//!
//! Invariants: a value table is written and durable before an extent that points into it is returned; the
//! value of an entry lies under its key and number.
//!
//! [`ValueInput::is_rewritten`]: crate::ValueInput

mod reader;

use std::sync::Arc;

use terrane_base::{Entry, Error, RecordKind, Result, SeqKind, Stored, ValuePointer, ValueTableId};
use terrane_format::extent::{ExtentMeta, ValueSection};
use terrane_format::manifest::Place;
use terrane_storage::Store;
use terrane_table::{ExtentWriter, WriterSettings};

use crate::compactor::ExtentSource;
use crate::control::JobControl;
use crate::job::{JobSpec, Work};
pub(super) use reader::ValueReader;

/// A value table that is written.
#[derive(Default)]
struct OpenTable {
    /// Made with the first value.
    writer: Option<ExtentWriter>,
    number: ValueTableId,
}

/// The value tables of one job.
pub(super) struct Values<'a> {
    spec: &'a JobSpec,
    store: &'a dyn Store,
    control: &'a JobControl,
    reader: ValueReader<'a>,
    /// The open value table of values that come from memory or from their entries.
    fresh: OpenTable,
    /// The one of values that moved.
    moved: OpenTable,
    written: Vec<Arc<ExtentMeta>>,
    /// The stored bytes of an entry whose value is a pointer.
    bytes: Vec<u8>,
    /// A value that is followed.
    value: Vec<u8>,
    /// Bytes of values that may still move because scans met too many value tables.
    mended_bytes: u64,
}

impl<'a> Values<'a> {
    pub(super) fn new(
        spec: &'a JobSpec,
        extents: &'a dyn ExtentSource,
        store: &'a dyn Store,
        control: &'a JobControl,
    ) -> Self {
        Values {
            spec,
            store,
            control,
            reader: ValueReader::new(spec, extents),
            fresh: OpenTable::default(),
            moved: OpenTable::default(),
            written: Vec::new(),
            bytes: Vec::new(),
            value: Vec::new(),
            mended_bytes: spec.mended.as_ref().map_or(0, |mended| mended.bytes_max),
        }
    }

    /// Returns true if the value of a key moves whichever value table has it.
    fn is_mended(&self, key: &[u8]) -> bool {
        let mended = self.spec.mended.as_ref().filter(|_| !terrane_base::planted!(MendNothing));
        mended.is_some_and(|mended| mended.range.contains(key))
    }

    /// Returns true if the entry may not go into the output as it is.
    #[inline]
    pub(super) fn concerns(&self, entry: &Entry<'_>) -> bool {
        entry.value.len() as u64 >= self.spec.output.separate_from || entry.seq_kind.is_pointer()
    }

    /// The entry as it goes into the output.
    pub(super) fn place<'e>(&'e mut self, entry: Entry<'e>, work: &mut Work) -> Result<Entry<'e>> {
        if entry.seq_kind.is_delete() || entry.seq_kind.is_merge() {
            return Ok(entry);
        }
        if !entry.seq_kind.is_pointer() {
            let value = Stored::of_entry(entry.seq_kind, entry.value)?.value;
            if (value.len() as u64) < self.spec.output.separate_from {
                return Ok(entry);
            }
            work.values_separated += 1;
            return self.separate(entry, value.len(), None, work);
        }
        let stored = Stored::of_entry(entry.seq_kind, entry.value)?;
        let pointer = ValuePointer::decode(stored.value)?;
        let values = self.spec.values_of(pointer.table);
        let values = values.ok_or_else(|| reader::unknown(&entry, pointer.table))?;
        let is_mended = || self.mended_bytes > 0 && self.is_mended(entry.key);
        if !values.is_rewritten && !is_mended() {
            return Ok(entry);
        }
        self.mended_bytes = self.mended_bytes.saturating_sub(u64::from(pointer.len));
        let mut value = std::mem::take(&mut self.value);
        value.clear();
        self.reader.fetch(&entry, &pointer, &mut value, work)?;
        debug_assert!(value.len() == pointer.len as usize, "a value has the length that its pointer says");
        work.values_moved += 1;
        let (prefix, inlined) = (entry.value.len() - stored.value.len(), entry.seq_kind.inlined());
        if value.len() as u64 >= self.spec.output.separate_from {
            let entry = Entry { seq_kind: inlined, ..entry };
            let len = stored.value.len();
            self.value = value;
            return self.separate(entry, len, Some(()), work);
        }
        // The limit was raised since: the value goes back into its entry.
        self.bytes.clear();
        self.bytes.extend_from_slice(&entry.value[..prefix]);
        self.bytes.extend_from_slice(&value);
        self.value = value;
        Ok(Entry { key: entry.key, seq_kind: inlined, value: &self.bytes })
    }

    /// Appends the value of an entry to `out` if it is a pointer; returns the entry's kind with the value in
    /// its place, and the bytes before it.
    pub(super) fn resolve<'e>(&'e mut self, entry: Entry<'e>, work: &mut Work) -> Result<Entry<'e>> {
        debug_assert!(entry.seq_kind.is_pointer(), "only a pointer is followed");
        let stored = Stored::of_entry(entry.seq_kind, entry.value)?;
        let pointer = ValuePointer::decode(stored.value)?;
        let prefix = entry.value.len() - stored.value.len();
        self.bytes.clear();
        self.bytes.extend_from_slice(&entry.value[..prefix]);
        self.reader.fetch(&entry, &pointer, &mut self.bytes, work)?;
        Ok(Entry { key: entry.key, seq_kind: entry.seq_kind.inlined(), value: &self.bytes })
    }

    /// Writes the value of an entry, which is a put, to a value table; `fetched`: the value is in
    /// `self.value`, else it is the last `len` stored bytes of the entry.
    fn separate<'e>(
        &'e mut self,
        entry: Entry<'e>,
        len: usize,
        fetched: Option<()>,
        work: &mut Work,
    ) -> Result<Entry<'e>> {
        assert!(len <= entry.value.len(), "the value is the end of the stored bytes");
        let (prefix, inline) = entry.value.split_at(entry.value.len() - len);
        let fetched = fetched.map(|()| std::mem::take(&mut self.value));
        let value = fetched.as_deref().unwrap_or(inline);
        let pointer = self.put(fetched.is_some(), (entry.key, entry.seq_kind, value), work)?;
        self.bytes.clear();
        self.bytes.extend_from_slice(prefix);
        pointer.encode(&mut self.bytes);
        if let Some(fetched) = fetched {
            self.value = fetched;
        }
        Ok(Entry { key: entry.key, seq_kind: entry.seq_kind.separated(), value: &self.bytes })
    }

    /// Appends a value to a value table, that of values that moved or the other.
    fn put(
        &mut self,
        is_moved: bool,
        (key, seq_kind, value): (&[u8], SeqKind, &[u8]),
        work: &mut Work,
    ) -> Result<ValuePointer> {
        let is_full = |writer: &ExtentWriter| !writer.is_empty() && !writer.fits(key.len(), value.len());
        let open = if is_moved { &mut self.moved } else { &mut self.fresh };
        if open.writer.as_ref().is_some_and(is_full) {
            self.written.extend(open.close(self.store, self.control, work)?);
        }
        let writer = match &mut open.writer {
            Some(writer) => writer,
            None => open.writer.insert(new_writer(self.spec, self.control)?),
        };
        if writer.is_empty() {
            open.number = self.control.next_value_table()?;
            let level = match self.spec.target {
                Place::Level(level) => level,
                Place::Run(_) | Place::Values => 0,
            };
            debug_assert!(self.spec.values_of(open.number).is_none(), "{} is an input", open.number);
            writer.set_value_table(ValueSection { number: open.number, level });
        }
        writer.add(Entry { key, seq_kind: seq_kind.with_kind(RecordKind::Put), value })?;
        let position = Some(writer.position());
        Ok(ValuePointer { table: open.number, len: value.len() as u32, position })
    }

    /// Writes the open value tables.
    pub(super) fn close(&mut self, work: &mut Work) -> Result<()> {
        for open in [&mut self.fresh, &mut self.moved] {
            self.written.extend(open.close(self.store, self.control, work)?);
        }
        debug_assert!(self.open_bytes() == 0, "the end of a part closes each value table");
        Ok(())
    }

    /// Bytes of the open value tables.
    pub(super) fn open_bytes(&self) -> usize {
        self.fresh.bytes() + self.moved.bytes()
    }

    /// Hands over what was written since the last call. Requires: nothing is open.
    pub(super) fn take(&mut self) -> Vec<Arc<ExtentMeta>> {
        assert!(self.open_bytes() == 0, "a value table that extents point into is not written");
        std::mem::take(&mut self.written)
    }
}

impl OpenTable {
    /// Writes the value table, if there is a value in it.
    fn close(
        &mut self,
        store: &dyn Store,
        control: &JobControl,
        work: &mut Work,
    ) -> Result<Option<Arc<ExtentMeta>>> {
        let Some(writer) = self.writer.as_mut().filter(|writer| !writer.is_empty()) else { return Ok(None) };
        debug_assert!(writer.estimated_bytes() > 0, "a value table with a value has bytes");
        let meta = control.finish(writer, store, true)?;
        work.bytes_written += u64::from(meta.bytes);
        work.value_bytes_written += u64::from(meta.bytes);
        debug_assert!(meta.value_table.is_some_and(|section| section.number == self.number), "its number");
        Ok(Some(Arc::new(meta)))
    }

    fn bytes(&self) -> usize {
        let open = self.writer.as_ref().filter(|writer| !writer.is_empty());
        open.map_or(0, ExtentWriter::estimated_bytes)
    }
}

impl Drop for Values<'_> {
    fn drop(&mut self) {
        for meta in &self.written {
            // As for the other extents of a job that fails.
            let _ = self.store.free(meta.id, meta.slots);
        }
    }
}

fn new_writer(spec: &JobSpec, control: &JobControl) -> Result<ExtentWriter> {
    let (compression, zstd_level) = spec.output.value_compression.over(spec.output.compression);
    let writer = ExtentWriter::new(WriterSettings {
        table: spec.table,
        block_bytes: spec.output.block_bytes,
        block_encoding: spec.output.block_encoding,
        // A value table is reached by pointers only.
        filter_bits_per_key: 0,
        compression,
        zstd_level,
        value_table: None,
        may_point: false,
    })?;
    Ok(writer.ordered(spec.collation()).of_origin(control.origin(spec.target)))
}

/// The error of a job that should write value tables and was given no numbers for them.
pub(crate) fn no_numbers() -> Error {
    Error::invalid("a job that separates values was given no numbers for value tables")
}
