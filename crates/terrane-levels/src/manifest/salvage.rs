//! Recovers the readable part of a damaged manifest: for repair, never for opening.

use std::path::Path;

use terrane_base::{Error, Result};
use terrane_device::{Disk, OpenMode};
use terrane_format::manifest::file::{file_name, parse_file_name};

use super::read::{self, Loaded};
use crate::directory;
use crate::state::State;

/// A state that was valid once, and the errors after it.
#[derive(Debug)]
pub struct Salvaged {
    /// The state after the last readable edit; `None` if no manifest file has a valid front.
    pub state: Option<State>,
    /// All errors, each with file and offset.
    pub errors: Vec<Error>,
    /// The reason why later edits may be missing although nothing is damaged.
    pub doubt: Option<Error>,
}

/// Reads the valid part of the manifest of the database in `dir`: of the file that `CURRENT` names, or else
/// of the newest file with a complete front. Writes nothing.
///
/// # Errors
/// `NotFound` if the directory is missing, `Io`.
pub fn salvage(disk: &dyn Disk, dir: &Path) -> Result<Salvaged> {
    let mut errors = Vec::new();
    let mut numbers: Vec<u32> = disk.list(dir)?.iter().filter_map(|name| parse_file_name(name)).collect();
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    match directory::read_current(disk, dir) {
        Ok(current) => {
            numbers.retain(|number| *number != current.file);
            numbers.insert(0, current.file);
        }
        Err(error) => errors.push(error),
    }
    for number in numbers {
        match load_sound(disk, dir, number) {
            Ok((state, Ended::Sound)) => return Ok(Salvaged { state: Some(state), errors, doubt: None }),
            Ok((state, Ended::Unmarked(doubt))) => {
                return Ok(Salvaged { state: Some(state), errors, doubt: Some(doubt) });
            }
            Ok((state, Ended::Damaged(error))) => {
                errors.push(error);
                return Ok(Salvaged { state: Some(state), errors, doubt: None });
            }
            Err(error) => errors.push(error),
        }
    }
    Ok(Salvaged { state: None, errors, doubt: None })
}

/// Why an edit is the last one of a file.
enum Ended {
    /// The mark after it proves it.
    Sound,
    /// The file ends without a mark.
    Unmarked(Error),
    /// The bytes after it are damaged.
    Damaged(Error),
}

/// The state after the last valid edit of a file, and why it is the last.
fn load_sound(disk: &dyn Disk, dir: &Path, number: u32) -> Result<(State, Ended)> {
    match read::load(disk, dir, number, OpenMode::Read) {
        Ok(Loaded { state, marked: true, .. }) => Ok((state, Ended::Sound)),
        // An append writes its mark at once; only a loss of power or a truncated file removes it.
        Ok(Loaded { state, file, end, .. }) => {
            let error = Error::corrupt("the manifest ends without its mark: its last edits may be missing");
            Ok((state, Ended::Unmarked(error.at(file.path().display().to_string(), end))))
        }
        Err(_) => {
            let path = dir.join(file_name(number));
            let (state, error) = read::load_sound(disk, &path, number)?;
            Ok((state, Ended::Damaged(error)))
        }
    }
}
