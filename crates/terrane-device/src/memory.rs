//! A device in memory that behaves like a strict POSIX one, and that can lose power.
//!
//! # What it promises, and no more
//! 1. A write is durable only after [`File::sync`]; until then each sector of [`SECTOR_BYTES`] may be kept,
//!    lost, torn, or be an earlier unsynced version. A length is durable only after a sync, too.
//! 2. Stores through a mapping are such writes, found by comparing pages.
//! 3. An entry made, renamed or removed is durable only after [`Disk::sync_dir`]; until then each directory
//!    keeps some prefix of its changes, or even any of them. A rename from one directory to another is two changes, one in each.
//!
//! [`MemDisk::crash`] is the power cut, [`MemDisk::kill`] the death of the process, [`MemDisk::writeback`] the
//! operating system writing what it likes in the meantime. The same seed gives the same outcome;
//! [`MemDisk::crash_as`] counts through all of them where they are few. [`MemDisk::rot`],
//! [`MemDisk::fail_sync`] and [`MemDisk::misdirect_sync`] are what a device should not do.

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

use crate::posix_lock::busy;
use crate::{Disk, DiskLock, File, OpenMode};
use file::{MemFile, MemHandle};
use outcome::Choices;
use space::Space;
use tree::{NodeId, Tree};

pub use content::SECTOR_BYTES;

/// A device in memory. Clones are handles of the same device.
///
/// Requires of [`MemDisk::crash`], [`MemDisk::kill`] and [`MemDisk::writeback`]: no thread stores through a
/// mapping meanwhile. Calls may go on: a crash or a kill is of one moment over all files. The device they are called on
/// goes on as it was, so that one run can be cut in many ways.
#[derive(Clone, Debug)]
pub struct MemDisk {
    tree: Arc<Mutex<Tree>>,
    space: Arc<Space>,
    /// Whether a file may have several names.
    can_link: Arc<Mutex<bool>>,
}

impl Default for MemDisk {
    fn default() -> Self {
        MemDisk::new()
    }
}

impl MemDisk {
    /// An empty device without limit.
    #[must_use]
    pub fn new() -> Self {
        let space = Arc::new(Space::new());
        MemDisk { tree: Arc::new(Mutex::new(Tree::new())), space, can_link: Arc::new(Mutex::new(true)) }
    }

    /// From now on a file has one name only: [`Disk::link`] says that it is not possible, as some file systems do.
    pub fn forbid_links(&self) {
        *self.can_link.lock() = false;
    }

    /// Limits the device from now on; writes that would pass the limit fail as `Full`. Less than what is used
    /// is allowed: then nothing new fits.
    pub fn set_capacity(&self, bytes: u64) {
        self.space.set_capacity(bytes);
    }

    /// Bytes of the pages that files take, reserved ones included.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.space.used()
    }

    /// The device after a power cut: durable is kept, the rest is as `seed` decides. Nothing is locked.
    #[must_use]
    pub fn crash(&self, seed: u64) -> MemDisk {
        self.copy(|tree, space| tree.crashed(seed, space))
    }

    /// The device after the death of the process: every write is there, but no more durable than before, so
    /// that a power cut may follow. Nothing is locked.
    #[must_use]
    pub fn kill(&self) -> MemDisk {
        self.copy(|tree, space| tree.killed(space))
    }

    /// Makes some unsynced writes durable, as the operating system may do at any time.
    pub fn writeback(&self, seed: u64) {
        self.tree.lock().write_back(seed);
    }

    /// How many ways a power cut can leave the device, counting each unsynced page, length and change of a directory
    /// as kept or lost; saturates.
    #[must_use]
    pub fn outcomes(&self) -> u64 {
        self.tree.lock().outcomes()
    }

    /// The device after a power cut that leaves the outcome of this number, below [`MemDisk::outcomes`].
    #[must_use]
    pub fn crash_as(&self, number: u64) -> MemDisk {
        self.copy(|tree, space| tree.crashed_as(number, space))
    }

    /// A sync of this file that failed: what it should have made durable is taken for clean, as Linux does. It is
    /// still read, and no later sync makes it durable before it is written again. Nothing if there is no such file.
    pub fn fail_sync(&self, path: &Path) {
        self.with_file(path, MemFile::fail_sync);
    }

    /// A sync of this file in which the device puts one of the unsynced pages in the place of another page of the file: all
    /// is read as it was, and after a loss of power both pages are wrong. Nothing if there is no such file.
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

    /// Flips one bit of one file that `chosen` accepts by its path and that nobody has mapped; says where.
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
    /// `direct` changes nothing: there is no cache to go around.
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
