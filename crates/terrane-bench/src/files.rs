//! The only module that opens files of the bench itself: plans, directories of databases, traces.

use std::fs;
use std::path::Path;

use crate::error::{Error, Result};

/// The text of a file.
///
/// # Errors
/// `Io`, naming the file.
#[expect(clippy::disallowed_methods, reason = "a plan is the user's file, no part of a store")]
pub fn read_text(path: &Path) -> Result<String> {
    let bytes = fs::read(path).map_err(|error| Error::io("read", path, error))?;
    String::from_utf8(bytes).map_err(|_| Error::io("read", path, "it is not UTF-8 text"))
}

/// Writes a whole file.
///
/// # Errors
/// `Io`, naming the file.
#[expect(clippy::disallowed_methods, reason = "a report is the user's file, no part of a store")]
pub fn write_text(path: &Path, text: &str) -> Result<()> {
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        create_directory(parent)?;
    }
    fs::write(path, text).map_err(|error| Error::io("write", path, error))
}

/// Creates a directory and those above it.
///
/// # Errors
/// `Io`, naming the directory.
#[expect(clippy::disallowed_methods, reason = "the directory of a benchmark's database")]
pub fn create_directory(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(|error| Error::io("create", path, error))
}

/// Creates a directory; whether it is new.
///
/// # Errors
/// `Io`, naming the directory.
pub fn create_new_directory(path: &Path) -> Result<bool> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(Error::io("create", path, error)),
        Ok(()) => Ok(true),
    }
}

/// Removes a directory and everything in it; one that is not there is no error.
///
/// # Errors
/// `Io`, naming the directory.
pub fn remove_directory(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", path, error)),
        _ => Ok(()),
    }
}

/// Removes a directory unless it holds something.
///
/// # Errors
/// `Io`, naming the directory.
pub fn remove_if_empty(path: &Path) -> Result<()> {
    fs::remove_dir(path).map_err(|error| Error::io("remove", path, error))
}

/// Bytes of all files below `directory`, as allocated on disk.
///
/// # Errors
/// `Io` if the directory cannot be read.
#[expect(clippy::disallowed_methods, reason = "measures what any engine left on disk")]
pub fn directory_bytes(directory: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let entries = fs::read_dir(directory).map_err(|error| Error::io("list", directory, error))?;
    let mut bytes = 0;
    for entry in entries {
        let entry = entry.map_err(|error| Error::io("list", directory, error))?;
        // A file may go away while we look: background work deletes.
        let Ok(meta) = entry.metadata() else { continue };
        bytes += if meta.is_dir() { directory_bytes(&entry.path())? } else { meta.blocks() * 512 };
    }
    Ok(bytes)
}
