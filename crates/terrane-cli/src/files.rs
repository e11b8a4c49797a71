//! The only module that opens files: the user's inputs and outputs, never a file of a database.
#![expect(clippy::disallowed_methods, reason = "files of the user, which no simulated device stands for")]

pub use std::fs::File;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// A file to read, with what tells it from another of the same name.
#[derive(Debug)]
pub struct Opened {
    /// The file, at its start.
    pub file: File,
    /// Absolute path, links followed.
    pub path: PathBuf,
    /// Length in bytes; `None` if it is no regular file.
    pub len: Option<u64>,
    /// Time of the last change, in nanoseconds since 1970; 0 if unknown.
    pub changed_nanos: u64,
}

/// Opens a file to read.
///
/// # Errors
/// Of the operating system; `InvalidInput` for a directory.
pub fn open(path: &Path) -> io::Result<Opened> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "is a directory, expected a file"));
    }
    let changed = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Ok(Opened {
        file,
        path: path.canonicalize()?,
        len: metadata.is_file().then_some(metadata.len()),
        changed_nanos: changed.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
    })
}

/// Reads a whole text.
///
/// # Errors
/// Of the operating system; `InvalidData` if it is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    std::fs::read_to_string(path)
}

/// Opens a file to append to, and makes it if it is missing.
///
/// # Errors
/// Of the operating system.
pub fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

/// Writes a whole file and the directory that it lies in.
///
/// # Errors
/// Of the operating system.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        std::fs::create_dir_all(directory)?;
    }
    File::create(path)?.write_all(bytes)
}
