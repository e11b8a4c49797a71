//! The files of a closed database and the rows of an open one, for the tests that damage stored bytes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_base::Error;
use terrane_device::{Disk, MemDisk, OpenMode};
use terrane_engine::{Engine, Row};

use super::{DIR, rows};

/// The rows of each table, by its name.
pub type Rows = BTreeMap<String, Vec<Row>>;

/// All rows of all tables.
pub fn read_all(engine: &Arc<Engine>) -> Result<Rows, Error> {
    let mut all = Rows::new();
    for table in engine.catalog().all() {
        all.insert(table.name.clone(), rows(engine, &table)?);
    }
    Ok(all)
}

/// Every file of the store in [`DIR`].
pub fn files(disk: &MemDisk) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for dir in ["", "journal", "data"] {
        let dir = Path::new(DIR).join(dir);
        for name in disk.list(&dir).unwrap() {
            let path = dir.join(name);
            if disk.open(&path, OpenMode::Read, false).is_ok() {
                files.push(path);
            }
        }
    }
    files
}
