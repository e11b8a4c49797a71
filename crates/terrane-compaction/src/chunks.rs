//! How much each input of a merge reads at once: there may be hundreds of overflow runs, and all of their
//! chunks are in memory.

use terrane_table::scanner::CHUNK_BYTES;

/// Bytes of chunks of all inputs of a merge together: a picker gives it so few inputs that
/// [`CHUNK_BYTES_MIN`] is not reached.
pub const CHUNKS_BYTES_MAX: u32 = 16 << 20;
/// A chunk that holds a block of the usual size.
pub const CHUNK_BYTES_MIN: u32 = 32 << 10;

/// Bytes that each of this many inputs of a merge reads at once.
#[must_use]
pub fn chunk_bytes_of(inputs: usize) -> u32 {
    let share = CHUNKS_BYTES_MAX / u32::try_from(inputs.max(1)).unwrap_or(u32::MAX);
    share.clamp(CHUNK_BYTES_MIN, CHUNK_BYTES)
}
