//! A file with a region of persistent memory that is only read: by a repair, which must not change what it
//! reads and takes whatever length is left.

use std::path::Path;

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use terrane_base::{Error, Kind, Result};

use super::{LINE_BYTES, PmRegion, Survives, WORD_BYTES, check_range, check_word};
use crate::posix::{refused, shown};
use crate::posix_file::PosixFile;
use crate::posix_lock::{lock_now, unlock};
use crate::{File, OpenMode, Region};

/// A region that refuses every store. Its reads are system calls, so damage is an error; its lock is shared
/// with other readers and keeps a writer out while this lives.
#[derive(Debug)]
pub struct ReadOnly {
    file: PosixFile,
    memory: Region,
}

impl ReadOnly {
    /// Opens the file, as far as it has whole lines.
    ///
    /// # Errors
    /// `NotFound`; `Busy` if a writer has it; `Invalid` if it is not a regular file or has no line; `Io`.
    pub fn open(path: &Path) -> Result<Self> {
        let file = PosixFile::open(path, OpenMode::Read, false)?;
        match lock_now(file.reader().0, FlockOperation::NonBlockingLockShared) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let message = "the persistent memory is open already: close the other opener";
                return Err(Error::new(Kind::Busy, message).at(shown(path), 0));
            }
            Err(error) => return Err(refused("lock", path, error)),
        }
        let bytes = file.len()? / LINE_BYTES * LINE_BYTES;
        if bytes == 0 {
            let message = format!("a region has at least {LINE_BYTES} bytes: nothing of it is left");
            return Err(Error::invalid(message).at(shown(path), 0));
        }
        let bytes = usize::try_from(bytes)
            .map_err(|_| Error::invalid("the file is larger than the address space").at(shown(path), 0))?;
        let memory = file.map(bytes, false)?;
        assert!(memory.len() == bytes, "a mapping has the bytes that were asked for");
        Ok(ReadOnly { file, memory })
    }

    #[cold]
    fn refuse(&self, offset: u64) -> Error {
        Error::invalid("the region is only read").at(shown(self.file.path()), offset)
    }

    fn refuse_range(&self, offset: u64, len: u64) -> Result<()> {
        check_range(self.len(), offset, len)?;
        Err(self.refuse(offset))
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        unlock(self.file.reader().0);
    }
}

impl PmRegion for ReadOnly {
    fn len(&self) -> u64 {
        self.memory.len() as u64
    }

    fn survives(&self) -> Survives {
        Survives::Nothing
    }

    fn name(&self) -> String {
        shown(self.file.path())
    }

    fn load(&self, offset: u64) -> Result<u64> {
        check_word(self.len(), offset)?;
        let mut word = [0; WORD_BYTES as usize];
        self.file.read_at(offset, &mut word)?;
        Ok(u64::from_le_bytes(word))
    }

    fn store(&self, offset: u64, _: u64) -> Result<()> {
        self.refuse_range(offset, WORD_BYTES)
    }

    fn exchange(&self, offset: u64, _: u64, _: u64) -> Result<u64> {
        self.refuse_range(offset, WORD_BYTES).map(|()| 0)
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        check_range(self.len(), offset, bytes.len() as u64)?;
        self.file.read_at(offset, bytes)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.refuse_range(offset, bytes.len() as u64)
    }

    fn stream(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.refuse_range(offset, bytes.len() as u64)
    }

    fn flush(&self, offset: u64, len: u64) -> Result<()> {
        // Nothing was stored.
        check_range(self.len(), offset, len)
    }

    fn fence(&self) -> Result<()> {
        Ok(())
    }

    fn memory(&self) -> Option<&Region> {
        Some(&self.memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pm::{Mapped, PlainMode};

    #[test]
    fn a_copy_of_the_descriptor_in_a_child_does_not_keep_writers_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("region");
        drop(Mapped::create(&path, 4096, PlainMode::Buffered).unwrap());
        let region = ReadOnly::open(&path).unwrap();
        let copy = rustix::io::dup(region.file.reader().0).unwrap();
        assert_eq!(Mapped::open(&path, PlainMode::Buffered).unwrap_err().kind(), Kind::Busy);
        drop(region);
        drop(Mapped::open(&path, PlainMode::Buffered).unwrap());
        drop(copy);
    }
}
