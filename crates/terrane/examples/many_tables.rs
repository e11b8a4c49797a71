//! Many tables with little memory: what making one takes, what an empty one holds, and how many puts over all
//! of them in turn go into a flush. `TABLES`, `MEMORY_MIB` and `PUTS` of the environment say how many.

use std::time::Duration;

use terrane::{Db, Env, MemoryDevice, Options, Result, Table, TableOptions};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a whole number"))
}

/// Makes the tables; says what the last thousand of them took on average.
fn make(db: &Db, count: u64) -> Result<(Vec<Table>, Duration)> {
    let clock = Env::real().clock;
    let mut tables = Vec::new();
    let mut last_began = clock.now();
    for number in 0..count {
        if count - number == 1000 {
            last_began = clock.now();
        }
        tables.push(db.create_table(&format!("table-{number:05}"), &TableOptions::new())?);
    }
    Ok((tables, (clock.now() - last_began) / count.min(1000) as u32))
}

pub(crate) fn main() -> Result<()> {
    let (count, puts) = (number("TABLES", 50), number("PUTS", 500));
    let options = Options { memory_bytes: number("MEMORY_MIB", 16) << 20, ..Options::default() };
    let db = MemoryDevice::new(4 << 30).open("/many", &options)?;
    let before = db.stats().memory_index_bytes;
    let (tables, each) = make(&db, count)?;
    let empty_bytes = (db.stats().memory_index_bytes - before) / count;
    println!(
        "{count} tables: each of the last 1,000 took {each:?}, an empty one has an index of {empty_bytes} bytes"
    );
    let clock = Env::real().clock;
    let began = clock.now();
    for number in 0..puts {
        tables[(number % count) as usize].put(number.to_be_bytes(), [7; 100])?;
    }
    let (took, stats) = (clock.now() - began, db.stats());
    println!(
        "{puts} puts in turns: {took:?}, {} flushes, {} bytes of indexes",
        stats.flushes, stats.memory_index_bytes
    );
    db.close()
}
