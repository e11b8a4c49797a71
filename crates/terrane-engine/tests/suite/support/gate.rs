//! A memory device that takes images of itself at chosen calls, from whichever thread makes the call.
//!
//! Calls that change something pass a gate. When the chosen one comes, the gate closes: calls under way end,
//! no other begins, and the image is of one moment over all files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use terrane_base::Result;
use terrane_device::{Disk, DiskLock, File, MemDisk, OpenMode, Region};

/// Looks at the device, and says at how many more calls it wants to look again (0 is never).
pub type Look = Box<dyn FnMut(&MemDisk) -> u64 + Send>;

#[derive(Clone)]
pub struct GateDisk {
    inner: MemDisk,
    gate: Arc<Gate>,
}

impl std::fmt::Debug for GateDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("GateDisk")
    }
}

struct Gate {
    passing: RwLock<()>,
    calls: AtomicU64,
    look_at: AtomicU64,
    look: Mutex<Option<Look>>,
}

impl Gate {
    fn pass<R>(&self, disk: &MemDisk, call: impl FnOnce() -> R) -> R {
        self.knock(disk);
        let _passing = self.passing.read();
        call()
    }

    fn knock(&self, disk: &MemDisk) {
        let call = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        if call < self.look_at.load(Ordering::SeqCst) {
            return;
        }
        let mut look = self.look.lock();
        if call < self.look_at.load(Ordering::SeqCst) {
            return; // Another thread has looked meanwhile.
        }
        if let Some(look) = look.as_mut() {
            let _closed = self.passing.write();
            let more = look(disk);
            let next = if more == 0 { u64::MAX } else { self.calls.load(Ordering::SeqCst) + more };
            self.look_at.store(next, Ordering::SeqCst);
        }
    }
}

impl GateDisk {
    pub fn new(inner: MemDisk) -> Self {
        let gate = Gate {
            passing: RwLock::new(()),
            calls: AtomicU64::new(0),
            look_at: AtomicU64::new(u64::MAX),
            look: Mutex::new(None),
        };
        GateDisk { inner, gate: Arc::new(gate) }
    }

    pub fn device(&self) -> &MemDisk {
        &self.inner
    }

    /// Changing calls so far.
    pub fn calls(&self) -> u64 {
        self.gate.calls.load(Ordering::SeqCst)
    }

    /// Looks at the `after`-th changing call from now, before it is made.
    pub fn look_after(&self, after: u64, look: Look) {
        *self.gate.look.lock() = Some(look);
        self.gate.look_at.store(self.calls() + after.max(1), Ordering::SeqCst);
    }

    /// Ends the looks.
    pub fn look_away(&self) {
        self.gate.look_at.store(u64::MAX, Ordering::SeqCst);
        *self.gate.look.lock() = None;
    }

    /// Runs `f` while no call passes.
    pub fn still<R>(&self, f: impl FnOnce(&MemDisk) -> R) -> R {
        let _closed = self.gate.passing.write();
        f(&self.inner)
    }

    fn pass<R>(&self, call: impl FnOnce() -> R) -> R {
        self.gate.pass(&self.inner, call)
    }
}

impl Disk for GateDisk {
    fn open(&self, path: &Path, mode: OpenMode, direct: bool) -> Result<Arc<dyn File>> {
        let inner = if mode == OpenMode::Create {
            self.pass(|| self.inner.open(path, mode, direct))?
        } else {
            self.inner.open(path, mode, direct)?
        };
        Ok(Arc::new(GateFile { inner, disk: self.clone() }))
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        self.pass(|| self.inner.create_dir(path))
    }

    fn list(&self, path: &Path) -> Result<Vec<String>> {
        self.inner.list(path)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.inner.exists(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.pass(|| self.inner.rename(from, to))
    }

    fn link(&self, from: &Path, to: &Path) -> Result<bool> {
        self.pass(|| self.inner.link(from, to))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.pass(|| self.inner.remove(path))
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.pass(|| self.inner.sync_dir(path))
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

#[derive(Debug)]
struct GateFile {
    inner: Arc<dyn File>,
    disk: GateDisk,
}

impl File for GateFile {
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

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.disk.pass(|| self.inner.write_at(offset, bytes))
    }

    fn sync(&self) -> Result<()> {
        self.disk.pass(|| self.inner.sync())
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.disk.pass(|| self.inner.set_len(len))
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.disk.pass(|| self.inner.allocate(offset, len))
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        self.disk.pass(|| self.inner.punch(offset, len))
    }

    fn prefetch(&self, offset: u64, len: u64) {
        self.inner.prefetch(offset, len);
    }

    fn map(&self, len: usize, writable: bool) -> Result<Region> {
        self.inner.map(len, writable)
    }
}
