//! Files of the log: the segments of the journal.

use std::ffi::c_char;

use terrane::SegmentEntry;

use crate::db::Database;
use crate::ffi::failure::{Failure, Given};
use crate::ffi::value_objects::{LentText, lent};

/// Of a file: the log is needed, or kept for readers of changes.
const ARCHIVED: i32 = 0;
const ALIVE: i32 = 1;

/// A file of the log.
#[derive(Clone, Debug)]
pub(crate) struct LogFile {
    name: LentText,
    number: u64,
    kind: i32,
    first_seq: u64,
    bytes: u64,
}

/// Files of the log, oldest first.
pub(crate) struct LogFiles(Vec<LogFile>);

impl LogFile {
    fn of(segment: &SegmentEntry) -> LogFile {
        let number = segment.id.0;
        let name = match segment.is_history {
            true => format!("/archive/{number:06}.log"),
            false => format!("/{number:06}.log"),
        };
        LogFile {
            name: name.into(),
            number,
            kind: if segment.is_history { ARCHIVED } else { ALIVE },
            first_seq: segment.first_seq.0,
            bytes: segment.used_bytes,
        }
    }
}

export! {
    fn rocksdb_get_sorted_wal_files(database: Option<&Database>, error: ErrPtr<'_>) -> Option<Box<LogFiles>> {
        let segments = database.given()?.view().segments();
        // Segments behind the active one wait to be used, and have nothing.
        let active = segments.iter().position(|segment| segment.is_active);
        let end = active.map_or(segments.len(), |active| active + 1);
        Ok(Some(Box::new(LogFiles(segments[..end].iter().map(LogFile::of).collect()))))
    }

    fn rocksdb_get_current_wal_file(database: Option<&Database>, error: ErrPtr<'_>) -> Option<Box<LogFile>> {
        let segments = database.given()?.view().segments();
        match segments.iter().find(|segment| segment.is_active) {
            Some(segment) => Ok(Some(Box::new(LogFile::of(segment)))),
            None => Err(Failure::new("NotFound", "no log is written: the database is open for reading")),
        }
    }

    fn rocksdb_wal_file_path_name(file: Option<&LogFile>) -> *const c_char {
        lent(file.map(|file| &file.name), None)
    }

    fn rocksdb_wal_file_log_number(file: Option<&LogFile>) -> u64 {
        file.map_or(0, |file| file.number)
    }

    fn rocksdb_wal_file_type(file: Option<&LogFile>) -> i32 {
        file.map_or(ARCHIVED, |file| file.kind)
    }

    fn rocksdb_wal_file_start_sequence(file: Option<&LogFile>) -> u64 {
        file.map_or(0, |file| file.first_seq)
    }

    fn rocksdb_wal_file_size_file_bytes(file: Option<&LogFile>) -> u64 {
        file.map_or(0, |file| file.bytes)
    }

    fn rocksdb_wal_file_destroy(file: Option<Box<LogFile>>) {
        drop(file);
    }

    fn rocksdb_wal_files_count(files: Option<&LogFiles>) -> usize {
        files.map_or(0, |files| files.0.len())
    }

    fn rocksdb_wal_files_get_wal_file(files: Option<&LogFiles>, at: usize) -> Option<&LogFile> {
        files?.0.get(at)
    }

    fn rocksdb_wal_files_destroy(files: Option<Box<LogFiles>>) {
        drop(files);
    }
}
