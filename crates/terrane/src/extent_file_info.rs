//! Descriptions of files of sorted entries that are read without a database.

use std::ops::ControlFlow;
use std::path::Path;

use terrane_base::{Error, Kind, Result};
use terrane_device::PosixDisk;
use terrane_engine::ExternalFile;

/// The description in a file of [`ExtentFileWriter`](crate::ExtentFileWriter).
///
/// ```
/// # let dir = tempfile::tempdir().expect("temporary directory");
/// # let path = dir.path().join("rows.extents");
/// # let mut file = terrane::ExtentFileWriter::create(&path, &terrane::Options::default())?;
/// # file.put("a", "1")?;
/// # file.finish()?;
/// let info = terrane::inspect_extent_file(&path, false)?;
/// println!("{} entries, from {:?} to {:?}", info.entries, info.first, info.last);
/// # Ok::<(), terrane::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExtentFileInfo {
    /// The options it was written for: the key order (`key_order`), and the merge operator if it has one.
    pub options: Vec<(String, String)>,
    /// First key, as it is stored: encoded, if the key order is not bytewise.
    pub first: Vec<u8>,
    /// Last key, as the first.
    pub last: Vec<u8>,
    /// Extents.
    pub extents: u64,
    /// Entries.
    pub entries: u64,
    /// Deletes among them.
    pub deletes: u64,
    /// Range deletes.
    pub range_deletes: u64,
}

/// Reads the description of a file; with `verify` also everything in it, and every checksum.
///
/// ```
/// # let dir = tempfile::tempdir().expect("temporary directory");
/// use terrane::{ExtentFileWriter, Options};
/// let path = dir.path().join("rows.extents");
/// let mut file = ExtentFileWriter::create(&path, &Options::default())?;
/// file.put("a", "1")?;
/// file.finish()?;
/// let about = terrane::inspect_extent_file(&path, true)?;
/// assert_eq!((about.entries, about.first.as_slice()), (1, &b"a"[..]));
/// # Ok::<(), terrane::Error>(())
/// ```
///
/// # Errors
/// `Corrupt`, naming file and offset: the first thing that is wrong. `NotFound`, `Io`.
pub fn inspect_extent_file(path: impl AsRef<Path>, verify: bool) -> Result<ExtentFileInfo> {
    inspect_extent_file_until(path, verify, &mut |_| ControlFlow::Continue(()))
}

/// How far the reading of a file is.
///
/// ```
/// # let dir = tempfile::tempdir().expect("temporary directory");
/// # let path = dir.path().join("rows.extents");
/// # let mut file = terrane::ExtentFileWriter::create(&path, &terrane::Options::default())?;
/// # file.put("a", "1")?;
/// # file.finish()?;
/// let mut last = terrane::ExtentFileProgress::default();
/// terrane::inspect_extent_file_until(&path, true, &mut |progress| {
///     last = *progress;
///     std::ops::ControlFlow::Continue(())
/// })?;
/// assert!(last.bytes > 0 && last.bytes_done == last.bytes);
/// # Ok::<(), terrane::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExtentFileProgress {
    /// Bytes of its extents.
    pub bytes: u64,
    /// Of these, bytes that were read and checked.
    pub bytes_done: u64,
    /// Entries in them.
    pub entries_done: u64,
}

/// [`inspect_extent_file`], until `tell` breaks. It is called behind each extent that is verified.
///
/// ```
/// # let dir = tempfile::tempdir().expect("temporary directory");
/// use std::ops::ControlFlow;
/// use terrane::{ExtentFileWriter, Options};
/// let path = dir.path().join("rows.extents");
/// let mut file = ExtentFileWriter::create(&path, &Options::default())?;
/// file.put("a", "1")?;
/// file.finish()?;
/// let mut entries = 0;
/// terrane::inspect_extent_file_until(&path, true, &mut |progress| {
///     entries = progress.entries_done;
///     ControlFlow::Continue(())
/// })?;
/// assert_eq!(entries, 1);
/// # Ok::<(), terrane::Error>(())
/// ```
///
/// # Errors
/// As there; `Cancelled` if `tell` breaks.
pub fn inspect_extent_file_until(
    path: impl AsRef<Path>,
    verify: bool,
    tell: &mut dyn FnMut(&ExtentFileProgress) -> ControlFlow<()>,
) -> Result<ExtentFileInfo> {
    let file = ExternalFile::open(&PosixDisk::new(), path.as_ref())?;
    let bytes = file.contents().all().map(|meta| u64::from(meta.bytes)).fold(0, u64::saturating_add);
    let mut progress = ExtentFileProgress { bytes, ..ExtentFileProgress::default() };
    for meta in file.contents().all().filter(|_| verify) {
        if let Some(error) = file.verify_one(meta).into_iter().next() {
            return Err(error);
        }
        progress.bytes_done = progress.bytes_done.saturating_add(u64::from(meta.bytes));
        progress.entries_done = progress.entries_done.saturating_add(meta.entries);
        debug_assert!(progress.bytes_done <= progress.bytes, "at most all bytes are read");
        if tell(&progress).is_break() {
            return Err(Error::new(Kind::Cancelled, "its caller ended the reading of the file"));
        }
    }
    let (first, last) = file.bounds();
    let extents = &file.contents().extents;
    Ok(ExtentFileInfo {
        options: file.contents().options.clone(),
        first: first.to_vec(),
        last: last.to_vec(),
        extents: file.contents().all().count() as u64,
        entries: extents.iter().map(|meta| meta.entries).fold(0, u64::saturating_add),
        deletes: extents.iter().map(|meta| meta.deletes).fold(0, u64::saturating_add),
        range_deletes: file.contents().range_deletes(),
    })
}
