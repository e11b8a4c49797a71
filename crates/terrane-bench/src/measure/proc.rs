//! The kernel's text files (`/proc`, `/sys`): reading them, and picking a field out of them.
//!
//! This is the one place of `measure` that opens files. They are not files of a store: each read is a
//! question to the kernel, and one that is not answered (another system, no permission) is `None`.

use std::path::{Path, PathBuf};

/// The text of a kernel file, without the white space at its end.
pub(super) fn read(path: impl AsRef<Path>) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim_end().to_owned())
}

/// Writes to a kernel file; returns whether the kernel took it.
pub(super) fn write(path: &str, text: &str) -> bool {
    use std::io::Write as _;
    std::fs::OpenOptions::new()
        .write(true)
        .open(path)
        .is_ok_and(|mut file| file.write_all(text.as_bytes()).is_ok())
}

/// A path without links and dots; the path itself if it cannot be resolved.
pub(super) fn canonical(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// The names in a directory that are numbers.
pub(super) fn numbers(directory: &str) -> Vec<u32> {
    use std::os::unix::ffi::OsStrExt as _;
    let Ok(path) = rustix::fs::open(
        directory,
        rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    ) else {
        return Vec::new();
    };
    let Ok(entries) = rustix::fs::Dir::new(path) else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| std::ffi::OsStr::from_bytes(entry.file_name().to_bytes()).to_str()?.parse().ok())
        .collect()
}

/// The number after `name:` in a text of such lines; a unit after it is left out.
pub(super) fn number(text: &str, name: &str) -> Option<u64> {
    field(text, name)?.split_whitespace().next()?.parse().ok()
}

/// The text after `name` and a colon, on the first such line.
pub(super) fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}
