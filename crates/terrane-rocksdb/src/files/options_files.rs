//! Files OPTIONS-NNNNNN of a database: the options that it was opened with, for users and their tools. The
//! newest counts.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::ffi::failure::{Failure, Result};
use crate::files::{failed, sync_dir};

const NAME: &str = "OPTIONS-";
/// Behind the name of one that is not whole yet.
const UNFINISHED: &str = ".dbtmp";
/// How many are kept, as RocksDB does.
const KEPT: usize = 2;
/// Longest file that is read.
const BYTES_MAX: u64 = 64 << 20;

/// Returns true if a file of this name is one of them, or the beginning of one.
pub(crate) fn is_one(name: &str) -> bool {
    number(name.strip_suffix(UNFINISHED).unwrap_or(name)).is_some()
}

fn number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(NAME)?;
    (digits.len() >= 6 && digits.bytes().all(|digit| digit.is_ascii_digit())).then(|| digits.parse().ok())?
}

/// Their numbers, in order.
fn numbers(directory: &Path) -> std::io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(directory)? {
        numbers.extend(entry?.file_name().to_str().and_then(number));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

fn path_of(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{NAME}{number:06}"))
}

/// The text of the newest one, and where it is.
pub(crate) fn latest(directory: &Path) -> Result<(PathBuf, String)> {
    let numbers = numbers(directory).map_err(|why| failed("listing", directory, &why))?;
    let newest = numbers.last().ok_or_else(|| {
        Failure::new(
            "NotFound",
            format_args!("No options files found in the DB directory {}", directory.display()),
        )
    })?;
    let path = path_of(directory, *newest);
    let read = fs::metadata(&path).and_then(|there| match there.len() {
        0..=BYTES_MAX => fs::read_to_string(&path),
        _ => Err(std::io::Error::other("it is too long for a file of options")),
    });
    read.map(|text| (path.clone(), text)).map_err(|why| failed("reading", &path, &why))
}

/// Writes another one, durably and as a whole, and removes the oldest. Nothing is done where the newest says
/// the same.
pub(crate) fn write(directory: &Path, text: &str) -> Result<()> {
    let numbers = numbers(directory).map_err(|why| failed("listing", directory, &why))?;
    let newest = numbers.last().copied().unwrap_or(0);
    if newest > 0 && fs::read(path_of(directory, newest)).is_ok_and(|there| there == text.as_bytes()) {
        return Ok(());
    }
    let path = path_of(directory, newest.saturating_add(1));
    let mut unfinished = path.clone().into_os_string();
    unfinished.push(UNFINISHED);
    let written = put(Path::new(&unfinished), text).and_then(|()| fs::rename(&unfinished, &path));
    written.and_then(|()| sync_dir(directory)).map_err(|why| failed("writing", &path, &why))?;
    let too_many = (numbers.len() + 1).saturating_sub(KEPT);
    for old in &numbers[..too_many.min(numbers.len())] {
        crate::files::remove_file(&path_of(directory, *old))?;
    }
    Ok(())
}

fn put(path: &Path, text: &str) -> std::io::Result<()> {
    // Readable by its owner only, as all files of a database.
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_counts_and_two_are_kept() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path();
        assert!(latest(path).is_err_and(|none| none.text().starts_with("NotFound")));
        for text in ["a", "b", "b", "c"] {
            write(path, text).expect("written");
        }
        assert_eq!(numbers(path).expect("listed"), [2, 3]);
        assert_eq!(latest(path).expect("there").1, "c");
        assert!(is_one("OPTIONS-000003") && is_one("OPTIONS-000004.dbtmp"));
        assert!(!is_one("OPTIONS-3") && !is_one("OPTIONS-00000x") && !is_one("OPTIONS"));
    }
}
