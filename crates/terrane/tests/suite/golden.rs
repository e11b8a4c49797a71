//! Databases that earlier versions made, in `tests/golden`: each must open, read as its listing says, take
//! writes, compact, and open again. `docs/format/README.md` says when a new version of them is made.
#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "a test on real files")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use terrane::{Db, Kind, Options};

/// The golden stores of every version.
pub(crate) fn stores() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let dirs = |dir: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(dir).unwrap_or_else(|why| panic!("{}: {why}", dir.display()));
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect()
    };
    let mut stores: Vec<_> = dirs(&root).iter().flat_map(|version| dirs(version)).collect();
    stores.sort();
    stores
}

pub(crate) fn unpack(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        match name.strip_suffix(".gz") {
            Some(name) => {
                let mut bytes = Vec::new();
                flate2::read::GzDecoder::new(&*fs::read(&path).unwrap()).read_to_end(&mut bytes).unwrap();
                fs::write(to.join(name), bytes).unwrap();
            }
            None => unpack(&path, &to.join(name)),
        }
    }
    // Git keeps no empty directory.
    if to.join("CURRENT").exists() {
        for name in ["journal", "data"] {
            fs::create_dir_all(to.join(name)).unwrap();
        }
    }
}

type Listing = BTreeMap<String, Vec<String>>;

fn expected(store: &Path) -> Listing {
    let mut tables = Listing::new();
    let mut rows: Option<&mut Vec<String>> = None;
    for line in fs::read_to_string(store.join("listing")).unwrap().lines() {
        match line.strip_prefix("table ") {
            Some(name) => rows = Some(tables.entry(name.to_owned()).or_default()),
            None => rows.as_mut().expect("a table comes first").push(line.to_owned()),
        }
    }
    tables
}

fn found(db: &Db) -> Listing {
    let row = |(key, value): terrane::Row| {
        let mut line = String::new();
        key.iter().for_each(|byte| write!(line, "{byte:02x}").unwrap());
        write!(line, " {} {:08x}", value.len(), crc32c::crc32c(&value)).unwrap();
        line
    };
    let tables = db.tables().into_iter().map(|name| {
        let rows = db.table(&name).unwrap().iter().map(|found| row(found.unwrap())).collect();
        (name, rows)
    });
    tables.collect()
}

fn read(dir: &Path, options: &Options, expected: &Listing, what: &str) {
    let db = Db::open_with(dir, options).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(&found(&db) == expected, "{what} reads differently");
    let report = db.check(&mut |_, _| ()).unwrap();
    assert!(report.findings.is_empty(), "{what}: {:?}", report.findings);
    db.close().unwrap();
}

fn judge(store: &Path) {
    let what = store.display().to_string();
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("db");
    unpack(&store.join("files"), &dir);
    let options = Options { memory_bytes: 64 << 20, ..Options::default() };
    let mut expected = expected(store);
    assert!(expected.values().map(Vec::len).sum::<usize>() > 200, "{what} has rows");
    read(&dir, &Options { read_only: true, ..options.clone() }, &expected, &format!("{what}, read only"));
    read(&dir, &options, &expected, &what);
    let db = Db::open_with(&dir, &options).unwrap();
    let value_tables = db.shape().tables.iter().map(|table| table.values.tables).sum::<u64>();
    assert_eq!(value_tables > 0, store.ends_with("separated"), "{what} has {value_tables} value tables");
    for name in db.tables() {
        // Behind every other key, so that the listing stays in order.
        db.table(&name).unwrap().put(b"\xff written now", name.as_bytes()).unwrap();
        let key: String = b"\xff written now".iter().map(|byte| format!("{byte:02x}")).collect();
        let line = format!("{key} {} {:08x}", name.len(), crc32c::crc32c(name.as_bytes()));
        let rows = expected.get_mut(&name).unwrap();
        rows.push(line);
        rows.sort();
    }
    assert!(found(&db) == expected, "{what} differs after writes");
    db.flush().unwrap();
    for name in db.tables() {
        db.compact_range(&db.table(&name).unwrap(), ..).unwrap();
    }
    assert!(found(&db) == expected, "{what} differs after compaction");
    db.close().unwrap();
    read(&dir, &options, &expected, &format!("{what}, reopened"));
}

#[test]
fn every_golden_store_opens_reads_and_lives_on() {
    let stores = stores();
    assert!(stores.len() >= 30, "{stores:?}");
    for store in &stores {
        if store.ends_with("zstd") && !cfg!(feature = "zstd") {
            refuse_without_codec(store);
        } else {
            judge(store);
        }
    }
}

/// A build without Zstandard says what it lacks, and damages nothing.
fn refuse_without_codec(store: &Path) {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("db");
    unpack(&store.join("files"), &dir);
    let db = Db::open_with(&dir, &Options { read_only: true, ..Options::default() }).unwrap();
    let error = db.default_table().iter().find_map(Result::err).expect("blocks cannot be read");
    assert_eq!(error.kind(), Kind::Invalid, "{error}");
    assert!(error.to_string().contains("zstd"), "{error}");
}
