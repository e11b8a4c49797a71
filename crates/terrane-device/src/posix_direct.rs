//! Direct reads and writes of a file of the operating system: around the page cache, in whole units.
//!
//! A read transfers whole *sectors*: the unit that the file system states for direct reads ([`sector_of`]),
//! which is 512 bytes on most, and else a page. So a block that begins and ends within pages costs no more
//! than its own sectors. A write transfers whole pages, so that no page is written in part twice.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};
use rustix::io::Errno;
use terrane_base::{Error, Result};

use crate::mapping::PAGE_BYTES;
use crate::posix::refused;
use crate::{Buffer, take_buffer};

/// Most bytes that go through a bounce buffer at once.
pub(crate) const BOUNCE_BYTES: usize = 256 << 10;

/// A file that is read and written past the page cache.
#[derive(Debug)]
pub(crate) struct Direct {
    pub(crate) fd: OwnedFd,
    /// Bytes that offset, length and memory of a read are a multiple of: a power of two, at most a page.
    pub(crate) sector: usize,
}

/// Opens a file around the page cache.
pub(crate) fn open_direct(path: &Path, flags: OFlags) -> Result<Direct> {
    let flags = flags.difference(OFlags::CREATE | OFlags::EXCL) | OFlags::DIRECT;
    let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| match error {
        Errno::INVAL => Error::invalid(format!(
            "the file system of {} cannot bypass the page cache: turn direct_io off",
            path.display()
        )),
        error => refused("open", path, error),
    })?;
    let sector = sector_of(&fd);
    assert!(sector.is_power_of_two() && sector <= PAGE_BYTES, "pages are whole sectors, not {sector} bytes");
    Ok(Direct { fd, sector })
}

/// The unit of direct reads of a file; a page if the kernel (before Linux 6.1) or the file system states none
/// that divides a page.
fn sector_of(fd: &OwnedFd) -> usize {
    let Ok(info) = rustix::fs::statx(fd, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) else {
        return PAGE_BYTES;
    };
    let is_stated = info.stx_mask & StatxFlags::DIOALIGN.bits() != 0;
    let (offsets, memory) = (info.stx_dio_offset_align as usize, info.stx_dio_mem_align as usize);
    let is_unit = |bytes: usize| bytes.is_power_of_two() && bytes <= PAGE_BYTES;
    if is_stated && is_unit(offsets) && is_unit(memory) { offsets.max(memory) } else { PAGE_BYTES }
}

/// Returns true if a transfer needs no other memory: all of it is a multiple of `unit`.
pub(crate) fn is_aligned(offset: u64, bytes: &[u8], unit: usize) -> bool {
    offset.is_multiple_of(unit as u64)
        && bytes.len().is_multiple_of(unit)
        && bytes.as_ptr().addr().is_multiple_of(unit)
}

/// An aligned buffer of whole pages. Its initial content is that of an earlier transfer.
pub(crate) struct Bounce {
    bytes: Buffer,
    start: usize,
    len: usize,
}

impl Bounce {
    /// A buffer for a transfer of `transfer` bytes that may start within a page; a longer transfer takes
    /// several rounds.
    pub(crate) fn new(transfer: usize) -> Self {
        let len = (transfer + 2 * PAGE_BYTES).next_multiple_of(PAGE_BYTES).min(BOUNCE_BYTES);
        let bytes = Buffer::from(take_buffer(len + PAGE_BYTES));
        let start = bytes.as_ptr().align_offset(PAGE_BYTES);
        Bounce { bytes, start, len }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}
