//! Only the owner may read the files of a database, in every directory and under every mask.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test may panic, and looks at files")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use terrane::{Db, Kind};

fn work(path: &Path) -> terrane::Result<()> {
    let db = Db::open(path)?;
    let table = db.create_table("other", &terrane::TableOptions::new())?;
    for number in 0..200u64 {
        db.put(number.to_be_bytes(), [7; 300])?;
        table.put(number.to_be_bytes(), [8; 300])?;
    }
    db.flush()?;
    db.put(b"more", b"in the journal")?;
    db.close()
}

/// Every path below `path`, itself included, with its permissions.
fn modes(path: &Path) -> Vec<(PathBuf, u32)> {
    let info = std::fs::symlink_metadata(path).unwrap();
    let mut found = vec![(path.to_owned(), info.permissions().mode() & 0o7777)];
    if info.is_dir() {
        let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        found.extend(entries.flat_map(|entry| modes(&entry)));
    }
    found
}

#[test]
fn everything_that_is_made_is_the_owners() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("parent/db");
    work(&path).unwrap();
    let found = modes(&dir.path().join("parent"));
    assert!(found.iter().filter(|(path, _)| path.is_file()).count() >= 5, "{found:?}");
    for (path, mode) in found {
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, expected, "{}: {mode:o}", path.display());
    }
}

#[test]
fn a_directory_that_exists_keeps_its_mode() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("shared");
    std::fs::create_dir(&path).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o750)).unwrap();
    work(&path).unwrap();
    for (found, mode) in modes(&path) {
        let expected = if found == path {
            0o750
        } else if found.is_dir() {
            0o700
        } else {
            0o600
        };
        assert_eq!(mode, expected, "{}: {mode:o}", found.display());
    }
}

/// Every file of a database in turn is a link to a copy elsewhere: the database is not opened through it, and
/// the copy stays as it is.
#[test]
fn no_file_is_reached_by_a_link() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    work(&path).unwrap();
    let elsewhere = dir.path().join("elsewhere");
    let files: Vec<_> =
        modes(&path).into_iter().map(|(path, _)| path).filter(|path| path.is_file()).collect();
    for file in files {
        std::fs::rename(&file, &elsewhere).unwrap();
        let before = std::fs::read(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
        let error = Db::open(&path).map(drop).expect_err(&file.display().to_string());
        assert_eq!(error.kind(), Kind::Invalid, "{error}");
        assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
        assert!(std::fs::read(&elsewhere).unwrap() == before, "{} was changed", file.display());
        std::fs::rename(&elsewhere, &file).unwrap();
    }
    Db::open(&path).unwrap().close().unwrap();
}
