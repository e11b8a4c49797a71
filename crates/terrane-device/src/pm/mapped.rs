//! A file as persistent memory.
//!
//! On a file system that gives access to persistent memory (DAX) the mapping is made with `MAP_SYNC`: the
//! kernel keeps the file's metadata durable, and a flush and a fence of the processor are enough. Everywhere
//! else the mapping is that of the page cache; its bytes outlive the process, and [`PlainMode`] says whether
//! a fence writes them to the device.
//!
//! # Faults
//! A load from a damaged line, or a store that the device has no room for, ends the process by a signal
//! (`SIGBUS`). A library cannot catch it soundly: handlers belong to the whole process. So the file's
//! length is checked and its space allocated before it is mapped, [`Mapped::check`] reads a range by a system
//! call, which reports damage as an error, and the file is locked against other openers. What remains: a line
//! that goes bad between the check and a load, and another program that shortens the file.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use terrane_base::sync::Mutex;
use terrane_base::{Error, Kind, Result};

use super::words::Words;
use super::{FlushInstruction, LINE_BYTES, PmRegion, Survives, check_range};
use crate::mapping::{self, PAGE_BYTES};
use crate::posix::{refused, shown};
use crate::posix_file::PosixFile;
use crate::posix_lock::{lock_now, unlock};
use crate::{Disk, File, OpenMode, PosixDisk, Region};

/// Bytes that [`Mapped::check`] reads at once.
const CHECK_BYTES: usize = 1 << 20;

/// The effect of a fence for a file that is not on persistent memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainMode {
    /// Nothing: flushed and fenced bytes survive the death of the process, and a loss of power only after
    /// [`Mapped::sync`].
    Buffered,
    /// It writes the flushed pages to the device (`msync`): they survive a loss of power. A fence then costs
    /// as much as a sync, and fences wait for each other.
    Synced,
}

/// A file that is mapped as persistent memory, locked against other openers while this lives.
#[derive(Debug)]
pub struct Mapped {
    words: Words,
    file: PosixFile,
    path: PathBuf,
    is_dax: bool,
    mode: PlainMode,
    /// Pages that were flushed and not written yet, as offsets of their first and last byte; `Synced` only.
    flushed: Mutex<Vec<(u64, u64)>>,
    /// A write to the device failed: it is not known any more which bytes are durable. Set and read under
    /// `flushed`.
    failed: AtomicBool,
}

impl Mapped {
    /// Makes a file of `bytes` zero bytes, whose space and entry are durable, and maps it.
    ///
    /// # Errors
    /// `Invalid` if the file exists or `bytes` is not a positive multiple of [`LINE_BYTES`]; `Full`; `Io`.
    pub fn create(path: &Path, bytes: u64, mode: PlainMode) -> Result<Self> {
        check_len(path, bytes)?;
        let file = PosixFile::open(path, OpenMode::Create, false)?;
        let made = Mapped::fill(&file, path, bytes).and_then(|()| Mapped::map(file, path, bytes, mode));
        if made.is_err() {
            // Best effort: the original error is the one to report.
            let _ = PosixDisk::new().remove(path);
        }
        made
    }

    /// Maps a file that [`Mapped::create`] made, at its whole length.
    ///
    /// # Errors
    /// `NotFound`; `Busy` if another opener has it; `Invalid` if it is not a regular file or its length is
    /// not a positive multiple of [`LINE_BYTES`]; `Full` if it has holes and the device has no room; `Io`.
    pub fn open(path: &Path, mode: PlainMode) -> Result<Self> {
        let file = PosixFile::open(path, OpenMode::Write, false)?;
        let bytes = file.len()?;
        check_len(path, bytes)?;
        Mapped::lock(&file, path)?;
        // A store to a hole that the device has no room for would end the process.
        file.allocate(0, bytes)?;
        Mapped::map(file, path, bytes, mode)
    }

    fn fill(file: &PosixFile, path: &Path, bytes: u64) -> Result<()> {
        Mapped::lock(file, path)?;
        file.allocate(0, bytes)?;
        file.sync()?;
        PosixDisk::new().sync_dir(crate::posix::parent(path))
    }

    fn lock(file: &PosixFile, path: &Path) -> Result<()> {
        match lock_now(file.reader().0, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(()),
            Err(Errno::WOULDBLOCK) => {
                let message = "the persistent memory is open already: close the other opener";
                Err(Error::new(Kind::Busy, message).at(shown(path), 0))
            }
            Err(error) => Err(refused("lock", path, error)),
        }
    }

    #[expect(unsafe_code, reason = "makes a region of a mapping")]
    fn map(file: PosixFile, path: &Path, bytes: u64, mode: PlainMode) -> Result<Self> {
        let len = usize::try_from(bytes).map_err(|_| {
            Error::invalid(format!("cannot map {bytes} bytes: more than the address space"))
                .at(shown(path), 0)
        })?;
        let (start, owner, is_dax) = {
            let fd = file.reader().0;
            match mapping::shared_durable(fd, len) {
                Ok((start, owner)) => (start, owner, true),
                // The file system offers no access to persistent memory, or the kernel does not know the
                // flag.
                Err(Errno::OPNOTSUPP | Errno::INVAL) => {
                    let (start, owner) = mapping::shared(fd, len, true)
                        .map_err(|error| refused(&format!("map {bytes} bytes of"), path, error))?;
                    (start, owner, false)
                }
                Err(error) => return Err(refused(&format!("map {bytes} bytes of"), path, error)),
            }
        };
        // SAFETY: the mapping has `len` readable and writable bytes until `owner` is dropped.
        let region = unsafe { Region::from_raw(start, len, Box::new(owner)) };
        let (flushed, failed) = (Mutex::new(Vec::new()), AtomicBool::new(false));
        Ok(Mapped { words: Words::new(region), file, path: path.to_owned(), is_dax, mode, flushed, failed })
    }

    /// Returns true if the file system gives access to persistent memory: the mapping has `MAP_SYNC`.
    #[must_use]
    pub fn is_dax(&self) -> bool {
        self.is_dax
    }

    /// How its lines are flushed.
    #[must_use]
    pub fn instruction(&self) -> FlushInstruction {
        self.words.instruction()
    }

    /// The path it was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The mapped memory, for readers that borrow bytes of it. They follow the rules of [`Region`]; this type
    /// stores to it at any time by its own rules.
    #[must_use]
    pub fn region(&self) -> &Region {
        self.words.region()
    }

    /// Makes all that was stored durable on the device, in every mode.
    ///
    /// # Errors
    /// `Io`; `Poisoned` after an earlier failure.
    pub fn sync(&self) -> Result<()> {
        let mut flushed = self.flushed.lock();
        self.check_works()?;
        flushed.clear();
        // Of persistent memory the kernel writes back the lines in the processor's caches.
        self.write_back(0, self.len())
    }

    /// Reads a range by system calls, so that damage is an error instead of the end of the process.
    ///
    /// # Errors
    /// `Invalid` outside the region, `Corrupt` if the file has become shorter, `Io` if the device cannot read
    /// a part of it; both name the place.
    pub fn check(&self, offset: u64, len: u64) -> Result<()> {
        check_range(self.len(), offset, len)?;
        let mut buffer = vec![0; CHECK_BYTES.min(len as usize)];
        let mut done = 0;
        while done < len {
            let piece = (len - done).min(CHECK_BYTES as u64) as usize;
            self.file.read_at(offset + done, &mut buffer[..piece])?;
            done += piece as u64;
        }
        Ok(())
    }

    fn check_works(&self) -> Result<()> {
        // Relaxed: set under the lock that the caller holds.
        if !self.failed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let message =
            "an earlier write of persistent memory to its device failed: close it and open it again";
        Err(Error::new(Kind::Poisoned, message).at(shown(&self.path), 0))
    }

    /// Writes pages to the device. The caller holds the lock of `flushed`: otherwise a fence could find that
    /// there is nothing to write and return while another one is still writing its pages.
    fn write_back(&self, offset: u64, len: u64) -> Result<()> {
        mapping::write_back(self.words.region(), offset as usize, len as usize).map_err(|error| {
            // Relaxed: under the lock.
            self.failed.store(true, Ordering::Relaxed);
            refused(&format!("write {len} mapped bytes of"), &self.path, error).at(shown(&self.path), offset)
        })
    }

    /// True if flushes and fences of the processor make bytes durable.
    #[inline]
    fn is_flushed_by_instructions(&self) -> bool {
        self.is_dax && self.words.instruction() != FlushInstruction::None
    }

    /// True if fences write pages.
    #[inline]
    fn writes_pages(&self) -> bool {
        self.mode == PlainMode::Synced && !self.is_flushed_by_instructions()
    }

    #[cold]
    fn note(&self, offset: u64, len: u64) {
        let page = PAGE_BYTES as u64;
        if len > 0 {
            let (first, last) = (offset & !(page - 1), (offset + len - 1) | (page - 1));
            self.flushed.lock().push((first, last.min(self.len() - 1)));
        }
    }

    #[cold]
    fn write_flushed(&self) -> Result<()> {
        let mut flushed = self.flushed.lock();
        self.check_works()?;
        flushed.sort_unstable();
        let mut pages = flushed.drain(..).peekable();
        while let Some((first, mut last)) = pages.next() {
            while let Some((_, next_last)) = pages.next_if(|(next, _)| *next <= last + 1) {
                last = last.max(next_last);
            }
            debug_assert!(
                first <= last && last < self.len(),
                "pages from {first} to {last} are not pages of it"
            );
            self.write_back(first, last + 1 - first)?;
        }
        Ok(())
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        unlock(self.file.reader().0);
    }
}

impl PmRegion for Mapped {
    #[inline]
    fn len(&self) -> u64 {
        self.words.len()
    }

    fn survives(&self) -> Survives {
        match self.mode {
            PlainMode::Synced => Survives::PowerLoss,
            PlainMode::Buffered if self.is_flushed_by_instructions() => Survives::PowerLoss,
            PlainMode::Buffered => Survives::ProcessDeath,
        }
    }

    fn name(&self) -> String {
        shown(&self.path)
    }

    #[inline]
    fn load(&self, offset: u64) -> Result<u64> {
        self.words.load(offset)
    }

    #[inline]
    fn store(&self, offset: u64, word: u64) -> Result<()> {
        self.words.store(offset, word)
    }

    #[inline]
    fn exchange(&self, offset: u64, expected: u64, word: u64) -> Result<u64> {
        self.words.exchange(offset, expected, word)
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        self.words.read(offset, bytes)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.words.write(offset, bytes)
    }

    fn stream(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.words.stream(offset, bytes)?;
        if self.writes_pages() {
            self.note(offset, bytes.len() as u64);
        }
        Ok(())
    }

    #[inline]
    fn flush(&self, offset: u64, len: u64) -> Result<()> {
        if self.writes_pages() {
            check_range(self.len(), offset, len)?;
            self.note(offset, len);
            return Ok(());
        }
        self.words.flush(offset, len)
    }

    #[inline]
    fn fence(&self) -> Result<()> {
        self.words.fence();
        if self.writes_pages() { self.write_flushed() } else { Ok(()) }
    }

    fn memory(&self) -> Option<&Region> {
        Some(self.words.region())
    }

    fn read_checked(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        check_range(self.len(), offset, bytes.len() as u64)?;
        self.file.read_at(offset, bytes)
    }

    fn has_cheap_fences(&self) -> bool {
        !self.writes_pages()
    }
}

fn check_len(path: &Path, bytes: u64) -> Result<()> {
    if bytes > 0 && bytes.is_multiple_of(LINE_BYTES) {
        return Ok(());
    }
    let message =
        format!("a region of {bytes} bytes cannot be: it has a positive multiple of {LINE_BYTES} bytes");
    Err(Error::invalid(message).at(shown(path), 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_the_descriptor_in_a_child_does_not_keep_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("region");
        let region = Mapped::create(&path, 4096, PlainMode::Buffered).unwrap();
        let copy = rustix::io::dup(region.file.reader().0).unwrap();
        assert_eq!(Mapped::open(&path, PlainMode::Buffered).unwrap_err().kind(), Kind::Busy);
        drop(region);
        drop(Mapped::open(&path, PlainMode::Buffered).unwrap());
        drop(copy);
    }
}
