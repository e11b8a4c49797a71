//! Describes an index block for `terrane dump`.

use terrane_base::Collation;

use super::{IndexBlock, TRAILER_BYTES};
use crate::dump::{self, FIELDS_MAX, Field};

/// The fields of an index block.
#[must_use]
pub fn describe(bytes: &[u8]) -> Vec<Field> {
    // The key order of the table is unknown here.
    let index = match IndexBlock::decode_ordered(bytes.to_vec(), &Collation::missing("")) {
        Ok(index) => index,
        Err(error) => return vec![dump::broken(0, bytes.len(), error)],
    };
    let mut fields = Vec::new();
    let mut offset = 0;
    for (block, row) in index.rows().enumerate().take(FIELDS_MAX) {
        let value = format!(
            "{} to {}: {} bytes at {} ({} raw, {:?}), checksum {:08x}, {} entries ({} deletes), {} to {}",
            dump::text(row.first_key),
            dump::text(row.last_key),
            row.stored_len,
            row.offset,
            row.raw_len,
            row.compression,
            row.checksum,
            row.entries,
            row.deletes,
            row.seq_min,
            row.seq_max,
        );
        fields.push(Field::new(offset, row.encoded_len(), format!("row[{block}]"), value));
        offset += row.encoded_len();
    }
    let trailer = bytes.len() - TRAILER_BYTES;
    if offset < trailer {
        fields.push(dump::more(offset, trailer - offset, index.len().saturating_sub(FIELDS_MAX)));
    }
    fields.push(Field::new(trailer, 4, "blocks", index.len()));
    fields.push(Field::new(trailer + 4, 1, "version", super::VERSION));
    fields.push(Field::new(trailer + 5, 4, "checksum", format!("{:08x}", u32_or_0(bytes, trailer + 5))));
    fields
}

fn u32_or_0(bytes: &[u8], at: usize) -> u32 {
    crate::wire::u32_at(bytes, at).unwrap_or(0)
}
