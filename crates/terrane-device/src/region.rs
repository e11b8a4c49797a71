//! A range of memory with a stable address: a mapped file, a heap allocation, or bytes of a simulated device.
#![expect(unsafe_code, reason = "raw memory is the subject of this module")]

mod long;
#[cfg(all(test, not(miri)))]
mod tests;

use std::any::Any;
use std::fmt;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::Arc;

use terrane_base::{Error, Result};

use crate::mapping;
use long::Beneath;

/// Bytes of a huge page; smaller regions do not use them.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Bytes that [`Region::filled`] fills at once.
const FILL_BYTES: usize = 1 << 20;

/// A range of memory with a stable address.
///
/// # Which thread may touch what
/// 1. Bytes become immutable once their owner (the journal) has published them; any thread may read them
///    then.
/// 2. Before that, only the thread that reserved a range writes to it.
/// 3. The memory lives until the last `Arc` of the region is dropped; a holder of a pointer also holds an
///    `Arc`.
pub struct Region {
    start: NonNull<u8>,
    len: usize,
    /// The file to which long writes go by a call; see [`long`].
    beneath: Option<Beneath>,
    /// Frees the memory when dropped.
    _owner: Box<dyn Any + Send + Sync>,
}

// SAFETY: the region is plain memory that lives as long as its owner, which is `Send + Sync`; concurrent
// access follows the rules above, and every access to it is in an `unsafe` call.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Wraps memory that `owner` keeps alive.
    ///
    /// # Safety
    /// `start .. start + len` is readable, and writable if anyone calls [`Region::write`], at this address
    /// until `owner` is dropped.
    #[must_use]
    pub unsafe fn from_raw(start: NonNull<u8>, len: usize, owner: Box<dyn Any + Send + Sync>) -> Self {
        Region { start, len, beneath: None, _owner: owner }
    }

    /// The region as the start of `file`, which is open for writing: long writes reach it by a call.
    pub(crate) fn above(self, file: Arc<OwnedFd>) -> Self {
        Region { beneath: Some(Beneath::new(file)), ..self }
    }

    /// A zeroed, writable region without a file.
    ///
    /// Its pages are allocated at the first access, or all at once by [`Region::prefault`]. A region of
    /// [`HUGE_PAGE_BYTES`] or more is aligned to huge pages and asks for them.
    ///
    /// # Panics
    /// If the address space is exhausted, as for every allocation.
    #[must_use]
    pub fn heap(len: usize) -> Self {
        let (start, owner) = mapping::anonymous(len);
        // SAFETY: the mapping is readable and writable for `len` bytes until `owner` goes.
        let region = unsafe { Region::from_raw(start, len, Box::new(owner)) };
        region.advise_huge();
        region
    }

    /// A region without a file, filled by `fill` piece by piece: it gets the offset and the bytes.
    ///
    /// # Errors
    /// Any error of `fill`.
    pub fn filled(len: usize, fill: &mut dyn FnMut(u64, &mut [u8]) -> Result<()>) -> Result<Self> {
        let region = Region::heap(len);
        for offset in (0..len).step_by(FILL_BYTES) {
            let piece = FILL_BYTES.min(len - offset);
            // SAFETY: in bounds; the memory is writable, zeroed, and no other thread has the region yet.
            let bytes = unsafe { std::slice::from_raw_parts_mut(region.start.as_ptr().add(offset), piece) };
            fill(offset as u64, bytes)?;
        }
        Ok(region)
    }

    /// Asks for huge pages if the region is large enough; without effect if the system has none.
    pub fn advise_huge(&self) {
        if self.len >= HUGE_PAGE_BYTES {
            mapping::advise_huge(self.start, self.len);
        }
    }

    /// Allocates all pages of the region, so that no later store waits for one. The contents stay.
    ///
    /// # Errors
    /// `Io` if there is not enough memory, or the file of a mapping is shorter than the mapping.
    pub fn prefault(&self) -> Result<()> {
        if self.populate(0, self.len)? {
            self.beneath.iter().for_each(Beneath::note_populated);
        }
        Ok(())
    }

    /// As [`Region::prefault`], for a range; other threads may use the region meanwhile.
    ///
    /// # Errors
    /// As [`Region::prefault`].
    ///
    /// # Panics
    /// If the range is not within the region.
    pub fn prefault_range(&self, offset: usize, len: usize) -> Result<()> {
        self.populate(offset, len).map(|_| ())
    }

    /// Returns true if the pages of the range are allocated for writing.
    fn populate(&self, offset: usize, len: usize) -> Result<bool> {
        assert!(offset <= self.len && len <= self.len - offset, "range within the region");
        // SAFETY: `offset` is within the region.
        let start = unsafe { self.start.add(offset) };
        mapping::populate(start, len).map_err(|error| {
            Error::io(format!("cannot allocate the pages of {len} bytes of a region"), error.into())
        })
    }

    /// Allocates all pages of the region as for reads: a store finds its page, but the first one to a page of
    /// a file still has to prepare it for its change. Unlike [`Region::prefault`] it changes no page, so no
    /// later sync writes one.
    ///
    /// # Errors
    /// As [`Region::prefault`].
    pub fn prefault_for_reads(&self) -> Result<()> {
        mapping::populate_for_reads(self.start, self.len).map_err(|error| {
            Error::io(format!("cannot read the pages of {} bytes of a region", self.len), error.into())
        })
    }

    /// Bytes of writes to a mapped file that were so long that their pages need not be allocated beforehand.
    #[must_use]
    pub fn bulk_bytes(&self) -> u64 {
        self.beneath.as_ref().map_or(0, Beneath::bulk_bytes)
    }

    /// Bytes in the region.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the region has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Address of the first byte.
    #[must_use]
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Copies `bytes` to `offset`.
    ///
    /// # Safety
    /// The region is writable, `offset + bytes.len() <= len`, and no other thread reads or writes the range.
    #[inline]
    pub unsafe fn write(&self, offset: usize, bytes: &[u8]) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.write_parts(offset, [bytes]) }
    }

    /// Copies `parts`, one behind the other, to `offset`. Long parts go to a mapped file by one system call,
    /// unless its pages were allocated by [`Region::prefault`].
    ///
    /// # Safety
    /// As of [`Region::write`], for all parts together.
    #[inline]
    pub unsafe fn write_parts<const N: usize>(&self, offset: usize, parts: [&[u8]; N]) {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        debug_assert!(offset + len <= self.len, "{len} bytes at {offset} of {}", self.len);
        match &self.beneath {
            // SAFETY: the caller's promise is the same.
            Some(beneath) if beneath.takes(len) => unsafe { self.write_long(beneath, offset, parts) },
            _ => {
                let mut at = offset;
                for part in parts {
                    // SAFETY: as in `write_long`.
                    unsafe { self.copy_to(at, part) };
                    at += part.len();
                }
            }
        }
    }

    /// [`Region::write_parts`] by a system call. What that does not take is copied.
    ///
    /// # Safety
    /// As of [`Region::write`], for all parts together.
    #[inline(never)]
    unsafe fn write_long<const N: usize>(&self, beneath: &Beneath, offset: usize, parts: [&[u8]; N]) {
        let mut written = beneath.write(offset, parts);
        debug_assert!(written <= parts.iter().map(|part| part.len()).sum(), "{written} bytes were written");
        let mut at = offset;
        for part in parts {
            let skipped = written.min(part.len());
            let rest = &part[skipped..];
            // SAFETY: in bounds and exclusive by the caller's promise.
            unsafe { self.copy_to(at + skipped, rest) };
            written -= skipped;
            at += part.len();
        }
    }

    /// Copies bytes into the mapping.
    ///
    /// # Safety
    /// As of [`Region::write`].
    #[inline(always)]
    unsafe fn copy_to(&self, offset: usize, bytes: &[u8]) {
        // SAFETY: in bounds and exclusive by the caller's promise; `bytes` cannot overlap a range that no
        // other code reads.
        unsafe {
            let to = self.start.as_ptr().add(offset);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
    }

    /// The bytes of a range.
    ///
    /// # Safety
    /// `offset + len` is within the region and no thread writes the range while the slice lives.
    #[must_use]
    pub unsafe fn slice(&self, offset: usize, len: usize) -> &[u8] {
        debug_assert!(offset + len <= self.len);
        // SAFETY: in bounds and unwritten by the caller's promise; alive as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(offset), len) }
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Region").field("len", &self.len).finish_non_exhaustive()
    }
}

/// The memory of one journal segment, shared by the journal that fills it and the memtables that point into
/// it.
#[derive(Debug)]
pub struct SegmentMemory {
    /// Which segment it is.
    pub id: terrane_base::SegmentId,
    /// Its bytes, from the first byte of the segment's header.
    pub region: Region,
}
