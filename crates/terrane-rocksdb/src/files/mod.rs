//! Files of a database that is not open: whether it exists, its removal, its replacement and repair. And the
//! files that only this crate writes: [`options_files`], [`info_log`].

#![expect(
    clippy::disallowed_methods,
    reason = "calls on databases that are not open, and files for people: the library has none for them"
)]

pub(crate) mod info_log;
pub(crate) mod options_files;

use std::fs;
use std::path::{Path, PathBuf};

use terrane::Functions;

use crate::ffi::failure::{Failure, Result};

/// Files and directories of a database; those of manifests begin with [`MANIFEST`].
const FILES: [&str; 6] = ["LOCK", "CURRENT", "CURRENT.tmp", "METRICS", "ORIGINS", IDENTITY];
/// A file with the identity of a database, where it is not its own.
const IDENTITY: &str = "IDENTITY";
/// Longest identity that is read.
const IDENTITY_BYTES_MAX: u64 = 4096;
const DIRECTORIES: [&str; 2] = ["journal", "data"];
const MANIFEST: &str = "MANIFEST-";
/// Where manifests of backups are, in their directory.
const MANIFESTS_OF_BACKUPS: &str = "backups";
/// Backups in the directory of a database.
const BACKUPS: &str = "backup_engine";

/// Returns true if something is at `path`.
pub(crate) fn is_there(path: &Path) -> bool {
    path.exists()
}

/// Returns true if a database is in the directory `path`.
pub(crate) fn is_database(path: &Path) -> bool {
    path.join("CURRENT").exists()
}

/// Where the backups of the directory `path` are: there, or beside the database that is there, whose files
/// have the same names.
///
/// # Errors
/// `Invalid argument` if backups are there and a database came beside them, or other backups: the call
/// cannot know which of them are meant, and a caller would take those that it does not list for lost.
pub(crate) fn backup_place(path: &Path) -> Result<PathBuf> {
    let beside = path.join(BACKUPS);
    if !is_database(path) && !is_there(&beside) {
        return Ok(path.to_owned());
    }
    if has_backups(path)? {
        return Err(Failure::invalid(format_args!(
            "{0}: has backups of its own and a database or the directory {BACKUPS} beside them: move the directories backups, extents \
             and segments elsewhere, to {0}/{BACKUPS} if that is not there, and open them there",
            path.display()
        )));
    }
    Ok(beside)
}

/// Returns true if backups lie in the directory `path` itself: a manifest of one, by its name.
fn has_backups(path: &Path) -> Result<bool> {
    let directory = path.join(MANIFESTS_OF_BACKUPS);
    let mut entries = match fs::read_dir(&directory) {
        Ok(entries) => entries,
        // Nothing is there, or another kind of file.
        Err(_) if !directory.is_dir() => return Ok(false),
        Err(why) => return Err(failed("listing", &directory, &why)),
    };
    let is_number = |name: &str| name.len() >= 6 && name.bytes().all(|byte| byte.is_ascii_digit());
    let found = entries.find_map(|entry| match entry {
        Ok(entry) => entry.file_name().to_str().is_some_and(is_number).then_some(Ok(true)),
        Err(why) => Some(Err(failed("listing", &directory, &why))),
    });
    found.unwrap_or(Ok(false))
}

/// The path with this ending of its name, beside `path`.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    // Without a slash at the end, behind which it would be inside.
    let mut name = path.components().as_path().as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Makes the directory `path`; there already is fine, but its parent must be there.
pub(crate) fn create_directory(path: &Path) -> Result<()> {
    match fs::create_dir(path) {
        Err(_) if path.is_dir() => Ok(()),
        Err(why) => Err(failed("mkdir if missing", path, &why)),
        Ok(()) => Ok(()),
    }
}

/// Removes the file `path`; nothing there is fine.
pub(crate) fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(why) if why.kind() != std::io::ErrorKind::NotFound => Err(failed("removing", path, &why)),
        _ => Ok(()),
    }
}

/// Removes the database in `path`; nothing there is fine. Other files in the directory stay, and then the
/// directory, too.
pub(crate) fn destroy(path: &Path, functions: Functions) -> Result<()> {
    if !is_database(path) {
        return Ok(());
    }
    refuse_if_open(path, functions)?;
    remove(path).map_err(|why| failed("removing", path, &why))
}

/// Refuses a database that is open, or that another program made. A missing one is accepted.
pub(crate) fn refuse_if_open(path: &Path, functions: Functions) -> Result<()> {
    if !is_database(path) {
        return Ok(());
    }
    let options = terrane::Options { create_if_missing: false, ..Default::default() };
    match terrane::Db::open_with_functions(path, &options, functions) {
        Ok(db) => db.close()?,
        Err(error) if error.kind() == terrane::Kind::Busy => return Err(locked(path, &error)),
        // What cannot be opened, because it is damaged, can be removed; but not what another program made.
        Err(error) if error.kind() == terrane::Kind::Invalid => return Err(error.into()),
        Err(_) => {}
    }
    Ok(())
}

fn locked(path: &Path, error: &terrane::Error) -> Failure {
    let path = path.display();
    Failure::io(format_args!("While lock file: {path}/LOCK: Resource temporarily unavailable ({error})"))
}

fn failed(what: &str, path: &Path, why: &std::io::Error) -> Failure {
    Failure::io(format_args!("While {what} {}: {why}", path.display()))
}

/// Removes the files of a database: `CURRENT` first, so that a partial removal leaves no database.
fn remove(path: &Path) -> std::io::Result<()> {
    let absent = |done: std::io::Result<()>| match done {
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(()),
        done => done,
    };
    absent(fs::remove_file(path.join("CURRENT")))?;
    for name in DIRECTORIES {
        absent(fs::remove_dir_all(path.join(name)))?;
    }
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        let Some(name) = name.to_str() else { continue };
        let is_ours = FILES.contains(&name) || name.starts_with(MANIFEST) || options_files::is_one(name);
        if is_ours || info_log::is_one(name) {
            absent(fs::remove_file(path.join(name)))?;
        }
    }
    match fs::remove_dir(path) {
        Err(why) if why.kind() == std::io::ErrorKind::DirectoryNotEmpty => Ok(()),
        done => done,
    }
}

/// Makes the directory `path`; fine if it is there.
pub(crate) fn create_dir(path: &Path) -> Result<()> {
    match fs::create_dir(path) {
        Err(why) if why.kind() != std::io::ErrorKind::AlreadyExists => Err(failed("making", path, &why)),
        _ => Ok(()),
    }
}

/// The identity that a file beside the database says, if there is such a file.
pub(crate) fn identity(path: &Path) -> Result<Option<String>> {
    let path = path.join(IDENTITY);
    let read = fs::metadata(&path).and_then(|there| match there.len() {
        0..=IDENTITY_BYTES_MAX => fs::read_to_string(&path),
        _ => Err(std::io::Error::other("it is too long for an identity")),
    });
    match read {
        Ok(text) => Ok(Some(text.trim_end().to_owned())),
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(why) => Err(failed("reading", &path, &why)),
    }
}

/// Gives the database at `path` an identity that is not its own.
pub(crate) fn write_identity(path: &Path, identity: &str) -> Result<()> {
    let path = path.join(IDENTITY);
    fs::write(&path, identity).map_err(|why| failed("writing", &path, &why))
}

/// The files in `path` and in directories there, each with its bytes, in the order of their names.
pub(crate) fn all_files(path: &Path) -> Result<Vec<(String, u64)>> {
    let mut files = Vec::new();
    list(path, "", &mut files).map_err(|why| failed("listing", path, &why))?;
    files.sort();
    Ok(files)
}

fn list(path: &Path, prefix: &str, files: &mut Vec<(String, u64)>) -> std::io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let there = entry.metadata()?;
        match there.is_dir() {
            true => list(&entry.path(), &format!("{name}/"), files)?,
            false => files.push((name, there.len())),
        }
    }
    Ok(())
}

/// Removes the directory `path` with all that is in it; nothing there is fine.
pub(crate) fn remove_all(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(why) if why.kind() != std::io::ErrorKind::NotFound => Err(failed("removing", path, &why)),
        _ => Ok(()),
    }
}

/// Puts the database in `from` into the place of that in `to`, which is removed; other files there stay.
pub(crate) fn replace(from: &Path, to: &Path, functions: Functions) -> Result<()> {
    destroy(to, functions)?;
    let moved = match fs::remove_dir(to) {
        Err(why) if why.kind() == std::io::ErrorKind::DirectoryNotEmpty => move_into(from, to),
        Err(why) if why.kind() != std::io::ErrorKind::NotFound => Err(why),
        _ => fs::rename(from, to),
    };
    let synced = moved.and_then(|()| to.parent().map_or(Ok(()), sync_dir));
    synced.map_err(|why| failed("renaming", from, &why))
}

/// Moves the files of `from` into the directory `to`: `CURRENT` last, so that a part of it is not a database.
fn move_into(from: &Path, to: &Path) -> std::io::Result<()> {
    let mut names =
        fs::read_dir(from)?.map(|entry| Ok(entry?.file_name())).collect::<std::io::Result<Vec<_>>>()?;
    names.sort_by_key(|name| name == "CURRENT");
    for name in names {
        fs::rename(from.join(&name), to.join(&name))?;
    }
    sync_dir(to)?;
    fs::remove_dir(from)
}

fn sync_dir(path: &Path) -> std::io::Result<()> {
    // The parent of a path without a directory in front of it is the present one.
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    fs::File::open(path)?.sync_all()
}

/// Moves what belongs to no database from one directory to another.
fn move_others(from: &Path, to: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(from)? {
        let name = entry?.file_name();
        let is_own = name.to_str().is_some_and(|name| {
            DIRECTORIES.contains(&name) || FILES.contains(&name) || name.starts_with(MANIFEST)
        });
        if !is_own {
            fs::rename(from.join(&name), to.join(&name))?;
        }
    }
    Ok(())
}

/// Puts in place of the database in `path` what can be read of it. The damaged one stays beside it if
/// something is lost.
pub(crate) fn repair(path: &Path, engine: &terrane::Options, functions: Functions) -> Result<()> {
    let (repaired, damaged) = (beside(path, ".repaired"), beside(path, ".damaged"));
    if is_there(&damaged) {
        return Err(Failure::invalid(format_args!(
            "{}: the rest of a repair is in the way",
            damaged.display()
        )));
    }
    if is_there(&repaired) {
        // Of a repair that did not come to its end.
        fs::remove_dir_all(&repaired).map_err(|why| failed("removing", &repaired, &why))?;
    }
    let report = terrane::repair_with_functions(path, &repaired, engine, functions)?;
    fs::rename(path, &damaged).map_err(|why| failed("renaming", path, &why))?;
    fs::rename(&repaired, path).map_err(|why| failed("renaming", &repaired, &why))?;
    move_others(&damaged, path).map_err(|why| failed("moving others' files out of", &damaged, &why))?;
    if report.is_whole() {
        fs::remove_dir_all(&damaged).map_err(|why| failed("removing", &damaged, &why))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_beside_a_path_is_not_in_it() {
        for path in ["a/b", "a/b/", "a/b//"] {
            assert_eq!(beside(Path::new(path), ".x"), Path::new("a/b.x"));
        }
    }
}
