//! Persistent memory: a range of bytes that is loaded and stored like memory, and survives what
//! [`PmRegion::survives`] says.
//!
//! * [`PmRegion`]: the access to it, with its contract.
//! * [`Mapped`]: a file, on persistent memory (DAX) or on any other device.
//! * [`ReadOnly`]: such a file that is only read, whatever is left of it.
//! * [`Volatile`]: memory of the process that behaves alike and survives nothing.
//! * [`conformance`]: what every implementation is tested with.
//!
//! A store reaches the caches of the processor first. It is durable once its line was flushed and the same
//! thread has made a fence; a stream (non-temporal stores) passes the caches and needs the fence only. What
//! is neither may be lost or may be durable, each word of eight bytes on its own.

pub mod conformance;
mod instructions;
mod mapped;
mod read_only;
mod volatile;
mod words;

use std::fmt::Debug;

use terrane_base::{Error, Result};

use crate::Region;
pub use instructions::FlushInstruction;
pub use mapped::{Mapped, PlainMode};
pub use read_only::ReadOnly;
pub use volatile::Volatile;

/// Bytes of a cache line, the unit of a flush.
pub const LINE_BYTES: u64 = 64;
/// Bytes of a word, the unit that is durable as a whole or not at all.
pub const WORD_BYTES: u64 = 8;

/// The failures that flushed and fenced bytes of a region survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survives {
    /// A loss of power: persistent memory, or a file that each fence writes to its device.
    PowerLoss,
    /// The death of the process. A loss of power only after [`Mapped::sync`].
    ProcessDeath,
    /// Nothing: memory of the process.
    Nothing,
}

/// A region of persistent memory.
///
/// An implementer guarantees:
/// 1. Offsets are bytes from the start of the region. A range that is not within it is an error of kind
///    `Invalid`, and nothing is accessed.
/// 2. A word is loaded, stored and made durable as a whole; [`PmRegion::write`] and [`PmRegion::stream`] do
///    so word by word, in no order between them. A word that a range covers in part is loaded, changed and
///    stored: two threads that write parts of one word at once may lose one of them.
/// 3. [`PmRegion::flush`], followed by [`PmRegion::fence`] on the same thread, makes durable what the lines
///    contained at the flush; a fence makes durable what its thread streamed before it. Durable means
///    [`PmRegion::survives`].
/// 4. Without a fence nothing is ordered: what was stored later may be durable where what was stored before
///    is not.
/// 5. A load sees every store that happened before it, by the rules of Rust's memory: [`PmRegion::load`]
///    acquires what the [`PmRegion::store`] or [`PmRegion::exchange`] that it sees released. A stream is
///    visible to other threads after the fence of its thread.
/// 6. After a failed fence nothing stored since the last successful one counts as durable, and each later
///    fence fails.
pub trait PmRegion: Send + Sync + Debug {
    /// Bytes in the region, a multiple of [`LINE_BYTES`].
    fn len(&self) -> u64;

    /// Returns true if the region has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The failures that flushed and fenced bytes survive.
    fn survives(&self) -> Survives;

    /// Its name in errors: the path of its file, if it is one.
    fn name(&self) -> String {
        "persistent memory".into()
    }

    /// The word at `offset`, a multiple of 8, as a little-endian number.
    ///
    /// # Errors
    /// `Invalid` outside the region or between two words.
    fn load(&self, offset: u64) -> Result<u64>;

    /// Stores a word at `offset`, a multiple of 8.
    ///
    /// # Errors
    /// As [`PmRegion::load`].
    fn store(&self, offset: u64, word: u64) -> Result<()>;

    /// Stores `word` at `offset` if `expected` is there. Returns what was there: `expected` if it was stored.
    ///
    /// # Errors
    /// As [`PmRegion::load`].
    fn exchange(&self, offset: u64, expected: u64, word: u64) -> Result<u64>;

    /// Fills `bytes` from `offset`.
    ///
    /// # Errors
    /// `Invalid` outside the region.
    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()>;

    /// Stores `bytes` at `offset`.
    ///
    /// # Errors
    /// `Invalid` outside the region.
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Stores `bytes` at `offset` past the caches where the processor can; durable after the next fence.
    ///
    /// # Errors
    /// `Invalid` outside the region.
    fn stream(&self, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Starts to write back the lines that contain a range.
    ///
    /// # Errors
    /// `Invalid` outside the region.
    fn flush(&self, offset: u64, len: u64) -> Result<()>;

    /// Waits until what this thread flushed and streamed is durable.
    ///
    /// # Errors
    /// `Io` or `Poisoned` where a file is written; see guarantee 6.
    fn fence(&self) -> Result<()>;

    /// [`PmRegion::flush`], then [`PmRegion::fence`].
    ///
    /// # Errors
    /// As both.
    fn persist(&self, offset: u64, len: u64) -> Result<()> {
        self.flush(offset, len)?;
        self.fence()
    }

    /// The memory of the region, if plain loads and stores reach it. The owner of a range may borrow and
    /// store its bytes by the rules of [`Region`]; flushes and fences cover such stores
    /// behind [`PmRegion::note_stores`].
    fn memory(&self) -> Option<&Region> {
        None
    }

    /// Plain stores through [`PmRegion::memory`] to a range are complete.
    ///
    /// # Errors
    /// `Invalid` outside the region.
    fn note_stores(&self, offset: u64, len: u64) -> Result<()> {
        check_range(self.len(), offset, len)
    }

    /// Fills `bytes` from `offset` as [`PmRegion::read`] does, but by a system call where the region is a
    /// file: damage is an error then, and another thread may be storing to the range meanwhile.
    ///
    /// # Errors
    /// `Invalid` outside the region, `Corrupt` if the file has become shorter, `Io` for damage.
    fn read_checked(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        self.read(offset, bytes)
    }

    /// True if a fence costs what an instruction costs; false where it writes to a device.
    fn has_cheap_fences(&self) -> bool {
        true
    }
}

/// Checks that a range is within a region of `region` bytes.
///
/// # Errors
/// `Invalid`, with the range.
#[inline]
pub fn check_range(region: u64, offset: u64, len: u64) -> Result<()> {
    if offset <= region && len <= region - offset { Ok(()) } else { Err(outside(region, offset, len)) }
}

/// Checks that a word is within a region of `region` bytes.
///
/// # Errors
/// `Invalid`, with the offset.
#[inline]
pub fn check_word(region: u64, offset: u64) -> Result<()> {
    if !offset.is_multiple_of(WORD_BYTES) {
        return Err(between_words(offset));
    }
    check_range(region, offset, WORD_BYTES)
}

/// The words that a range touches: offset of each word, the part of `bytes` that is in it, and where in the
/// word that part begins.
pub fn word_parts(offset: u64, bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8], usize)> {
    let head = (WORD_BYTES - offset % WORD_BYTES) as usize % WORD_BYTES as usize;
    let (head, rest) = bytes.split_at(head.min(bytes.len()));
    let begin = (offset % WORD_BYTES) as usize;
    let first = (!head.is_empty()).then_some((offset - begin as u64, head, begin));
    let rest_at = offset + head.len() as u64;
    let chunks = rest.chunks(WORD_BYTES as usize).enumerate();
    first.into_iter().chain(chunks.map(move |(index, part)| (rest_at + index as u64 * WORD_BYTES, part, 0)))
}

/// `word` with `part` in place of its bytes from `begin` on.
#[must_use]
pub fn with_part(word: u64, part: &[u8], begin: usize) -> u64 {
    let mut bytes = word.to_le_bytes();
    bytes[begin..begin + part.len()].copy_from_slice(part);
    u64::from_le_bytes(bytes)
}

/// The first bytes of all lines that a range touches.
pub fn lines(offset: u64, len: u64) -> impl Iterator<Item = u64> {
    let begin = offset - offset % LINE_BYTES;
    let end = if len == 0 { begin } else { offset + len };
    (begin..end).step_by(LINE_BYTES as usize)
}

#[cold]
fn outside(region: u64, offset: u64, len: u64) -> Error {
    Error::invalid(format!("{len} bytes at {offset} are outside the region of {region} bytes"))
}

#[cold]
fn between_words(offset: u64) -> Error {
    Error::invalid(format!("offset {offset} is not that of a word: it must be a multiple of {WORD_BYTES}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_cut_into_words_and_lines() {
        let bytes: Vec<u8> = (0..20).collect();
        let parts: Vec<_> = word_parts(5, &bytes).map(|(at, part, begin)| (at, part.len(), begin)).collect();
        assert_eq!(parts, [(0, 3, 5), (8, 8, 0), (16, 8, 0), (24, 1, 0)]);
        assert_eq!(
            word_parts(2, &bytes[..3]).map(|p| (p.0, p.1.len(), p.2)).collect::<Vec<_>>(),
            [(0, 3, 2)]
        );
        assert_eq!(word_parts(8, &[]).count(), 0);
        assert_eq!(with_part(u64::MAX, &[0, 0], 3), 0xffff_ff00_00ff_ffff);
        assert_eq!(lines(60, 5).collect::<Vec<_>>(), [0, 64]);
        assert_eq!(lines(64, 64).collect::<Vec<_>>(), [64]);
        assert_eq!(lines(70, 0).count(), 0, "an empty range has no line");
    }
}
