//! Memory of the process as a region: for emulation, tests and indexes that are built again.

use terrane_base::Result;

use super::words::Words;
use super::{FlushInstruction, LINE_BYTES, PmRegion, Survives};
use crate::Region;

/// Zeroed memory of the process. Flushes and fences are made as for persistent memory, so that they have the
/// same cost; nothing survives the process.
#[derive(Debug)]
pub struct Volatile {
    words: Words,
}

impl Volatile {
    /// Memory of `bytes`, rounded up to whole lines.
    ///
    /// # Panics
    /// If the address space is exhausted, as for every allocation.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        let bytes = bytes.next_multiple_of(LINE_BYTES) as usize;
        Volatile { words: Words::new(Region::heap(bytes)) }
    }

    /// Memory with this content, filled up with zeros to whole lines.
    ///
    /// # Panics
    /// As [`Volatile::new`].
    #[must_use]
    pub fn with_content(content: &[u8]) -> Self {
        let region = Volatile::new(content.len() as u64);
        region.words.write(0, content).expect("the memory has room for its content");
        region
    }

    /// How its lines are flushed.
    #[must_use]
    pub fn instruction(&self) -> FlushInstruction {
        self.words.instruction()
    }
}

impl PmRegion for Volatile {
    #[inline]
    fn len(&self) -> u64 {
        self.words.len()
    }

    fn survives(&self) -> Survives {
        Survives::Nothing
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
        self.words.stream(offset, bytes)
    }

    #[inline]
    fn flush(&self, offset: u64, len: u64) -> Result<()> {
        self.words.flush(offset, len)
    }

    #[inline]
    fn fence(&self) -> Result<()> {
        self.words.fence();
        Ok(())
    }

    fn memory(&self) -> Option<&Region> {
        Some(self.words.region())
    }
}
