//! Recovers the readable part of a damaged manifest: for repair, never for opening.
//!
//! A manifest that is damaged within has two readings. The first one ends at the damage: a state that was
//! valid once. The second one, [`Remains`], goes on behind the damage, record by record, as long as checksums
//! hold: it is not a state that ever was, but it has the known tables, segments and extents.

use std::path::Path;

use terrane_base::{Error, Result};
use terrane_device::{Disk, OpenMode};
use terrane_format::manifest::file::{file_name, parse_file_name};

use super::read::{self, Loaded};
use super::remains::{self, Remains};
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
    /// Number of the last edit in `state`; 0 without a state.
    pub edit_number: u64,
    /// All that is readable, if `state` is not proven to be the last state; `None` if it is.
    pub remains: Option<Remains>,
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
    let mut named = None;
    match directory::read_current(disk, dir) {
        Ok(current) => {
            named = Some(current.database);
            numbers.retain(|number| *number != current.file);
            numbers.insert(0, current.file);
        }
        Err(error) => errors.push(error),
    }
    let newest = numbers.first().copied();
    for number in &numbers {
        let (state, edit_number, ended) = match load_sound(disk, dir, *number) {
            Ok(loaded) => loaded,
            Err(error) => {
                errors.push(error);
                continue;
            }
        };
        let is_last = matches!(ended, Ended::Sound) && Some(*number) == newest;
        let remains = (!is_last).then(|| remains::read(disk, dir, &numbers, named));
        let mut doubt = None;
        match ended {
            Ended::Sound => {}
            Ended::Unmarked(error) => doubt = Some(error),
            Ended::Damaged(error) => errors.push(error),
        }
        return Ok(Salvaged { state: Some(state), errors, doubt, edit_number, remains });
    }
    let remains = Some(remains::read(disk, dir, &numbers, named));
    Ok(Salvaged { state: None, errors, doubt: None, edit_number: 0, remains })
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

/// The state after the last valid edit of a file, the number of that edit, and why it is the last.
fn load_sound(disk: &dyn Disk, dir: &Path, number: u32) -> Result<(State, u64, Ended)> {
    match read::load(disk, dir, number, OpenMode::Read) {
        Ok(Loaded { state, link, marked: true, .. }) => Ok((state, link.number, Ended::Sound)),
        // An append writes its mark at once; only a loss of power or a truncated file removes it.
        Ok(Loaded { state, link, file, end, .. }) => {
            let error = Error::corrupt("the manifest ends without its mark: its last edits may be missing");
            Ok((state, link.number, Ended::Unmarked(error.at(file.path().display().to_string(), end))))
        }
        Err(_) => {
            let path = dir.join(file_name(number));
            let (state, edit_number, error) = read::load_sound(disk, &path, number)?;
            Ok((state, edit_number, Ended::Damaged(error)))
        }
    }
}
