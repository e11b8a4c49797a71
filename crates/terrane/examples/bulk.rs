//! Sorted data past journal and memory: a file written offline and taken in, a bulk load, sizes of ranges,
//! and extents that are dropped at once.

use std::path::Path;

use terrane::{Db, ExtentFileWriter, IngestOptions, Options, Result};

fn key(day: u64, number: u64) -> Vec<u8> {
    format!("day{day:03}/{number:06}").into_bytes()
}

fn run(dir: &Path) -> Result<()> {
    const ROWS: u64 = 20_000;
    // Offline: no database is open, and it could be another machine.
    let path = dir.join("day001.extents");
    let mut file = ExtentFileWriter::create(&path, &Options::default())?;
    for number in 0..ROWS {
        file.put(key(1, number), format!("value {number}").as_bytes())?;
    }
    let written = file.finish()?;
    println!("wrote {} entries in {} extents", written.entries, written.extents);

    let db = Db::open(dir.join("data"))?;
    let table = db.default_table();
    let before = db.snapshot();
    let how = IngestOptions { remove: true, ..IngestOptions::default() };
    let ingested = db.ingest(&[(table, &path)], how)?;
    println!("{} files linked, {} bytes copied", ingested.files_linked, ingested.bytes_copied);
    assert_eq!(table.get(key(1, 77))?.as_deref(), Some(&b"value 77"[..]));
    assert_eq!(before.get(table, key(1, 77))?, None, "a snapshot does not see what came later");

    // Rows that the program already has in key order.
    db.bulk_load(table, (0..ROWS).map(|number| (key(2, number), b"loaded")))?;
    let day = "day001/".."day002/";
    let (count, size) = (table.approximate_count(day.clone())?, table.approximate_size(day.clone())?);
    println!("day 1 has {} +- {} rows in {} +- {} bytes", count.value, count.error, size.value, size.error);
    assert!(count.admits(ROWS));

    // The first day is not needed any more. A snapshot that sees its extents would prevent the drop; this one
    // is older than the extents.
    drop(before);
    let dropped = table.delete_files_in_range(day.clone())?;
    table.delete_range(day.start, day.end)?;
    println!("{} extents dropped at once, {} rows left", dropped.extents, table.iter().count());
    assert_eq!(table.iter().count() as u64, ROWS);
    db.close()
}

pub(crate) fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    run(dir.path())
}
