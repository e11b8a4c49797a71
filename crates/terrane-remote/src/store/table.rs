//! The end of a data object: which extents it holds (`docs/format/objects.md`).
//!
//! The extents lie one behind the other from the first byte on, in the order of their slots; the table has a
//! row for each, and a fixed end behind the rows. Bytes of a bucket are hostile: every field is checked.

use terrane_base::{Error, Result};
use terrane_storage::{EXTENT_SLOTS_MAX, SLOT_BYTES};

use super::names::DataName;

pub(super) const MAGIC: [u8; 8] = *b"TRNEXT01";
pub(super) const ROW_BYTES: usize = 16;
/// Bytes of the fixed end.
pub(super) const END_BYTES: usize = 48;
/// Slots of a file: no extent ends behind them, so a table has at most as many rows.
pub(crate) const FILE_SLOTS: u32 = EXTENT_SLOTS_MAX;
/// Most bytes of a table with its end.
pub(crate) const TABLE_BYTES_MAX: usize = FILE_SLOTS as usize * ROW_BYTES + END_BYTES;

/// An extent in an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// First slot of the extent in its file.
    pub(crate) slot: u32,
    /// Its slots.
    pub(crate) slots: u32,
    /// Its bytes.
    pub(crate) len: u32,
    /// The checksum of its bytes.
    pub(crate) crc: u32,
}

/// Rows with the offset of each extent in the object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table(pub(crate) Vec<(u64, Row)>);

impl Table {
    /// The table of extents that lie one behind the other. Requires: the rows are sorted by slot.
    pub(crate) fn new(rows: &[Row]) -> Self {
        debug_assert!(rows.is_sorted_by(|a, b| a.slot + a.slots <= b.slot), "extents are apart and in order");
        let mut end = 0;
        let place = |row: &Row| {
            let offset = end;
            end += u64::from(row.len);
            (offset, *row)
        };
        Table(rows.iter().map(place).collect())
    }

    /// Bytes of all extents.
    pub(crate) fn data_bytes(&self) -> u64 {
        self.0.last().map_or(0, |(offset, row)| offset + u64::from(row.len))
    }

    /// The bytes behind the extents. `nonce` is the number that the writer drew for itself.
    pub(crate) fn encode(&self, name: DataName, nonce: u128) -> Vec<u8> {
        assert!(self.0.len() <= FILE_SLOTS as usize, "each extent has a slot of its own");
        let mut bytes = Vec::with_capacity(self.0.len() * ROW_BYTES + END_BYTES);
        for (_, Row { slot, slots, len, crc }) in &self.0 {
            [slot, slots, len, crc].iter().for_each(|field| bytes.extend_from_slice(&field.to_le_bytes()));
        }
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&name.epoch.to_le_bytes());
        bytes.extend_from_slice(&nonce.to_le_bytes());
        for field in [name.number, name.part, self.0.len() as u32] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        bytes
    }

    /// Reads the table from the last bytes of an object of `object_bytes` that has this name.
    ///
    /// # Errors
    /// `Corrupt`, without a place.
    pub(crate) fn decode(tail: &[u8], object_bytes: u64, name: DataName) -> Result<Self> {
        let end_at = tail.len().checked_sub(END_BYTES);
        let end_at = end_at.ok_or_else(|| Error::corrupt("the object is too short for its table"))?;
        let end = &tail[end_at..];
        if end[..8] != MAGIC {
            return Err(Error::corrupt(format!("magic {:02x?}: expected {MAGIC:02x?}", &end[..8])));
        }
        let count = u32_at(end, 40) as usize;
        let start = count.checked_mul(ROW_BYTES).and_then(|rows| end_at.checked_sub(rows));
        let start = start.filter(|_| count <= FILE_SLOTS as usize).ok_or_else(|| {
            Error::corrupt(format!(
                "the table names {count} extents, more than an object of {object_bytes} bytes can hold"
            ))
        })?;
        let (found, expected) = (crc32c::crc32c(&tail[start..tail.len() - 4]), u32_at(end, 44));
        if found != expected && !terrane_base::planted!(IgnoreTableChecksum) {
            let message = format!("checksum of the table: {found:08x}, expected {expected:08x}");
            return Err(Error::corrupt(message));
        }
        let epoch = u64::from_le_bytes(end[8..16].try_into().expect("eight bytes"));
        let own = DataName { epoch, number: u32_at(end, 32), part: u32_at(end, 36) };
        if own != name {
            return Err(Error::corrupt(format!("the object has the header of {own} and the name {name}")));
        }
        let rows = tail[start..end_at].chunks_exact(ROW_BYTES).map(|row| Row {
            slot: u32_at(row, 0),
            slots: u32_at(row, 4),
            len: u32_at(row, 8),
            crc: u32_at(row, 12),
        });
        let rows = checked(rows.collect())?;
        let table = Table::new(&rows);
        let data_bytes = object_bytes.checked_sub((tail.len() - start) as u64);
        if data_bytes != Some(table.data_bytes()) {
            let message = format!("extents of {} bytes in an object of {object_bytes}", table.data_bytes());
            return Err(Error::corrupt(message));
        }
        Ok(table)
    }
}

/// The number that the writer of a table drew. Requires: the table was decoded from these bytes.
pub(crate) fn nonce_of(tail: &[u8]) -> u128 {
    let end = &tail[tail.len() - END_BYTES..];
    u128::from_le_bytes(end[16..32].try_into().expect("sixteen bytes"))
}

/// Checks that the extents lie in the file, apart and in order, and that each fits its slots.
fn checked(rows: Vec<Row>) -> Result<Vec<Row>> {
    let mut free_from = 0;
    for (index, row) in rows.iter().enumerate() {
        let end = row.slot.checked_add(row.slots).filter(|end| *end <= FILE_SLOTS && row.slots > 0);
        let fits = u64::from(row.len) <= u64::from(row.slots) * SLOT_BYTES as u64;
        match end {
            Some(end) if row.slot >= free_from && fits => free_from = end,
            _ => return Err(Error::corrupt(format!("row {index} of the table is impossible: {row:?}"))),
        }
    }
    Ok(rows)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use terrane_base::{Kind, Rng};

    const NAME: DataName = DataName { epoch: 3, number: 9, part: 1 };

    fn sample() -> (Table, Vec<u8>, u64) {
        let row = |slot, slots, len| Row { slot, slots, len, crc: slot ^ 0x5555 };
        let table = Table::new(&[row(0, 1, 100), row(4, 2, 3 << 20), row(6, 1, 0), row(511, 1, 7)]);
        let tail = table.encode(NAME, 0x1234);
        let bytes = table.data_bytes() + tail.len() as u64;
        (table, tail, bytes)
    }

    #[test]
    fn tables_come_back() {
        let (table, tail, bytes) = sample();
        assert_eq!(
            table.0.iter().map(|(offset, _)| *offset).collect::<Vec<_>>(),
            [0, 100, (3 << 20) + 100, (3 << 20) + 100]
        );
        assert_eq!(Table::decode(&tail, bytes, NAME).expect("decodes"), table);
        let more = [vec![9; 1000], tail.clone()].concat();
        assert_eq!(Table::decode(&more, bytes, NAME).expect("decodes"), table, "bytes before the table");
        let none = Table::default().encode(NAME, 0);
        assert_eq!(Table::decode(&none, none.len() as u64, NAME).expect("decodes"), Table::default());
    }

    #[test]
    fn every_changed_byte_is_found() {
        let (_, tail, bytes) = sample();
        for at in 0..tail.len() {
            let mut damaged = tail.clone();
            damaged[at] ^= 1;
            let error = Table::decode(&damaged, bytes, NAME).expect_err("damaged");
            assert_eq!(error.kind(), Kind::Corrupt, "byte {at}");
        }
        for len in 0..tail.len() {
            Table::decode(&tail[tail.len() - len..], bytes, NAME).expect_err("cut");
            Table::decode(&tail[..len], bytes, NAME).expect_err("cut");
        }
        for (object_bytes, name) in [(bytes + 1, NAME), (0, NAME), (bytes, DataName { part: 2, ..NAME })] {
            Table::decode(&tail, object_bytes, name).expect_err("another object");
        }
    }

    /// Tables whose checksum is right, as of an enemy.
    #[test]
    fn impossible_tables_are_refused() {
        let row = |slot, slots, len| Row { slot, slots, len, crc: 0 };
        let impossible: [&[Row]; 7] = [
            &[row(0, 0, 0)],
            &[row(512, 1, 0)],
            &[row(511, 2, 0)],
            &[row(u32::MAX, 1, 0)],
            &[row(0, 1, SLOT_BYTES as u32 + 1)],
            &[row(0, 2, 0), row(1, 1, 0)],
            &[row(5, 1, 0), row(1, 1, 0)],
        ];
        for rows in impossible {
            let offsets = rows.iter().map(|row| (0, *row)).collect();
            let tail = Table(offsets).encode(NAME, 0);
            let bytes = rows.iter().map(|row| u64::from(row.len)).sum::<u64>() + tail.len() as u64;
            let error = Table::decode(&tail, bytes, NAME).expect_err("impossible");
            assert!(error.to_string().contains("impossible"), "{rows:?}: {error}");
        }
        let mut rng = Rng::new(1);
        for _ in 0..3000 {
            let len = rng.index(200);
            let mut noise: Vec<u8> = (0..len).map(|_| rng.next_u64() as u8).collect();
            if let Some(at) = len.checked_sub(END_BYTES) {
                noise[at..at + 8].copy_from_slice(&MAGIC);
                noise[at + 8..at + 16].copy_from_slice(&NAME.epoch.to_le_bytes());
                noise[at + 32..at + 36].copy_from_slice(&NAME.number.to_le_bytes());
                noise[at + 36..at + 40].copy_from_slice(&NAME.part.to_le_bytes());
                let count = rng.index(at / ROW_BYTES + 2);
                noise[at + 40..at + 44].copy_from_slice(&(count as u32).to_le_bytes());
                let crc = crc32c::crc32c(&noise[at.saturating_sub(count * ROW_BYTES)..len - 4]);
                noise[len - 4..].copy_from_slice(&crc.to_le_bytes());
            }
            Table::decode(&noise, rng.next_u64(), NAME).expect_err("noise");
        }
    }
}
