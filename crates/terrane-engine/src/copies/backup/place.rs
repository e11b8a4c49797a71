//! Where backups are kept: whole objects under names. A directory is one; an object store can be.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_base::{Error, Kind, Result};
use terrane_device::{Disk, DiskLock, OpenMode};
use terrane_levels::directory::{self, LOCK, Others};

/// Folders of a place: the first part of every object's name.
pub const FOLDERS: [&str; 3] = [BACKUPS, EXTENTS, SEGMENTS];
/// Folder of the manifests of backups.
pub(super) const BACKUPS: &str = "backups";
/// Folder of extents.
pub(super) const EXTENTS: &str = "extents";
/// Folder of journal segments.
pub(super) const SEGMENTS: &str = "segments";
/// Ending of the names of files that are being written.
const UNFINISHED: &str = ".unfinished";

/// Keeps objects under names `FOLDER/NAME`.
///
/// An implementer guarantees:
/// 1. An object that is found is the whole one of some [`BackupPlace::put`] that was called, whatever
///    crashed.
/// 2. After [`BackupPlace::settle`] returned, everything that was put and deleted before survives the loss of
///    power.
/// 3. The lock is exclusive, also between processes.
///
/// No operation names two objects: a store that can only put, get, list and delete will do.
///
/// ```
/// # use terrane_base::Result;
/// # use terrane_engine::backup::BackupPlace;
/// /// Copies what one place has to another, which must be empty.
/// fn mirror(from: &dyn BackupPlace, to: &dyn BackupPlace, folders: &[&str]) -> Result<()> {
///     to.prepare()?;
///     let _lock = to.lock()?;
///     for folder in folders {
///         for name in from.list(folder)? {
///             let name = format!("{folder}/{name}");
///             to.put(&name, &[&from.get(&name, 1 << 30)?])?;
///         }
///     }
///     to.settle()
/// }
/// ```
pub trait BackupPlace: Send + Sync + Debug {
    /// Makes the place ready for its first object; fine if it is.
    ///
    /// # Errors
    /// `Invalid` if it holds something else; `Io`.
    fn prepare(&self) -> Result<()>;

    /// Keeps other writers out until it is dropped. What a writer left that died is collected.
    ///
    /// # Errors
    /// `Busy`, naming the holder; `Io`.
    fn lock(&self) -> Result<Box<dyn DiskLock>>;

    /// Stores an object, in the place of one of that name: the pieces, one behind the other.
    ///
    /// # Errors
    /// `Full`, `Io`; then the former object is there, or none.
    fn put(&self, name: &str, pieces: &[&[u8]]) -> Result<()>;

    /// Makes what was put and deleted so far durable.
    ///
    /// # Errors
    /// `Io`.
    fn settle(&self) -> Result<()>;

    /// The bytes of an object, which has `bytes_max` at most.
    ///
    /// # Errors
    /// `NotFound`; `Corrupt` if it is longer; `Io`.
    fn get(&self, name: &str, bytes_max: u64) -> Result<Vec<u8>>;

    /// The names in a folder, without it, sorted; none if there is no such folder.
    ///
    /// # Errors
    /// `NotFound` if there is no such place; `Io`.
    fn list(&self, folder: &str) -> Result<Vec<String>>;

    /// Removes an object; fine if it is not there.
    ///
    /// # Errors
    /// `Io`.
    fn delete(&self, name: &str) -> Result<()>;

    /// The place as it appears in messages.
    fn shown(&self) -> String;
}

/// A directory with one file for each object.
///
/// ```
/// # use std::path::Path;
/// # use std::sync::Arc;
/// # use terrane_device::MemDisk;
/// # use terrane_engine::backup::{BackupPlace, DirectoryPlace};
/// let disk = Arc::new(MemDisk::new()); // or a file system
/// let place = DirectoryPlace::new(disk.clone(), Path::new("/backups"));
/// assert_eq!(place.shown(), "/backups");
/// let below_a_database = DirectoryPlace::new(disk, Path::new("/db/backups")).beside_others();
/// ```
#[derive(Clone, Debug)]
pub struct DirectoryPlace {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    others: Others,
}

impl DirectoryPlace {
    /// The place in `dir`, which is made with the first backup, and then must not be within a database.
    #[must_use]
    pub fn new(disk: Arc<dyn Disk>, dir: &Path) -> Self {
        DirectoryPlace { disk, dir: dir.to_owned(), others: Others::Refused }
    }

    /// The same place, which may be below the directory of a database, but for the names that this uses: as
    /// programs of RocksDB have it.
    #[must_use]
    pub fn beside_others(self) -> Self {
        DirectoryPlace { others: Others::Stay, ..self }
    }

    /// Refuses the directory of another program.
    fn check_names(&self) -> Result<()> {
        let names = match self.disk.list(&self.dir) {
            Err(error) if error.kind() == Kind::NotFound => return Ok(()),
            names => names?,
        };
        match names.iter().find(|name| *name != LOCK && !FOLDERS.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(Error::invalid(format!(
                "{} is not a place of backups: it has {name}; choose another directory",
                self.dir.display()
            ))),
        }
    }
}

impl BackupPlace for DirectoryPlace {
    fn prepare(&self) -> Result<()> {
        self.check_names()?;
        // One that is there is used on, wherever it is.
        if !self.disk.exists(&self.dir.join(BACKUPS))? {
            directory::refuse_within(&*self.disk, &self.dir, self.others)?;
        }
        directory::prepare(&*self.disk, &self.dir)?;
        FOLDERS.iter().try_for_each(|folder| self.disk.create_dir(&self.dir.join(folder)))
    }

    fn lock(&self) -> Result<Box<dyn DiskLock>> {
        let lock = self.disk.lock(&self.dir.join(LOCK)).map_err(|error| match error.kind() {
            Kind::Busy => error.context("another backup is being made or removed"),
            _ => error,
        })?;
        for folder in FOLDERS.map(|folder| self.dir.join(folder)) {
            for name in self.disk.list(&folder)?.iter().filter(|name| name.ends_with(UNFINISHED)) {
                self.disk.remove(&folder.join(name))?;
            }
        }
        // The process that put these objects may have died before they were durable.
        self.settle()?;
        Ok(lock)
    }

    fn put(&self, name: &str, pieces: &[&[u8]]) -> Result<()> {
        debug_assert!(!name.ends_with(UNFINISHED), "the next writer would remove it");
        let path = self.dir.join(name);
        let aside = self.dir.join(format!("{name}{UNFINISHED}"));
        let written = self.write_aside(&aside, pieces).and_then(|()| self.disk.rename(&aside, &path));
        written.inspect_err(|_| {
            // The next writer removes the rest.
            let _ = self.disk.remove(&aside);
        })
    }

    fn settle(&self) -> Result<()> {
        FOLDERS.iter().try_for_each(|folder| self.disk.sync_dir(&self.dir.join(folder)))
    }

    fn get(&self, name: &str, bytes_max: u64) -> Result<Vec<u8>> {
        let file = self.disk.open(&self.dir.join(name), OpenMode::Read, false)?;
        let len = file.len()?;
        if len > bytes_max {
            let message = format!("object of {len} bytes: expected {bytes_max} at most");
            return Err(Error::corrupt(message).at(file.path().display().to_string(), bytes_max));
        }
        let mut bytes = vec![0; len as usize];
        file.read_at(0, &mut bytes)?;
        Ok(bytes)
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        debug_assert!(FOLDERS.contains(&folder), "a place has no folder {folder:?}");
        let mut names = match self.disk.list(&self.dir.join(folder)) {
            Err(error) if error.kind() == Kind::NotFound => {
                // A place without its folder was being made when its writer died; a directory that does not
                // exist is not a place.
                return match self.disk.list(&self.dir) {
                    Err(error) if error.kind() == Kind::NotFound => {
                        let message = format!("there are no backups: {} does not exist", self.shown());
                        Err(Error::new(Kind::NotFound, message))
                    }
                    listed => listed.and_then(|_| self.check_names()).map(|()| Vec::new()),
                };
            }
            names => names?,
        };
        names.retain(|name| !name.ends_with(UNFINISHED));
        Ok(names)
    }

    fn delete(&self, name: &str) -> Result<()> {
        match self.disk.remove(&self.dir.join(name)) {
            Err(error) if error.kind() == Kind::NotFound => Ok(()),
            result => result,
        }
    }

    fn shown(&self) -> String {
        self.dir.display().to_string()
    }
}

impl DirectoryPlace {
    fn write_aside(&self, aside: &Path, pieces: &[&[u8]]) -> Result<()> {
        if self.disk.exists(aside)? {
            self.disk.remove(aside)?;
        }
        let file = self.disk.open(aside, OpenMode::Create, false)?;
        let mut at = 0;
        for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
            file.write_at(at, piece)?;
            at += piece.len() as u64;
        }
        debug_assert!(
            at == pieces.iter().map(|piece| piece.len() as u64).sum::<u64>(),
            "a piece lies over another one"
        );
        file.sync()
    }
}
