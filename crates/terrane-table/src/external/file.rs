//! Reads an external file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_base::{Collation, Error, ExtentId, KeyOrders, Result};
use terrane_device::{Disk, File, OpenMode};
use terrane_format::extent::ExtentMeta;
use terrane_format::external::{Contents, TRAILER_BYTES, Trailer};
use terrane_storage::{SLOT_BYTES, Store, StoreUsage};

use crate::verify::verify_extent;

/// An external file whose contents were decoded; its extents are read on demand.
#[derive(Debug)]
pub struct ExternalFile {
    path: PathBuf,
    contents: Contents,
    extents: FileExtents,
}

/// The extents of one file as a read-only store.
#[derive(Debug)]
struct FileExtents {
    file: Arc<dyn File>,
    /// An extent that was read as a whole, so that its parts are not read again.
    held: Option<(ExtentId, Vec<u8>)>,
}

impl ExternalFile {
    /// Opens the file and reads its contents.
    ///
    /// # Errors
    /// `Corrupt`, naming the file, if it is not a complete external file; `NotFound`, `Io`.
    pub fn open(disk: &dyn Disk, path: &Path) -> Result<ExternalFile> {
        ExternalFile::open_ordered(disk, path, &KeyOrders::new())
    }

    /// [`ExternalFile::open`] with the comparators of a program.
    ///
    /// # Errors
    /// As [`ExternalFile::open`].
    pub fn open_ordered(disk: &dyn Disk, path: &Path, orders: &KeyOrders) -> Result<ExternalFile> {
        let file = disk.open(path, OpenMode::Read, false)?;
        let len = file.len()?;
        let at_file = |error: Error, offset: u64| error.at(path.display().to_string(), offset);
        let trailer_at = len.checked_sub(TRAILER_BYTES as u64);
        let trailer_at =
            trailer_at.ok_or_else(|| at_file(Error::corrupt("shorter than an external file"), 0))?;
        let mut bytes = [0; TRAILER_BYTES];
        file.read_at(trailer_at, &mut bytes)?;
        let trailer = Trailer::decode(&bytes, len).map_err(|error| at_file(error, trailer_at))?;
        let mut contents = vec![0; usize::try_from(trailer.contents_len).unwrap_or(usize::MAX)];
        file.read_at(trailer.contents_at, &mut contents)?;
        let comparator = |name: &str| orders.collation(name);
        let contents =
            Contents::decode_ordered(&contents, trailer.contents_at, SLOT_BYTES as u64, &comparator)
                .map_err(|error| at_file(error, trailer.contents_at))?;
        Ok(ExternalFile { path: path.to_owned(), contents, extents: FileExtents { file, held: None } })
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The contents of the file.
    #[must_use]
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Key order of the file.
    #[must_use]
    pub fn collation(&self) -> &Collation {
        self.contents.all().next().map_or(Collation::bytes(), |meta| &meta.collation)
    }

    /// The first key, and an upper bound of the last entry and the range deletes.
    #[must_use]
    pub fn bounds(&self) -> (&[u8], &[u8]) {
        let collation = self.collation();
        let bounds = [&self.contents.extents, &self.contents.deletes].into_iter().filter_map(|extents| {
            Some((extents.first()?.smallest.as_slice(), extents.last()?.largest.as_slice()))
        });
        let hull = |(first, last), (other_first, other_last)| {
            (collation.min(first, other_first), collation.max(last, other_last))
        };
        bounds.reduce(hull).unwrap_or_default()
    }

    /// Returns true if the last entry is at `key` or after it, or a range delete ends after it.
    #[must_use]
    pub fn reaches(&self, key: &[u8]) -> bool {
        let collation = self.collation();
        let is_within = |last: &ExtentMeta| collation.le(key, &last.largest);
        let ends = self.contents.deletes.last().and_then(|last| last.range_deletes.as_ref());
        self.contents.extents.last().is_some_and(is_within)
            || ends.is_some_and(|section| collation.lt(key, &section.end))
    }

    /// Reads everything and checks every checksum and the order of keys. Returns all errors, with file and
    /// offset.
    #[must_use]
    pub fn verify(&self) -> Vec<Error> {
        self.contents.all().flat_map(|meta| self.verify_one(meta)).collect()
    }

    /// [`ExternalFile::verify`] of one of its extents.
    #[must_use]
    pub fn verify_one(&self, meta: &ExtentMeta) -> Vec<Error> {
        verify_extent(meta, &self.extents)
    }

    /// The bytes of one of its extents.
    ///
    /// # Errors
    /// `Corrupt` if the file is truncated; `Io`.
    pub fn read(&self, meta: &ExtentMeta) -> Result<Vec<u8>> {
        let mut bytes = vec![0; meta.bytes as usize];
        self.extents.read(meta.id, 0, &mut bytes)?;
        Ok(bytes)
    }

    /// The bytes of one of its extents, with all the checks of [`ExternalFile::verify`]; reads them once.
    ///
    /// # Errors
    /// `Corrupt`, naming the file and the offset; `Io`.
    pub fn read_verified(&self, meta: &ExtentMeta) -> Result<Vec<u8>> {
        let held = Some((meta.id, self.read(meta)?));
        debug_assert!(self.extents.held.is_none(), "a file of its own reads each time");
        let extent = FileExtents { file: self.extents.file.clone(), held };
        if let Some(error) = verify_extent(meta, &extent).into_iter().next() {
            return Err(error);
        }
        let (_, bytes) = extent.held.expect("it was put there");
        assert_eq!(bytes.len(), meta.bytes as usize, "all of it was checked");
        Ok(bytes)
    }
}

impl FileExtents {
    /// Bytes of the extent that is held, if these are some of them.
    fn held(&self, id: ExtentId, offset: u32, len: usize) -> Option<&[u8]> {
        let (_, bytes) = self.held.as_ref().filter(|(held, _)| *held == id)?;
        debug_assert!(!bytes.is_empty(), "an extent that was read has a footer");
        bytes.get(offset as usize..)?.get(..len)
    }

    fn refuse<T>(&self) -> Result<T> {
        Err(Error::invalid(format!("{}: an external file cannot be written to", self.file.path().display())))
    }
}

impl Store for FileExtents {
    fn allocate(&self, _slots: u32) -> Result<ExtentId> {
        self.refuse()
    }

    fn write(&self, _id: ExtentId, _bytes: &[u8]) -> Result<()> {
        self.refuse()
    }

    fn sync(&self) -> Result<()> {
        self.refuse()
    }

    fn read(&self, id: ExtentId, offset: u32, buf: &mut [u8]) -> Result<()> {
        match self.held(id, offset, buf.len()) {
            Some(held) => {
                buf.copy_from_slice(held);
                Ok(())
            }
            None => self.file.read_at(self.place(id, offset).1, buf),
        }
    }

    fn prefetch(&self, id: ExtentId, offset: u32, len: u32) {
        self.file.prefetch(self.place(id, offset).1, u64::from(len));
    }

    fn free(&self, _id: ExtentId, _slots: u32) -> Result<()> {
        self.refuse()
    }

    fn hold(&self) {}

    fn release(&self) {}

    fn restore(&self, _live: &mut dyn Iterator<Item = (ExtentId, u32)>) -> Result<()> {
        self.refuse()
    }

    fn reclaim(&self) -> Result<u64> {
        Ok(0)
    }

    fn usage(&self) -> StoreUsage {
        StoreUsage::default()
    }

    fn place(&self, id: ExtentId, offset: u32) -> (String, u64) {
        let at = u64::from(id.slot) * SLOT_BYTES as u64 + u64::from(offset);
        (self.file.path().display().to_string(), at)
    }
}
