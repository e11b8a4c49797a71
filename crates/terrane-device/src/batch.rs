//! Reads that are made together or ahead: [`FileRead`], one of a batch; [`PendingRead`], one under way while its
//! caller does something else; [`ReadBytes`], what it brought.

use std::fmt::Debug;
use std::ops::Deref;
use std::sync::Arc;

use terrane_base::Result;

use crate::{Disk, File};

/// One read of [`Disk::read_batch`](crate::Disk::read_batch).
#[derive(Debug)]
pub struct FileRead<'b> {
    /// The file.
    pub file: &'b dyn File,
    /// Its first byte to read.
    pub offset: u64,
    /// What is to be filled; undefined after a failure.
    pub buf: &'b mut [u8],
    /// How it went, once the batch has been read.
    pub result: Result<()>,
}

impl<'b> FileRead<'b> {
    /// Fills `buf` from `offset` of `file`.
    pub fn new(file: &'b dyn File, offset: u64, buf: &'b mut [u8]) -> Self {
        FileRead { file, offset, buf, result: Ok(()) }
    }

    /// Makes this read by itself.
    pub fn read_alone(&mut self) {
        self.result = self.file.read_at(self.offset, self.buf);
    }
}

/// A read that was begun. Dropping it gives up its bytes; what it holds is free when the device has let go of it.
pub trait PendingRead: Send + Debug {
    /// Waits for the bytes.
    ///
    /// # Errors
    /// As [`File::read_at`].
    fn finish(self: Box<Self>) -> Result<ReadBytes>;
}

/// Bytes that a [`PendingRead`] brought: a part of some memory, which may be used again.
#[derive(Debug, Default)]
pub struct ReadBytes {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl ReadBytes {
    /// `len` bytes from `start` of `memory`, which is at least that long.
    #[must_use]
    pub fn new(memory: Vec<u8>, start: usize, len: usize) -> Self {
        assert!(start <= memory.len() && len <= memory.len() - start, "bytes within the memory");
        ReadBytes { memory, start, len }
    }

    /// The memory, for the next read.
    #[must_use]
    pub fn into_memory(self) -> Vec<u8> {
        self.memory
    }

    /// Bytes of memory held.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.memory.capacity()
    }
}

impl Deref for ReadBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }
}

/// At least `len` bytes of any content, `memory` itself if it is long enough.
pub(crate) fn at_least(memory: Vec<u8>, len: usize) -> Vec<u8> {
    if memory.len() >= len {
        return memory;
    }
    // Not grown: its content is of no use. Freed first, so that both need not be had at once.
    drop(memory);
    vec![0; len]
}

/// A read that the device was told of and that is made when it is waited for.
#[derive(Debug)]
pub struct Announced {
    file: Arc<dyn File>,
    offset: u64,
    len: usize,
    memory: Vec<u8>,
}

impl Announced {
    /// Announces a read of `len` bytes from `offset`; `memory` is used for them if it is long enough.
    #[must_use]
    pub fn new(file: Arc<dyn File>, offset: u64, len: usize, memory: Vec<u8>) -> Self {
        file.prefetch(offset, len as u64);
        Announced { file, offset, len, memory }
    }
}

impl PendingRead for Announced {
    fn finish(self: Box<Self>) -> Result<ReadBytes> {
        let Announced { file, offset, len, memory } = *self;
        let mut memory = at_least(memory, len);
        file.read_at(offset, &mut memory[..len])?;
        Ok(ReadBytes::new(memory, 0, len))
    }
}

/// Passes the reads on to the disk below a wrapper. `below` gives the file below one of the wrapper's own, an error
/// for a read that is not to be made, or `None` for a file that is not the wrapper's: that is read by itself.
pub(crate) fn pass_on<'b>(
    disk: &dyn Disk,
    reads: &mut [FileRead<'b>],
    mut below: impl FnMut(&'b dyn File) -> Option<Result<&'b dyn File>>,
) {
    let mut passed = Vec::with_capacity(reads.len());
    let mut results = Vec::with_capacity(reads.len());
    for FileRead { file, offset, buf, result } in reads {
        match below(*file) {
            Some(Ok(file)) => {
                passed.push(FileRead::new(file, *offset, buf));
                results.push(result);
            }
            Some(Err(error)) => *result = Err(error),
            None => *result = file.read_at(*offset, buf),
        }
    }
    disk.read_batch(&mut passed);
    for (result, read) in results.into_iter().zip(passed) {
        *result = read.result;
    }
}
