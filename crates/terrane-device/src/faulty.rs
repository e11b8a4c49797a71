//! A device that fails on purpose: it wraps another device, counts calls, and refuses the calls that a test
//! selects.
//!
//! A refused write stores about half of its bytes (whole pages), as a real one may; every other refused call
//! changes nothing. A read may also succeed with a wrong bit. Stores through a mapping are not seen. To see
//! what a power cut leaves, wrap a [`MemDisk`](crate::MemDisk), cut the power here, and crash the inner
//! device.

mod plan;

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use terrane_base::{Error, Result};

use crate::batch::{Announced, pass_on};
use crate::call::Call;
use crate::mapping::PAGE_BYTES;
use crate::{Disk, DiskLock, File, FileRead, Lines, OpenMode, PendingRead, ReadBytes, Region};
pub use plan::{Failure, Fault};
use plan::{Plan, Verdict};

/// Wraps a device and fails the calls that a test selects. Clones are handles of the same device.
#[derive(Clone, Debug)]
pub struct FaultyDisk {
    inner: Arc<dyn Disk>,
    plan: Arc<Mutex<Plan>>,
}

impl FaultyDisk {
    /// Wraps `inner`, without any fault.
    #[must_use]
    pub fn new(inner: Arc<dyn Disk>) -> Self {
        let plan = Plan {
            counts: [0; Call::COUNT],
            faults: Vec::new(),
            wrong_bits: 0,
            cut_after: None,
            is_cut: false,
        };
        FaultyDisk { inner, plan: Arc::new(Mutex::new(plan)) }
    }

    /// Adds a fault, counted from now.
    pub fn fail(&self, fault: Fault) {
        self.plan.lock().faults.push(fault);
    }

    /// Removes all faults; a power cut stays.
    pub fn heal(&self) {
        self.plan.lock().faults.clear();
    }

    /// Cuts the power after `calls` more changing calls (see [`Call::changes`]); from then on every call
    /// fails.
    pub fn cut_after(&self, calls: u64) {
        self.plan.lock().cut_after = Some(calls);
    }

    /// Cuts the power now.
    pub fn cut(&self) {
        self.plan.lock().is_cut = true;
    }

    /// Returns true if the power is cut.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.plan.lock().is_cut
    }

    /// Number of calls of a kind, failed ones included.
    #[must_use]
    pub fn count(&self, call: Call) -> u64 {
        self.plan.lock().counts[call as usize]
    }

    /// Number of wrong bits that reads returned.
    #[must_use]
    pub fn wrong_bits(&self) -> u64 {
        self.plan.lock().wrong_bits
    }

    /// Number of changing calls: the bound of [`FaultyDisk::cut_after`] in the next run.
    #[must_use]
    pub fn changes(&self) -> u64 {
        let plan = self.plan.lock();
        Call::ALL.iter().filter(|call| call.changes()).map(|&call| plan.counts[call as usize]).sum()
    }

    fn check(&self, call: Call, path: &Path) -> Result<()> {
        check(&self.plan, call, path)
    }
}

fn check(plan: &Mutex<Plan>, call: Call, path: &Path) -> Result<()> {
    let verdict = plan.lock().decide(call, path);
    verdict.map_or(Ok(()), |verdict| Err(verdict.error(call, path)))
}

impl Disk for FaultyDisk {
    fn open(&self, path: &Path, mode: OpenMode, direct: bool) -> Result<Arc<dyn File>> {
        self.check(if mode == OpenMode::Create { Call::Create } else { Call::Open }, path)?;
        let inner = self.inner.open(path, mode, direct)?;
        Ok(Arc::new(FaultyFile { inner, plan: Arc::clone(&self.plan) }))
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        self.check(Call::CreateDir, path)?;
        self.inner.create_dir(path)
    }

    fn list(&self, path: &Path) -> Result<Vec<String>> {
        self.check(Call::List, path)?;
        self.inner.list(path)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.check(Call::Exists, path)?;
        self.inner.exists(path)
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf> {
        self.inner.real_path(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.check(Call::Rename, from)?;
        self.inner.rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<bool> {
        self.check(Call::Link, from)?;
        self.inner.link(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.check(Call::Remove, path)?;
        self.inner.remove(path)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.check(Call::SyncDir, path)?;
        self.inner.sync_dir(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn DiskLock>> {
        self.check(Call::Lock, path)?;
        self.inner.lock(path)
    }

    fn lock_shared(&self, path: &Path) -> Result<Option<Box<dyn DiskLock>>> {
        self.check(Call::Lock, path)?;
        self.inner.lock_shared(path)
    }

    fn free_bytes(&self, path: &Path) -> Result<u64> {
        self.check(Call::FreeBytes, path)?;
        self.inner.free_bytes(path)
    }

    fn read_batch(&self, reads: &mut [FileRead<'_>]) {
        pass_on(&*self.inner, reads, |file| {
            let file = (file as &dyn Any).downcast_ref::<FaultyFile>()?;
            Some(file.check(Call::Read).map(|()| &*file.inner))
        });
        for FileRead { file, offset, buf, .. } in reads.iter_mut().filter(|read| read.result.is_ok()) {
            if (*file as &dyn Any).is::<FaultyFile>() {
                self.plan.lock().misread(file.path(), *offset, buf);
            }
        }
    }

    fn begin_read(
        &self,
        file: &Arc<dyn File>,
        offset: u64,
        len: usize,
        memory: Vec<u8>,
    ) -> Box<dyn PendingRead> {
        let any: &dyn Any = &**file;
        match any.downcast_ref::<FaultyFile>().map(|file| (file, file.check(Call::Read))) {
            Some((file, Ok(()))) => {
                let read = self.inner.begin_read(&file.inner, offset, len, memory);
                Box::new(Misread { read, path: file.path().clone(), offset, plan: Arc::clone(&self.plan) })
            }
            Some((_, Err(error))) => Box::new(Failed(error)),
            None => Box::new(Announced::new(file.clone(), offset, len, memory)),
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

/// A read that failed before it started.
#[derive(Debug)]
struct Failed(Error);

impl PendingRead for Failed {
    fn finish(self: Box<Self>) -> Result<ReadBytes> {
        Err(self.0)
    }
}

/// A read whose bytes may become wrong when it ends.
#[derive(Debug)]
struct Misread {
    read: Box<dyn PendingRead>,
    path: PathBuf,
    offset: u64,
    plan: Arc<Mutex<Plan>>,
}

impl PendingRead for Misread {
    fn finish(self: Box<Self>) -> Result<ReadBytes> {
        let mut bytes = self.read.finish()?;
        self.plan.lock().misread(&self.path, self.offset, bytes.as_mut_slice());
        Ok(bytes)
    }
}

#[derive(Debug)]
struct FaultyFile {
    inner: Arc<dyn File>,
    plan: Arc<Mutex<Plan>>,
}

impl FaultyFile {
    fn check(&self, call: Call) -> Result<()> {
        check(&self.plan, call, self.inner.path())
    }
}

impl File for FaultyFile {
    fn path(&self) -> &PathBuf {
        self.inner.path()
    }

    fn len(&self) -> Result<u64> {
        self.check(Call::Len)?;
        self.inner.len()
    }

    fn names(&self) -> Result<u64> {
        self.check(Call::Len)?;
        self.inner.names()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.check(Call::Read)?;
        self.inner.read_at(offset, buf)?;
        self.plan.lock().misread(self.inner.path(), offset, buf);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let verdict = self.plan.lock().decide(Call::Write, self.inner.path());
        let Some(verdict) = verdict else { return self.inner.write_at(offset, bytes) };
        if verdict != Verdict::Cut {
            // Whole pages, so that it works for direct files, too; an error of the inner device is ignored.
            let half = bytes.len() / 2 / PAGE_BYTES * PAGE_BYTES;
            let _ = self.inner.write_at(offset, &bytes[..half]);
        }
        Err(verdict.error(Call::Write, self.inner.path()).at(self.inner.path().display().to_string(), offset))
    }

    fn sync(&self) -> Result<()> {
        self.check(Call::Sync)?;
        self.inner.sync()
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.check(Call::SetLen)?;
        self.inner.set_len(len)
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.check(Call::Allocate)?;
        self.inner.allocate(offset, len)
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        self.check(Call::Punch)?;
        self.inner.punch(offset, len)
    }

    fn prefetch(&self, offset: u64, len: u64) {
        self.inner.prefetch(offset, len);
    }

    fn map(&self, len: usize, writable: bool) -> Result<Region> {
        self.check(Call::Map)?;
        self.inner.map(len, writable)
    }

    fn lines(&self) -> Option<&dyn Lines> {
        self.inner.lines()
    }
}
