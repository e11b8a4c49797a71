//! The file LOG of a database, which people read: lines with a date, in the directory of the database or in
//! one for logs. At each opening, and where it gets too long, it becomes `LOG.old.MICROSECONDS`, of which so
//! many are kept.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::ffi::failure::Result;
use crate::files::failed;

const NAME: &str = "LOG";
const OLD: &str = ".old.";

/// Where lines go, and how much is kept.
#[derive(Clone, Debug)]
pub(crate) struct LogLocation {
    directory: PathBuf,
    name: String,
    limits: Limits,
}

/// When another file is begun, and how many there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes from which on another file is begun; 0 for never.
    pub(crate) bytes_max: u64,
    /// Age from which on another file is begun; 0 for never.
    pub(crate) age_max: Duration,
    /// How many files are kept, the present one included; one at least.
    pub(crate) kept: usize,
}

impl Limits {
    /// One file that gets ever longer.
    pub(crate) const NONE: Limits = Limits { bytes_max: 0, age_max: Duration::ZERO, kept: 1 };
}

impl LogLocation {
    /// For the database at `path`. In another directory than its own the name of the file tells whose it is.
    pub(crate) fn new(path: &Path, directory: Option<&Path>, limits: Limits) -> LogLocation {
        let (directory, name) = match directory {
            None => (path, NAME.to_owned()),
            Some(directory) => (directory, format!("{}_{NAME}", of_path(path))),
        };
        LogLocation { directory: directory.to_owned(), name, limits }
    }

    fn path(&self) -> PathBuf {
        self.directory.join(&self.name)
    }

    fn is_old(&self, name: &str) -> bool {
        let stamp = name.strip_prefix(&self.name).and_then(|rest| rest.strip_prefix(OLD));
        stamp.is_some_and(|stamp| !stamp.is_empty() && stamp.bytes().all(|digit| digit.is_ascii_digit()))
    }

    /// Returns true if a file of this name is one of its files.
    fn has(&self, name: &str) -> bool {
        name == self.name || self.is_old(name)
    }

    /// Puts the present file to the old ones, and removes those that are too many.
    fn put_aside(&self, now: Duration) -> std::io::Result<()> {
        let path = self.path();
        if path.exists() {
            let mut stamp = now.as_micros();
            let old = |stamp: u128| self.directory.join(format!("{}{OLD}{stamp}", self.name));
            // Two in one microsecond are two files.
            while old(stamp).exists() {
                stamp += 1;
            }
            fs::rename(&path, old(stamp))?;
        }
        let mut old = self.files(|name| self.is_old(name))?;
        // By their stamps: longer is later, then by digits.
        old.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
        let too_many = (old.len() + 1).saturating_sub(self.limits.kept.max(1));
        old[..too_many.min(old.len())].iter().try_for_each(fs::remove_file)
    }

    fn files(&self, is_wanted: impl Fn(&str) -> bool) -> std::io::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            if entry.file_name().to_str().is_some_and(&is_wanted) {
                files.push(entry.path());
            }
        }
        Ok(files)
    }

    /// Removes all its files; nothing there is fine.
    pub(crate) fn remove(&self) -> Result<()> {
        let removed = match self.files(|name| self.has(name)) {
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            files => files.and_then(|files| files.iter().try_for_each(fs::remove_file)),
        };
        removed.map_err(|why| failed("removing", &self.path(), &why))
    }
}

/// Returns true if a file in the directory of a database is its LOG, or an old one.
pub(crate) fn is_one(name: &str) -> bool {
    LogLocation { directory: PathBuf::new(), name: NAME.to_owned(), limits: Limits::NONE }.has(name)
}

/// A path as a part of a name: characters other than letters, digits, dots and dashes become underscores.
fn of_path(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let text = absolute.to_string_lossy().into_owned();
    let kept = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '.';
    text.trim_start_matches('/').chars().map(|letter| if kept(letter) { letter } else { '_' }).collect()
}

/// An open file LOG.
#[derive(Debug)]
pub(crate) struct Lines {
    place: LogLocation,
    open: Mutex<Open>,
}

#[derive(Debug)]
struct Open {
    file: File,
    bytes: u64,
    begun: Duration,
    /// Lines that each file begins with.
    head: Vec<String>,
}

impl Lines {
    /// Begins a file; one that is there is put aside.
    pub(crate) fn begin(place: LogLocation) -> Result<Lines> {
        let file = place.begin().map_err(|why| failed("beginning", &place.path(), &why))?;
        let open = Open { file, bytes: 0, begun: wall(), head: Vec::new() };
        Ok(Lines { place, open: Mutex::new(open) })
    }

    /// Adds a line. A failure to write it is not reported: there is no caller to report to.
    pub(crate) fn add(&self, line: &str) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.is_over(self.place.limits) {
            open.go_on(&self.place);
        }
        open.put(line);
    }

    /// Adds a line that is at the beginning of every later file, too.
    pub(crate) fn add_to_head(&self, line: &str) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.put(line);
        open.head.push(line.to_owned());
    }
}

impl LogLocation {
    fn begin(&self) -> std::io::Result<File> {
        fs::create_dir_all(&self.directory)?;
        self.put_aside(wall())?;
        // Readable by its owner only, as all files of a database.
        OpenOptions::new().create(true).append(true).mode(0o600).open(self.path())
    }
}

impl Open {
    fn put(&mut self, line: &str) {
        let text = format!("{} {} {line}\n", date(wall()), std::process::id());
        if self.file.write_all(text.as_bytes()).is_ok() {
            self.bytes += text.len() as u64;
        }
    }

    fn is_over(&self, limits: Limits) -> bool {
        let is_old = || wall().saturating_sub(self.begun) >= limits.age_max;
        limits.bytes_max > 0 && self.bytes >= limits.bytes_max || !limits.age_max.is_zero() && is_old()
    }

    /// Goes on in another file; where none can be made, in the same one.
    fn go_on(&mut self, place: &LogLocation) {
        let Ok(file) = place.begin() else { return };
        (self.file, self.bytes, self.begun) = (file, 0, wall());
        for line in self.head.clone() {
            self.put(&line);
        }
    }
}

fn wall() -> Duration {
    terrane::Env::real().clock.wall()
}

/// A moment since the beginning of 1970 as a date in universal time, with microseconds.
fn date(since: Duration) -> String {
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let micros = since.subsec_micros();
    format!("{year:04}/{month:02}/{day:02}-{hour:02}:{minute:02}:{second:02}.{micros:06}")
}

/// Year, month and day of a day since the beginning of 1970, counted in years that begin with March: so the
/// day that leap years have more is the last of its year.
fn civil(days: u64) -> (u64, u64, u64) {
    let day = days + 719_468;
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let of_month = day - (153 * month + 2) / 5 + 1;
    let (month, carried) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (year + era * 400 + carried, month, of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("listed");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, shown) in [
            (0, "1970/01/01-00:00:00.000000"),
            (951_782_399, "2000/02/28-23:59:59.000000"),
            (951_782_400, "2000/02/29-00:00:00.000000"),
            (1_709_251_200, "2024/03/01-00:00:00.000000"),
            (4_107_542_399, "2100/02/28-23:59:59.000000"),
            (4_107_542_400, "2100/03/01-00:00:00.000000"),
        ] {
            assert_eq!(date(Duration::from_secs(seconds)), shown);
        }
    }

    #[test]
    fn old_files_are_kept_by_their_number() {
        let directory = tempfile::tempdir().expect("temporary directory");
        fs::write(directory.path().join("LOG.old.mine"), "foreign").expect("written");
        for round in 0..4 {
            let place = LogLocation::new(directory.path(), None, Limits { kept: 3, ..Limits::NONE });
            Lines::begin(place).expect("begun").add(&format!("round {round}"));
        }
        let names = names(directory.path());
        assert_eq!(names.iter().filter(|name| *name != "LOG.old.mine").count(), 3, "{names:?}");
        let present = fs::read_to_string(directory.path().join("LOG")).expect("there");
        assert!(present.contains("round 3") && !present.contains("round 2"), "{present}");
        LogLocation::new(directory.path(), None, Limits { kept: 3, ..Limits::NONE })
            .remove()
            .expect("removed");
        assert_eq!(self::names(directory.path()), ["LOG.old.mine"]);
    }

    #[test]
    fn a_log_that_gets_too_long_goes_on_in_another_file_with_the_same_head() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let lines = Lines::begin(LogLocation::new(
            directory.path(),
            None,
            Limits { bytes_max: 200, kept: 100, ..Limits::NONE },
        ))
        .expect("begun");
        lines.add_to_head("the head");
        (0..20).for_each(|line| lines.add(&format!("line {line:030}")));
        let names = names(directory.path());
        assert!(names.len() > 3, "{names:?}");
        for name in names {
            let text = fs::read_to_string(directory.path().join(&name)).expect("there");
            assert!(text.contains("the head") && text.len() < 400, "{name}: {text}");
        }
    }

    #[test]
    fn in_another_directory_the_name_of_the_log_has_the_path_of_the_database() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let place = LogLocation::new(Path::new("/data/a b/db"), Some(directory.path()), Limits::NONE);
        Lines::begin(place).expect("begun").add("line");
        assert_eq!(names(directory.path()), ["data_a_b_db_LOG"]);
    }
}
