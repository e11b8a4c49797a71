//! A device that fails on purpose: it wraps another device, counts calls, and refuses the calls that a test
//! selects.
//!
//! A refused write stores about half of its bytes (whole pages), as a real one may; every other refused call
//! changes nothing. A read may also succeed with a wrong bit. Stores through a mapping are not seen. To see what a power cut leaves, wrap a
//! [`MemDisk`](crate::MemDisk), cut the power here, and crash the inner device.

use std::any::Any;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use terrane_base::{Error, Kind, Result};

use crate::batch::{Announced, pass_on};
use crate::call::Call;
use crate::mapping::PAGE_BYTES;
use crate::{Disk, DiskLock, File, FileRead, Lines, OpenMode, PendingRead, ReadBytes, Region};

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// EIO: the device is defective; an error of kind `Io`.
    Broken,
    /// ENOSPC: the device is full; an error of kind `Full`.
    Full,
    /// No error: a read returns this bit of the file, counted from its front, inverted. What the device has
    /// stays right. Selects, of the reads that match, those that the bit lies in.
    WrongBit(u64),
}

impl Failure {
    /// Where in the bytes of a read the wrong bit lies: the byte, and the mask of the bit.
    fn wrong_in(self, offset: u64, len: usize) -> Option<(usize, u8)> {
        let Failure::WrongBit(bit) = self else { return None };
        let at = usize::try_from((bit / 8).checked_sub(offset)?).ok()?;
        (at < len).then_some((at, 1 << (bit % 8)))
    }
}

/// Selects the calls that fail: calls of one kind, on paths that contain a text, from the n-th on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    call: Call,
    path_part: String,
    /// Number of matching calls that still succeed.
    skip: u64,
    lasting: bool,
    failure: Failure,
}

impl Fault {
    /// The next `call` fails once.
    #[must_use]
    pub fn new(call: Call, failure: Failure) -> Self {
        assert!(
            call == Call::Read || !matches!(failure, Failure::WrongBit(_)),
            "{call:?} returns no bytes of a file"
        );
        Fault { call, path_part: String::new(), skip: 0, lasting: false, failure }
    }

    /// Lets the first `skip` matching calls succeed.
    #[must_use]
    pub fn after(mut self, skip: u64) -> Self {
        self.skip = skip;
        self
    }

    /// Fails every matching call from then on, instead of one only.
    #[must_use]
    pub fn lasting(mut self) -> Self {
        self.lasting = true;
        self
    }

    /// Counts a call that matches; returns true if it fails. Only one fault of a call is used up.
    fn is_due(&mut self, is_first: bool) -> bool {
        let is_due = self.skip == 0 && is_first;
        if self.skip > 0 {
            self.skip -= 1;
        } else if is_first {
            // A fault that was used up skips the largest count, which is never reached.
            self.skip = if self.lasting { 0 } else { u64::MAX };
        }
        is_due
    }

    /// Matches only paths that contain `part`.
    #[must_use]
    pub fn on(mut self, part: impl Into<String>) -> Self {
        self.path_part = part.into();
        self
    }
}

#[derive(Debug)]
struct Plan {
    counts: [u64; Call::COUNT],
    faults: Vec<Fault>,
    /// Number of wrong bits that reads returned.
    wrong_bits: u64,
    /// Number of changing calls that still succeed before the power is cut.
    cut_after: Option<u64>,
    is_cut: bool,
}

impl Plan {
    /// Counts a call and decides whether and how it fails.
    fn decide(&mut self, call: Call, path: &Path) -> Option<Verdict> {
        self.counts[call as usize] += 1;
        if call.changes()
            && let Some(left) = &mut self.cut_after
        {
            if *left == 0 {
                self.is_cut = true;
            }
            *left = left.saturating_sub(1);
        }
        if self.is_cut {
            return Some(Verdict::Cut);
        }
        let path = path.to_string_lossy();
        let matching = |fault: &&mut Fault| {
            fault.call == call
                && path.contains(&fault.path_part)
                && !matches!(fault.failure, Failure::WrongBit(_))
        };
        let mut verdict = None;
        for fault in self.faults.iter_mut().filter(matching) {
            if fault.is_due(verdict.is_none()) {
                verdict = Some(fault.failure);
            }
        }
        verdict.map(Verdict::Fails)
    }

    /// Inverts the bits that a read of `bytes` from `offset`, which succeeded, returns wrong.
    fn misread(&mut self, path: &Path, offset: u64, bytes: &mut [u8]) {
        let path = path.to_string_lossy();
        for fault in self.faults.iter_mut().filter(|fault| path.contains(&fault.path_part)) {
            if let Some((at, mask)) = fault.failure.wrong_in(offset, bytes.len())
                && fault.is_due(true)
            {
                bytes[at] ^= mask;
                self.wrong_bits += 1;
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Fails(Failure),
    Cut,
}

impl Verdict {
    #[cold]
    fn error(self, call: Call, path: &Path) -> Error {
        let path = path.display();
        match self {
            Verdict::Fails(Failure::Broken) => {
                Error::io(format!("{call:?} of {path}"), io::Error::from_raw_os_error(EIO))
            }
            Verdict::Fails(Failure::Full) => {
                Error::io(format!("{call:?} of {path}"), io::ErrorKind::StorageFull.into())
            }
            Verdict::Fails(Failure::WrongBit(bit)) => {
                unreachable!("a read with the wrong bit {bit} is no failed call")
            }
            Verdict::Cut => Error::new(Kind::Io, format!("{call:?} of {path}: the power was cut")),
        }
    }
}

const EIO: i32 = rustix::io::Errno::IO.raw_os_error();

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
