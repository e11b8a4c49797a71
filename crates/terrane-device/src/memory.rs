//! A device in memory that behaves like a strict POSIX device and can lose power.
//!
//! # Its promises, all of them
//! 1. A write is durable only after [`File::sync`]. Until then each sector of [`SECTOR_BYTES`] may be kept,
//!    lost, torn, or be an earlier unsynced version. A length is durable only after a sync, too.
//! 2. Stores through a mapping are such writes, found by comparing pages.
//! 3. An entry that was created, renamed or removed is durable only after [`Disk::sync_dir`]. Until then each
//!    directory keeps some prefix of its changes, or any subset of them. A rename between directories is two
//!    changes, one in each.
//!
//! [`MemDisk::crash`] is a power cut, [`MemDisk::kill`] the death of the process, [`MemDisk::writeback`] the
//! operating system's own writeback. The same seed gives the same outcome; [`MemDisk::crash_as`] enumerates
//! all outcomes if they are few. [`MemDisk::rot`], [`MemDisk::fail_sync`] and [`MemDisk::misdirect_sync`] are
//! faults of the device.

mod content;
mod dir;
mod file;
mod outcome;
mod space;
mod tree;

use std::io;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use terrane_base::sync::points::{Point, point};
use terrane_base::{Error, Result};

use crate::posix_lock::{busy, read_by_others};
use crate::{Disk, DiskLock, File, OpenMode};
use file::{MemFile, MemHandle};
use outcome::Choices;
use space::Space;
use tree::{NodeId, Tree};

pub use content::SECTOR_BYTES;

/// A device in memory. Clones are handles of the same device.
///
/// Requires of [`MemDisk::crash`], [`MemDisk::kill`] and [`MemDisk::writeback`]: no thread stores through a
/// mapping meanwhile. Calls may run: a crash or a kill copies all files at one moment. The device itself
/// continues unchanged, so that one run can be cut in many ways.
#[derive(Clone, Debug)]
pub struct MemDisk {
    tree: Arc<Mutex<Tree>>,
    space: Arc<Space>,
    /// True if a file may have several names.
    can_link: Arc<Mutex<bool>>,
}

impl Default for MemDisk {
    fn default() -> Self {
        MemDisk::new()
    }
}

impl MemDisk {
    /// An empty device without a size limit.
    #[must_use]
    pub fn new() -> Self {
        let space = Arc::new(Space::new());
        MemDisk { tree: Arc::new(Mutex::new(Tree::new())), space, can_link: Arc::new(Mutex::new(true)) }
    }

    /// From now on a file has one name only: [`Disk::link`] returns false, as on some file systems.
    pub fn forbid_links(&self) {
        *self.can_link.lock() = false;
    }

    /// Limits the size of the device from now on; writes over the limit fail as `Full`. The limit may be
    /// below the used size: then every new page fails.
    pub fn set_capacity(&self, bytes: u64) {
        self.space.set_capacity(bytes);
    }

    /// Bytes of all pages of files, reserved ones included.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.space.used()
    }

    /// The device after a power cut: durable bytes are kept, `seed` decides about the rest. All locks are
    /// free.
    #[must_use]
    pub fn crash(&self, seed: u64) -> MemDisk {
        self.copy(|tree, space| tree.crashed(seed, space))
    }

    /// The device after the death of the process: every write is readable, but not more durable than before,
    /// so that a power cut may follow. All locks are free.
    #[must_use]
    pub fn kill(&self) -> MemDisk {
        self.copy(|tree, space| tree.killed(space))
    }

    /// Makes some unsynced writes durable, as the operating system may do at any time.
    pub fn writeback(&self, seed: u64) {
        self.tree.lock().write_back(seed);
    }

    /// Number of outcomes of a power cut, with each unsynced page, length and change of a directory kept or
    /// lost; saturates.
    #[must_use]
    pub fn outcomes(&self) -> u64 {
        self.tree.lock().outcomes()
    }

    /// The device after a power cut with the outcome of this number, below [`MemDisk::outcomes`].
    #[must_use]
    pub fn crash_as(&self, number: u64) -> MemDisk {
        self.copy(|tree, space| tree.crashed_as(number, space))
    }

    /// Fails a sync of this file: its unsynced pages are marked clean, as Linux does. They are still
    /// readable, and no later sync makes them durable until they are written again. Without effect if the
    /// file does not exist.
    pub fn fail_sync(&self, path: &Path) {
        self.with_file(path, MemFile::fail_sync);
    }

    /// Syncs this file, but stores one unsynced page at the offset of another page of the file. Reads return
    /// the written bytes; after a loss of power both pages are wrong. Without effect if the file does not
    /// exist.
    pub fn misdirect_sync(&self, path: &Path, seed: u64) {
        self.with_file(path, |file| file.misdirect_sync(&Choices::new(seed, 0)));
    }

    fn with_file(&self, path: &Path, act: impl FnOnce(&MemFile)) {
        let tree = self.tree.lock();
        if let Ok(Some(node)) = tree.find(path)
            && let Some(file) = tree.file(node)
        {
            act(&file);
        }
    }

    /// Flips one bit of one file whose path `chosen` accepts and that is not mapped; returns its location.
    pub fn rot(&self, seed: u64, chosen: &dyn Fn(&str) -> bool) -> Option<(String, u64)> {
        self.tree.lock().rot(seed, chosen)
    }

    fn copy(&self, make: impl FnOnce(&Tree, &Arc<Space>) -> Tree) -> MemDisk {
        let space = Arc::new(Space::new());
        let tree = make(&self.tree.lock(), &space);
        space.set_capacity(self.space.capacity());
        let can_link = Arc::new(Mutex::new(*self.can_link.lock()));
        MemDisk { tree: Arc::new(Mutex::new(tree)), space, can_link }
    }

    fn open_node(&self, path: &Path, mode: OpenMode) -> Result<Arc<MemFile>> {
        let mut tree = self.tree.lock();
        match (mode, tree.find(path)?) {
            (OpenMode::Create, Some(_)) => {
                Err(Error::invalid(format!("cannot make {}: it exists", path.display())))
            }
            (OpenMode::Create, None) => tree.make_file(path, &self.space),
            (_, Some(node)) => {
                tree.file(node).ok_or_else(|| refused("open", path, io::ErrorKind::IsADirectory))
            }
            (_, None) => Err(refused("open", path, io::ErrorKind::NotFound)),
        }
    }
}

impl Disk for MemDisk {
    /// `direct` has no effect, because there is no cache to bypass.
    fn open(&self, path: &Path, mode: OpenMode, _direct: bool) -> Result<Arc<dyn File>> {
        point(Point::Device);
        let file = self.open_node(path, mode)?;
        Ok(Arc::new(MemHandle::new(path, file, mode != OpenMode::Read)))
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        point(Point::Device);
        self.tree.lock().make_dirs(path)
    }

    fn list(&self, path: &Path) -> Result<Vec<String>> {
        point(Point::Device);
        self.tree.lock().list(path)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        point(Point::Device);
        Ok(self.tree.lock().find(path)?.is_some())
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        point(Point::Device);
        self.tree.lock().rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<bool> {
        point(Point::Device);
        if !*self.can_link.lock() {
            return Ok(false);
        }
        self.tree.lock().link(from, to).map(|()| true)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        point(Point::Device);
        self.tree.lock().remove(path)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        point(Point::Device);
        self.tree.lock().sync_dir(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn DiskLock>> {
        point(Point::Device);
        let mut tree = self.tree.lock();
        let node = match tree.find(path)? {
            Some(node) => node,
            None => {
                tree.make_file(path, &self.space)?;
                tree.find(path)?.ok_or_else(|| refused("find", path, io::ErrorKind::NotFound))?
            }
        };
        let Some(file) = tree.file(node) else {
            return Err(refused("lock", path, io::ErrorKind::IsADirectory));
        };
        if !tree.lock(node, false) {
            let is_shared = tree.lock(node, true);
            if is_shared {
                tree.unlock(node);
                return Err(read_by_others(path));
            }
            return Err(busy(path, Some(&std::process::id().to_string())));
        }
        let lock = MemLock { tree: Arc::clone(&self.tree), node };
        drop(tree);
        MemHandle::new(path, file, true).write_at(0, format!("{}\n", std::process::id()).as_bytes())?;
        Ok(Box::new(lock))
    }

    fn lock_shared(&self, path: &Path) -> Result<Option<Box<dyn DiskLock>>> {
        point(Point::Device);
        let mut tree = self.tree.lock();
        let Some(node) = tree.find(path)? else { return Ok(None) };
        if !tree.lock(node, true) {
            return Err(busy(path, Some(&std::process::id().to_string())));
        }
        Ok(Some(Box::new(MemLock { tree: Arc::clone(&self.tree), node })))
    }

    fn free_bytes(&self, _path: &Path) -> Result<u64> {
        point(Point::Device);
        Ok(self.space.free())
    }
}

#[derive(Debug)]
struct MemLock {
    tree: Arc<Mutex<Tree>>,
    node: NodeId,
}

impl DiskLock for MemLock {}

impl Drop for MemLock {
    fn drop(&mut self) {
        self.tree.lock().unlock(self.node);
    }
}

/// The error of a refused call on `path`.
#[cold]
fn refused(what: &str, path: &Path, kind: io::ErrorKind) -> Error {
    Error::io(format!("cannot {what} {}", path.display()), kind.into())
}
