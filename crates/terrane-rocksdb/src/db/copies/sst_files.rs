//! Files of sorted rows: written without a database, and taken in whole.

use std::cmp::Ordering;

use terrane::{Comparator as _, ExtentFileWriter, IngestOptions as EngineIngestOptions, Table};

use crate::callbacks::comparator::Comparator;
use crate::callbacks::operator_registry::Slots;
use crate::db::timestamps::{STORED_DELETE, stored_value};
use crate::db::{DEFAULT, Database, Family};
use crate::ffi::arguments::Text;
use crate::ffi::failure::{Failure, Given, Result};
use crate::ffi::types::{Out, put};
use crate::files;
use crate::generated::objects::{EnvOptions, IngestOptions};
use crate::options::database::Options;
use crate::options::to_engine::database_options;

/// Writes one file after the other.
pub(crate) struct FileWriter {
    options: Options,
    file: Option<ExtentFileWriter>,
    /// Bytes of the file that was finished last.
    finished_bytes: u64,
}

impl FileWriter {
    fn file(&mut self) -> Result<&mut ExtentFileWriter> {
        self.file.as_mut().ok_or_else(|| Failure::invalid("File is not opened"))
    }

    fn timestamp_bytes(&self) -> usize {
        self.options.comparator.as_ref().map_or(0, |comparator| comparator.timestamp_bytes())
    }

    /// Refuses keys without timestamps where the comparator asks for some.
    fn plain_file(&mut self) -> Result<&mut ExtentFileWriter> {
        match self.timestamp_bytes() {
            0 => self.file(),
            _ => Err(Failure::invalid("Timestamp size mismatch: the comparator has timestamps")),
        }
    }

    /// Adds a row of a key with a timestamp: its value with the kind of the version behind it.
    fn add_version(&mut self, key: &[u8], timestamp: &[u8], stored: &[u8]) -> Result<()> {
        if self.timestamp_bytes() == 0 || self.timestamp_bytes() != timestamp.len() {
            return Err(Failure::invalid("Timestamp size mismatch"));
        }
        Ok(self.file()?.put([key, timestamp].concat(), stored)?)
    }

    /// Deletes what the database has from `start` to before `end` when the file comes in.
    fn delete_range(&mut self, start: &[u8], end: &[u8]) -> Result<()> {
        let comparator = self.options.comparator.clone();
        let file = self.plain_file()?;
        match comparator.map_or_else(|| start.cmp(end), |comparator| comparator.compare(start, end)) {
            Ordering::Greater => Err(Failure::invalid("end key comes before start key")),
            Ordering::Equal => Ok(()),
            Ordering::Less => Ok(file.delete_range(start, end)?),
        }
    }

    fn open(&mut self, path: &str) -> Result<()> {
        // Of these only what says how extents are built counts. The operator comes with the first operand.
        let mut options = database_options(&self.options, &self.options, &Slots::default().of(DEFAULT))?;
        options.merge_operator = terrane::OperatorName::none();
        files::remove_file(path.as_ref())?;
        let slots = std::sync::Arc::new(Slots::default());
        slots.compare_by(self.options.comparator.as_ref());
        let orders = slots.functions().orders;
        self.file = Some(ExtentFileWriter::create_with_orders(path, &options, &orders)?);
        self.finished_bytes = 0;
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        let file = self.file.take().ok_or_else(|| Failure::invalid("File is not opened"))?;
        self.finished_bytes = file.bytes();
        file.finish()?;
        Ok(())
    }
}

fn ingest(
    database: &Database,
    family: &Family,
    paths: &[Text<'_>],
    options: Option<&IngestOptions>,
) -> Result<()> {
    database.refuse_if_read_only()?;
    database.note_options(options)?;
    let fields = &options.given()?.fields;
    if fields.ingest_behind != 0 {
        return Err(Failure::not_implemented("ingest_behind"));
    }
    if fields.fail_if_not_bottommost_level != 0 {
        return Err(Failure::not_implemented("fail_if_not_bottommost_level"));
    }
    let files = paths.iter().map(|path| Ok((&family.table, path.utf8()?)));
    let files: Vec<(&Table, &str)> = files.collect::<Result<_>>()?;
    let how = EngineIngestOptions {
        // What stays under its name may be written to by the caller.
        copy: fields.move_files == 0 && fields.link_files == 0,
        remove: fields.move_files != 0,
        ..EngineIngestOptions::default()
    };
    // What a file says about itself is read before it may be gone.
    let infos: Vec<_> = match database.listeners().is_empty() {
        true => Vec::new(),
        false => {
            files.iter().map(|(_, path)| (*path, terrane::inspect_extent_file(path, false).ok())).collect()
        }
    };
    let ingested = database.db.ingest(&files, how)?;
    for listener in database.listeners() {
        for (path, file) in &infos {
            listener.ingested(family.table.name(), path, ingested.seq.0, file.as_ref());
        }
    }
    Ok(())
}

fn writer(options: Option<&Options>) -> Option<Box<FileWriter>> {
    Some(Box::new(FileWriter { options: options?.clone(), file: None, finished_bytes: 0 }))
}

cf_variants! {
    fn rocksdb_ingest_external_file | rocksdb_ingest_external_file_cf(
        database: Option<&Database>;
        paths: List<'_, Text<'_>>[count],
        count: usize,
        options: Option<&IngestOptions>,
        error: ErrPtr<'_>,
    ) as target {
        ingest(database.given()?, target.family(database)?, paths, options)
    }
}

export! {
    fn rocksdb_sstfilewriter_create(
        _environment: Option<&EnvOptions>,
        options: Option<&Options>,
    ) -> Option<Box<FileWriter>> {
        writer(options)
    }

    fn rocksdb_sstfilewriter_create_with_comparator(
        _environment: Option<&EnvOptions>,
        options: Option<&Options>,
        comparator: Option<&Comparator>,
    ) -> Option<Box<FileWriter>> {
        let mut writer = writer(options)?;
        if let Some(comparator) = comparator {
            writer.options.comparator = comparator.other_order();
        }
        Some(writer)
    }

    fn rocksdb_sstfilewriter_open(writer: Option<&mut FileWriter>, path: Text<'_>, error: ErrPtr<'_>) {
        writer.given()?.open(path.utf8()?)
    }

    fn rocksdb_sstfilewriter_put(
        writer: Option<&mut FileWriter>,
        key: Bytes<'_>,
        key_len: usize,
        value: Bytes<'_>,
        value_len: usize,
        error: ErrPtr<'_>,
    ) {
        Ok(writer.given()?.plain_file()?.put(key, value)?)
    }

    fn rocksdb_sstfilewriter_delete(
        writer: Option<&mut FileWriter>,
        key: Bytes<'_>,
        key_len: usize,
        error: ErrPtr<'_>,
    ) {
        Ok(writer.given()?.plain_file()?.delete(key)?)
    }

    fn rocksdb_sstfilewriter_delete_range(
        writer: Option<&mut FileWriter>,
        start: Bytes<'_>,
        start_len: usize,
        end: Bytes<'_>,
        end_len: usize,
        error: ErrPtr<'_>,
    ) {
        writer.given()?.delete_range(start, end)
    }

    fn rocksdb_sstfilewriter_merge(
        writer: Option<&mut FileWriter>,
        key: Bytes<'_>,
        key_len: usize,
        operand: Bytes<'_>,
        operand_len: usize,
        error: ErrPtr<'_>,
    ) {
        let writer = writer.given()?;
        if writer.options.merge_operator.is_none() {
            return Err(Failure::not_implemented("Provide a merge_operator when opening the file"));
        }
        let file = writer.plain_file()?;
        file.set_merge_operator(Slots::default().of(DEFAULT).name())?;
        Ok(file.merge(key, operand)?)
    }

    fn rocksdb_sstfilewriter_put_with_ts(
        writer: Option<&mut FileWriter>,
        key: Bytes<'_>,
        key_len: usize,
        timestamp: Bytes<'_>,
        timestamp_len: usize,
        value: Bytes<'_>,
        value_len: usize,
        error: ErrPtr<'_>,
    ) {
        let stored = stored_value(value);
        writer.given()?.add_version(key, timestamp, &stored)
    }

    fn rocksdb_sstfilewriter_delete_with_ts(
        writer: Option<&mut FileWriter>,
        key: Bytes<'_>,
        key_len: usize,
        timestamp: Bytes<'_>,
        timestamp_len: usize,
        error: ErrPtr<'_>,
    ) {
        writer.given()?.add_version(key, timestamp, &STORED_DELETE)
    }

    fn rocksdb_sstfilewriter_finish(writer: Option<&mut FileWriter>, error: ErrPtr<'_>) {
        writer.given()?.finish()
    }

    fn rocksdb_sstfilewriter_file_size(writer: Option<&mut FileWriter>, bytes: Out<'_, u64>) {
        let size = |writer: &FileWriter| writer.file.as_ref().map_or(writer.finished_bytes, ExtentFileWriter::bytes);
        put(bytes, writer.as_deref().map_or(0, size));
    }

    fn rocksdb_sstfilewriter_destroy(writer: Option<Box<FileWriter>>) {
        drop(writer);
    }
}
