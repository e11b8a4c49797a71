//! The door to stored bytes: directories ([`Disk`]) and files ([`File`]).

use std::any::Any;
use std::fmt::Debug;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use terrane_base::{Error, Result};

use crate::batch::Announced;
use crate::{FileRead, PendingRead, Region};

/// How [`Disk::open`] treats the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// The file must exist; it is only read.
    Read,
    /// The file must exist; it is read and written.
    Write,
    /// The file must not exist; it is made, empty, readable and writable by the owner only.
    Create,
}

/// Holds a lock on a directory until dropped.
pub trait DiskLock: Send + Sync + Debug {}

/// A tree of directories and files.
///
/// What an implementer guarantees:
/// 1. Every error names the path.
/// 2. An entry made, renamed or removed is durable only after [`Disk::sync_dir`] of its directory; only a
///    directory made by [`Disk::create_dir`] is durable at once.
/// 3. Calls may be made from many threads.
pub trait Disk: Send + Sync + Debug {
    /// Opens a file. `direct` bypasses the operating system's cache: offsets, lengths and buffers of
    /// [`File::read_at`] and [`File::write_at`] must then be multiples of 4096 (the implementation aligns
    /// buffers itself where they are not).
    ///
    /// # Errors
    /// `NotFound`; `Invalid` if a file to be made exists, or the path is of a link, a pipe or a device; `Io`.
    fn open(&self, path: &Path, mode: OpenMode, direct: bool) -> Result<Arc<dyn File>>;

    /// Makes a directory, and its parents; fine if it exists. Owner-only permissions. Durable on return, or
    /// else each caller would have to know which parents were missing.
    ///
    /// # Errors
    /// `Io`.
    fn create_dir(&self, path: &Path) -> Result<()>;

    /// The names in a directory, sorted.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    fn list(&self, path: &Path) -> Result<Vec<String>>;

    /// Whether a file or directory exists.
    ///
    /// # Errors
    /// `Io`.
    fn exists(&self, path: &Path) -> Result<bool>;

    /// The path from the root to what `path` leads to, without links, `.` and `..`. What does not exist stands there as it was
    /// named, and a `..` behind it leads back.
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

    /// Gives the file at `from` another name, `to`, at which nothing is: a hard link, so both names are of the same
    /// bytes. Says whether that is possible here: `false`, and nothing happened, where the names would be on two file
    /// systems, or the file system takes no other name for the file.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` if something is at `to`; `Io`.
    fn link(&self, from: &Path, to: &Path) -> Result<bool>;

    /// Removes a file or an empty directory. An open file lives on, nameless, until it is closed.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    fn remove(&self, path: &Path) -> Result<()>;

    /// Makes the entries of a directory durable.
    ///
    /// # Errors
    /// `Io`.
    fn sync_dir(&self, path: &Path) -> Result<()>;

    /// Takes the exclusive lock of a directory through the file `path`, which is made if missing and says the
    /// owner's process id.
    ///
    /// # Errors
    /// `Busy`, naming the path and the id of the process that holds the lock.
    fn lock(&self, path: &Path) -> Result<Box<dyn DiskLock>>;

    /// Takes the lock of [`Disk::lock`] beside other readers: while it is held no writer gets the lock, and while a
    /// writer holds it no reader does. Writes nothing; `None` if there is no lock file, or none that may be opened.
    ///
    /// # Errors
    /// `Busy`, naming the path and the id of the process that writes.
    fn lock_shared(&self, path: &Path) -> Result<Option<Box<dyn DiskLock>>>;

    /// Bytes free for unprivileged use on the device that holds `path`.
    ///
    /// # Errors
    /// `Io`.
    fn free_bytes(&self, path: &Path) -> Result<u64>;

    /// Makes several reads, in any order and as many at once as the device takes. Each succeeds or fails by itself
    /// and as [`File::read_at`] would; returns when all have ended. Files of other disks are read, too.
    fn read_batch(&self, reads: &mut [FileRead<'_>]) {
        reads.iter_mut().for_each(FileRead::read_alone);
    }

    /// Begins to read `len` bytes from `offset` of `file` while the caller goes on: under way in the device if it
    /// can, else at least announced to it. `memory` is used for the bytes if it is long enough.
    fn begin_read(
        &self,
        file: &Arc<dyn File>,
        offset: u64,
        len: usize,
        memory: Vec<u8>,
    ) -> Box<dyn PendingRead> {
        Box::new(Announced::new(file.clone(), offset, len, memory))
    }

    /// Whether [`Disk::read_batch`] has its reads under way at once, by io_uring.
    ///
    /// # Errors
    /// `Invalid`, with the reason why not.
    fn check_ring(&self) -> Result<()> {
        Err(Error::invalid("this device has no io_uring"))
    }

    /// How many reads of batches went by io_uring.
    fn ring_reads(&self) -> u64 {
        0
    }
}

/// An open file. Reads and writes name their offset; there is no position.
///
/// What an implementer guarantees:
/// 1. Every error names the path and the offset.
/// 2. A write is visible to every later read and mapping at once, and durable only after [`File::sync`].
/// 3. After a failed [`File::sync`] the caller treats everything since the last good one as lost.
pub trait File: Any + Send + Sync + Debug {
    /// The path it was opened by.
    fn path(&self) -> &PathBuf;

    /// Current length in bytes.
    ///
    /// # Errors
    /// `Io`.
    fn len(&self) -> Result<u64>;

    /// Whether the file is empty.
    ///
    /// # Errors
    /// `Io`.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// How many names the file has: more than one where it was linked, 0 once the last was removed.
    ///
    /// # Errors
    /// `Io`.
    fn names(&self) -> Result<u64>;

    /// Fills `buf` from `offset`.
    ///
    /// # Errors
    /// `Corrupt` if the file ends before (it should be longer), `Io`.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// Writes all of `bytes` at `offset`, growing the file if needed.
    ///
    /// # Errors
    /// `Full`, `Io`.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Copies `len` bytes from `offset` to the same place of `to`, a file of the same device, growing it if needed. Within
    /// the device where it can: a file system that shares blocks then copies none.
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

    /// Cuts or extends the file.
    ///
    /// # Errors
    /// `Full`, `Io`.
    fn set_len(&self, len: u64) -> Result<()>;

    /// Reserves real space for `len` bytes from `offset`, so that later writes and mapped stores there cannot
    /// run out of space; grows the file; existing bytes stay.
    ///
    /// # Errors
    /// `Full`, `Io`.
    fn allocate(&self, offset: u64, len: u64) -> Result<()>;

    /// Gives the space of a range back to the device; it reads as zeros. The length stays.
    ///
    /// # Errors
    /// `Io`. A device that cannot do it reports success and keeps the space.
    fn punch(&self, offset: u64, len: u64) -> Result<()>;

    /// Hints that a range will be read soon.
    fn prefetch(&self, offset: u64, len: u64);

    /// Maps the first `len` bytes, shared with the file. Requires: the file is at least that long, and for a
    /// writable mapping its space is allocated. The mapping lives on its own, also after the file is closed.
    ///
    /// # Errors
    /// `Corrupt` if the file is shorter, or empty; `Io`.
    fn map(&self, len: usize, writable: bool) -> Result<Region>;
}

/// Bytes that are copied at once where they pass through memory.
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

/// `path` from `base` on, without `.` and `..`, if nothing of it is a link.
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
