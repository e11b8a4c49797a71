//! Reads of values in their entries and of separated ones, for a program that counts instructions: the rows
//! are cached, and `gets` or `scans` is all that reads them. Variables of the environment: `KEYS` and `VALUE`
//! say how many rows and how many bytes each value has, `SEPARATE` from how many bytes on they are separated
//! (0: not at all), `ROUNDS` how often a third of the rows is overwritten, `GETS` and `SCANS` how many there
//! are, `ROWS` how many rows a scan has, `MEMORY_MIB` how much memory the database may use: less than the
//! rows take, and the program tells what reads of the store they need. `MEND=0` leaves out the jobs that
//! scans cause. Keys are 16 hexadecimal digits that look random.

use terrane::{Db, Durability, MemoryDevice, Options, Result, Table, TableOptions};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a whole number"))
}

/// The key of a row.
fn key(row: u64) -> [u8; 16] {
    let mut rest = row.wrapping_mul(0xD6E8_FEB8_6659_FD93);
    rest = (rest ^ (rest >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    let mut key = [0; 16];
    for digit in key.iter_mut().rev() {
        *digit = b"0123456789abcdef"[(rest % 16) as usize];
        rest /= 16;
    }
    key
}

/// The `at`-th row of `keys` in an order in which neighbours are far apart.
fn row(at: u64, keys: u64) -> u64 {
    at.wrapping_mul(0x9E37_79B9_7F4A_7C15) % keys
}

/// Fills the table, and overwrites a third of it `rounds` times.
fn fill(db: &Db, table: &Table, (keys, rounds, len): (u64, u64, usize)) -> Result<()> {
    for round in 0..=rounds {
        for number in 0..if round == 0 { keys } else { keys / 3 } {
            let row = if round == 0 { number } else { row(number + round * keys, keys) };
            let value: Vec<u8> = (0..len as u64).map(|at| (row.wrapping_mul(at | 1) >> 5) as u8).collect();
            table.put_with(key(row), value, Durability::Buffered)?;
        }
        db.flush()?;
    }
    db.wait_until_quiescent()
}

/// Reads so many rows; returns the bytes of their values.
#[inline(never)]
fn gets(table: &Table, keys: u64, count: u64, value: &mut Vec<u8>) -> Result<u64> {
    let mut bytes = 0;
    for at in 0..count {
        value.clear();
        assert!(table.get_into(key(row(at, keys)), value)?, "row {} is missing", row(at, keys));
        bytes += value.len() as u64;
    }
    Ok(bytes)
}

/// Scans so many times `rows` rows; returns the bytes of their values.
#[inline(never)]
fn scans(table: &Table, keys: u64, count: u64, rows: u64) -> Result<u64> {
    let mut bytes = 0;
    let mut cursor = table.cursor();
    for at in 0..count {
        cursor.refresh();
        cursor.seek(key(row(at, keys)))?;
        for _ in 0..rows {
            let Some((_, value)) = cursor.row() else { break };
            bytes += value.len() as u64;
            cursor.next()?;
        }
    }
    Ok(bytes)
}

/// Does `reads` and prints what its reads on this thread asked of the store, in all and for each of `rows`.
fn timed(name: &str, rows: u64, reads: impl FnOnce() -> Result<u64>) -> Result<()> {
    let before = terrane::read_counters();
    let bytes = reads()?;
    let read = terrane::read_counters() - before;
    let each = |count: u64| count as f64 / rows.max(1) as f64;
    println!(
        "{name}: {rows} rows of {bytes} bytes, {} values followed; for each {:.3} reads of the store of {:.0} bytes; {} \
         batches of {} parts",
        read.values_followed,
        each(read.device_reads),
        each(read.device_bytes_read),
        read.value_batches,
        read.value_batch_reads,
    );
    Ok(())
}

pub(crate) fn main() -> Result<()> {
    let (keys, rounds, len) = (number("KEYS", 300), number("ROUNDS", 1), number("VALUE", 1024));
    let mut options = Options { memory_bytes: number("MEMORY_MIB", 64) << 20, ..Options::default() };
    options.experiments.scan_triggered_value_merge = number("MEND", 1) != 0;
    let db = MemoryDevice::new(4 << 30).open("/values", &options)?;
    let own = TableOptions::new().set("value_separation_bytes", &number("SEPARATE", 512).to_string())?;
    let table = db.create_table("rows", &own)?;
    fill(&db, &table, (keys, rounds, len as usize))?;
    // So that everything is cached.
    let (count, mut value) = (table.iter().count(), Vec::new());
    for row in 0..keys {
        assert!(table.get_into(key(row), &mut value)?, "row {row} is missing");
    }
    println!("{count} rows");
    let (reads, short, rows) = (number("GETS", 100), number("SCANS", 10), number("ROWS", 20));
    timed("gets", reads, || gets(&table, keys, reads, &mut value))?;
    timed("scans", short * rows, || scans(&table, keys, short, rows))?;
    db.close()
}
