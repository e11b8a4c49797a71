//! The operating system's directories and files (Linux).
//!
//! Everything created here belongs to the owner only: files 0600, directories 0700. Existing files keep their
//! mode. A file that is a symbolic link, a pipe or a device is refused; a directory may be reached through
//! links.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use terrane_base::sync::points::{Point, point};
use terrane_base::{Error, Kind, Result};

use crate::disk::resolved;
use crate::posix_batch;
use crate::posix_file::PosixFile;
use crate::posix_lock::PosixLock;
use crate::posix_pending;
use crate::ring::Rings;
use crate::{Disk, DiskLock, File, FileRead, OpenMode, PendingRead};

/// Directories and files of the operating system. Relative paths start at the working directory.
#[derive(Clone, Debug, Default)]
pub struct PosixDisk {
    rings: Arc<Rings>,
}

/// Permissions of new files: read and write for the owner.
pub(crate) const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
/// Permissions of new directories.
const DIR_MODE: Mode = Mode::RWXU;

impl PosixDisk {
    /// The device. It holds only rings, from the first batch of reads on; clones share them.
    #[must_use]
    pub fn new() -> Self {
        PosixDisk::default()
    }
}

impl PosixDisk {
    /// Makes one directory, or finds it, and makes its entry durable. False if the one above it is missing.
    fn make_dir(&self, path: &Path) -> Result<bool> {
        match rustix::fs::mkdir(path, DIR_MODE) {
            Ok(()) => self.sync_dir(parent(path)).map(|()| true),
            // If `stat` fails, its own error is reported, because nothing is known about the entry.
            Err(Errno::EXIST) => match rustix::fs::stat(path) {
                // The process that created it may have died before its entry was durable.
                Ok(found) if rustix::fs::FileType::from_raw_mode(found.st_mode).is_dir() => {
                    self.sync_dir(parent(path)).map(|()| true)
                }
                Ok(_) => Err(refused("make directory", path, Errno::EXIST)),
                Err(error) => Err(refused("look up", path, error)),
            },
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(refused("make directory", path, error)),
        }
    }
}

impl Disk for PosixDisk {
    fn open(&self, path: &Path, mode: OpenMode, direct: bool) -> Result<Arc<dyn File>> {
        point(Point::Device);
        Ok(Arc::new(PosixFile::open(path, mode, direct)?))
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        point(Point::Device);
        // Up to the first directory that is there or can be made, then down again. Each way ends: upwards at
        // the root, downwards because a directory that cannot be made although the one above it is there is
        // an error.
        let mut missing = Vec::new();
        let mut at = path;
        while !self.make_dir(at)? {
            missing.push(at);
            match parent(at) {
                above if above == at => return Err(refused("make directory", at, Errno::NOENT)),
                above => at = above,
            }
        }
        missing.into_iter().rev().try_for_each(|below| match self.make_dir(below)? {
            true => Ok(()),
            false => Err(takes_no_directory(below)),
        })
    }

    fn list(&self, path: &Path) -> Result<Vec<String>> {
        point(Point::Device);
        let failed = |error| refused("list directory", path, error);
        let dir = open_dir(path).map_err(failed)?;
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::new(dir).map_err(failed)? {
            let name = entry.map_err(failed)?;
            // No file of a database has a name that is not UTF-8; a listing shows it with replacement
            // characters.
            let name = name.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        point(Point::Device);
        match rustix::fs::stat(path) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            Err(error) => Err(refused("look up", path, error)),
        }
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf> {
        let failed = |error: io::Error| Error::io(format!("cannot look up {}", path.display()), error);
        // A working directory that was removed is in the way of relative paths only.
        let mut whole = match path.is_absolute() {
            true => PathBuf::from("/"),
            false => std::env::current_dir().map_err(failed)?,
        };
        // Component by component, because `..` after a link leads to the parent of the link's target.
        for part in path.components() {
            let next = resolved(&whole, part.as_ref());
            whole = match next.canonicalize() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => next,
                real => real.map_err(failed)?,
            };
        }
        Ok(whole)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        point(Point::Device);
        rustix::fs::rename(from, to)
            .map_err(|error| refused(&format!("rename to {} from", to.display()), from, error))
    }

    fn link(&self, from: &Path, to: &Path) -> Result<bool> {
        point(Point::Device);
        match rustix::fs::link(from, to) {
            Ok(()) => Ok(true),
            Err(Errno::XDEV | Errno::PERM | Errno::MLINK | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(false),
            Err(error) => Err(refused(&format!("link to {} from", to.display()), from, error)),
        }
    }

    fn remove(&self, path: &Path) -> Result<()> {
        point(Point::Device);
        match rustix::fs::unlink(path) {
            Err(Errno::ISDIR | Errno::PERM) if is_dir(path) => {
                rustix::fs::rmdir(path).map_err(|error| refused("remove directory", path, error))
            }
            result => result.map_err(|error| refused("remove", path, error)),
        }
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        point(Point::Device);
        let dir = open_dir(path).map_err(|error| refused("open directory", path, error))?;
        rustix::fs::fsync(dir).map_err(|error| refused("sync directory", path, error))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn DiskLock>> {
        point(Point::Device);
        Ok(Box::new(PosixLock::take(path)?))
    }

    fn lock_shared(&self, path: &Path) -> Result<Option<Box<dyn DiskLock>>> {
        point(Point::Device);
        Ok(PosixLock::share(path)?.map(|lock| Box::new(lock) as Box<dyn DiskLock>))
    }

    fn free_bytes(&self, path: &Path) -> Result<u64> {
        point(Point::Device);
        let info =
            rustix::fs::statvfs(path).map_err(|error| refused("read the free space of", path, error))?;
        if info.f_blocks == 0 {
            // Some file systems of user space know no sizes.
            return Err(refused("read the free space of", path, rustix::io::Errno::NOSYS));
        }
        Ok(info.f_bavail.saturating_mul(info.f_frsize))
    }

    fn read_batch(&self, reads: &mut [FileRead<'_>]) {
        posix_batch::read(&self.rings, reads);
    }

    fn begin_read(
        &self,
        file: &Arc<dyn File>,
        offset: u64,
        len: usize,
        memory: Vec<u8>,
    ) -> Box<dyn PendingRead> {
        posix_pending::begin(&self.rings, file, offset, len, memory)
    }

    fn check_ring(&self) -> Result<()> {
        self.rings.check()
    }

    fn is_public(&self) -> bool {
        true
    }

    fn ring_reads(&self) -> u64 {
        self.rings.reads()
    }
}

/// The error of a refused call on `path`.
#[cold]
pub(crate) fn refused(what: &str, path: &Path, errno: Errno) -> Error {
    let error = Error::io(format!("cannot {what} {}", path.display()), io::Error::from(errno));
    match errno {
        Errno::EXIST => error.with_kind(Kind::Invalid),
        Errno::LOOP => error.with_kind(Kind::Invalid).context("a symbolic link, which is not followed"),
        _ => error,
    }
}

/// The error of a directory that cannot be made although the one above it is there. Not `NotFound`: nothing
/// that a caller looks for is missing.
#[cold]
fn takes_no_directory(path: &Path) -> Error {
    let context = format!(
        "{} exists but takes no new directory: it was removed while this process is in it, or its file system \
         (such as /proc) makes none; choose another place",
        shown(parent(path))
    );
    refused("make directory", path, Errno::NOENT).with_kind(Kind::Invalid).context(context)
}

fn open_dir(path: &Path) -> rustix::io::Result<rustix::fd::OwnedFd> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(rustix::fs::CWD, path, flags, Mode::empty())
}

/// The directory that holds `path`; `path` itself if it is a root.
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => path,
    }
}

fn is_dir(path: &Path) -> bool {
    let info = rustix::fs::statat(rustix::fs::CWD, path, AtFlags::empty());
    info.is_ok_and(|info| rustix::fs::FileType::from_raw_mode(info.st_mode).is_dir())
}

/// The path as errors show it.
pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}
