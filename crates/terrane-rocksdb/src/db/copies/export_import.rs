//! A column family as files: brought out of one database and into another.

use std::ffi::c_char;
use std::path::Path;

use terrane::{ExtentFileWriter, Kind, Options as EngineOptions, Snapshot, Table};

use crate::db::copies::checkpoint::Checkpoint;
use crate::db::metadata::live_files::{LiveFile, LiveFiles};
use crate::db::{Database, FamilyHandle, family};
use crate::ffi::failure::{Failure, Given, Result};
use crate::ffi::types::lasting;
use crate::ffi::value_objects::LentText;
use crate::files;
use crate::generated::objects::ImportColumnFamilyOptions;
use crate::options::database::Options;
use crate::options::to_engine::order_of;

const COMPARATOR: &str = "leveldb.BytewiseComparator";
/// Bytes after which rows go on in the next file: half of what one holds.
const FILE_BYTES: u64 = 512 << 20;

/// Which files a column family was brought out to.
pub(crate) struct ExportedFiles {
    comparator: LentText,
    files: LiveFiles,
}

/// A file that is being written.
struct Rows {
    writer: ExtentFileWriter,
    /// As RocksDB tells of a file that was brought out: without its column family and its numbers of entries.
    file: LiveFile,
    is_empty: bool,
}

impl Rows {
    fn begin(directory: &str, number: usize) -> Result<Rows> {
        let name = format!("/{number:06}.sst");
        let writer = ExtentFileWriter::create(format!("{directory}{name}"), &EngineOptions::default())?;
        let file =
            LiveFile { name: name.into(), directory: directory.into(), level: 6, ..LiveFile::default() };
        Ok(Rows { writer, file, is_empty: true })
    }

    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.writer.put(key, value)?;
        if std::mem::take(&mut self.is_empty) {
            self.file.smallest = key.into();
        }
        Ok(())
    }

    /// Ends the file, whose last key this is.
    fn end(mut self, last: &[u8]) -> Result<LiveFile> {
        self.file.bytes = self.writer.bytes() as usize;
        self.writer.finish()?;
        self.file.largest = last.into();
        Ok(self.file)
    }
}

/// Writes the rows that a snapshot sees into files of `directory`.
fn write_files(snapshot: &Snapshot, table: &Table, directory: &str) -> Result<LiveFiles> {
    let mut files = Vec::new();
    let mut open: Option<Rows> = None;
    let mut last = Vec::new();
    for row in snapshot.iter(table) {
        let (key, value) = row?;
        if let Some(full) = open.take_if(|rows| rows.writer.bytes() >= FILE_BYTES) {
            files.push(full.end(&last)?);
        }
        let rows = match &mut open {
            Some(rows) => rows,
            None => open.insert(Rows::begin(directory, files.len() + 1)?),
        };
        rows.add(&key, &value)?;
        last = key.to_vec();
    }
    if let Some(rows) = open {
        files.push(rows.end(&last)?);
    }
    let seq = snapshot.seq().0;
    // Of which number each row is the files do not say: they are as of one.
    files.iter_mut().for_each(|file| (file.seq_min, file.seq_max) = (seq, seq));
    Ok(LiveFiles { files })
}

/// Refuses a column family whose keys lie in another order than that of bytes, as they do where they have
/// timestamps: the files are in the order of bytes, and what they lack, the kind of a version or from when on
/// there is a history, an import could not restore.
fn refuse_other_order(family: &str, order: &str) -> Result<()> {
    if order == "bytewise" {
        return Ok(());
    }
    Err(Failure::not_implemented(format_args!(
        "export and import of column family {family}, whose comparator is {order}: only those in the order of bytes"
    )))
}

fn export(checkpoint: &Checkpoint, table: &Table, directory: &str) -> Result<ExportedFiles> {
    refuse_other_order(table.name(), table.key_order())?;
    if files::is_there(directory.as_ref()) {
        return Err(Failure::invalid("Specified export_dir exists"));
    }
    files::create_dir(directory.as_ref())?;
    let files = write_files(&checkpoint.db.snapshot(), table, directory.trim_end_matches('/'));
    match files {
        Ok(files) => Ok(ExportedFiles { comparator: COMPARATOR.into(), files }),
        Err(failure) => {
            // The caller gets this failure; what remains of the directory does no harm.
            let _ = files::remove_all(Path::new(directory));
            Err(failure)
        }
    }
}

impl Database {
    /// Makes the column family `name` of files.
    fn import(
        &self,
        name: &str,
        options: &Options,
        moves: bool,
        exported: &ExportedFiles,
    ) -> Result<FamilyHandle> {
        refuse_other_order(name, order_of(options))?;
        if exported.comparator.bytes() != COMPARATOR.as_bytes() {
            return Err(Failure::invalid("Comparator name mismatch"));
        }
        if exported.files.files.is_empty() {
            return Err(Failure::invalid("The list of files is empty"));
        }
        let paths = exported.files.files.iter().map(|file| {
            let text = |words: &LentText| String::from_utf8_lossy(words.bytes()).into_owned();
            format!(
                "{}/{}",
                text(&file.directory).trim_end_matches('/'),
                text(&file.name).trim_start_matches('/')
            )
        });
        let paths: Vec<String> = paths.collect();
        let family = self.create(name, options, 0)?;
        let files: Vec<(&Table, &str)> = paths.iter().map(|path| (&family.table, path.as_str())).collect();
        let how = terrane::IngestOptions { copy: !moves, remove: moves, ..Default::default() };
        match self.db.ingest(&files, how) {
            Ok(_) => Ok(FamilyHandle { family }),
            Err(error) => {
                let dropped = self.drop_family(&family);
                debug_assert!(dropped.is_ok(), "what was just made can be dropped");
                Err(match error.kind() {
                    Kind::NotFound => Failure::io(format_args!("No such file or directory: {error}")),
                    _ => error.into(),
                })
            }
        }
    }
}

export! {
    fn rocksdb_checkpoint_export_column_family(
        checkpoint: Option<&Checkpoint>,
        handle: Option<&FamilyHandle>,
        directory: Text<'_>,
        error: ErrPtr<'_>,
    ) -> Option<Box<ExportedFiles>> {
        let table = &family(handle)?.table;
        Ok(Some(Box::new(export(checkpoint.given()?, table, directory.utf8()?)?)))
    }

    fn rocksdb_create_column_family_with_import(
        database: Option<&Database>,
        options: Option<&Options>,
        name: Text<'_>,
        import_options: Option<&ImportColumnFamilyOptions>,
        exported: Option<&ExportedFiles>,
        error: ErrPtr<'_>,
    ) -> Option<Box<FamilyHandle>> {
        let moves = import_options.given()?.fields.move_files != 0;
        let (database, options) = (database.given()?, options.given()?);
        Ok(Some(Box::new(database.import(name.utf8()?, options, moves, exported.given()?)?)))
    }

    fn rocksdb_export_import_files_metadata_create() -> Option<Box<ExportedFiles>> {
        Some(Box::new(ExportedFiles { comparator: LentText::default(), files: LiveFiles::default() }))
    }

    fn rocksdb_export_import_files_metadata_get_db_comparator_name(
        exported: Option<&ExportedFiles>,
    ) -> *mut c_char {
        exported.map_or(std::ptr::null_mut(), |exported| lasting(exported.comparator.bytes()))
    }

    fn rocksdb_export_import_files_metadata_set_db_comparator_name(
        exported: Option<&mut ExportedFiles>,
        name: Text<'_>,
    ) {
        if let Some(exported) = exported {
            exported.comparator = name.get().map(|name| name.to_bytes().into()).unwrap_or_default();
        }
    }

    fn rocksdb_export_import_files_metadata_get_files(
        exported: Option<&ExportedFiles>,
    ) -> Option<Box<LiveFiles>> {
        Some(Box::new(exported?.files.clone()))
    }

    fn rocksdb_export_import_files_metadata_set_files(
        exported: Option<&mut ExportedFiles>,
        files: Option<&LiveFiles>,
    ) {
        if let (Some(exported), Some(files)) = (exported, files) {
            exported.files = files.clone();
        }
    }

    fn rocksdb_export_import_files_metadata_destroy(exported: Option<Box<ExportedFiles>>) {
        drop(exported);
    }
}
