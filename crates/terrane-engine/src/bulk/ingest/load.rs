//! A bulk load: sorted entries become extents in the store at once, and part of their table as one commit.

use std::sync::Arc;

use terrane_base::stored::put_prefix;
use terrane_base::{Entry, Error, Kind, Moment, RecordKind, Result, SeqKind, key};
use terrane_compaction::{JobControl, OutputSettings};
use terrane_format::dump;
use terrane_format::extent::{ExtentMeta, UNNUMBERED_SEQ};
use terrane_table::{ExtentWriter, WriterSettings};

use crate::bulk::ingest::edit_room::EditRoom;
use crate::bulk::ingest::{Arrival, Incoming, IngestOptions, Ingested};
use crate::table::Table;
use crate::write::WritePathRef;

/// Takes sorted entries for one table. No reader sees them before [`Loader::finish`]; if it is dropped
/// before, they are removed.
pub struct Loader {
    engine: WritePathRef,
    writer: ExtentWriter,
    control: JobControl,
    arrival: Arrival,
    last_key: Option<Vec<u8>>,
    stored: Vec<u8>,
    room: EditRoom,
    /// Bytes of the blocks so far before compression.
    block_bytes: u64,
    is_finished: bool,
}

impl Loader {
    /// Begins a bulk load of `table`.
    ///
    /// # Errors
    /// `Invalid` if the database was opened read-only, `NotFound` if the table was dropped, `Cancelled` if
    /// the database is closing, `Poisoned` if background work on the table has stopped.
    pub(crate) fn begin(engine: WritePathRef, table: &Arc<Table>) -> Result<Loader> {
        engine.refuse_if_read_only()?;
        if engine.is_closing() {
            return Err(Error::new(Kind::Cancelled, "the database is closing"));
        }
        if table.is_dropped() {
            return Err(Error::new(Kind::NotFound, format!("table {:?} was dropped", table.name)));
        }
        table.refuse_if_stopped()?;
        let output = OutputSettings::new(&table.settings().limits, true, table.exceeds_memory(0));
        let mut writer = ExtentWriter::new(WriterSettings {
            table: table.id,
            block_bytes: output.block_bytes,
            block_encoding: output.block_encoding,
            filter_bits_per_key: output.filter_bits_per_key,
            compression: output.compression,
            zstd_level: None,
            value_table: None,
            may_point: false,
        })?
        .ordered(table.semantics.collation())
        .of_origin(Some(engine.origin_of(table)));
        if let Some(extractor) = table.semantics.extractor() {
            writer.filter_prefixes(extractor);
        }
        Ok(Loader {
            control: engine.new_control(),
            engine,
            writer,
            arrival: Arrival::new(table),
            last_key: None,
            stored: Vec::new(),
            room: EditRoom::default(),
            block_bytes: 0,
            is_finished: false,
        })
    }

    /// Adds a value; it expires by the table's time to live.
    ///
    /// # Errors
    /// `Invalid` if the key does not come after the last one, is beyond the limits, or one commit cannot name
    /// more extents; `Full`, `Poisoned`, `Io`.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        match self.arrival.table.semantics.expiry_of_put() {
            Moment::NEVER => self.add(key, RecordKind::Put, value),
            until => {
                key::check_value(value)?;
                let mut stored = std::mem::take(&mut self.stored);
                stored.clear();
                let kind = put_prefix(&mut stored, until, None);
                stored.extend_from_slice(value);
                debug_assert!(
                    stored.len() > value.len(),
                    "the time at which a row expires is in front of its value"
                );
                let added = self.add(key, kind, &stored);
                self.stored = stored;
                added
            }
        }
    }

    fn add(&mut self, key: &[u8], kind: RecordKind, value: &[u8]) -> Result<()> {
        key::check_key(key)?;
        if let Some(last) = &mut self.last_key {
            if self.arrival.table.semantics.collation().le(key, last) {
                return Err(Error::invalid(format!(
                    "key {} does not come after {}: a bulk load is sorted, each key once; use write batches for unsorted rows",
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
        debug_assert!(
            self.last_key.as_deref().is_none_or(|last| last == key),
            "the next key is compared to an older one"
        );
        if self.last_key.is_none() {
            self.last_key = Some(key.to_vec());
        }
        Ok(())
    }

    fn end_extent(&mut self) -> Result<()> {
        if self.writer.is_empty() {
            return Ok(());
        }
        self.control.spend(self.writer.estimated_bytes() as u64)?;
        let meta: ExtentMeta = self.writer.finish(&*self.engine.store)?;
        debug_assert!(meta.entries > 0 && meta.range_deletes.is_none(), "a load has entries only");
        self.block_bytes = self.block_bytes.saturating_add(meta.raw_bytes);
        let table = &self.arrival.table;
        let exceeds_memory = table.exceeds_memory(self.block_bytes);
        let output = OutputSettings::new(&table.settings().limits, true, exceeds_memory);
        self.writer.set_block_bytes(output.block_bytes)?;
        let remedy = "end the load before, and begin another one";
        let fits = self.room.take(self.arrival.table.id, &meta, remedy);
        // It is given back with the others.
        self.arrival.extents.push(meta);
        fits
    }

    fn incoming(&self) -> Incoming<'_> {
        Incoming { engine: self.engine.part(), arrivals: std::slice::from_ref(&self.arrival) }
    }

    /// Makes the added entries a part of the table, as one commit: all or none, durable on return. Without
    /// entries there is no commit.
    ///
    /// # Errors
    /// As [`WritePath::ingest`](crate::WritePath::ingest).
    pub fn finish(mut self) -> Result<Ingested> {
        self.end_extent()?;
        let extents = &self.arrival.extents;
        let mut ingested = Ingested {
            extents: extents.len() as u64,
            entries: extents.iter().map(|meta| meta.entries).sum(),
            ..Ingested::default()
        };
        if extents.is_empty() {
            ingested.seq = self.engine.visible();
            return Ok(ingested);
        }
        debug_assert!(ingested.entries >= ingested.extents, "an extent without an entry comes in");
        self.is_finished = true;
        let timeout = IngestOptions::default().lock_timeout;
        ingested.seq = self.incoming().publish_or_give_back(timeout)?;
        Ok(ingested)
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        if !self.is_finished {
            self.incoming().give_back();
        }
    }
}
