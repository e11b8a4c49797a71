//! Describes a block for `terrane dump`.

use super::cursor::with;
use super::entry_pos::Intervals;
use super::plain::{self, RESTART_BYTES};
use super::{Block, BlockCursor, Layout};
use crate::dump::{self, Field};

/// The fields of a decompressed block.
#[must_use]
pub fn describe(bytes: &[u8]) -> Vec<Field> {
    let block = match Block::decode(bytes.to_vec()) {
        Ok(block) => block,
        Err(error) => return vec![dump::broken(0, bytes.len(), error)],
    };
    let mut fields = Vec::new();
    if let Layout::TwoLayer(layout) = &block.layout {
        layout.of(&block.bytes).describe_tree(&mut fields);
    }
    describe_entries(&block, &mut fields);
    match &block.layout {
        Layout::TwoLayer(layout) => layout.of(&block.bytes).describe_trailer(&mut fields),
        Layout::Plain(_) => describe_plain_end(&block, &mut fields),
    }
    fields
}

fn describe_entries(block: &Block, fields: &mut Vec<Field>) {
    let mut cursor = BlockCursor::new();
    cursor.seek_first(block);
    let mut number = 0;
    while let Some(entry) = cursor.entry(block) {
        let (offset, end) = cursor.extent();
        let (words, value) = dump::stored(entry.seq_kind.kind(), entry.value);
        let value = format!("{} {:?}{words} = {}", dump::text(entry.key), entry.seq_kind, dump::text(value));
        fields.push(Field::new(offset, end - offset, format!("entry[{number}]"), value));
        number += 1;
        cursor.next(block);
    }
}

fn describe_plain_end(block: &Block, fields: &mut Vec<Field>) {
    let trailer = block.bytes.len() - plain::TRAILER_BYTES;
    with!(block, intervals => {
        let restarts = trailer - intervals.count() * RESTART_BYTES;
        for index in 0..intervals.count() {
            let offset = restarts + index * RESTART_BYTES;
            let name = format!("restart[{index}]");
            fields.push(Field::new(offset, RESTART_BYTES, name, intervals.start(index)));
        }
    });
    fields.push(Field::new(trailer, 4, "entries", block.entry_count()));
    fields.push(Field::new(trailer + 4, 1, "encoding", "1 (plain)"));
}
