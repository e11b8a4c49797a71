//! The lock of a directory: `flock` on a file that contains the holder's process id.
//!
//! `flock` belongs to the open file, not to the process, so a second opener in the same process is refused
//! too, and the lock ends with its holder, even if it is killed. The file of a database stays. That of a
//! directory that is given up goes with it, so a lock counts only where the path leads to the locked file:
//! otherwise two openers could have locked two files of the same name.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use terrane_base::{Error, Kind, Result};

use crate::DiskLock;
use crate::posix::{FILE_MODE, refused};
use crate::posix_file::{SAFELY, check_regular};

/// How often an opener finds that the file it has locked was removed meanwhile, at most: each time another
/// directory of this name was given up.
const REMOVALS_MAX: u32 = 16;

/// Holds the lock until dropped.
#[derive(Debug)]
pub(crate) struct PosixLock {
    fd: OwnedFd,
}

impl PosixLock {
    pub(crate) fn take(path: &Path) -> Result<Self> {
        let flags = OFlags::RDWR | OFlags::CREATE | SAFELY;
        for _ in 0..REMOVALS_MAX {
            let fd = rustix::fs::open(path, flags, FILE_MODE)
                .map_err(|error| refused("open lock file", path, error))?;
            check_regular(&fd, path)?;
            if let Some(lock) = PosixLock::take_opened(path, fd)? {
                lock.sign().map_err(|error| refused("write lock file", path, error))?;
                return Ok(lock);
            }
        }
        Err(busy(path, None))
    }

    /// Locks a file that was opened at `path`; `None` if the path leads to another file since, or to none.
    fn take_opened(path: &Path, fd: OwnedFd) -> Result<Option<Self>> {
        let lock = PosixLock::on(path, fd, FlockOperation::NonBlockingLockExclusive)?;
        let (Ok(own), Ok(there)) = (rustix::fs::fstat(&lock.fd), rustix::fs::stat(path)) else {
            return Ok(None);
        };
        let is_there = (own.st_dev, own.st_ino) == (there.st_dev, there.st_ino);
        Ok(is_there.then_some(lock))
    }

    /// The lock shared with other readers; `None` if the lock file cannot be opened.
    pub(crate) fn share(path: &Path) -> Result<Option<Self>> {
        let fd = match rustix::fs::open(path, OFlags::RDONLY | SAFELY, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::PERM) => return Ok(None),
            Err(error) => return Err(refused("open lock file", path, error)),
        };
        PosixLock::on(path, fd, FlockOperation::NonBlockingLockShared).map(Some)
    }

    fn on(path: &Path, fd: OwnedFd, operation: FlockOperation) -> Result<Self> {
        match lock_now(&fd, operation) {
            Ok(()) => Ok(PosixLock { fd }),
            Err(Errno::WOULDBLOCK) => Err(match operation {
                FlockOperation::NonBlockingLockExclusive if is_shared(&fd) => read_by_others(path),
                _ => busy(path, holder(path).as_deref()),
            }),
            Err(error) => Err(refused("lock", path, error)),
        }
    }

    /// Writes this process's id into the file.
    fn sign(&self) -> rustix::io::Result<()> {
        let text = format!("{}\n", std::process::id());
        rustix::io::pwrite(&self.fd, text.as_bytes(), 0)?;
        // Truncated after the write, so that a reader never finds the file empty.
        rustix::fs::ftruncate(&self.fd, text.len() as u64)
    }
}

impl DiskLock for PosixLock {}

impl Drop for PosixLock {
    fn drop(&mut self) {
        unlock(&self.fd);
    }
}

/// Unlocks before the holder closes its descriptor: a child that was forked and not yet executed another
/// program holds a copy of it, so closing it would not unlock.
pub(crate) fn unlock(fd: impl AsFd) {
    // If the kernel refuses, the close must do; an error could not be reported in a `drop`.
    let _ = rustix::fs::flock(fd.as_fd(), FlockOperation::Unlock);
}

pub(crate) fn lock_now(fd: impl AsFd, operation: FlockOperation) -> rustix::io::Result<()> {
    loop {
        match rustix::fs::flock(&fd, operation) {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// Returns true if those that have the lock share it: then they are readers. Takes a share for a moment,
/// which a writer that is opening retries.
fn is_shared(fd: impl AsFd) -> bool {
    let shares = lock_now(&fd, FlockOperation::NonBlockingLockShared).is_ok();
    if shares {
        unlock(&fd);
    }
    shares
}

/// The process id in the lock file, if that process is alive: readers do not write theirs, and a writer that
/// died left its own.
fn holder(path: &Path) -> Option<String> {
    let fd = rustix::fs::open(path, OFlags::RDONLY | SAFELY, Mode::empty()).ok()?;
    let mut bytes = [0u8; 20];
    let len = rustix::io::pread(&fd, &mut bytes[..], 0).ok()?;
    let digits: String = bytes[..len].iter().map(|&b| b as char).take_while(char::is_ascii_digit).collect();
    let process = rustix::process::Pid::from_raw(digits.parse().ok()?)?;
    let is_alive = !matches!(rustix::process::test_kill_process(process), Err(Errno::SRCH));
    is_alive.then_some(digits)
}

/// The error for a writer that readers keep out. None of them has left its process id in the file.
#[cold]
pub(crate) fn read_by_others(path: &Path) -> Error {
    let message = format!(
        "{} is locked by readers, in this process or others: close the databases that are open with read_only, or open them \
         with `Db::open_view` instead, which keeps no writer out",
        path.display()
    );
    Error::new(Kind::Busy, message)
}

/// The error for a second opener.
#[cold]
pub(crate) fn busy(path: &Path, holder: Option<&str>) -> Error {
    let holder =
        holder.map_or_else(|| "a reader or another process".to_owned(), |pid| format!("process {pid}"));
    let message = format!("{} is locked by {holder}: close it there first", path.display());
    Error::new(Kind::Busy, message)
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::{Disk, PosixDisk};

    /// As an attempt at a checkpoint does that is given up: its file goes while it is locked, and an opener
    /// that had opened it locks a file that no other opener sees.
    #[test]
    fn a_lock_of_a_file_that_was_removed_meanwhile_does_not_count() {
        let (disk, dir) = (PosixDisk::new(), tempfile::tempdir().expect("a directory"));
        let path = dir.path().join("LOCK");
        let opened = || rustix::fs::open(&path, OFlags::RDWR | OFlags::CREATE, FILE_MODE).expect("a file");
        assert!(PosixLock::take_opened(&path, opened()).expect("no holder").is_some(), "it is there");
        let removed = opened();
        disk.remove(&path).expect("it is there");
        assert!(PosixLock::take_opened(&path, removed).expect("no holder").is_none(), "there is no file");
        let removed = opened();
        disk.remove(&path).expect("it is there");
        let other = PosixLock::take(&path).expect("a new file");
        assert!(
            PosixLock::take_opened(&path, removed).expect("no holder").is_none(),
            "there is another file"
        );
        let refused = PosixLock::take(&path).expect_err("the new file is locked");
        assert_eq!(refused.kind(), Kind::Busy);
        drop(other);
        drop(PosixLock::take(&path).expect("it is free"));
    }
}
