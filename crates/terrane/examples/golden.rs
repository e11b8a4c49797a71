//! Makes the golden stores of the present format version: `golden DIRECTORY`, which must not exist.
//!
//! One store per set of options that changes stored bytes. Each is a directory of the database's files,
//! gzipped (data files are mostly room), and `listing`: one line per row with table, key, length and checksum
//! of the value, and one per table. Run by `cargo xtask golden`; read by `tests/golden.rs`.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a tool for developers works on real files"
)]

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use flate2::Compression as Level;
use flate2::write::GzEncoder;
use terrane::{Batch, Compression, Db, Durability, Options, Result, Table, TableOptions};
use terrane_base::rng;

/// A moment of the year 2100.
const FAR: Duration = Duration::from_secs(4_102_444_800);

/// How a store is left.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    /// Everything in the levels, closed.
    Flushed,
    /// Records in the journal, closed.
    Closed,
    /// Records in the journal, as the death of the process leaves them.
    Killed,
}

struct Store {
    name: &'static str,
    compression: Compression,
    filter_bits_per_key: u64,
    left: Left,
    /// Values of at least this many bytes are separated; 0: none is.
    separate_from: u64,
}

const fn store(name: &'static str, compression: Compression, filter_bits_per_key: u64, left: Left) -> Store {
    Store { name, compression, filter_bits_per_key, left, separate_from: 0 }
}

const STORES: [Store; 7] = [
    store("plain", Compression::None, 10, Left::Flushed),
    store("lz4", Compression::Lz4, 10, Left::Closed),
    store("zstd", Compression::Zstd, 10, Left::Closed),
    store("no-filter", Compression::Lz4, 0, Left::Flushed),
    store("journal-closed", Compression::None, 10, Left::Closed),
    store("journal-killed", Compression::None, 10, Left::Killed),
    Store { separate_from: 32, ..store("separated", Compression::Lz4, 10, Left::Closed) },
];

fn main() {
    let target = std::env::args_os().nth(1).expect("usage: golden DIRECTORY");
    let target = Path::new(&target);
    fs::create_dir(target).unwrap_or_else(|why| panic!("{}: {why}", target.display()));
    for store in STORES {
        let scratch = tempfile::tempdir().unwrap();
        let (db, copy) = (scratch.path().join("db"), target.join(store.name));
        make(&store, &db, &copy).unwrap();
        println!("{}", copy.display());
    }
}

/// The n-th number of a sequence that looks random.
fn scattered(n: u64) -> u64 {
    rng::mix(n.wrapping_mul(rng::STEP))
}

fn value(number: u64) -> Vec<u8> {
    let len = match number % 97 {
        0 => 6_000,
        1 => 0,
        _ => scattered(number) % 60,
    };
    // Sixteen letters: compression finds something to do.
    (0..len).map(|at| b'a' + (scattered(number ^ at << 20) % 16) as u8).collect()
}

fn write_round(db: &Db, tables: &[Table], round: u64) -> Result<()> {
    for number in 0..80u64 {
        let mut batch = Batch::new();
        let key = format!("key/{:05}", scattered(number * 31 + round * 7) % 250);
        for (index, table) in tables.iter().enumerate() {
            if (number + index as u64) % 9 == 8 {
                batch.delete(table, key.as_bytes())?;
            } else if (number + index as u64).is_multiple_of(2) {
                batch.put(table, key.as_bytes(), value(number + round * 1000 + index as u64))?;
            }
        }
        if number % 10 == 0 {
            let key = format!("until/{:05}", number + round);
            batch.put_until(&tables[0], key.as_bytes(), value(number), FAR)?;
        }
        // Keys that share nothing, empty, and as bytes that are not text.
        if number % 50 == 0 {
            batch.put(&tables[0], scattered(number + round).to_be_bytes(), b"binary key")?;
            batch.put(&tables[0], vec![b'k'; 1000], value(number))?;
        }
        db.write(&batch, if number % 25 == 0 { Durability::Synced } else { Durability::Buffered })?;
    }
    tables[0].delete_range(format!("key/00{round}").as_bytes(), format!("key/00{round}5").as_bytes())
}

fn make(store: &Store, dir: &Path, copy: &Path) -> Result<()> {
    let options = Options {
        memory_bytes: 16 << 20,
        write_memory_bytes: 4 << 20,
        segment_bytes: 64 << 10,
        memtable_bytes: 64 << 10,
        global_index_bytes: 96 << 10,
        level_base_bytes: 64 << 10,
        level_fanout: 2,
        block_bytes: 4 << 10,
        compression: store.compression,
        compression_last: store.compression,
        filter_bits_per_key: store.filter_bits_per_key,
        value_separation_bytes: store.separate_from,
        ..Options::default()
    };
    let db = Db::open_with(dir, &options)?;
    let mut own = TableOptions::new().set("block_bytes", "1KiB")?.set("level_fanout", "3")?;
    if store.separate_from > 0 {
        own = own.value_separation_bytes(2 * store.separate_from).set("value_compression", "none")?;
    }
    let tables = [
        db.default_table().clone(),
        db.create_table("own options", &own)?,
        db.create_table("ünïcode", &TableOptions::new())?,
    ];
    let dropped = db.create_table("dropped", &TableOptions::new())?;
    dropped.put(b"gone", b"with its table")?;
    for round in 0..4 {
        write_round(&db, &tables, round)?;
        db.flush()?;
        if round == 1 {
            db.drop_table("dropped")?;
            db.compact_range(&tables[1], ..)?;
        }
    }
    if store.left != Left::Flushed {
        write_round(&db, &tables, 9)?;
    }
    db.wait_until_quiescent()?;
    fs::create_dir(copy).unwrap();
    fs::write(copy.join("listing"), listing(&db)?).unwrap();
    if store.left == Left::Killed {
        // Nothing runs any more: the files are what a kill would leave.
        db.sync()?;
        db.pause_background();
        pack(dir, &copy.join("files"));
        return db.close();
    }
    db.close()?;
    pack(dir, &copy.join("files"));
    Ok(())
}

fn listing(db: &Db) -> Result<String> {
    let mut text = String::new();
    for name in db.tables() {
        let table = db.table(&name)?;
        writeln!(text, "table {name}").unwrap();
        for row in table.iter() {
            let (key, value) = row?;
            let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
            writeln!(text, "{key} {} {:08x}", value.len(), crc32c::crc32c(&value)).unwrap();
        }
    }
    Ok(text)
}

/// Copies a directory, each file gzipped.
fn pack(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            pack(&entry.path(), &to.join(name));
            continue;
        }
        let mut packed = GzEncoder::new(Vec::new(), Level::best());
        packed.write_all(&fs::read(entry.path()).unwrap()).unwrap();
        fs::write(to.join(format!("{name}.gz")), packed.finish().unwrap()).unwrap();
    }
}
