//! A file in memory, and an open handle of it.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use terrane_base::sync::points::{Point, point};
use terrane_base::{Error, Result};

use crate::mapping::PAGE_BYTES;
use crate::memory::content::Content;
use crate::memory::outcome::Choices;
use crate::memory::space::{PageSet, Space};
use crate::{File, Region};

/// Longest file, which keeps its page set small.
const FILE_BYTES_MAX: u64 = 1 << 40;

/// A file: its bytes, and the space that it takes.
#[derive(Debug)]
pub(super) struct MemFile {
    space: Arc<Space>,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    content: Content,
    reserved: PageSet,
    /// Number of entries that name it. A file without a name takes no space, even while it is open.
    names: u64,
}

impl Inner {
    fn reserve(&mut self, space: &Space, pages: Range<u64>) -> bool {
        if self.names == 0 {
            return true;
        }
        let enough = space.take(self.reserved.missing(pages.clone()));
        if enough {
            self.reserved.insert(pages);
        }
        enough
    }
}

impl MemFile {
    pub(super) fn new(space: &Arc<Space>) -> Self {
        let inner = Inner { content: Content::default(), reserved: PageSet::default(), names: 1 };
        MemFile { space: Arc::clone(space), inner: Mutex::new(inner) }
    }

    /// Locks the file until the value is dropped.
    pub(super) fn hold(&self) -> Held<'_> {
        Held(self.inner.lock())
    }

    pub(super) fn write_back(&self, choices: &Choices) {
        self.inner.lock().content.write_back(choices);
    }

    /// See [`Content::fail_sync`].
    pub(super) fn fail_sync(&self) {
        self.inner.lock().content.fail_sync();
    }

    /// See [`Content::misdirect_sync`].
    pub(super) fn misdirect_sync(&self, choices: &Choices) {
        self.inner.lock().content.misdirect_sync(choices);
    }

    /// See [`Content::rot`].
    pub(super) fn rot(&self, choices: &Choices) -> Option<u64> {
        self.inner.lock().content.rot(choices)
    }

    /// See [`Content::outcomes`].
    pub(super) fn outcomes(&self) -> u64 {
        self.inner.lock().content.outcomes()
    }

    /// Adds a name.
    pub(super) fn add_name(&self) {
        self.inner.lock().names += 1;
    }

    /// Removes a name.
    pub(super) fn remove_name(&self) {
        let names = self.inner.lock().names;
        self.set_names(names.saturating_sub(1));
    }

    /// Sets the number of names. With the last name its space is freed.
    pub(super) fn set_names(&self, names: u64) {
        let mut inner = self.inner.lock();
        if inner.names > 0 && names == 0 {
            self.space.give_back(inner.reserved.count());
        }
        inner.names = names;
    }
}

/// A locked file, which no other thread changes.
pub(super) struct Held<'f>(MutexGuard<'f, Inner>);

impl Held<'_> {
    /// A copy on another device after the death of the process.
    pub(super) fn killed(&mut self, space: &Arc<Space>) -> MemFile {
        self.copy(space, Content::killed)
    }

    /// A copy on another device after a power cut. Reservations stay.
    pub(super) fn crashed(&mut self, space: &Arc<Space>, choices: &Choices) -> MemFile {
        self.copy(space, |content| content.crashed(choices))
    }

    fn copy(&mut self, space: &Arc<Space>, change: impl FnOnce(&mut Content) -> Content) -> MemFile {
        let content = change(&mut self.0.content);
        let mut reserved = self.0.reserved.clone();
        let used = content.len().div_ceil(PAGE_BYTES as u64);
        reserved.remove(used..u64::MAX);
        let fits = space.take(reserved.count());
        debug_assert!(fits, "a copy is limited only once it is whole");
        MemFile { space: Arc::clone(space), inner: Mutex::new(Inner { content, reserved, names: 1 }) }
    }
}

/// An open file.
#[derive(Debug)]
pub(super) struct MemHandle {
    path: PathBuf,
    file: Arc<MemFile>,
    writable: bool,
}

impl MemHandle {
    pub(super) fn new(path: &Path, file: Arc<MemFile>, writable: bool) -> Self {
        MemHandle { path: path.to_owned(), file, writable }
    }

    fn check_writable(&self, what: &str, offset: u64) -> Result<()> {
        if self.writable { Ok(()) } else { Err(self.failed(what, offset, io::ErrorKind::PermissionDenied)) }
    }

    fn check_end(&self, what: &str, offset: u64, len: u64) -> Result<u64> {
        let end = offset.checked_add(len).filter(|&end| end <= FILE_BYTES_MAX);
        end.ok_or_else(|| self.failed(what, offset, io::ErrorKind::FileTooLarge))
    }

    #[cold]
    fn failed(&self, what: &str, offset: u64, kind: io::ErrorKind) -> Error {
        super::refused(what, &self.path, kind).at(self.path.display().to_string(), offset)
    }

    #[cold]
    fn ended(&self, offset: u64, expected: usize, found: u64) -> Error {
        let message =
            format!("{} ends too early: expected {expected} bytes, found {found}", self.path.display());
        Error::corrupt(message).at(self.path.display().to_string(), offset)
    }
}

impl File for MemHandle {
    fn path(&self) -> &PathBuf {
        &self.path
    }

    fn len(&self) -> Result<u64> {
        point(Point::Device);
        Ok(self.file.inner.lock().content.len())
    }

    fn names(&self) -> Result<u64> {
        Ok(self.file.inner.lock().names)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        point(Point::Device);
        let inner = self.file.inner.lock();
        let found = inner.content.len().saturating_sub(offset);
        if found < buf.len() as u64 {
            return Err(self.ended(offset, buf.len(), found));
        }
        inner.content.read(offset, buf);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        point(Point::Device);
        let what = || format!("write {} bytes to", bytes.len());
        self.check_writable(&what(), offset)?;
        let end = self.check_end(&what(), offset, bytes.len() as u64)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let mut inner = self.file.inner.lock();
        if !inner.reserve(&self.file.space, pages_around(offset..end)) {
            return Err(self.failed(&what(), offset, io::ErrorKind::StorageFull));
        }
        inner.content.write(offset, bytes);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        point(Point::Device);
        self.file.inner.lock().content.sync();
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<()> {
        point(Point::Device);
        let what = || format!("set the length to {len} bytes of");
        self.check_writable(&what(), len)?;
        self.check_end(&what(), len, 0)?;
        let mut inner = self.file.inner.lock();
        inner.content.set_len(len);
        let freed = inner.reserved.remove(len.div_ceil(PAGE_BYTES as u64)..u64::MAX);
        if inner.names > 0 {
            self.file.space.give_back(freed);
        }
        Ok(())
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        point(Point::Device);
        let what = || format!("reserve {len} bytes in");
        self.check_writable(&what(), offset)?;
        let end = self.check_end(&what(), offset, len)?;
        let mut inner = self.file.inner.lock();
        if !inner.reserve(&self.file.space, pages_around(offset..end)) {
            return Err(self.failed(&what(), offset, io::ErrorKind::StorageFull));
        }
        let len = inner.content.len().max(end);
        inner.content.set_len(len);
        Ok(())
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        point(Point::Device);
        let what = || format!("punch {len} bytes out of");
        self.check_writable(&what(), offset)?;
        let end = self.check_end(&what(), offset, len)?;
        let mut inner = self.file.inner.lock();
        let end = end.min(inner.content.len());
        if offset >= end {
            return Ok(());
        }
        inner.content.zero(offset..end);
        let page = PAGE_BYTES as u64;
        let freed = inner.reserved.remove(offset.div_ceil(page)..end / page);
        if inner.names > 0 {
            self.file.space.give_back(freed);
        }
        Ok(())
    }

    fn prefetch(&self, _offset: u64, _len: u64) {}

    #[expect(unsafe_code, reason = "makes a region of a mapping")]
    fn map(&self, len: usize, writable: bool) -> Result<Region> {
        point(Point::Device);
        let what = || format!("map {len} bytes of");
        if writable {
            self.check_writable(&what(), 0)?;
        }
        let mut inner = self.file.inner.lock();
        let file_len = inner.content.len();
        if len == 0 || len as u64 > file_len {
            return Err(self.ended(0, len, file_len));
        }
        let Some(region) = inner.content.map(len) else {
            return Err(self.failed(
                &format!("{} while a shorter mapping lives:", what()),
                0,
                io::ErrorKind::Other,
            ));
        };
        // SAFETY: the region has at least `len` bytes, readable and writable, and lives as long as the owner.
        Ok(unsafe { Region::from_raw(region.start(), len, Box::new(region)) })
    }
}

/// The pages that a byte range touches.
fn pages_around(range: Range<u64>) -> Range<u64> {
    range.start / PAGE_BYTES as u64..range.end.div_ceil(PAGE_BYTES as u64)
}
