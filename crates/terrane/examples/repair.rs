//! A damaged database: a check finds the damage, and a repair copies the rows into a new directory and lists
//! the losses.
#![allow(clippy::disallowed_methods, reason = "what damages files is not a part of the engine")]

use std::fs;
use std::path::Path;

use terrane::{Db, Options, Result};

/// Flips bytes in the middle of the largest data file.
fn damage(path: &Path) -> std::io::Result<()> {
    let files = fs::read_dir(path.join("data"))?.collect::<std::io::Result<Vec<_>>>()?;
    let mut largest = (0, None);
    for file in files {
        let bytes = fs::read(file.path())?;
        let used = bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0);
        if used >= largest.0 {
            largest = (used, Some((file.path(), bytes)));
        }
    }
    let (used, Some((path, mut bytes))) = largest else { return Ok(()) };
    bytes[used / 3..used / 3 + 8].iter_mut().for_each(|byte| *byte ^= 0xff);
    fs::write(path, bytes)
}

pub(crate) fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (damaged, repaired) = (dir.path().join("damaged"), dir.path().join("repaired"));
    let options = Options { memory_bytes: 64 << 20, ..Options::default() };
    let db = Db::open_with(&damaged, &options)?;
    (0..20_000u32).try_for_each(|key| db.put(key.to_be_bytes(), [key as u8; 100]))?;
    db.flush()?;
    db.close()?;
    damage(&damaged).expect("the files of the database");

    // It opens, and rows that are not damaged are read as before; a check names file and offset of the
    // damage.
    let db = Db::open_with(&damaged, &options)?;
    let report = db.check(&mut |_, _| ())?;
    report.findings.iter().for_each(|finding| println!("found: {}", finding.error));
    assert!(!report.findings.is_empty());
    db.close()?;

    // The old directory is only read.
    let report = terrane::repair(&damaged, &repaired, &options)?;
    report.losses.iter().for_each(|loss| println!("lost: {}", loss.error));
    assert!(!report.is_whole());
    let db = Db::open_with(&repaired, &options)?;
    let rows = db.default_table().iter().count();
    println!("{rows} of 20000 rows are in the new database");
    assert!(rows > 10_000 && rows < 20_000);
    assert!(db.check(&mut |_, _| ())?.findings.is_empty());
    db.close()
}
