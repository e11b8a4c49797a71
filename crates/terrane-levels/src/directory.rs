//! The files of a database, and how its directory is created. Format page: `docs/format/directory.md`.
//!
//! ```text
//! LOCK             held by the process that may write
//! CURRENT          names the manifest file that counts
//! CURRENT.tmp      the next CURRENT, before its rename
//! MANIFEST-NNNNNN  snapshot and edits
//! METRICS          what the writer shares of its metrics, while it is open
//! ORIGINS          of a copy: which databases wrote the extents that it began with
//! journal/         segments
//! data/            extents
//! ```
//!
//! A directory is a database if and only if it has `CURRENT`, which a durable rename creates when everything
//! else exists: creation is atomic. Before that there are only files that an unfinished creation leaves. The
//! next creation removes those, and nothing else.

use std::path::Path;

use terrane_base::{Error, Kind, Result};
use terrane_device::{Disk, OpenMode};
use terrane_format::manifest::file::{
    CURRENT_BYTES_MAX, Current, FileHeader, MAGIC, file_name, parse_file_name,
};

use terrane_format::manifest::DatabaseId;
use terrane_format::manifest::origins::{self, ORIGINS_BYTES_MAX};
use terrane_format::metrics_page::MAGIC as PAGE_MAGIC;

use crate::journal_place;
use crate::manifest::set_current;

/// The lock file.
pub const LOCK: &str = "LOCK";
/// Names the manifest file in use.
pub const CURRENT: &str = "CURRENT";
/// The next `CURRENT`, before its rename.
pub const CURRENT_NEW: &str = "CURRENT.tmp";
/// The page of metrics that the process which may write shares with others.
pub const METRICS: &str = "METRICS";
/// Names the databases that wrote the extents which a copy began with.
pub const ORIGINS: &str = "ORIGINS";
/// The mark of a directory with nothing but the journal of a database: see [`crate::journal_place`].
pub const REMOTE: &str = "REMOTE";
/// The next `REMOTE`, before its rename.
pub const REMOTE_NEW: &str = "REMOTE.tmp";
/// Directory of segments.
pub const JOURNAL: &str = "journal";
/// Directory of extents.
pub const DATA: &str = "data";

/// Number of the manifest file that a creation makes.
const FIRST_FILE: u32 = 1;

/// The content of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// It does not exist.
    Missing,
    /// It is empty, or contains only what an unfinished creation leaves, and other files that may stay: a
    /// database can be created here.
    Vacant,
    /// A database.
    Database,
}

/// How to treat names in a directory that no database uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// Refuse them as the sign of a wrong path.
    Refused,
    /// Leave them as they are: the database is created beside them.
    Stay,
}

impl Others {
    /// As the option `beside_others` says.
    #[must_use]
    pub fn beside(others: bool) -> Others {
        if others { Others::Stay } else { Others::Refused }
    }
}

/// Inspects a directory; changes nothing.
///
/// # Errors
/// `Invalid`, naming a file, if it contains files of another program, unless these may stay, or if it has
/// only the journal of a database; `Corrupt` if it was a database and `CURRENT` is missing; `Io`.
pub fn inspect(disk: &dyn Disk, dir: &Path, others: Others) -> Result<Contents> {
    let names = match disk.list(dir) {
        Ok(names) => names,
        Err(error) if error.kind() == Kind::NotFound => return Ok(Contents::Missing),
        Err(error) => return Err(error),
    };
    if names.iter().any(|name| name == CURRENT) {
        return Ok(Contents::Database);
    }
    if names.iter().any(|name| name == REMOTE) {
        return Err(journal_place::not_whole(disk, dir));
    }
    for name in &names {
        check_leftover(disk, dir, name, others)?;
    }
    Ok(Contents::Vacant)
}

/// Accepts a name that an unfinished creation leaves.
fn check_leftover(disk: &dyn Disk, dir: &Path, name: &str, others: Others) -> Result<()> {
    let orphan = |what: String| {
        let message = format!(
            "{CURRENT} is missing, but there is {what}: the database lost it, or this is the directory of another program"
        );
        Err(Error::corrupt(message).at(dir.join(CURRENT).display().to_string(), 0))
    };
    match name {
        LOCK | CURRENT_NEW => Ok(()),
        // Of a database whose other files were removed.
        METRICS if !is_of_another(disk, &dir.join(name), &PAGE_MAGIC)? => Ok(()),
        // As an unfinished copy leaves it.
        ORIGINS if !is_of_another(disk, &dir.join(name), b"terrane ")? => Ok(()),
        JOURNAL | DATA => match disk.list(&dir.join(name))?.first() {
            Some(file) => orphan(format!("{name}/{file}")),
            None => Ok(()),
        },
        _ => match parse_file_name(name) {
            Some(_) if is_of_another(disk, &dir.join(name), &MAGIC)? => Err(Error::invalid(format!(
                "{} has {name} of another program, a name that a database needs: choose another directory",
                dir.display()
            ))),
            Some(FIRST_FILE) => Ok(()),
            Some(_) => orphan(name.to_owned()),
            None if others == Others::Stay => Ok(()),
            None => Err(Error::invalid(format!(
                "{} is not empty and not a database: it has {name}; choose another directory",
                dir.display()
            ))),
        },
    }
}

/// Returns true if a file with the name of one of ours begins with none of the bytes `magic`: an unfinished
/// creation leaves the beginning of a file, or nothing.
fn is_of_another(disk: &dyn Disk, path: &Path, magic: &[u8; 8]) -> Result<bool> {
    let file = disk.open(path, OpenMode::Read, false)?;
    let mut head = [0; 8];
    let len = (file.len()? as usize).min(head.len());
    file.read_at(0, &mut head[..len])?;
    Ok(head[..len] != magic[..len] && head.iter().any(|byte| *byte != 0))
}

/// Refuses a place for something new within the directory of a database, or of the journal of one. Its
/// database takes files by their names, and one of another's in such a place makes its opening fail; what
/// is made there is lost with the database. With [`Others::Stay`] the database shares its directory with
/// programs that may make databases below it, as those of RocksDB do: then only its own names are refused.
///
/// # Errors
/// `Invalid`, naming the enclosing database; `Io`.
pub fn refuse_within(disk: &dyn Disk, target: &Path, others: Others) -> Result<()> {
    // Where a path leads to nothing that can be looked up, nothing can be made: the making says why.
    let Ok(whole) = disk.real_path(target) else { return Ok(()) };
    for above in whole.ancestors().skip(1) {
        let below = whole.strip_prefix(above).unwrap_or(&whole);
        let first = below.components().next().map(|name| name.as_os_str().to_string_lossy());
        let is_refused = others == Others::Refused || first.is_some_and(|name| is_own_name(&name));
        if is_refused && is_of_database(disk, above)? {
            return Err(Error::invalid(format!(
                "{} is within the database {}: name a place beside it",
                target.display(),
                above.display()
            )));
        }
    }
    Ok(())
}

/// Returns true if a directory has a database, or the journal of one. Others have a `CURRENT`, too.
fn is_of_database(disk: &dyn Disk, dir: &Path) -> Result<bool> {
    Ok(disk.exists(&dir.join(JOURNAL))?
        && (disk.exists(&dir.join(CURRENT))? || disk.exists(&dir.join(REMOTE))?))
}

/// Returns true for the names that a database gives to its files and directories.
fn is_own_name(name: &str) -> bool {
    matches!(name, LOCK | CURRENT | CURRENT_NEW | METRICS | ORIGINS | REMOTE | REMOTE_NEW | JOURNAL | DATA)
        || parse_file_name(name).is_some()
}

/// Creates `dir` and its missing parents, durably. Called before the directory is locked.
///
/// # Errors
/// `Io`, `Full`.
pub fn prepare(disk: &dyn Disk, dir: &Path) -> Result<()> {
    let mut missing = Vec::new();
    let mut at = dir;
    while !disk.exists(at)? {
        missing.push(at);
        at = parent(at);
        if at == Path::new(".") {
            break;
        }
    }
    disk.create_dir(dir)?;
    missing.iter().rev().try_for_each(|made| disk.sync_dir(parent(made)))
}

/// The directory with the entry of `path`.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => path,
    }
}

/// Prepares an empty directory for the first manifest file.
pub(crate) fn make(disk: &dyn Disk, dir: &Path, others: Others) -> Result<()> {
    match inspect(disk, dir, others)? {
        Contents::Database => {
            return Err(Error::invalid(format!("{} holds a database already", dir.display())));
        }
        Contents::Missing => prepare(disk, dir)?,
        Contents::Vacant => {
            for name in [CURRENT_NEW, ORIGINS, &file_name(FIRST_FILE)] {
                remove_if_there(disk, &dir.join(name))?;
            }
        }
    }
    disk.create_dir(&dir.join(JOURNAL))?;
    disk.create_dir(&dir.join(DATA))
}

/// The step that makes a directory a database: makes its entries durable, then creates `CURRENT`.
pub(crate) fn finish(disk: &dyn Disk, dir: &Path, header: &FileHeader) -> Result<()> {
    // The process that created `dir` may not have made its entry durable: a database must not be lost with
    // it.
    disk.sync_dir(parent(dir))?;
    disk.sync_dir(dir)?;
    set_current(disk, dir, header)
}

/// Removes the files that an unfinished roll or removal left.
pub(crate) fn clean(disk: &dyn Disk, dir: &Path, current: u32) -> Result<()> {
    for name in disk.list(dir)? {
        let stale = parse_file_name(&name).is_some_and(|number| number != current);
        if stale || name == CURRENT_NEW {
            remove_if_there(disk, &dir.join(name))?;
        }
    }
    Ok(())
}

fn remove_if_there(disk: &dyn Disk, path: &Path) -> Result<()> {
    match disk.remove(path) {
        Err(error) if error.kind() == Kind::NotFound => Ok(()),
        result => result,
    }
}

/// Reads which databases wrote the extents that this one began with; `None` if it does not say.
///
/// # Errors
/// `Corrupt`, `Io`.
pub fn read_origins(disk: &dyn Disk, dir: &Path) -> Result<Option<Vec<DatabaseId>>> {
    let path = dir.join(ORIGINS);
    let Some(bytes) = read_small(disk, &path, ORIGINS_BYTES_MAX)? else { return Ok(None) };
    origins::decode(&bytes).map(Some).map_err(|error| error.at(path.display().to_string(), 0))
}

/// Notes in a directory that is not a database yet which databases wrote its extents, the oldest first.
/// Durable with the directory's entries.
///
/// # Errors
/// `Full`, `Io`.
pub fn write_origins(disk: &dyn Disk, dir: &Path, ids: &[DatabaseId]) -> Result<()> {
    let file = disk.open(&dir.join(ORIGINS), OpenMode::Create, false)?;
    file.write_at(0, origins::encode(ids).as_bytes())?;
    file.sync()
}

/// The bytes of a file of at most `bytes_max`; `None` if there is no such file. Of a longer one a byte more,
/// so that it is not mistaken for its front.
///
/// # Errors
/// `Io`.
pub(crate) fn read_small(disk: &dyn Disk, path: &Path, bytes_max: usize) -> Result<Option<Vec<u8>>> {
    let file = match disk.open(path, OpenMode::Read, false) {
        Ok(file) => file,
        Err(error) if error.kind() == Kind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let len = file.len()?.min(bytes_max as u64 + 1);
    let mut bytes = vec![0; len as usize];
    file.read_at(0, &mut bytes)?;
    Ok(Some(bytes))
}

/// Reads `CURRENT`.
pub(crate) fn read_current(disk: &dyn Disk, dir: &Path) -> Result<Current> {
    let path = dir.join(CURRENT);
    let bytes = read_small(disk, &path, CURRENT_BYTES_MAX)?.ok_or_else(|| no_database(disk, dir))?;
    Current::decode(&bytes).map_err(|error| error.at(path.display().to_string(), 0))
}

#[cold]
fn no_database(disk: &dyn Disk, dir: &Path) -> Error {
    match inspect(disk, dir, Others::Stay) {
        Err(error) => error,
        Ok(_) => Error::new(Kind::NotFound, format!("there is no database in {}", dir.display())),
    }
}
