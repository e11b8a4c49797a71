//! Key orders: newest first, and little-endian numbers.

use std::sync::Arc;

use terrane::{Db, Error, KeyOrder, KeyOrders, Options, Result, TableOptions};

/// Numbers of 4 bytes with the least byte first, in the order of numbers.
#[derive(Debug)]
struct Numbers;

impl KeyOrder for Numbers {
    fn name(&self) -> &str {
        "example.numbers"
    }

    /// The bytes turned around compare as the numbers do.
    fn encode(&self, key: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let bytes: [u8; 4] = key.try_into().map_err(|_| Error::invalid("a key has 4 bytes"))?;
        out.extend(bytes.iter().rev());
        Ok(())
    }

    fn decode(&self, encoded: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.extend(encoded.iter().rev());
        Ok(())
    }
}

pub(crate) fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let orders = KeyOrders::new().with(Arc::new(Numbers))?;
    let db = Db::open_with_functions(dir.path().join("data"), &Options::default(), orders)?;

    // From the greatest key to the least: the latest of a log comes first.
    let log = db.create_table("log", &TableOptions::new().key_order("reverse"))?;
    for day in ["2026-01-01", "2026-02-01", "2026-03-01"] {
        log.put(day.as_bytes(), "..")?;
    }
    let (latest, _) = log.iter().next().expect("there are rows")?;
    assert_eq!(latest, b"2026-03-01");
    // Ranges begin with what comes first.
    log.delete_range("2026-02-15", "2026-01-15")?;
    assert_eq!(log.iter().count(), 2);
    assert_eq!(log.prefix("2026-0").count(), 2);

    let squares = db.create_table("squares", &TableOptions::new().key_order("example.numbers"))?;
    for number in [1000u32, 5, 300, 70_000] {
        squares.put(number.to_le_bytes(), u64::from(number).pow(2).to_le_bytes())?;
    }
    let numbers = squares.range(6u32.to_le_bytes().as_slice()..);
    let numbers = numbers.map(|row| row.map(|(key, _)| u32::from_le_bytes([key[0], key[1], key[2], key[3]])));
    let numbers: Vec<u32> = numbers.collect::<Result<_>>()?;
    assert_eq!(numbers, [300, 1000, 70_000]);
    println!("{numbers:?}");
    db.close()
}
