//! A database that is being made in a directory beside its place, `NAME.unfinished`, and gets its name by one
//! rename.
//!
//! Its `LOCK` is held meanwhile, so that two attempts do not make the same database. The next attempt at the
//! same place removes the files of one whose process died, and no other files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_base::{Error, Kind, Result};
use terrane_device::{Disk, DiskLock};
use terrane_format::manifest::file::parse_file_name;
use terrane_levels::directory::{self, CURRENT, CURRENT_NEW, DATA, JOURNAL, LOCK, ORIGINS, Others};

/// Ending of the name of a directory that is not finished.
const UNFINISHED: &str = ".unfinished";

/// See the head of the file.
pub(crate) struct Unfinished {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    target: PathBuf,
    _lock: Box<dyn DiskLock>,
}

impl Unfinished {
    /// Makes the directory beside `target`, empty but for its lock.
    ///
    /// # Errors
    /// `Invalid` if there is something at `target`, if that is within a database (see
    /// [`directory::refuse_within`]), or for something in the directory that no attempt made;
    /// `Busy` if another attempt is under way; `Full`, `Io`.
    pub(crate) fn begin(disk: &Arc<dyn Disk>, target: &Path, others: Others) -> Result<Unfinished> {
        let name = target.file_name().ok_or_else(|| {
            Error::invalid(format!("{} names no directory that could be made", target.display()))
        })?;
        refuse_if_there(&**disk, target)?;
        directory::refuse_within(&**disk, target, others)?;
        directory::prepare(&**disk, parent(target))?;
        let mut beside = name.to_owned();
        beside.push(UNFINISHED);
        let dir = match terrane_base::planted!(NameHalfCheckpoint) {
            true => target.to_owned(),
            false => target.with_file_name(beside),
        };
        disk.create_dir(&dir)?;
        let lock = disk.lock(&dir.join(LOCK)).inspect_err(|_| {
            // This removes it only if it is empty: the holder of the lock has a file in it.
            let _ = disk.remove(&dir);
        })?;
        let unfinished = Unfinished { disk: disk.clone(), dir, target: target.to_owned(), _lock: lock };
        match clear(&**disk, &unfinished.dir) {
            Ok(()) => Ok(unfinished),
            Err(error) => {
                unfinished.abandon();
                Err(error)
            }
        }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Gives the directory its name, durably.
    ///
    /// # Errors
    /// `Invalid` if something came to be there meanwhile; `Io`.
    pub(crate) fn finish(self) -> Result<()> {
        debug_assert_eq!(self.dir.parent(), self.target.parent(), "a rename within one directory is atomic");
        if self.dir != self.target
            && let Err(error) = refuse_if_there(&*self.disk, &self.target)
                .and_then(|()| self.disk.rename(&self.dir, &self.target))
        {
            self.abandon();
            return Err(error);
        }
        self.disk.sync_dir(parent(&self.target))
    }

    /// Removes the files as far as possible: the caller returns the error that led here, and the next attempt
    /// removes the rest.
    pub(crate) fn abandon(self) {
        debug_assert!(
            self.dir != self.target || terrane_base::planted!(NameHalfCheckpoint),
            "files at the target belong to its user"
        );
        let _ = clear(&*self.disk, &self.dir)
            .and_then(|()| self.disk.remove(&self.dir.join(LOCK)))
            .and_then(|()| self.disk.remove(&self.dir));
    }
}

fn refuse_if_there(disk: &dyn Disk, target: &Path) -> Result<()> {
    if disk.exists(target)? {
        return Err(Error::invalid(format!("{} exists already: choose another directory", target.display())));
    }
    Ok(())
}

/// Removes the files of an attempt. `CURRENT` goes first: the rest is then no database.
fn clear(disk: &dyn Disk, dir: &Path) -> Result<()> {
    let names = disk.list(dir)?;
    let is_ours = |name: &String| {
        matches!(name.as_str(), LOCK | CURRENT | CURRENT_NEW | DATA | JOURNAL | ORIGINS)
            || parse_file_name(name).is_some()
    };
    if let Some(other) = names.iter().find(|name| !is_ours(name)) {
        return Err(Error::invalid(format!(
            "{} has {other}, which no unfinished checkpoint or restore leaves: move it away",
            dir.display()
        )));
    }
    if names.iter().any(|name| name == CURRENT) {
        disk.remove(&dir.join(CURRENT))?;
        disk.sync_dir(dir)?;
    }
    for name in names.iter().filter(|name| !matches!(name.as_str(), LOCK | CURRENT)) {
        let path = dir.join(name);
        if matches!(name.as_str(), DATA | JOURNAL) {
            for file in disk.list(&path)? {
                gone(disk.remove(&path.join(file)))?;
            }
        }
        gone(disk.remove(&path))?;
    }
    Ok(())
}

fn gone(removed: Result<()>) -> Result<()> {
    match removed {
        Err(error) if error.kind() == Kind::NotFound => Ok(()),
        result => result,
    }
}

/// The directory that has the entry of `path`.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => path,
    }
}
