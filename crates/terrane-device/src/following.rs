//! A read-only device for files that another process writes at the same time.
//!
//! 1. It creates, changes, removes and locks nothing.
//! 2. A mapping is a copy, made by the call: what its reader has checked stays the same, whatever the writer
//!    does to the file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_base::{Error, Result};

use crate::{Disk, DiskLock, File, OpenMode, Region};

/// See the head of the file. Batched reads are made one by one.
#[derive(Clone, Debug)]
pub struct FollowingDisk {
    inner: Arc<dyn Disk>,
}

impl FollowingDisk {
    /// Reads the files of `inner`.
    #[must_use]
    pub fn new(inner: Arc<dyn Disk>) -> Self {
        FollowingDisk { inner }
    }
}

/// The error of a call that would change something.
#[cold]
fn refused(what: &str, path: &Path) -> Error {
    Error::invalid(format!("cannot {what} {}: a follower only reads the database", path.display()))
}

impl Disk for FollowingDisk {
    fn open(&self, path: &Path, mode: OpenMode, direct: bool) -> Result<Arc<dyn File>> {
        if mode != OpenMode::Read {
            return Err(refused("write to", path));
        }
        Ok(Arc::new(FollowingFile { inner: self.inner.open(path, mode, direct)? }))
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        Err(refused("make", path))
    }

    fn list(&self, path: &Path) -> Result<Vec<String>> {
        self.inner.list(path)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.inner.exists(path)
    }

    fn rename(&self, from: &Path, _to: &Path) -> Result<()> {
        Err(refused("rename", from))
    }

    fn link(&self, from: &Path, _to: &Path) -> Result<bool> {
        Err(refused("link", from))
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf> {
        self.inner.real_path(path)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        Err(refused("remove", path))
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        Err(refused("sync", path))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn DiskLock>> {
        Err(refused("lock", path))
    }

    /// None: the writer holds the lock.
    fn lock_shared(&self, _path: &Path) -> Result<Option<Box<dyn DiskLock>>> {
        Ok(None)
    }

    fn free_bytes(&self, path: &Path) -> Result<u64> {
        self.inner.free_bytes(path)
    }

    fn beneath(&self) -> Option<Arc<dyn Disk>> {
        Some(self.inner.clone())
    }
}

#[derive(Debug)]
struct FollowingFile {
    inner: Arc<dyn File>,
}

impl File for FollowingFile {
    fn path(&self) -> &PathBuf {
        self.inner.path()
    }

    fn len(&self) -> Result<u64> {
        self.inner.len()
    }

    fn names(&self) -> Result<u64> {
        self.inner.names()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.inner.read_at(offset, buf)
    }

    fn write_at(&self, _offset: u64, _bytes: &[u8]) -> Result<()> {
        Err(refused("write to", self.path()))
    }

    fn sync(&self) -> Result<()> {
        Err(refused("sync", self.path()))
    }

    fn set_len(&self, _len: u64) -> Result<()> {
        Err(refused("cut", self.path()))
    }

    fn allocate(&self, _offset: u64, _len: u64) -> Result<()> {
        Err(refused("grow", self.path()))
    }

    fn punch(&self, _offset: u64, _len: u64) -> Result<()> {
        Err(refused("punch", self.path()))
    }

    fn prefetch(&self, offset: u64, len: u64) {
        self.inner.prefetch(offset, len);
    }

    fn map(&self, len: usize, writable: bool) -> Result<Region> {
        if writable {
            return Err(refused("write to", self.path()));
        }
        if terrane_base::planted!(FollowInPlace) {
            return self.inner.map(len, false);
        }
        Region::filled(len, &mut |offset, bytes| self.inner.read_at(offset, bytes))
    }
}
