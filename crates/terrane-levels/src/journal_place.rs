//! A directory that has the journal of a database whose manifest and extents lie elsewhere, in a bucket.
//!
//! ```text
//! LOCK      held by the process that may write
//! REMOTE    which journal this is, and where the other parts lie
//! METRICS   what the writer shares of its metrics, while it is open
//! journal/  segments
//! ```
//!
//! Each opening for writing gives the journal a new id, here and in the manifest. So the directory does not
//! pass for the journal after the database was opened with a copy of it, nor does a copy from before the last
//! opening. A copy that was made since the last opening has the id and passes, without the commits that came
//! after it was made: only a copy of what the last writer left behind is the journal.

use std::path::Path;

use terrane_base::{Error, Result};
use terrane_device::{Disk, OpenMode};
use terrane_format::manifest::JournalMark;
use terrane_format::manifest::journal_mark::MARK_BYTES_MAX;

use crate::directory::{CURRENT, JOURNAL, LOCK, METRICS, REMOTE, REMOTE_NEW, read_small};

/// The mark of the directory; `None` if it has none.
///
/// # Errors
/// `Corrupt` if it is damaged, `Io`.
pub fn read(disk: &dyn Disk, dir: &Path) -> Result<Option<JournalMark>> {
    let path = dir.join(REMOTE);
    let Some(bytes) = read_small(disk, &path, MARK_BYTES_MAX)? else { return Ok(None) };
    let mark = JournalMark::decode(&bytes).map_err(|error| error.at(path.display().to_string(), 0));
    mark.map(Some)
}

/// Checks that the directory has a journal of such a database, or nothing.
/// # Errors
/// `Invalid`, naming the files found, if it is a database of its own or has files of another program; `Io`.
pub fn check(disk: &dyn Disk, dir: &Path) -> Result<()> {
    let names = disk.list(dir)?;
    let is_ours = names.iter().any(|name| name == REMOTE);
    for name in names.iter().map(String::as_str) {
        let is_known = match name {
            LOCK | REMOTE | REMOTE_NEW | METRICS => true,
            // Without a mark it is the journal of a database that lost its other files.
            JOURNAL => is_ours || disk.list(&dir.join(JOURNAL))?.is_empty(),
            _ => false,
        };
        if is_known {
            continue;
        }
        let what = if name == CURRENT { "a database of its own" } else { name };
        return Err(Error::invalid(format!(
            "{} has {what}: give the journal of a database on a bucket a directory of its own",
            dir.display()
        )));
    }
    Ok(())
}

/// Makes `mark` the mark of the directory, durably. Requires: the directory is locked.
///
/// # Errors
/// `Invalid` if the address is too long; `Full`, `Io`: it has the mark before, or this one.
pub fn write(disk: &dyn Disk, dir: &Path, mark: &JournalMark) -> Result<()> {
    let line = mark.encode();
    if line.len() > MARK_BYTES_MAX {
        return Err(Error::invalid(format!("{}...: the address is too long", &line[..64])));
    }
    debug_assert_eq!(JournalMark::decode(line.as_bytes()).ok().as_ref(), Some(mark), "a reader finds it");
    let new = dir.join(REMOTE_NEW);
    if disk.exists(&new)? {
        disk.remove(&new)?;
    }
    let file = disk.open(&new, OpenMode::Create, false)?;
    file.write_at(0, line.as_bytes())?;
    file.sync()?;
    disk.rename(&new, &dir.join(REMOTE))?;
    disk.sync_dir(dir)
}

/// The error of an opening that takes the directory for a database.
#[cold]
pub(crate) fn not_whole(disk: &dyn Disk, dir: &Path) -> Error {
    let address = match read(disk, dir) {
        Ok(Some(mark)) => mark.address,
        _ => "a bucket".to_owned(),
    };
    Error::invalid(format!(
        "{} has only the journal of a database, whose other parts lie in {address}: open it by its deployment file",
        dir.display()
    ))
}

/// Refuses a directory that has the journal of a database whose other parts lie elsewhere.
///
/// # Errors
/// `Invalid`, with where they lie; `Io`.
pub fn refuse(disk: &dyn Disk, dir: &Path) -> Result<()> {
    if disk.exists(&dir.join(REMOTE))? { Err(not_whole(disk, dir)) } else { Ok(()) }
}
