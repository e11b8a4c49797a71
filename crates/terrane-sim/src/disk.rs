//! The device of a simulated database: a [`MemDisk`]. Each call is counted and added to the trace. A call may
//! fail, report success falsely, be the last one before a crash, or be the moment of another operation.
//!
//! [`crate::fault`] lists the faults. A crash takes an image of the device at the call, before it is made;
//! from then on every call fails, until the world opens the image.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use parking_lot::Mutex;
use terrane_base::{Error, Kind, Result, rng::mix};
use terrane_device::{Call, Disk, DiskLock, File, FileRead, MemDisk, OpenMode, Region};

use crate::during::During;
use crate::fault::{Crash, Fault, Harm, Plan, Struck};
use crate::trace::hash;
use crate::world::World;

/// Is called for device calls, on the thread that makes them.
pub(crate) trait Watcher {
    /// A call that changes something is about to be made.
    fn before_change(&self, _disk: &MemDisk) {}

    /// The image of a crash was just taken.
    fn at_crash(&self) {}

    /// A call is about to be made in whose middle something else may come.
    fn during_call(&self, _of: During) {}
}

thread_local! {
    static WATCHER: RefCell<Option<Rc<dyn Watcher>>> = const { RefCell::new(None) };
}

/// While it lives, a watcher is called for this thread's device calls.
pub(crate) struct Watching(Option<Rc<dyn Watcher>>);

/// Sets the watcher of this thread's device calls.
pub(crate) fn watch(watcher: Rc<dyn Watcher>) -> Watching {
    Watching(WATCHER.with(|current| current.replace(Some(watcher))))
}

/// While it lives, no watcher is called for this thread's device calls: they are made on a separate device.
pub(crate) fn unwatched() -> Watching {
    Watching(WATCHER.with(|current| current.borrow_mut().take()))
}

impl Drop for Watching {
    fn drop(&mut self) {
        let before = self.0.take();
        let gone = WATCHER.with(|current| current.replace(before));
        drop(gone);
    }
}

fn watcher() -> Option<Rc<dyn Watcher>> {
    WATCHER.with(|current| current.borrow().clone())
}

/// The device of one life of a process. Clones are handles of the same device.
#[derive(Clone, Debug)]
pub(crate) struct SimDisk {
    inner: MemDisk,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    world: Arc<World>,
    plan: Mutex<Plan>,
    image: Mutex<Option<MemDisk>>,
    /// Directories whose sync failed and lied: their block counts as clean until something in it changes.
    stuck: Mutex<BTreeSet<PathBuf>>,
}

impl SimDisk {
    /// The device `inner` in `world`.
    #[must_use]
    pub(crate) fn new(world: Arc<World>, inner: MemDisk) -> Self {
        let shared =
            Shared { world, plan: Mutex::default(), image: Mutex::default(), stuck: Mutex::default() };
        SimDisk { inner, shared: Arc::new(shared) }
    }

    /// The device below, as it is.
    #[must_use]
    pub(crate) fn device(&self) -> &MemDisk {
        &self.inner
    }

    /// Adds a fault.
    pub(crate) fn fail(&self, fault: Fault) {
        self.shared.plan.lock().add(fault);
    }

    /// Takes back every fault that has not struck; what was done stays done.
    pub(crate) fn heal(&self) {
        self.shared.plan.lock().heal();
    }

    /// Crashes at the changing call after `calls` more of them.
    pub(crate) fn crash_after(&self, calls: u64, crash: Crash) {
        self.shared.plan.lock().crash = Some((calls, crash));
    }

    /// Crashes now, unless it has crashed before.
    pub(crate) fn crash_now(&self, crash: Crash) {
        if self.shared.image.lock().is_none() {
            self.shared.plan.lock().crash = None;
            self.take_image(crash);
        }
    }

    /// The crash that is to come, and after how many calls.
    pub(crate) fn pending_crash(&self) -> Option<(u64, Crash)> {
        self.shared.plan.lock().crash
    }

    /// No crash is to come.
    pub(crate) fn disarm(&self) {
        self.shared.plan.lock().crash = None;
    }

    /// The faults that may still strike.
    pub(crate) fn faults(&self) -> Vec<Fault> {
        self.shared.plan.lock().pending()
    }

    /// The device is abandoned: every call fails from now on.
    pub(crate) fn abandon(&self) {
        self.shared.image.lock().get_or_insert_with(MemDisk::new);
    }

    /// Returns true if it has crashed.
    #[must_use]
    pub(crate) fn has_crashed(&self) -> bool {
        self.shared.image.lock().is_some()
    }

    /// The device after the crash.
    #[must_use]
    pub(crate) fn image(&self) -> Option<MemDisk> {
        self.shared.image.lock().clone()
    }

    /// How many faults of each kind have struck.
    #[must_use]
    pub(crate) fn struck(&self) -> Struck {
        self.shared.plan.lock().struck
    }

    fn take_image(&self, crash: Crash) {
        *self.shared.image.lock() = Some(crash.image(&self.inner));
        if let Some(watcher) = watcher() {
            watcher.at_crash();
        }
    }

    /// Runs at every call; returns the fault of the call.
    fn enter(&self, call: Call, path: &Path, at: u64, len: u64) -> Result<Option<Harm>> {
        if self.shared.image.lock().is_some() {
            return Err(self.cut(call, path));
        }
        self.notify(call, path);
        if self.shared.image.lock().is_some() {
            // The crash was in what happened in the middle.
            return Err(self.cut(call, path));
        }
        let path_text = path.to_string_lossy();
        self.shared.world.note(mix(hash(path_text.as_bytes()) ^ call as u64) ^ mix(at) ^ len);
        let crash = self.shared.plan.lock().count(call);
        if let Some(crash) = crash {
            self.take_image(crash);
            return Err(self.cut(call, path));
        }
        Ok(self.shared.plan.lock().harm(call, &path_text))
    }

    fn notify(&self, call: Call, path: &Path) {
        let Some(watcher) = watcher() else { return };
        if call.changes() {
            watcher.before_change(&self.inner);
        }
        let is_data = path.extension().is_some_and(|extension| extension == "ext");
        match call {
            Call::Read | Call::Write if is_data => watcher.during_call(During::Transfer),
            _ if is_data => watcher.during_call(During::Data),
            _ if call.changes() => watcher.during_call(During::Log),
            _ => {}
        }
    }

    #[cold]
    fn cut(&self, call: Call, path: &Path) -> Error {
        Error::new(Kind::Io, format!("{call:?} of {}: the process is dead", path.display()))
    }

    /// A call without bytes: fails or is made.
    fn call<R>(&self, call: Call, path: &Path, at: u64, make: impl FnOnce() -> Result<R>) -> Result<R> {
        match self.enter(call, path, at, 0)? {
            Some(harm) if harm.refuses() => Err(harm.error(call, path)),
            _ => make(),
        }
    }

    /// A change of a directory: makes its block dirty, with every earlier change in it.
    fn change_entry(&self, call: Call, path: &Path, make: impl FnOnce() -> Result<()>) -> Result<()> {
        self.call(call, path, 0, make)?;
        self.loosen(path);
        Ok(())
    }

    fn loosen(&self, path: &Path) {
        if let Some(parent) = path.parent() {
            self.shared.stuck.lock().remove(parent);
        }
    }
}

impl Disk for SimDisk {
    fn open(&self, path: &Path, mode: OpenMode, direct: bool) -> Result<Arc<dyn File>> {
        let call = if mode == OpenMode::Create { Call::Create } else { Call::Open };
        let inner = self.call(call, path, 0, || self.inner.open(path, mode, direct))?;
        if mode == OpenMode::Create {
            self.loosen(path);
        }
        Ok(Arc::new(SimFile { inner, disk: self.clone() }))
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        self.change_entry(Call::CreateDir, path, || self.inner.create_dir(path))
    }

    fn list(&self, path: &Path) -> Result<Vec<String>> {
        self.call(Call::List, path, 0, || self.inner.list(path))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.call(Call::Exists, path, 0, || self.inner.exists(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.change_entry(Call::Rename, from, || self.inner.rename(from, to).inspect(|()| self.loosen(to)))
    }

    fn link(&self, from: &Path, to: &Path) -> Result<bool> {
        self.call(Call::Link, from, 0, || self.inner.link(from, to).inspect(|_| self.loosen(to)))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.change_entry(Call::Remove, path, || self.inner.remove(path))
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        match self.enter(Call::SyncDir, path, 0, 0)? {
            Some(Harm::Lie) => {
                self.shared.stuck.lock().insert(path.to_owned());
                Err(Harm::Broken.error(Call::SyncDir, path))
            }
            Some(harm) if harm.refuses() => Err(harm.error(Call::SyncDir, path)),
            _ if self.shared.stuck.lock().contains(path) => Ok(()),
            _ => self.inner.sync_dir(path),
        }
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn DiskLock>> {
        self.call(Call::Lock, path, 0, || self.inner.lock(path))
    }

    fn lock_shared(&self, path: &Path) -> Result<Option<Box<dyn DiskLock>>> {
        self.call(Call::Lock, path, 0, || self.inner.lock_shared(path))
    }

    fn free_bytes(&self, path: &Path) -> Result<u64> {
        self.call(Call::FreeBytes, path, 0, || self.inner.free_bytes(path))
    }

    /// Each read is a call of its own, with or without a fault, in an unspecified order.
    fn read_batch(&self, reads: &mut [FileRead<'_>]) {
        let salt = reads.iter().fold(reads.len() as u64, |salt, read| mix(salt ^ read.offset));
        let mut order: Vec<usize> = (0..reads.len()).collect();
        order.sort_unstable_by_key(|&index| mix(salt ^ index as u64));
        order.into_iter().for_each(|index| reads[index].read_alone());
    }
}

#[derive(Debug)]
struct SimFile {
    inner: Arc<dyn File>,
    disk: SimDisk,
}

impl SimFile {
    fn call<R>(&self, call: Call, at: u64, make: impl FnOnce() -> Result<R>) -> Result<R> {
        self.disk.call(call, self.inner.path(), at, make)
    }
}

impl File for SimFile {
    fn path(&self) -> &PathBuf {
        self.inner.path()
    }

    fn len(&self) -> Result<u64> {
        self.call(Call::Len, 0, || self.inner.len())
    }

    fn names(&self) -> Result<u64> {
        self.call(Call::Len, 0, || self.inner.names())
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let harm = self.disk.enter(Call::Read, self.inner.path(), offset, buf.len() as u64)?;
        match harm {
            Some(harm) if harm.refuses() => Err(harm.error(Call::Read, self.inner.path())),
            Some(Harm::Short) => {
                let message = format!("{} ends too early", self.inner.path().display());
                Err(Error::corrupt(message).at(self.inner.path().display().to_string(), offset))
            }
            Some(Harm::Flip(seed)) => {
                self.inner.read_at(offset, buf)?;
                if !buf.is_empty() {
                    let at = (mix(seed) % buf.len() as u64) as usize;
                    buf[at] ^= 1 << (seed % 8);
                }
                Ok(())
            }
            _ => self.inner.read_at(offset, buf),
        }
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let path = self.inner.path();
        let harm = self.disk.enter(Call::Write, path, offset, bytes.len() as u64)?;
        self.disk.shared.world.note(hash(bytes));
        match harm {
            Some(harm) if harm.refuses() => {
                // A part is written, as on a real device: to a page's border, so that direct files agree.
                let part = bytes.len() / 2 / PAGE_BYTES * PAGE_BYTES;
                self.inner.write_at(offset, &bytes[..part])?;
                Err(harm.error(Call::Write, path).at(path.display().to_string(), offset))
            }
            Some(Harm::Lost) => Ok(()),
            Some(Harm::Misdirected(seed)) => {
                let pages = self.inner.len()? / PAGE_BYTES as u64 + 1;
                let elsewhere = mix(seed) % pages * PAGE_BYTES as u64 + offset % PAGE_BYTES as u64;
                self.inner.write_at(elsewhere, bytes)
            }
            _ => self.inner.write_at(offset, bytes),
        }
    }

    fn sync(&self) -> Result<()> {
        let path = self.inner.path();
        match self.disk.enter(Call::Sync, path, 0, 0)? {
            Some(Harm::Lie) => {
                self.disk.inner.fail_sync(path);
                Err(Harm::Broken.error(Call::Sync, path))
            }
            Some(Harm::Lost) => {
                self.disk.inner.fail_sync(path);
                Ok(())
            }
            Some(Harm::Misdirected(seed)) => {
                self.disk.inner.misdirect_sync(path, seed);
                Ok(())
            }
            Some(harm) if harm.refuses() => Err(harm.error(Call::Sync, path)),
            _ => self.inner.sync(),
        }
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.call(Call::SetLen, len, || self.inner.set_len(len))
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.call(Call::Allocate, offset ^ mix(len), || self.inner.allocate(offset, len))
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        self.call(Call::Punch, offset ^ mix(len), || self.inner.punch(offset, len))
    }

    fn prefetch(&self, offset: u64, len: u64) {
        self.inner.prefetch(offset, len);
    }

    fn map(&self, len: usize, writable: bool) -> Result<Region> {
        self.call(Call::Map, len as u64, || self.inner.map(len, writable))
    }
}

const PAGE_BYTES: usize = 4096;
