//! Deletes a range of many keys by one record, and shows what a scan over it costs before and after.
//!
//! `cargo run --release --example range_deletes -- DIRECTORY [KEYS]` (a directory that is not there yet;
//! 100000 keys)

use std::path::Path;

use terrane::{Batch, Db, Durability, Env, Result, Table};

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn fill(db: &Db, keys: u64) -> Result<()> {
    let mut batch = Batch::new();
    for number in 0..keys {
        batch.put(db.default_table(), key(number), "value")?;
        if batch.len() == 1000 {
            db.write(&batch, Durability::Buffered)?;
            batch.clear();
        }
    }
    db.write(&batch, Durability::Buffered)?;
    db.flush()?;
    db.wait_until_quiescent()
}

/// Scans and seeks, `times` each, and prints microseconds for one.
fn measure(table: &Table, what: &str, keys: u64, times: u32) -> Result<()> {
    let clock = Env::real().clock;
    let mut rows = 0;
    let started = clock.now();
    for _ in 0..times {
        rows = table.range(&key(10)[..]..&key(keys - 10)[..]).count();
    }
    let scans = clock.now() - started;
    let started = clock.now();
    let mut cursor = table.cursor();
    for number in 0..u64::from(times) {
        cursor.seek(key(10 + number * (keys / 2) / u64::from(times)))?;
    }
    let seeks = clock.now() - started;
    let micros = |time: std::time::Duration| time.as_secs_f64() * 1e6 / f64::from(times);
    println!("{what}: scan of {rows} rows {:.1} us, seek into it {:.2} us", micros(scans), micros(seeks));
    Ok(())
}

pub(crate) fn run(dir: &Path, keys: u64) -> Result<()> {
    let db = Db::open(dir)?;
    let table = db.default_table().clone();
    fill(&db, keys)?;
    measure(&table, "all keys there", keys, 1)?;
    table.delete_range(key(10), key(keys - 10))?;
    measure(&table, "deleted, in memory", keys, 1000)?;
    db.flush_to_run(&table)?;
    measure(&table, "deleted, in an overflow run", keys, 1000)?;
    db.compact_range(&table, ..)?;
    measure(&table, "deleted, and merged", keys, 1000)?;
    print!("{}", db.shape());
    db.close()
}

pub(crate) fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let Some(dir) = arguments.next() else {
        eprintln!("usage: range_deletes DIRECTORY [KEYS]");
        return Ok(());
    };
    let keys = arguments.next().and_then(|keys| keys.parse().ok()).unwrap_or(100_000).max(100);
    run(Path::new(&dir), keys)
}
