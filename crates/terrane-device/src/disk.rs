//! Access to stored bytes: directories ([`Disk`]) and files ([`File`]).

use std::any::Any;
use std::fmt::Debug;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use terrane_base::{Error, Result};

use crate::batch::Announced;
use crate::{FileRead, PendingRead, Region};

/// How [`Disk::open`] opens a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// The file must exist; it is only read.
    Read,
    /// The file must exist; it is read and written.
    Write,
    /// The file must not exist; it is created empty, readable and writable by the owner only.
    Create,
}

/// Holds a lock on a directory until dropped.
pub trait DiskLock: Send + Sync + Debug {}

/// A tree of directories and files.
///
/// An implementer guarantees:
/// 1. Every error names the path.
/// 2. An entry that was created, renamed or removed is durable only after [`Disk::sync_dir`] of its
///    directory; only a directory made by [`Disk::create_dir`] is durable at once.
/// 3. Many threads may call it at once.
pub trait Disk: Send + Sync + Debug {
    /// Opens a file. `direct` bypasses the operating system's cache: offsets, lengths and buffers of
    /// [`File::read_at`] and [`File::write_at`] must then be multiples of 4096 (the implementation copies
    /// through an aligned buffer where they are not).
    ///
    /// # Errors
    /// `NotFound`; `Invalid` if a file to be created exists, or the path is a link, a pipe or a device; `Io`.
    fn open(&self, path: &Path, mode: OpenMode, direct: bool) -> Result<Arc<dyn File>>;

    /// Creates a directory and its missing parents; succeeds if it exists. Only the owner has access. Durable
    /// on return, because a caller does not know which parents were missing.
    ///
    /// # Errors
    /// `Io`.
    fn create_dir(&self, path: &Path) -> Result<()>;

    /// The names in a directory, sorted.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    fn list(&self, path: &Path) -> Result<Vec<String>>;

    /// Returns true if a file or directory exists.
    ///
    /// # Errors
    /// `Io`.
    fn exists(&self, path: &Path) -> Result<bool>;

    /// The path from the root to the target of `path`, without links, `.` and `..`. Components that do not
    /// exist stay as they are named, and a `..` after them removes them.
    ///
    /// # Errors
    /// `Io`.
    fn real_path(&self, path: &Path) -> Result<PathBuf> {
        Ok(resolved(Path::new("/"), path))
    }

    /// Renames a file or directory, replacing a file at `to`.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Gives the file at `from` a second name, `to`, which must be free: a hard link. Returns false, without
    /// any change, if the two names would be on two file systems, or the file system supports no second name
    /// for the file.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` if something is at `to`; `Io`.
    fn link(&self, from: &Path, to: &Path) -> Result<bool>;

    /// Removes a file or an empty directory. An open file stays readable, without a name, until it is closed.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    fn remove(&self, path: &Path) -> Result<()>;

    /// Makes the entries of a directory durable.
    ///
    /// # Errors
    /// `Io`.
    fn sync_dir(&self, path: &Path) -> Result<()>;

    /// Takes the exclusive lock of a directory through the file `path`, which is created if missing and
    /// contains the owner's process id.
    ///
    /// # Errors
    /// `Busy`, naming the path and the id of the process that holds the lock.
    fn lock(&self, path: &Path) -> Result<Box<dyn DiskLock>>;

    /// Takes the lock of [`Disk::lock`] shared with other readers: it excludes writers, and a writer's lock
    /// excludes it. Writes nothing; `None` if the lock file is missing or cannot be opened.
    ///
    /// # Errors
    /// `Busy`, naming the path and the id of the writing process.
    fn lock_shared(&self, path: &Path) -> Result<Option<Box<dyn DiskLock>>>;

    /// Bytes free for unprivileged use on the device that holds `path`.
    ///
    /// # Errors
    /// `Io`.
    fn free_bytes(&self, path: &Path) -> Result<u64>;

    /// Makes several reads, in any order and as many at once as the device supports. Each succeeds or fails
    /// on its own, as [`File::read_at`] would; returns when all have ended. Files of other disks are read,
    /// too.
    fn read_batch(&self, reads: &mut [FileRead<'_>]) {
        reads.iter_mut().for_each(FileRead::read_alone);
    }

    /// Starts to read `len` bytes from `offset` of `file` while the caller continues. A device that cannot do
    /// this only gets a hint. `memory` is the buffer if it is long enough.
    fn begin_read(
        &self,
        file: &Arc<dyn File>,
        offset: u64,
        len: usize,
        memory: Vec<u8>,
    ) -> Box<dyn PendingRead> {
        Box::new(Announced::new(file.clone(), offset, len, memory))
    }

    /// The device under one that only reads, for files that are made beside those that are read; `None` if
    /// this device writes.
    fn beneath(&self) -> Option<Arc<dyn Disk>> {
        None
    }

    /// Returns true if the files of segments that are made here have [`File::lines`] while there is room: a
    /// journal makes each group durable by flushes and a fence then.
    fn has_lines(&self) -> bool {
        false
    }

    /// Returns true if other processes can read the files written to it, as they are now. Elsewhere files
    /// that are only for them are not written.
    fn is_public(&self) -> bool {
        false
    }

    /// Succeeds if [`Disk::read_batch`] runs its reads concurrently, by io_uring.
    ///
    /// # Errors
    /// `Invalid`, with the reason why it does not.
    fn check_ring(&self) -> Result<()> {
        Err(Error::invalid("this device does not support io_uring"))
    }

    /// Number of batched reads that io_uring made.
    fn ring_reads(&self) -> u64 {
        0
    }
}

/// An open file. Reads and writes name their offset; a file has no position.
///
/// An implementer guarantees:
/// 1. Every error names the path and the offset.
/// 2. A write is visible to every later read and mapping at once, and durable only after [`File::sync`].
/// 3. After a failed [`File::sync`] the caller treats everything since the last successful one as lost.
pub trait File: Any + Send + Sync + Debug {
    /// The path it was opened by.
    fn path(&self) -> &PathBuf;

    /// Current length in bytes.
    ///
    /// # Errors
    /// `Io`.
    fn len(&self) -> Result<u64>;

    /// Returns true if the file is empty.
    ///
    /// # Errors
    /// `Io`.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Number of names of the file: more than one after a link, 0 after the last one was removed.
    ///
    /// # Errors
    /// `Io`.
    fn names(&self) -> Result<u64>;

    /// Fills `buf` from `offset`.
    ///
    /// # Errors
    /// `Corrupt` if the file ends before that, `Io`.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// Writes all of `bytes` at `offset`, growing the file if needed.
    ///
    /// # Errors
    /// `Full`, `Io`.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Copies `len` bytes from `offset` to the same offset of `to`, a file of the same device, growing it if
    /// needed. A file system that can share blocks copies none.
    ///
    /// # Errors
    /// As [`File::read_at`] and [`File::write_at`].
    fn copy_to(&self, to: &dyn File, offset: u64, len: u64) -> Result<()> {
        copy_through(|at, buf| self.read_at(at, buf), to, offset, len)
    }

    /// Makes everything written so far durable, mapped writes included (`fdatasync`).
    ///
    /// # Errors
    /// `Io`; see guarantee 3.
    fn sync(&self) -> Result<()>;

    /// Truncates or extends the file.
    ///
    /// # Errors
    /// `Full`, `Io`.
    fn set_len(&self, len: u64) -> Result<()>;

    /// Reserves space for `len` bytes from `offset`, so that later writes and mapped stores there cannot run
    /// out of space. Grows the file; existing bytes stay.
    ///
    /// # Errors
    /// `Full`, `Io`.
    fn allocate(&self, offset: u64, len: u64) -> Result<()>;

    /// Frees the space of a range, which then reads as zeros. The length stays.
    ///
    /// # Errors
    /// `Io`. A device without this call reports success and keeps the space.
    fn punch(&self, offset: u64, len: u64) -> Result<()>;

    /// Hints that a range will be read soon.
    fn prefetch(&self, offset: u64, len: u64);

    /// Maps the first `len` bytes, shared with the file. Requires: the file is at least that long, and for a
    /// writable mapping its space is allocated. The mapping stays valid after the file is closed.
    ///
    /// # Errors
    /// `Corrupt` if the file is shorter, or empty; `Io`.
    fn map(&self, len: usize, writable: bool) -> Result<Region>;

    /// The lines of a file in persistent memory, whose mapped stores a flush and a fence make durable; none
    /// elsewhere.
    fn lines(&self) -> Option<&dyn Lines> {
        None
    }
}

/// Cache lines of a mapped file in persistent memory.
pub trait Lines {
    /// Mapped stores to a range of the file are complete: starts to write back their lines. Stores of other
    /// threads count if they happened before the call.
    ///
    /// # Errors
    /// `Invalid` outside the file.
    fn flush(&self, offset: u64, len: u64) -> Result<()>;

    /// Waits until what this thread flushed is durable.
    ///
    /// # Errors
    /// As [`PmRegion::fence`](crate::pm::PmRegion::fence).
    fn fence(&self) -> Result<()>;
}

/// Bytes copied at once through memory.
const COPY_BYTES: u64 = 1 << 20;

/// Copies a range through memory.
pub(crate) fn copy_through(
    read: impl Fn(u64, &mut [u8]) -> Result<()>,
    to: &dyn File,
    offset: u64,
    len: u64,
) -> Result<()> {
    let mut buffer = vec![0; len.min(COPY_BYTES) as usize];
    let mut done = 0;
    while done < len {
        let piece = &mut buffer[..(len - done).min(COPY_BYTES) as usize];
        read(offset + done, piece)?;
        to.write_at(offset + done, piece)?;
        done += piece.len() as u64;
    }
    Ok(())
}

/// `path` relative to `base`, without `.` and `..`, if no component of it is a link.
pub(crate) fn resolved(base: &Path, path: &Path) -> PathBuf {
    let mut whole = base.to_owned();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                whole.pop();
            }
            Component::RootDir => whole = PathBuf::from("/"),
            part => whole.push(part),
        }
    }
    whole
}
