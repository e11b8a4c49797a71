//! Files to copy. Data files of an open database change in place, so the list has the files of a checkpoint
//! that is made for it: they stay as they are until the list is destroyed.

use std::ffi::c_char;
use std::path::{Path, PathBuf};

use terrane::Kind;

use crate::db::Database;
use crate::ffi::failure::{Failure, Given, Result};
use crate::ffi::types::{Out, put};
use crate::ffi::value_objects::{LentText, lent};
use crate::files;
use crate::generated::objects::LivefilesStorageInfoOptions;

/// Lists of one database that live at the same time.
const LISTS_MAX: u32 = 1000;
/// Types of files, as RocksDB numbers them.
const LOG: i32 = 0;
const TABLE: i32 = 2;
const DESCRIPTOR: i32 = 3;
const CURRENT: i32 = 4;
const IDENTITY: i32 = 8;

/// Files of a checkpoint, which goes with the list.
pub(crate) struct StorageInfo {
    path: PathBuf,
    files: Vec<StorageFile>,
}

struct StorageFile {
    name: LentText,
    directory: LentText,
    number: u64,
    kind: i32,
    bytes: u64,
}

impl StorageFile {
    fn new(name: &str, bytes: u64, directory: &str) -> StorageFile {
        let kind = match name {
            _ if name.starts_with("journal/") => LOG,
            _ if name.starts_with("data/") => TABLE,
            _ if name.starts_with("MANIFEST-") => DESCRIPTOR,
            "CURRENT" => CURRENT,
            _ => IDENTITY,
        };
        let digits: String = name.chars().filter(char::is_ascii_digit).collect();
        let number = digits.parse().unwrap_or(0);
        StorageFile { name: name.into(), directory: directory.into(), number, kind, bytes }
    }
}

impl StorageInfo {
    fn of(database: &Database, flushes: bool) -> Result<StorageInfo> {
        database.refuse_if_read_only()?;
        if database.is_in_memory() {
            return Err(Failure::not_implemented("live files: a database in memory has no files to copy"));
        }
        if flushes {
            database.db.flush()?;
        }
        let path = checkpoint_beside(database)?;
        let directory = path.display().to_string();
        // Made before the files are listed: what cannot be listed is removed again.
        let mut info = StorageInfo { path, files: Vec::new() };
        let files = files::all_files(&info.path)?;
        info.files = files.iter().map(|(name, bytes)| StorageFile::new(name, *bytes, &directory)).collect();
        Ok(info)
    }

    fn file(&self, at: usize) -> Option<&StorageFile> {
        self.files.get(at)
    }
}

/// Makes a checkpoint under the first name beside the database that is free.
fn checkpoint_beside(database: &Database) -> Result<PathBuf> {
    for number in 1..=LISTS_MAX {
        let path = files::beside(Path::new(&database.directory()), &format!(".live-files-{number}"));
        if files::is_there(&path) {
            continue;
        }
        match database.db.checkpoint(&path) {
            Ok(_) => return Ok(path),
            // Another call took the name.
            Err(error) if matches!(error.kind(), Kind::Busy) || files::is_there(&path) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Failure::new(
        "Resource busy",
        format_args!("{LISTS_MAX} lists of live files: destroy them, and remove what a crash left"),
    ))
}

impl Drop for StorageInfo {
    fn drop(&mut self) {
        // There is no way to report a failure; what remains only takes space.
        let _ = files::remove_all(&self.path);
    }
}

fn file(info: Option<&StorageInfo>, at: usize) -> Option<&StorageFile> {
    info?.file(at)
}

const NONE: *const c_char = c"".as_ptr();

export! {
    fn rocksdb_get_livefiles_storage_info(
        database: Option<&Database>,
        options: Option<&LivefilesStorageInfoOptions>,
        error: ErrPtr<'_>,
    ) -> Option<Box<StorageInfo>> {
        let flushes = options.is_some_and(|options| options.fields.wal_size_for_flush == 0);
        Ok(Some(Box::new(StorageInfo::of(database.given()?, flushes)?)))
    }

    fn rocksdb_livefiles_storage_info_count(info: Option<&StorageInfo>) -> usize {
        info.map_or(0, |info| info.files.len())
    }

    fn rocksdb_livefiles_storage_info_relative_filename(
        info: Option<&StorageInfo>,
        at: usize,
    ) -> *const c_char {
        lent(file(info, at).map(|file| &file.name), None)
    }

    fn rocksdb_livefiles_storage_info_directory(info: Option<&StorageInfo>, at: usize) -> *const c_char {
        lent(file(info, at).map(|file| &file.directory), None)
    }

    fn rocksdb_livefiles_storage_info_file_number(info: Option<&StorageInfo>, at: usize) -> u64 {
        file(info, at).map_or(0, |file| file.number)
    }

    fn rocksdb_livefiles_storage_info_file_type(info: Option<&StorageInfo>, at: usize) -> i32 {
        file(info, at).map_or(0, |file| file.kind)
    }

    fn rocksdb_livefiles_storage_info_size(info: Option<&StorageInfo>, at: usize) -> u64 {
        file(info, at).map_or(0, |file| file.bytes)
    }

    fn rocksdb_livefiles_storage_info_temperature(_info: Option<&StorageInfo>, _at: usize) -> i32 {
        0
    }

    fn rocksdb_livefiles_storage_info_file_checksum(info: Option<&StorageInfo>, at: usize) -> *const c_char {
        file(info, at).map_or(std::ptr::null(), |_| NONE)
    }

    fn rocksdb_livefiles_storage_info_file_checksum_func_name(
        info: Option<&StorageInfo>,
        at: usize,
    ) -> *const c_char {
        file(info, at).map_or(std::ptr::null(), |_| NONE)
    }

    fn rocksdb_livefiles_storage_info_replacement_contents(
        info: Option<&StorageInfo>,
        at: usize,
        len: Out<'_, usize>,
    ) -> *const c_char {
        put(len, 0);
        file(info, at).map_or(std::ptr::null(), |_| NONE)
    }

    fn rocksdb_livefiles_storage_info_trim_to_size(_info: Option<&StorageInfo>, _at: usize) -> u8 {
        0
    }

    fn rocksdb_livefiles_storage_info_destroy(info: Option<Box<StorageInfo>>) {
        drop(info);
    }
}
