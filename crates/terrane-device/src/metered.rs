//! [`MeteredDisk`]: counts the calls and bytes of another disk.
//!
//! It does not see stores into mapped memory: the user of a mapping counts those.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_base::Result;

use crate::batch::pass_on;
use crate::{Disk, DiskLock, File, FileRead, Flow, Lines, OpenMode, Region};

/// Counts the reads, writes and syncs of every file opened through it, and syncs of directories.
#[derive(Clone, Debug)]
pub struct MeteredDisk {
    inner: Arc<dyn Disk>,
    flow: Arc<Flow>,
}

impl MeteredDisk {
    /// Passes everything through to `inner` and counts it in `flow`.
    #[must_use]
    pub fn new(inner: Arc<dyn Disk>, flow: Arc<Flow>) -> Self {
        MeteredDisk { inner, flow }
    }
}

impl Disk for MeteredDisk {
    fn open(&self, path: &Path, mode: OpenMode, direct: bool) -> Result<Arc<dyn File>> {
        let inner = self.inner.open(path, mode, direct)?;
        Ok(Arc::new(MeteredFile { inner, flow: Arc::clone(&self.flow) }))
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        self.inner.create_dir(path)
    }

    fn list(&self, path: &Path) -> Result<Vec<String>> {
        self.inner.list(path)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.inner.exists(path)
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf> {
        self.inner.real_path(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<bool> {
        self.inner.link(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.inner.remove(path)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.flow.note_sync();
        self.flow.wait(|| self.inner.sync_dir(path))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn DiskLock>> {
        self.inner.lock(path)
    }

    fn lock_shared(&self, path: &Path) -> Result<Option<Box<dyn DiskLock>>> {
        self.inner.lock_shared(path)
    }

    fn free_bytes(&self, path: &Path) -> Result<u64> {
        self.inner.free_bytes(path)
    }

    fn read_batch(&self, reads: &mut [FileRead<'_>]) {
        let below = |file| (file as &dyn Any).downcast_ref::<MeteredFile>();
        pass_on(&*self.inner, reads, |file| below(file).map(|file| Ok(&*file.inner)));
        self.flow.note_batch();
        for FileRead { file, buf, result, .. } in reads {
            if let Some(file) = below(*file) {
                file.flow.note_read(buf.len(), result);
            }
        }
    }

    fn check_ring(&self) -> Result<()> {
        self.inner.check_ring()
    }

    fn has_lines(&self) -> bool {
        self.inner.has_lines()
    }

    fn is_public(&self) -> bool {
        self.inner.is_public()
    }

    fn ring_reads(&self) -> u64 {
        self.inner.ring_reads()
    }
}

#[derive(Debug)]
struct MeteredFile {
    inner: Arc<dyn File>,
    flow: Arc<Flow>,
}

impl File for MeteredFile {
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
        let result = self.inner.read_at(offset, buf);
        self.flow.note_read(buf.len(), &result);
        result
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let result = self.flow.wait(|| self.inner.write_at(offset, bytes));
        self.flow.note_write(bytes.len(), &result);
        result
    }

    fn sync(&self) -> Result<()> {
        self.flow.note_sync();
        self.flow.wait(|| self.inner.sync())
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.inner.set_len(len)
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.inner.allocate(offset, len)
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        self.inner.punch(offset, len)
    }

    fn prefetch(&self, offset: u64, len: u64) {
        self.inner.prefetch(offset, len);
    }

    fn map(&self, len: usize, writable: bool) -> Result<Region> {
        self.inner.map(len, writable)
    }

    fn lines(&self) -> Option<&dyn Lines> {
        self.inner.lines()
    }
}
