//! Reads made together or ahead of use. [`FileRead`]: one read of a batch. [`PendingRead`]: a read that runs
//! while its caller continues. [`ReadBytes`]: the bytes of such a read.

use std::fmt::Debug;
use std::ops::Deref;
use std::sync::Arc;

use terrane_base::Result;

use crate::{Buffer, Disk, File, keep_buffer, take_buffer};

/// One read of [`Disk::read_batch`](crate::Disk::read_batch).
#[derive(Debug)]
pub struct FileRead<'b> {
    /// The file.
    pub file: &'b dyn File,
    /// Offset of the first byte to read.
    pub offset: u64,
    /// The buffer to fill; its content is undefined after a failure.
    pub buf: &'b mut [u8],
    /// The outcome, after the batch has been read.
    pub result: Result<()>,
}

impl<'b> FileRead<'b> {
    /// Fills `buf` from `offset` of `file`.
    pub fn new(file: &'b dyn File, offset: u64, buf: &'b mut [u8]) -> Self {
        FileRead { file, offset, buf, result: Ok(()) }
    }

    /// Makes this read alone.
    pub fn read_alone(&mut self) {
        self.result = self.file.read_at(self.offset, self.buf);
    }
}

/// A read that was started. Dropping it discards its bytes; its memory is freed when the device no longer
/// writes to it.
pub trait PendingRead: Send + Debug {
    /// Waits for the bytes.
    ///
    /// # Errors
    /// As [`File::read_at`].
    fn finish(self: Box<Self>) -> Result<ReadBytes>;
}

/// The bytes of a [`PendingRead`]: a part of a buffer that may be reused.
#[derive(Debug, Default)]
pub struct ReadBytes {
    memory: Buffer,
    start: usize,
    len: usize,
}

impl ReadBytes {
    /// `len` bytes from `start` of `memory`, which is at least that long.
    #[must_use]
    pub fn new(memory: Vec<u8>, start: usize, len: usize) -> Self {
        assert!(start <= memory.len() && len <= memory.len() - start, "bytes within the memory");
        ReadBytes { memory: memory.into(), start, len }
    }

    /// The bytes, to change them.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }

    /// The buffer, for the next read.
    #[must_use]
    pub fn into_memory(mut self) -> Vec<u8> {
        std::mem::take(&mut self.memory)
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

/// A buffer of at least `len` bytes of any content: `memory` itself if it can be as long.
#[must_use]
pub fn buffer_at_least(mut memory: Vec<u8>, len: usize) -> Vec<u8> {
    if memory.capacity() >= len {
        // A read may be a little longer than the last one: then only the difference is written.
        memory.resize(memory.len().max(len), 0);
        return memory;
    }
    // Not grown: its content is not needed, and so both never exist at once.
    keep_buffer(memory);
    take_buffer(len)
}

/// A read that was announced to the device and that is made when the caller waits for it.
#[derive(Debug)]
pub struct Announced {
    file: Arc<dyn File>,
    offset: u64,
    len: usize,
    memory: Buffer,
}

impl Announced {
    /// Announces a read of `len` bytes from `offset`; `memory` is the buffer if it is long enough.
    #[must_use]
    pub fn new(file: Arc<dyn File>, offset: u64, len: usize, memory: Vec<u8>) -> Self {
        file.prefetch(offset, len as u64);
        Announced { file, offset, len, memory: memory.into() }
    }
}

impl PendingRead for Announced {
    fn finish(self: Box<Self>) -> Result<ReadBytes> {
        let Announced { file, offset, len, mut memory } = *self;
        let mut memory = buffer_at_least(std::mem::take(&mut memory), len);
        file.read_at(offset, &mut memory[..len])?;
        Ok(ReadBytes::new(memory, 0, len))
    }
}

/// Passes the reads on to the disk that a wrapper wraps. `below` returns the inner file of a file of the
/// wrapper, an error for a read that must fail, or `None` for a file that is not the wrapper's, which is read
/// alone.
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
