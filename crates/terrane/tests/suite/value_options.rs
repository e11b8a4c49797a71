//! Options and numbers of value tables: each table has its own limit, ceiling and codec, and what shows sizes
//! counts separated values.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use terrane::{Compression, Db, Kind, Options, Table, TableOptions, TableShape, ValueCompression};

const ROWS: u32 = 600;

fn small() -> Options {
    let none = Compression::None;
    let mut options =
        Options { memory_bytes: 16 << 20, compression: none, compression_last: none, ..Options::default() };
    for (name, value) in [("memtable_bytes", "128KiB"), ("level_base_bytes", "128KiB"), ("level_fanout", "3")]
    {
        options.set(name, value).unwrap();
    }
    options
}

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// 700 bytes that differ from row to row and have few different letters.
fn value(number: u32, round: u8) -> Vec<u8> {
    (0..700u32).map(|at| b'a' + (number.wrapping_mul(at).wrapping_add(at >> 3) % 4) as u8 + round).collect()
}

/// Writes all rows and brings them into the levels.
fn write(db: &Db, table: &Table, round: u8) {
    (0..ROWS).for_each(|number| table.put(key(number), value(number, round)).unwrap());
    db.flush().unwrap();
}

fn number(db: &Db, table: &Table, name: &str) -> u64 {
    db.statistics().table(table.name()).unwrap().get(name).unwrap().number()
}

fn value_tables(db: &Db, table: &Table) -> u64 {
    number(db, table, "table_value_tables")
}

fn shape(db: &Db, table: &Table) -> TableShape {
    db.shape().tables.into_iter().find(|shape| shape.name == table.name()).unwrap()
}

fn assert_has(table: &Table, round: u8) {
    for number in 0..ROWS {
        assert_eq!(table.get(key(number)).unwrap().as_deref(), Some(&value(number, round)[..]), "{number}");
    }
}

#[test]
fn each_table_has_a_limit_of_its_own_that_changes_while_it_is_open() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = Db::open_with(&path, &small()).unwrap();
    let separated = db.create_table("separated", &TableOptions::new().value_separation_bytes(200)).unwrap();
    let inline = db.create_table("inline", &TableOptions::new()).unwrap();
    for table in [&separated, &inline] {
        write(&db, table, 0);
    }
    assert!(value_tables(&db, &separated) > 0 && value_tables(&db, &inline) == 0);
    // Both change: rows that are written from now on follow.
    inline.set_option("value_separation_bytes", "200").unwrap();
    separated.set_option("value_separation_bytes", "0").unwrap();
    for table in [&separated, &inline] {
        write(&db, table, 1);
        db.compact_range(table, ..).unwrap();
        assert_has(table, 1);
    }
    assert_eq!(value_tables(&db, &separated), 0, "all versions with pointers are gone");
    assert!(value_tables(&db, &inline) > 0);
    drop((separated, inline));
    db.close().unwrap();
    // An option that is stored with a table goes before that of the opening.
    let db = Db::open_with(&path, &Options { value_separation_bytes: 100, ..small() }).unwrap();
    let (separated, inline) = (db.table("separated").unwrap(), db.table("inline").unwrap());
    for table in [&separated, &inline, db.default_table()] {
        write(&db, table, 2);
        db.compact_range(table, ..).unwrap();
        assert_has(table, 2);
    }
    assert!(value_tables(&db, &separated) == 0 && value_tables(&db, &inline) > 0);
    assert!(value_tables(&db, db.default_table()) > 0);
    for (name, wrong) in [
        ("value_separation_bytes", "8"),
        ("value_space_max_percent", "100"),
        ("value_compression", "snappy"),
        ("value_compression", "zstd:23"),
    ] {
        let error = inline.set_option(name, wrong).unwrap_err();
        assert!(error.kind() == Kind::Invalid && error.to_string().contains(name), "{error}");
    }
}

#[test]
fn value_tables_have_a_codec_of_their_own() {
    let db = Db::open_in_memory_with(&small()).unwrap();
    let bytes_with = |name: &str, codec: ValueCompression| {
        let options = TableOptions::new().value_separation_bytes(200).value_compression(codec);
        let table = db.create_table(name, &options).unwrap();
        write(&db, &table, 0);
        assert_has(&table, 0);
        (number(&db, &table, "table_value_bytes"), table)
    };
    let (as_table, table) = bytes_with("as table", ValueCompression::AsTable);
    assert!(as_table > u64::from(ROWS) * 700, "{as_table}");
    let (lz4, _) = bytes_with("lz4", ValueCompression::Codec(Compression::Lz4));
    assert!(lz4 < as_table / 2, "{lz4} of {as_table}");
    if cfg!(feature = "zstd") {
        let (zstd, _) = bytes_with("zstd", ValueCompression::ZstdLevel(9));
        assert!(zstd < lz4, "{zstd} of {lz4}");
    }
    table.set_option("value_compression", "lz4").unwrap();
    write(&db, &table, 1);
    db.compact_range(&table, ..).unwrap();
    assert_has(&table, 1);
    let after = number(&db, &table, "table_value_bytes");
    assert!(after < as_table / 2, "{after} of {as_table}");
}

#[test]
fn sizes_count_separated_values() {
    let db = Db::open_in_memory_with(&small()).unwrap();
    let table = db.create_table("t", &TableOptions::new().value_separation_bytes(200)).unwrap();
    write(&db, &table, 0);
    db.compact_range(&table, ..).unwrap();
    let values = shape(&db, &table).values;
    assert_eq!((values.entries, values.live_entries), (u64::from(ROWS), u64::from(ROWS)));
    assert_eq!((values.live_bytes, values.dead_permille(), values.space_permille()), (values.bytes, 0, 1000));
    let stored = number(&db, &table, "table_stored_bytes");
    let whole = table.approximate(..).unwrap();
    assert!(whole.value_bytes.admits(values.bytes) && whole.bytes.admits(stored), "{whole:?} of {stored}");
    // A third of the rows; the parts make the whole, as far as each of them is known.
    let (from, to) = (key(ROWS / 3), key(ROWS / 3 * 2));
    let third = table.approximate(from..to).unwrap();
    assert!(third.value_bytes.admits(values.bytes / 3), "{third:?}");
    assert!(third.value_bytes.value > values.bytes / 6, "{third:?}");
    let parts = [table.approximate(..from).unwrap(), third, table.approximate(to..).unwrap()];
    let sum: u64 = parts.iter().map(|part| part.value_bytes.value).sum();
    let error: u64 = parts.iter().map(|part| part.value_bytes.error).sum();
    assert!(sum.abs_diff(values.bytes) <= error, "{parts:?}");
    let dropped = table.delete_files_in_range(..).unwrap();
    assert!(dropped.bytes.abs_diff(stored) <= 2, "{dropped:?} of {stored}");
    assert_eq!(value_tables(&db, &table), 0);
}

#[test]
fn a_list_of_a_table_shows_its_dead_values() {
    let mut uncollected = small();
    for option in ["experiments.value_collect_riding", "experiments.value_collect_jobs"] {
        uncollected.set(option, "false").unwrap();
    }
    let db = Db::open_in_memory_with(&uncollected).unwrap();
    let options = TableOptions::new().value_separation_bytes(200).value_space_max_percent(150);
    let table = db.create_table("t", &options).unwrap();
    write(&db, &table, 0);
    // A value counts as live until its delete meets it in a merge, so merge both. Nothing is collected: on a
    // busy machine the rows may be flushed in several parts, of which one has too many dead values.
    (0..ROWS).filter(|number| number % 4 == 0).for_each(|number| table.delete(key(number)).unwrap());
    db.flush().unwrap();
    db.compact_range(&table, ..).unwrap();
    db.wait_until_quiescent().unwrap();
    let values = shape(&db, &table).values;
    assert!(values.dead_permille() > 0 && values.space_permille() > 1000, "{values:?}");
    assert!(values.live_bytes < values.bytes && values.live_entries < values.entries, "{values:?}");
    let metric = |name| number(&db, &table, name);
    assert_eq!(metric("table_value_bytes"), values.bytes);
    assert_eq!(metric("table_value_live_bytes"), values.live_bytes);
    assert_eq!(metric("table_value_dead_permille"), values.dead_permille());
    assert_eq!(metric("table_value_space_permille"), values.space_permille());
    assert_eq!((metric("table_value_space_max_permille"), values.space_permille_max), (1500, 1500));
    assert!(db.shape().to_string().contains("permille of space of at most 1500"), "{}", db.shape());
    // The limit of all space holds for value tables, too.
    table.set_option("space_amplification_max_percent", "120").unwrap();
    assert_eq!(metric("table_value_space_max_permille"), 1200);
}
