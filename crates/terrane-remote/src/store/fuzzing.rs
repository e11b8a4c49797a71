//! Body of the fuzz target for the tables of data objects.

use terrane_base::Kind;

use super::names::DataName;
use super::table::{END_BYTES, FILE_SLOTS, MAGIC, ROW_BYTES, Row, Table};

const NAME: DataName = DataName { epoch: 3, number: 9, part: 1 };

/// The end of a data object as it is, and with its checksum and its name set right.
///
/// # Panics
/// If what was decoded is not encoded to the same, or an error is not one of damage.
pub fn data_table(bytes: &[u8]) {
    judge(bytes, bytes.len() as u64);
    if let Some((tail, object_bytes)) = repaired(bytes) {
        judge(&tail, object_bytes);
    }
}

fn judge(tail: &[u8], object_bytes: u64) {
    let table = match Table::decode(tail, object_bytes, NAME) {
        Ok(table) => table,
        Err(error) => return assert_eq!(error.kind(), Kind::Corrupt, "{error}"),
    };
    let mut end = 0;
    for (offset, row) in &table.0 {
        assert_eq!(*offset, end, "extents lie one behind the other");
        end += u64::from(row.len);
    }
    assert!(end == table.data_bytes() && end < object_bytes, "the table is behind the extents");
    let again = table.encode(NAME, 0);
    let bytes = end + again.len() as u64;
    assert!(Table::decode(&again, bytes, NAME).expect("what was encoded is decoded") == table);
}

/// The table with the fields that only a writer sets right, and the bytes of an object that it may be of.
fn repaired(bytes: &[u8]) -> Option<(Vec<u8>, u64)> {
    let end = bytes.len().checked_sub(END_BYTES)?;
    let mut tail = bytes.to_vec();
    let count = usize::from(tail[end + 40]) % (end / ROW_BYTES + 1).min(FILE_SLOTS as usize);
    tail[end..end + 8].copy_from_slice(&MAGIC);
    tail[end + 8..end + 16].copy_from_slice(&NAME.epoch.to_le_bytes());
    for (at, field) in [(32, NAME.number), (36, NAME.part), (40, count as u32)] {
        tail[end + at..end + at + 4].copy_from_slice(&field.to_le_bytes());
    }
    let (start, last) = (end - count * ROW_BYTES, tail.len() - 4);
    let crc = crc32c::crc32c(&tail[start..last]);
    tail[last..].copy_from_slice(&crc.to_le_bytes());
    let len = |row: &[u8]| u64::from(u32::from_le_bytes([row[8], row[9], row[10], row[11]]));
    let data: u64 = tail[start..end].chunks_exact(ROW_BYTES).map(len).sum();
    Some((tail.clone(), data + (tail.len() - start) as u64))
}

/// Corpus of [`data_table`].
#[must_use]
pub fn data_table_seeds() -> Vec<(String, Vec<u8>)> {
    let row = |slot, slots, len| Row { slot, slots, len, crc: slot ^ 0x5555 };
    let tables = [
        ("empty", Table::default()),
        ("one", Table::new(&[row(0, 1, 100)])),
        ("many", Table::new(&[row(0, 1, 100), row(4, 2, 3 << 20), row(6, 1, 0), row(511, 1, 7)])),
    ];
    tables.into_iter().map(|(name, table)| (name.to_owned(), table.encode(NAME, 0x1234))).collect()
}
