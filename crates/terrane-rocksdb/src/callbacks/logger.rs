//! Loggers: lines about the background work of a database, for a user function, standard error or a file.
//!
//! The lines are Terrane's own, and no promise: they say what the engine reports to a listener.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::Arc;

use terrane::{JobEnded, Listener, StallBegan, StallEnded, WorkFailed};

use crate::files::info_log::Lines;

/// Levels of lines, as RocksDB counts them.
const DEBUG: c_int = 0;
const INFO: c_int = 1;
const WARN: c_int = 2;
const ERROR: c_int = 3;

/// FieldValue of the user's pointer, the level, the line and its length.
pub(crate) type OnLine = Option<unsafe extern "C" fn(*mut c_void, c_uint, *mut c_char, usize)>;

/// A handle of a logger; databases that were opened with it hold the logger itself.
#[derive(Debug)]
pub(crate) struct LoggerHandle {
    pub(crate) logger: Arc<Logger>,
}

/// Where lines go, and from which level on.
#[derive(Debug)]
pub(crate) struct Logger {
    level: c_int,
    to: To,
}

#[derive(Debug)]
enum To {
    /// Standard error, with this in front.
    Stderr(String),
    /// The file LOG of a database.
    File(Lines),
    User(OnLine, Pointer),
}

/// The user's pointer.
#[derive(Debug)]
struct Pointer(*mut c_void);

// SAFETY: RocksDB's interface asks that functions of the user may be called from any thread.
unsafe impl Send for Pointer {}
// SAFETY: as above.
unsafe impl Sync for Pointer {}

impl Logger {
    /// Says a line, if the level is high enough.
    pub(crate) fn say(&self, level: c_int, line: &str) {
        if level < self.level {
            return;
        }
        match &self.to {
            To::Stderr(prefix) => eprintln!("{prefix}{line}"),
            To::File(lines) => lines.add(line),
            To::User(None, _) => {}
            To::User(Some(callback), pointer) => {
                // The user's type is not const: a copy, with a zero behind it.
                let mut line = [line.as_bytes(), &[0]].concat();
                let (len, level) = (line.len() - 1, level.unsigned_abs());
                // SAFETY: the user's function, with the user's pointer and bytes that are there during the
                // call.
                unsafe { callback(pointer.0, level, line.as_mut_ptr().cast(), len) };
            }
        }
    }

    /// One whose lines go into a file.
    pub(crate) fn to_file(level: c_int, lines: Lines) -> Logger {
        Logger { level, to: To::File(lines) }
    }

    /// Logs a failure that stops no operation.
    pub(crate) fn warn(&self, line: &str) {
        self.say(WARN, line);
    }

    /// Says that a database was opened.
    pub(crate) fn opened(&self, path: &str) {
        let version = env!("CARGO_PKG_VERSION");
        self.say(INFO, &format!("Terrane {version} opened {path}"));
    }

    /// Says what a column family has at the opening.
    pub(crate) fn found(&self, name: &str, extent_count: u64, bytes: u64) {
        self.say(DEBUG, &format!("[{name}] {extent_count} extents with {bytes} bytes"));
    }
}

impl Listener for Logger {
    fn flush_ended(&self, job: &JobEnded) {
        self.say(INFO, &ended(job));
    }

    fn compaction_ended(&self, job: &JobEnded) {
        self.say(INFO, &ended(job));
    }

    fn stall_began(&self, stall: &StallBegan) {
        self.say(WARN, &format!("writers are held back: {:?}", stall.cause));
    }

    fn stall_ended(&self, stall: &StallEnded) {
        self.say(INFO, &format!("writers are no longer held back, after {:?}", stall.lasted));
    }

    fn work_failed(&self, failure: &WorkFailed) {
        let table = failure.table.as_deref().unwrap_or("the database");
        self.say(ERROR, &format!("[{table}] {} failed: {}", failure.work, failure.error));
    }

    fn table_created(&self, name: &str) {
        self.say(INFO, &format!("[{name}] created"));
    }

    fn table_dropped(&self, name: &str) {
        self.say(INFO, &format!("[{name}] dropped"));
    }
}

fn ended(job: &JobEnded) -> String {
    let JobEnded { table, work, took, bytes_read, bytes_written, error, .. } = job;
    let end = error.as_ref().map_or_else(|| "ended".to_owned(), |error| format!("stopped: {error}"));
    format!("[{table}] {work} {end}, {took:?}, {bytes_read} bytes read, {bytes_written} written")
}

fn logger(level: c_int, to: To) -> Option<Box<LoggerHandle>> {
    Some(Box::new(LoggerHandle { logger: Arc::new(Logger { level, to }) }))
}

export! {
    fn rocksdb_logger_create_stderr_logger(level: c_int, prefix: Text<'_>) -> Option<Box<LoggerHandle>> {
        let prefix = prefix.get().map_or_else(|_| String::new(), |prefix| format!("{} ", prefix.to_string_lossy()));
        logger(level, To::Stderr(prefix))
    }

    fn rocksdb_logger_create_callback_logger(
        level: c_int,
        callback: OnLine,
        pointer: *mut c_void,
    ) -> Option<Box<LoggerHandle>> {
        logger(level, To::User(callback, Pointer(pointer)))
    }

    fn rocksdb_logger_destroy(logger: Option<Box<LoggerHandle>>) {
        drop(logger);
    }
}
