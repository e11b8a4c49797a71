//! Blocks as they are stored, in buffers of the process ([`take_buffer`]).

use terrane_base::Result;
use terrane_base::options::Compression;
use terrane_device::{keep_buffer, take_buffer};
use terrane_format::block::Block;
use terrane_format::index::IndexRow;

/// A stored byte gives at most so many bytes with LZ4. A block of more is decompressed into memory that is
/// allocated once its lengths were checked.
const RATIO_MAX: usize = 255;

/// A buffer with these bytes.
pub(crate) fn copy_of(bytes: &[u8]) -> Vec<u8> {
    let mut copy = take_buffer(bytes.len());
    copy.copy_from_slice(bytes);
    copy
}

/// Checks and decodes a block: into another buffer if it is compressed. The buffer that is not the block's is
/// kept.
pub(crate) fn open_stored(row: &IndexRow<'_>, stored: Vec<u8>, is_numbered: bool) -> Result<Block> {
    let mut spare = match row.compression {
        Compression::None => Vec::new(),
        _ => take_buffer((row.raw_len as usize).min(stored.len().saturating_mul(RATIO_MAX))),
    };
    let block = match is_numbered {
        true => row.open_numbered_block(stored, &mut spare),
        false => row.open_block_reusing(stored, &mut spare),
    };
    keep_buffer(spare);
    block
}
