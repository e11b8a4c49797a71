//! The only module that opens files: the user's inputs and outputs, never a file of a database.
#![expect(clippy::disallowed_methods, reason = "files of the user, which no simulated device stands for")]

pub use std::fs::File;
use std::fs::OpenOptions;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::exit::{Code, Failure};

/// A file to read, with what tells it from another of the same name.
#[derive(Debug)]
pub struct Opened {
    /// The file, at its start.
    pub file: File,
    /// Absolute path, links followed.
    pub path: PathBuf,
    /// Length in bytes; `None` if it is not a regular file.
    pub len: Option<u64>,
    /// Time of the last change, in nanoseconds since 1970; 0 if unknown.
    pub changed_nanos: u64,
}

/// Opens a file to read.
///
/// # Errors
/// Of the operating system; `InvalidInput` for a directory.
pub fn open(path: &Path) -> io::Result<Opened> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "is a directory, expected a file"));
    }
    let changed = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Ok(Opened {
        file,
        path: path.canonicalize()?,
        len: metadata.is_file().then_some(metadata.len()),
        changed_nanos: changed.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
    })
}

/// Reads a whole text.
///
/// # Errors
/// Of the operating system; `InvalidData` if it is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    std::fs::read_to_string(path)
}

/// Opens a file to append to, and makes it if it is missing.
///
/// # Errors
/// Of the operating system.
pub fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

/// The kind of file that stands in the place of a new directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occupied {
    /// An empty directory.
    Empty,
    /// A directory with something in it, or a file.
    Filled,
}

/// The kind of the file at `path`; nothing if there is no file.
///
/// # Errors
/// Of the operating system.
pub fn kind(path: &Path) -> io::Result<Option<Occupied>> {
    match std::fs::read_dir(path) {
        Ok(mut entries) => {
            Ok(Some(if entries.next().is_some() { Occupied::Filled } else { Occupied::Empty }))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(Some(Occupied::Filled)),
        Err(error) => Err(error),
    }
}

/// Returns true if `path` is a file, and so no directory of a database.
#[must_use]
pub fn is_file(path: &Path) -> bool {
    path.is_file()
}

/// Returns true if standard output is a regular file: then no reader watches the rows come.
#[must_use]
pub fn is_output_file() -> bool {
    let copy = io::stdout().as_fd().try_clone_to_owned();
    copy.and_then(|copy| File::from(copy).metadata()).is_ok_and(|data| data.is_file())
}

/// Returns true if there is something at `path` that is neither a file nor a directory, such as a device.
#[must_use]
pub fn is_neither(path: &Path) -> bool {
    path.metadata().is_ok_and(|data| !data.is_file() && !data.is_dir())
}

/// Returns true if two paths lead to one directory that is there.
#[must_use]
pub fn is_same(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Refuses a file or directory that is to be made within the directory of `database`: what lies there is the
/// database's own.
///
/// # Errors
/// `Usage`.
pub fn refuse_within(database: &Path, target: &Path) -> Result<(), Failure> {
    let Ok(at) = database.canonicalize() else { return Ok(()) };
    let is_within = real(target).is_some_and(|target| target.starts_with(&at));
    if at.is_dir() && is_within { Err(within(database, target)) } else { Ok(()) }
}

/// Refuses a file that is to be made within the directory of any database. What the engine makes it refuses
/// there by itself; this is for files of the command.
///
/// # Errors
/// `Usage`.
pub fn refuse_within_any(target: &Path) -> Result<(), Failure> {
    let Some(whole) = real(target) else { return Ok(()) };
    let is_database = |dir: &&Path| {
        dir.join("journal").is_dir() && (dir.join("CURRENT").exists() || dir.join("REMOTE").exists())
    };
    whole.ancestors().find(is_database).map_or(Ok(()), |database| Err(within(database, target)))
}

/// Where a path leads, links followed; of one that does not exist yet the first directory above it that does.
fn real(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    path.ancestors().find_map(|above| above.canonicalize().ok())
}

fn within(database: &Path, target: &Path) -> Failure {
    let (target, database) = (crate::text::path(target), crate::text::path(database));
    let why = format!("{target} is within the database {database}: name a place beside it");
    Failure::new(Code::Usage, why)
}

/// Returns true if this process may not write into `directory`, which is there: by its rights, or because its
/// file system is mounted read-only.
#[must_use]
pub fn is_read_only(directory: &Path) -> bool {
    use rustix::io::Errno;
    let access = rustix::fs::access(directory, rustix::fs::Access::WRITE_OK);
    matches!(access, Err(Errno::ROFS | Errno::ACCESS | Errno::PERM))
}

/// Returns true if this process was started to ignore a signal, as `nohup` does. False where the kernel does
/// not say.
#[must_use]
pub fn is_signal_ignored(signal: i32) -> bool {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return false };
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 != 0
}

/// The last `N` bytes of a file; none of a shorter one.
///
/// # Errors
/// Of the operating system.
pub fn last_bytes<const N: usize>(opened: &mut Opened) -> io::Result<Option<[u8; N]>> {
    let len = opened.file.seek(SeekFrom::End(0))?;
    let Some(at) = len.checked_sub(N as u64) else { return Ok(None) };
    let mut bytes = [0; N];
    opened.file.seek(SeekFrom::Start(at))?;
    opened.file.read_exact(&mut bytes)?;
    Ok(Some(bytes))
}

/// Bytes of a file; none of one that cannot be asked.
#[must_use]
pub fn bytes(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Bytes of the files in and below a directory, about: of what cannot be read none. Reads no file.
#[must_use]
pub fn tree_bytes(path: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(path) else { return 0 };
    let bytes = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => tree_bytes(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.flatten().map(bytes).sum()
}

/// Bytes that the files below a directory take on their device: files have holes, and room behind their data.
#[must_use]
pub fn device_bytes(path: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(path) else { return 0 };
    let bytes = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => device_bytes(&entry.path()),
        // In units of 512 bytes, whatever the blocks of the device are.
        Ok(metadata) => metadata.blocks() * 512,
        Err(_) => 0,
    };
    entries.flatten().map(bytes).sum()
}

/// True if there is anything at `path`.
#[must_use]
pub fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Returns true if a named pipe is at `path`: its opening waits for a process that opens its other end.
#[must_use]
pub fn is_pipe(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.file_type().is_fifo())
}

/// Refuses a file or directory that is missing: with the code that every command has for it.
///
/// # Errors
/// `NotFound`, or what else the operating system says.
pub fn require(path: &Path) -> Result<(), Failure> {
    path.metadata().map(drop).map_err(|error| Failure::file(&path.display().to_string(), &error))
}

/// Gives a file another name.
///
/// # Errors
/// Of the operating system.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)
}

/// Removes a file.
///
/// # Errors
/// Of the operating system.
pub fn remove(path: &Path) -> io::Result<()> {
    std::fs::remove_file(path)
}

/// Makes a directory and those above it.
///
/// # Errors
/// Of the operating system.
pub fn make_directory(path: &Path) -> io::Result<()> {
    std::fs::create_dir_all(path)
}

/// Opens a device or a pipe that is there, to write to it.
///
/// # Errors
/// Of the operating system.
pub fn write_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}

/// Makes a file that must not exist.
///
/// # Errors
/// Of the operating system; `AlreadyExists`.
pub fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Writes a whole file and the directory that it lies in.
///
/// # Errors
/// Of the operating system.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        std::fs::create_dir_all(directory)?;
    }
    File::create(path)?.write_all(bytes)
}
