//! A file of the operating system.
//!
//! # Direct files
//! A direct file has two descriptors: one with `O_DIRECT` for whole pages, and a cached one for the rest of
//! an unaligned write (the kernel keeps both views of a file coherent). A buffer that is not aligned is
//! copied through an aligned one ([`Bounce`]).

use std::any::Any;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Advice, FallocateFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use terrane_base::sync::points::{Point, point};
use terrane_base::{Error, Result};

use crate::disk::copy_through;
use crate::mapping::{self, PAGE_BYTES};
use crate::posix::{FILE_MODE, refused, shown};
use crate::posix_direct::{BOUNCE_BYTES, Bounce, Direct, is_aligned, open_direct};
use crate::{File, OpenMode, Region};

/// Flags of every opening. A link is not followed: the creator of the directory may have pointed it at
/// another user's file, which would be overwritten. Opening a pipe does not block until it has another end.
pub(crate) const SAFELY: OFlags = OFlags::CLOEXEC.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK);

/// Most bytes of one hint: the kernel silently cuts longer hints to the device's read-ahead.
const PREFETCH_BYTES: u64 = 128 << 10;
/// Most bytes that the kernel is asked to copy at once.
const COPY_BYTES: usize = 1 << 30;

#[derive(Debug)]
pub(crate) struct PosixFile {
    path: PathBuf,
    /// Reads and writes through the page cache.
    fd: Arc<OwnedFd>,
    direct: Option<Direct>,
}

impl PosixFile {
    pub(crate) fn open(path: &Path, mode: OpenMode, direct: bool) -> Result<Self> {
        let safely =
            if terrane_base::planted!(FollowLinks) { SAFELY.difference(OFlags::NOFOLLOW) } else { SAFELY };
        let flags = safely
            | match mode {
                OpenMode::Read => OFlags::RDONLY,
                OpenMode::Write => OFlags::RDWR,
                OpenMode::Create => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
            };
        let what = if mode == OpenMode::Create { "make" } else { "open" };
        let mode_of_new = if terrane_base::planted!(OpenToAll) { FILE_MODE | Mode::ROTH } else { FILE_MODE };
        let fd = rustix::fs::open(path, flags, mode_of_new).map_err(|error| refused(what, path, error))?;
        check_regular(&fd, path)?;
        let direct = match direct.then(|| open_direct(path, flags)).transpose() {
            Ok(direct) => direct,
            Err(error) => {
                if mode == OpenMode::Create {
                    // Best effort: the original error is the one to report.
                    let _ = rustix::fs::unlink(path);
                }
                return Err(error);
            }
        };
        Ok(PosixFile { path: path.to_owned(), fd: Arc::new(fd), direct })
    }

    /// The descriptor for reads, and the bytes of a sector if it reads whole sectors only.
    pub(crate) fn reader(&self) -> (BorrowedFd<'_>, Option<usize>) {
        match &self.direct {
            Some(direct) => (direct.fd.as_fd(), Some(direct.sector)),
            None => (self.fd.as_fd(), None),
        }
    }

    #[cold]
    fn failed(&self, what: &str, offset: u64, errno: Errno) -> Error {
        refused(what, &self.path, errno).at(shown(&self.path), offset)
    }

    fn read_cached(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let done = read_full(&self.fd, offset, buf).map_err(|error| self.failed("read", offset, error))?;
        if done == buf.len() { Ok(()) } else { Err(self.ended(offset, buf.len(), done)) }
    }

    fn read_direct(&self, direct: &Direct, offset: u64, buf: &mut [u8]) -> Result<()> {
        let failed = |error| self.failed("read", offset, error);
        let Direct { fd, sector } = direct;
        if is_aligned(offset, buf, *sector) {
            let done = read_full(fd, offset, buf).map_err(failed)?;
            return if done == buf.len() { Ok(()) } else { Err(self.ended(offset, buf.len(), done)) };
        }
        let mut bounce = Bounce::new(buf.len());
        let mut done = 0;
        while done < buf.len() {
            let at = offset + done as u64;
            let skip = (at % *sector as u64) as usize;
            let want = (buf.len() - done).min(bounce.len() - skip);
            let sectors = &mut bounce.bytes()[..(skip + want).next_multiple_of(*sector)];
            let got = read_full(fd, at - skip as u64, sectors).map_err(failed)?;
            let got = got.saturating_sub(skip).min(want);
            buf[done..done + got].copy_from_slice(&sectors[skip..skip + got]);
            done += got;
            if got < want {
                return Err(self.ended(offset, buf.len(), done));
            }
        }
        Ok(())
    }

    fn write_direct(&self, fd: &OwnedFd, offset: u64, bytes: &[u8]) -> Result<()> {
        let failed = |error| self.failed(&format!("write {} bytes to", bytes.len()), offset, error);
        let whole =
            if offset.is_multiple_of(PAGE_BYTES as u64) { bytes.len() / PAGE_BYTES * PAGE_BYTES } else { 0 };
        let (body, tail) = bytes.split_at(whole);
        if is_aligned(offset, body, PAGE_BYTES) {
            write_full(fd, offset, body).map_err(failed)?;
        } else {
            let mut bounce = Bounce::new(body.len());
            let piece_len = bounce.len();
            for (index, piece) in body.chunks(piece_len).enumerate() {
                let pages = &mut bounce.bytes()[..piece.len()];
                pages.copy_from_slice(piece);
                write_full(fd, offset + (index * piece_len) as u64, pages).map_err(failed)?;
            }
        }
        write_full(&self.fd, offset + whole as u64, tail).map_err(failed)
    }

    #[cold]
    fn ended(&self, offset: u64, expected: usize, found: usize) -> Error {
        let message =
            format!("{} ends too early: expected {expected} bytes, found {found}", self.path.display());
        Error::corrupt(message).at(shown(&self.path), offset)
    }

    /// Writes zeros after the end up to `end`, for file systems that cannot reserve space.
    fn fill_zeros(&self, end: u64) -> Result<()> {
        let zeros = vec![0u8; BOUNCE_BYTES];
        let mut at = self.len()?;
        while at < end {
            let piece = (end - at).min(zeros.len() as u64);
            self.write_at(at, &zeros[..piece as usize])?;
            at += piece;
        }
        Ok(())
    }
}

impl File for PosixFile {
    fn path(&self) -> &PathBuf {
        &self.path
    }

    fn len(&self) -> Result<u64> {
        point(Point::Device);
        let info =
            rustix::fs::fstat(&self.fd).map_err(|error| self.failed("read the length of", 0, error))?;
        Ok(info.st_size as u64)
    }

    fn names(&self) -> Result<u64> {
        let info =
            rustix::fs::fstat(&self.fd).map_err(|error| self.failed("count the names of", 0, error))?;
        #[expect(clippy::useless_conversion, reason = "its type depends on the architecture")]
        Ok(info.st_nlink.into())
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        point(Point::Device);
        match &self.direct {
            Some(direct) => self.read_direct(direct, offset, buf),
            None => self.read_cached(offset, buf),
        }
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        point(Point::Device);
        match &self.direct {
            Some(direct) => self.write_direct(&direct.fd, offset, bytes),
            None => write_full(&self.fd, offset, bytes)
                .map_err(|error| self.failed(&format!("write {} bytes to", bytes.len()), offset, error)),
        }
    }

    fn copy_to(&self, to: &dyn File, offset: u64, len: u64) -> Result<()> {
        let any: &dyn Any = to;
        let done = match any.downcast_ref::<PosixFile>() {
            Some(to) => copy_within(&self.fd, &to.fd, offset, len),
            None => 0,
        };
        // A range that the kernel does not copy is read and written: then a real error shows.
        copy_through(|at, buf| self.read_at(at, buf), to, offset + done, len - done)
    }

    fn sync(&self) -> Result<()> {
        point(Point::Device);
        // Never retried, not even after EINTR: the kernel may have dropped the pages that it could not write,
        // and a second call would report success.
        rustix::fs::fdatasync(&self.fd).map_err(|error| self.failed("sync", 0, error))
    }

    fn set_len(&self, len: u64) -> Result<()> {
        point(Point::Device);
        retry(|| rustix::fs::ftruncate(&self.fd, len))
            .map_err(|error| self.failed(&format!("set the length to {len} bytes of"), len, error))
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        point(Point::Device);
        if len == 0 {
            return Ok(());
        }
        match retry(|| rustix::fs::fallocate(&self.fd, FallocateFlags::empty(), offset, len)) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.fill_zeros(offset + len),
            result => result.map_err(|error| self.failed(&format!("reserve {len} bytes in"), offset, error)),
        }
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        point(Point::Device);
        if len == 0 {
            return Ok(());
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match retry(|| rustix::fs::fallocate(&self.fd, flags, offset, len)) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            result => {
                result.map_err(|error| self.failed(&format!("punch {len} bytes out of"), offset, error))
            }
        }
    }

    fn prefetch(&self, offset: u64, len: u64) {
        // A direct file does not read through the page cache, so there is nothing to prefetch.
        if self.direct.is_some() {
            return;
        }
        let end = offset.saturating_add(len);
        let mut at = offset;
        while let Some(piece) = NonZeroU64::new((end - at).min(PREFETCH_BYTES)) {
            if rustix::fs::fadvise(&self.fd, at, Some(piece), Advice::WillNeed).is_err() {
                return;
            }
            at += piece.get();
        }
    }

    #[expect(unsafe_code, reason = "makes a region of a mapping")]
    fn map(&self, len: usize, writable: bool) -> Result<Region> {
        point(Point::Device);
        let file_len = self.len()?;
        if len == 0 || (len as u64) > file_len {
            return Err(self.ended(0, len, file_len as usize));
        }
        let (start, owner) = mapping::shared(self.fd.as_fd(), len, writable)
            .map_err(|error| self.failed(&format!("map {len} bytes of"), 0, error))?;
        // No huge pages: a store through a mapping dirties the whole page, and the next sync writes all of
        // it. SAFETY: the mapping has `len` bytes with the requested access until `owner` is dropped.
        let region = unsafe { Region::from_raw(start, len, Box::new(owner)) };
        Ok(if writable { region.above(Arc::clone(&self.fd)) } else { region })
    }
}

/// Refuses an entry that is neither a file nor a directory (a directory fails when it is used).
pub(crate) fn check_regular(fd: &OwnedFd, path: &Path) -> Result<()> {
    let info = rustix::fs::fstat(fd).map_err(|error| refused("look up", path, error))?;
    match FileType::from_raw_mode(info.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(refused("open", path, Errno::ISDIR)),
        _ => Err(Error::invalid(format!("cannot open {}: it is not a regular file", path.display()))),
    }
}

/// Fills `buf` from `offset` up to the end of the file; returns the number of bytes read.
fn read_full(fd: &OwnedFd, offset: u64, buf: &mut [u8]) -> rustix::io::Result<usize> {
    let mut done = 0;
    while done < buf.len() {
        match rustix::io::pread(fd, &mut buf[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(len) => done += len,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

fn write_full(fd: &OwnedFd, offset: u64, bytes: &[u8]) -> rustix::io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match rustix::io::pwrite(fd, &bytes[done..], offset + done as u64) {
            Ok(0) => return Err(Errno::IO),
            Ok(len) => done += len,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Makes the kernel copy a range; returns the number of bytes copied.
fn copy_within(from: &OwnedFd, to: &OwnedFd, offset: u64, len: u64) -> u64 {
    let mut done = 0;
    while done < len {
        let (mut at, mut put) = (offset + done, offset + done);
        let want = usize::try_from(len - done).unwrap_or(usize::MAX).min(COPY_BYTES);
        match rustix::fs::copy_file_range(from, Some(&mut at), to, Some(&mut put), want) {
            Ok(0) => break,
            Ok(copied) => done += copied as u64,
            Err(Errno::INTR) => {}
            Err(_) => break,
        }
    }
    done
}

fn retry(mut call: impl FnMut() -> rustix::io::Result<()>) -> rustix::io::Result<()> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}
