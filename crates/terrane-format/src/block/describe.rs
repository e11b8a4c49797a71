//! A block for people to read.

use super::{Block, BlockCursor, RESTART_BYTES, TRAILER_BYTES};
use crate::dump::{self, Field};

/// The fields of a decompressed block.
#[must_use]
pub fn describe(bytes: &[u8]) -> Vec<Field> {
    let block = match Block::decode(bytes.to_vec()) {
        Ok(block) => block,
        Err(error) => return vec![dump::broken(0, bytes.len(), error)],
    };
    let mut fields = Vec::new();
    let mut cursor = BlockCursor::new();
    cursor.seek_first(&block);
    while let Some(entry) = cursor.entry(&block) {
        let (offset, end) = cursor.extent();
        let value = format!("{} {:?} = {}", dump::text(entry.key), entry.seq_kind, dump::text(entry.value));
        fields.push(Field::new(offset, end - offset, format!("entry[{}]", fields.len()), value));
        cursor.next(&block);
    }
    for index in 0..block.restart_count() {
        let offset = block.entries_len + index * RESTART_BYTES;
        fields.push(Field::new(offset, RESTART_BYTES, format!("restart[{index}]"), block.restart(index)));
    }
    let trailer = bytes.len() - TRAILER_BYTES;
    fields.push(Field::new(trailer, 4, "entries", block.entry_count()));
    fields.push(Field::new(trailer + 4, 1, "encoding", "1 (plain)"));
    fields
}
