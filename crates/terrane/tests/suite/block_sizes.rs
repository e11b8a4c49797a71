//! The size of blocks follows the data: small blocks while the data are larger than memory, unless the
//! options name a size.

use terrane::{Db, LevelShape, Options, Table, TableOptions};

const MEMORY: u64 = 16 << 20;
const VALUE: [u8; 500] = [b'v'; 500];

fn open(dir: &tempfile::TempDir, block_bytes: &str) -> Db {
    let mut options = Options::default();
    for (name, value) in
        [("memory_bytes", "16MiB"), ("block_bytes", block_bytes), ("compression_last", "none")]
    {
        options.set(name, value).unwrap();
    }
    Db::open_with(dir.path().join("db"), &options).unwrap()
}

/// Puts rows until the table has about so many bytes, and writes them to its last level.
fn fill(db: &Db, table: &Table, first: u64, bytes: u64) {
    for number in first..first + bytes / VALUE.len() as u64 {
        table.put(format!("{number:010}"), VALUE).unwrap();
    }
    db.compact_range(table, ..).unwrap();
    db.wait_until_quiescent().unwrap();
}

/// Bytes of a block of the last level of a table before compression, on average.
fn mean(db: &Db, table: &Table) -> u64 {
    let shape = db.shape();
    let of_table = shape.tables.iter().find(|shape| shape.name == table.name()).unwrap();
    of_table.levels.last().map_or(0, LevelShape::mean_block_bytes)
}

#[test]
fn blocks_are_small_while_the_data_are_larger_than_memory() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir, "0");
    let table = db.default_table();
    fill(&db, table, 0, MEMORY / 2);
    assert!(mean(&db, table) > 12 << 10, "{} bytes in a block", mean(&db, table));
    fill(&db, table, MEMORY, MEMORY);
    let small = mean(&db, table);
    assert!((6 << 10..=9 << 10).contains(&small), "{small} bytes in a block");
    // The rows of the second fill: what stays fits in memory.
    table.delete_range(format!("{MEMORY:010}"), "9").unwrap();
    for _ in 0..2 {
        // The first compaction begins while the deleted rows are still there.
        db.compact_range(table, ..).unwrap();
    }
    fill(&db, table, 0, MEMORY / 2);
    assert!(mean(&db, table) > 12 << 10, "{} bytes in a block", mean(&db, table));
    for number in [0, 1, MEMORY / 1000 - 1] {
        assert_eq!(table.get(format!("{number:010}")).unwrap().as_deref(), Some(&VALUE[..]));
    }
}

#[test]
fn the_data_of_all_tables_count() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir, "0");
    let other = db.create_table("other", &TableOptions::new()).unwrap();
    fill(&db, db.default_table(), 0, MEMORY / 4 * 3);
    fill(&db, &other, 0, MEMORY / 4 * 3);
    fill(&db, db.default_table(), 1, MEMORY / 4 * 3);
    let small = mean(&db, db.default_table());
    assert!((6 << 10..=9 << 10).contains(&small), "{small} bytes in a block");
}

#[test]
fn a_size_that_the_options_name_holds_for_all_data() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir, "16KiB");
    let small = db.create_table("small", &TableOptions::new().block_bytes(4 << 10)).unwrap();
    let derived = db.create_table("derived", &TableOptions::new().block_bytes(0)).unwrap();
    for table in [db.default_table(), &small, &derived] {
        fill(&db, table, 0, MEMORY / 4 * 5);
    }
    assert!(mean(&db, db.default_table()) > 12 << 10);
    assert!((2 << 10..=5 << 10).contains(&mean(&db, &small)));
    assert!((6 << 10..=9 << 10).contains(&mean(&db, &derived)));
}

/// A bulk load counts what it has written itself: its last extents have small blocks.
#[test]
fn a_bulk_load_beyond_memory_writes_small_blocks() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir, "0");
    let rows = (0..3 * MEMORY / VALUE.len() as u64).map(|number| (format!("{number:010}"), VALUE));
    db.bulk_load(db.default_table(), rows).unwrap();
    let mean = mean(&db, db.default_table());
    assert!((6 << 10..=12 << 10).contains(&mean), "{mean} bytes in a block: two thirds are small ones");
}

#[test]
fn the_memory_that_counts_is_the_present_one() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir, "0");
    db.set_memory_bytes(4 * MEMORY).unwrap();
    fill(&db, db.default_table(), 0, MEMORY * 2);
    let large = mean(&db, db.default_table());
    assert!(large > 12 << 10, "{large} bytes in a block");
    db.set_memory_bytes(MEMORY).unwrap();
    fill(&db, db.default_table(), 0, MEMORY * 2);
    let small = mean(&db, db.default_table());
    assert!((6 << 10..=9 << 10).contains(&small), "{small} bytes in a block");
}
