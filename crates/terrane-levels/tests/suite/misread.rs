//! A device that reads one bit wrong, once: the manifest looks torn where it is not.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{add, database, dir, open, read_file, still, with_manifest};
use terrane_base::Result;
use terrane_device::{Disk, DiskLock, File, MemDisk, OpenMode, Region};
use terrane_format::manifest::record::RECORD_HEADER_BYTES;
use terrane_levels::Manifest;

/// Wraps a device. The next read of a bit of a manifest file returns it inverted.
#[derive(Clone, Debug)]
struct MisreadDisk {
    inner: MemDisk,
    /// The bit, counted from the front of the file; [`NONE`] after it was read.
    bit: Arc<AtomicUsize>,
}

const NONE: usize = usize::MAX;

#[derive(Debug)]
struct MisreadFile {
    inner: Arc<dyn File>,
    bit: Arc<AtomicUsize>,
}

impl Disk for MisreadDisk {
    fn open(&self, path: &Path, mode: OpenMode, direct: bool) -> Result<Arc<dyn File>> {
        let inner = self.inner.open(path, mode, direct)?;
        Ok(Arc::new(MisreadFile { inner, bit: self.bit.clone() }))
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
        self.inner.sync_dir(path)
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
}

impl File for MisreadFile {
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
        self.inner.read_at(offset, buf)?;
        let bit = self.bit.load(Ordering::Relaxed);
        let is_manifest = self.path().to_string_lossy().contains("MANIFEST");
        if let Some(at) = (bit / 8).checked_sub(offset as usize)
            && at < buf.len()
            && is_manifest
        {
            buf[at] ^= 1 << (bit % 8);
            self.bit.store(NONE, Ordering::Relaxed);
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.inner.write_at(offset, bytes)
    }

    fn sync(&self) -> Result<()> {
        self.inner.sync()
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
}

/// The last record, behind which no mark is durable, looks torn wherever a bit of it is wrong.
#[test]
fn a_bit_that_is_read_wrong_once_loses_no_edit() {
    let device = MemDisk::new();
    let (manifest, states) = database(&device, &[add(1, 1), add(2, 2)]);
    drop(manifest);
    let whole = read_file(&device, &dir().join("MANIFEST-000001"));
    // A mark is a header without a payload.
    let bytes = &whole[..whole.len() - RECORD_HEADER_BYTES];
    let (one_edit, _) = database(&MemDisk::new(), &[add(1, 1)]);
    let size = one_edit.size();
    let last_start = (size.snapshot_bytes + size.edit_bytes) as usize;
    assert!(last_start < bytes.len(), "{last_start}: the last edit is in the file");
    for at in last_start..bytes.len() {
        let inner = with_manifest(&device, 1, bytes);
        let bit = Arc::new(AtomicUsize::new(at * 8 + at % 8));
        let disk = MisreadDisk { inner: inner.clone(), bit: bit.clone() };
        let (manifest, state) = Manifest::open_with(Arc::new(disk), dir(), still()).unwrap();
        assert_eq!(bit.load(Ordering::Relaxed), NONE, "byte {at} was read");
        assert!(state == states[2] && manifest.torn_bytes() == 0, "byte {at}");
        manifest.append(&add(3, 1)).unwrap();
        drop(manifest);
        let (_, found) = open(&inner.crash(1)).unwrap();
        assert!(found == states[2].apply(&add(3, 1)).unwrap(), "byte {at}");
    }
}
