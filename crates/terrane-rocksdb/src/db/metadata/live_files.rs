//! Live files: those of a database, and lists that a caller makes, to bring files in.

use std::ffi::c_char;

use terrane::ExtentInfo;

use crate::db::Database;
use crate::extents::extent_name;
use crate::extents::levels::{Levels, deepest_of};
use crate::ffi::arguments::Text;
use crate::ffi::failure::Result;
use crate::ffi::types::Out;
use crate::ffi::value_objects::{LentText, lent};

/// The metadata of one file.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiveFile {
    pub(crate) family: LentText,
    pub(crate) name: LentText,
    pub(crate) directory: LentText,
    pub(crate) level: i32,
    pub(crate) bytes: usize,
    pub(crate) smallest: LentText,
    pub(crate) largest: LentText,
    pub(crate) seq_min: u64,
    pub(crate) seq_max: u64,
    pub(crate) entries: u64,
    pub(crate) deletes: u64,
}

/// Files.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiveFiles {
    pub(crate) files: Vec<LiveFile>,
}

impl LiveFile {
    /// An extent of the column family `family` of the database in `directory`, whose levels are numbered so,
    /// as a file.
    pub(crate) fn of(extent: &ExtentInfo, levels: Levels, family: &str, directory: &str) -> LiveFile {
        let summary = &extent.summary;
        LiveFile {
            family: family.into(),
            name: extent_name(summary.id).into(),
            directory: directory.into(),
            level: levels.number_of(summary.level.into()) as i32,
            bytes: summary.bytes as usize,
            smallest: extent.smallest.as_slice().into(),
            largest: extent.largest.as_slice().into(),
            seq_min: summary.seq_min.0,
            seq_max: summary.seq_max.0,
            entries: summary.entries + summary.range_deletes,
            deletes: summary.deletes + summary.range_deletes,
        }
    }
}

impl LiveFiles {
    /// The extents of all tables of a database.
    fn of(database: &Database) -> Result<LiveFiles> {
        let db = database.view();
        let directory = database.directory();
        let mut files = Vec::new();
        for name in db.tables() {
            // One that is dropped meanwhile has no files.
            let Ok(table) = db.table(&name) else { continue };
            let extents = table.extents()?;
            let levels = database.family_named(&name).map(|family| family.levels(deepest_of(&extents)));
            // One that is not open as a column family has the options of the default one.
            let levels = levels.unwrap_or_else(|| database.default_family().levels(deepest_of(&extents)));
            files.extend(extents.iter().map(|extent| LiveFile::of(extent, levels, &name, &directory)));
        }
        Ok(LiveFiles { files })
    }
}

/// The file at a place, if there is one.
fn file(files: Option<&LiveFiles>, at: i32) -> Option<&LiveFile> {
    files?.files.get(usize::try_from(at).ok()?)
}

/// A text of the caller, empty for null.
fn words(text: Text<'_>) -> LentText {
    text.get().map(|text| text.to_bytes().into()).unwrap_or_default()
}

fn set(file: Option<&mut LiveFile>, set: impl FnOnce(&mut LiveFile)) {
    if let Some(file) = file {
        set(file);
    }
}

export! {
    fn rocksdb_livefiles(database: Option<&Database>) -> Option<Box<LiveFiles>> {
        Some(Box::new(LiveFiles::of(database?).unwrap_or_default()))
    }

    fn rocksdb_livefiles_create() -> Option<Box<LiveFiles>> {
        Some(Box::default())
    }

    fn rocksdb_livefiles_count(files: Option<&LiveFiles>) -> i32 {
        files.map_or(0, |files| i32::try_from(files.files.len()).unwrap_or(i32::MAX))
    }

    fn rocksdb_livefiles_add(files: Option<&mut LiveFiles>, file: Option<&LiveFile>) {
        if let (Some(files), Some(file)) = (files, file) {
            files.files.push(file.clone());
        }
    }

    fn rocksdb_livefiles_destroy(files: Option<Box<LiveFiles>>) {
        drop(files);
    }

    fn rocksdb_livefile_create() -> Option<Box<LiveFile>> {
        Some(Box::default())
    }

    fn rocksdb_livefile_destroy(file: Option<Box<LiveFile>>) {
        drop(file);
    }

    fn rocksdb_livefiles_column_family_name(files: Option<&LiveFiles>, at: i32) -> *const c_char {
        lent(file(files, at).map(|file| &file.family), None)
    }

    fn rocksdb_livefile_set_column_family_name(file: Option<&mut LiveFile>, text: Text<'_>) {
        set(file, |file| file.family = words(text));
    }

    fn rocksdb_livefiles_name(files: Option<&LiveFiles>, at: i32) -> *const c_char {
        lent(file(files, at).map(|file| &file.name), None)
    }

    fn rocksdb_livefile_set_name(file: Option<&mut LiveFile>, text: Text<'_>) {
        set(file, |file| file.name = words(text));
    }

    fn rocksdb_livefiles_directory(files: Option<&LiveFiles>, at: i32) -> *const c_char {
        lent(file(files, at).map(|file| &file.directory), None)
    }

    fn rocksdb_livefile_set_directory(file: Option<&mut LiveFile>, text: Text<'_>) {
        set(file, |file| file.directory = words(text));
    }

    fn rocksdb_livefiles_level(files: Option<&LiveFiles>, at: i32) -> i32 {
        file(files, at).map_or(0, |file| file.level)
    }

    fn rocksdb_livefile_set_level(file: Option<&mut LiveFile>, value: i32) {
        set(file, |file| file.level = value);
    }

    fn rocksdb_livefiles_size(files: Option<&LiveFiles>, at: i32) -> usize {
        file(files, at).map_or(0, |file| file.bytes)
    }

    fn rocksdb_livefile_set_size(file: Option<&mut LiveFile>, value: usize) {
        set(file, |file| file.bytes = value);
    }

    fn rocksdb_livefiles_smallestkey(
        files: Option<&LiveFiles>,
        at: i32,
        len: Out<'_, usize>,
    ) -> *const c_char {
        lent(file(files, at).map(|file| &file.smallest), len)
    }

    fn rocksdb_livefile_set_smallest_key(file: Option<&mut LiveFile>, key: Bytes<'_>, len: usize) {
        set(file, |file| file.smallest = key.into());
    }

    fn rocksdb_livefiles_largestkey(
        files: Option<&LiveFiles>,
        at: i32,
        len: Out<'_, usize>,
    ) -> *const c_char {
        lent(file(files, at).map(|file| &file.largest), len)
    }

    fn rocksdb_livefile_set_largest_key(file: Option<&mut LiveFile>, key: Bytes<'_>, len: usize) {
        set(file, |file| file.largest = key.into());
    }

    fn rocksdb_livefiles_smallest_seqno(files: Option<&LiveFiles>, at: i32) -> u64 {
        file(files, at).map_or(0, |file| file.seq_min)
    }

    fn rocksdb_livefile_set_smallest_seqno(file: Option<&mut LiveFile>, value: u64) {
        set(file, |file| file.seq_min = value);
    }

    fn rocksdb_livefiles_largest_seqno(files: Option<&LiveFiles>, at: i32) -> u64 {
        file(files, at).map_or(0, |file| file.seq_max)
    }

    fn rocksdb_livefile_set_largest_seqno(file: Option<&mut LiveFile>, value: u64) {
        set(file, |file| file.seq_max = value);
    }

    fn rocksdb_livefiles_entries(files: Option<&LiveFiles>, at: i32) -> u64 {
        file(files, at).map_or(0, |file| file.entries)
    }

    fn rocksdb_livefile_set_num_entries(file: Option<&mut LiveFile>, value: u64) {
        set(file, |file| file.entries = value);
    }

    fn rocksdb_livefiles_deletions(files: Option<&LiveFiles>, at: i32) -> u64 {
        file(files, at).map_or(0, |file| file.deletes)
    }

    fn rocksdb_livefile_set_num_deletions(file: Option<&mut LiveFile>, value: u64) {
        set(file, |file| file.deletes = value);
    }
}
