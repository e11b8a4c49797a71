//! Memory from the operating system: anonymous and file mappings, advice about them, and unmapping.
#![expect(unsafe_code, reason = "raw memory is the subject of this module")]

use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null_mut};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MsyncFlags, ProtFlags, madvise, mmap, mmap_anonymous, msync, munmap};

use crate::region::{HUGE_PAGE_BYTES, Region};

/// The unit of mappings and of direct I/O.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Ends a mapping when dropped.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: only the address and length of memory that this value alone unmaps.
unsafe impl Send for Mapping {}
// SAFETY: nothing is reachable through a shared reference.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by this module with this length; the region that used it is gone.
        let result = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
        // If the kernel lacks the memory to unmap, the range stays mapped and is never used again.
        debug_assert!(result != Err(rustix::io::Errno::INVAL), "munmap of an own mapping: {result:?}");
    }
}

/// Maps at least `len` zero bytes, aligned to huge pages where `len` reaches one.
pub(crate) fn anonymous(len: usize) -> (NonNull<u8>, Mapping) {
    let huge = len >= HUGE_PAGE_BYTES;
    let bytes = round_up(len.max(1), PAGE_BYTES);
    // Room to move the start to the boundary of a huge page; the surplus costs address space only.
    let reserved = if huge { bytes + HUGE_PAGE_BYTES } else { bytes };
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new private mapping at an address of the kernel's choice touches no memory in use.
    let mapped = unsafe { mmap_anonymous(null_mut(), reserved, access, MapFlags::PRIVATE) };
    let Some(base) = mapped.ok().and_then(|base| NonNull::new(base.cast::<u8>())) else {
        let layout = std::alloc::Layout::from_size_align(bytes, PAGE_BYTES).expect("region below isize::MAX");
        std::alloc::handle_alloc_error(layout)
    };
    let skip = if huge { base.as_ptr().align_offset(HUGE_PAGE_BYTES) } else { 0 };
    debug_assert!(skip <= reserved - bytes);
    // SAFETY: `skip + bytes <= reserved`.
    let start = unsafe { base.add(skip) };
    (start, Mapping { start: base, len: reserved })
}

/// Maps the first `len` bytes of a file, shared with it.
pub(crate) fn shared(
    fd: BorrowedFd<'_>,
    len: usize,
    writable: bool,
) -> rustix::io::Result<(NonNull<u8>, Mapping)> {
    let access = if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
    // SAFETY: a new mapping at an address of the kernel's choice touches no memory in use.
    let start = unsafe { mmap(null_mut(), len, access, MapFlags::SHARED, fd, 0)? };
    let start = NonNull::new(start.cast::<u8>()).ok_or(Errno::NOMEM)?;
    Ok((start, Mapping { start, len }))
}

/// Maps the first `len` bytes of a file on persistent memory, shared with it and writable, so that flushed
/// stores need no system call. A file system without persistent memory refuses with `OPNOTSUPP`.
pub(crate) fn shared_durable(fd: BorrowedFd<'_>, len: usize) -> rustix::io::Result<(NonNull<u8>, Mapping)> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // `SHARED_VALIDATE` makes the kernel refuse flags that it does not know.
    let flags = MapFlags::SHARED_VALIDATE | MapFlags::SYNC;
    // SAFETY: a new mapping at an address of the kernel's choice touches no memory in use.
    let start = unsafe { mmap(null_mut(), len, access, flags, fd, 0)? };
    let start = NonNull::new(start.cast::<u8>()).ok_or(Errno::NOMEM)?;
    Ok((start, Mapping { start, len }))
}

/// Writes the pages of a range of a mapped file to the device, and waits for it.
pub(crate) fn write_back(region: &Region, offset: usize, len: usize) -> rustix::io::Result<()> {
    assert!(offset <= region.len() && len <= region.len() - offset, "range within the region");
    let (start, len) = page_span(
        NonNull::new(region.start().as_ptr().wrapping_add(offset)).expect("within the region"),
        len,
    );
    loop {
        // SAFETY: never changes contents; the region is mapped while it is borrowed.
        match unsafe { msync(start.cast(), len, MsyncFlags::SYNC) } {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// Asks for huge pages. A kernel or file system without them refuses; that changes nothing.
pub(crate) fn advise_huge(start: NonNull<u8>, len: usize) {
    // Miri does not know `madvise`, and a program cannot observe its effect.
    if cfg!(miri) {
        return;
    }
    let (start, len) = page_span(start, len);
    // SAFETY: this advice never changes contents.
    let _ = unsafe { madvise(start.cast(), len, Advice::LinuxHugepage) };
}

/// Gives the pages that lie in a buffer back to the system and keeps its addresses. Its bytes are any
/// afterwards, mostly 0; the next store to a page allocates it again. Returns false if the system did not
/// take them, as where memory is locked.
pub(crate) fn forget(buffer: &mut Vec<u8>) -> bool {
    // Miri does not know `madvise`.
    if cfg!(miri) {
        return false;
    }
    let start = buffer.as_mut_ptr();
    let skipped = start.align_offset(PAGE_BYTES);
    let Some(rest) = buffer.capacity().checked_sub(skipped).filter(|rest| *rest >= PAGE_BYTES) else {
        return false;
    };
    let whole = rest - rest % PAGE_BYTES;
    // SAFETY: pages that belong to the buffer alone, which is borrowed exclusively; what its bytes become are
    // valid bytes.
    let given = unsafe { madvise(start.wrapping_add(skipped).cast(), whole, Advice::LinuxDontNeed) };
    given.is_ok()
}

/// Allocates the pages of a range: for writing if the mapping and the kernel allow it, and then returns true,
/// else for reading.
pub(crate) fn populate(start: NonNull<u8>, len: usize) -> rustix::io::Result<bool> {
    if len == 0 || cfg!(miri) {
        return Ok(true);
    }
    let (pages, pages_len) = page_span(start, len);
    match advise(pages, pages_len, Advice::LinuxPopulateWrite) {
        // The mapping is read-only, or the kernel is older than 5.14.
        Err(Errno::INVAL) => populate_for_reads(start, len).map(|()| false),
        result => result.map(|()| true),
    }
}

/// Allocates the pages of a range for reading; none of them changes.
pub(crate) fn populate_for_reads(start: NonNull<u8>, len: usize) -> rustix::io::Result<()> {
    if len == 0 || cfg!(miri) {
        return Ok(());
    }
    let (start, len) = page_span(start, len);
    match advise(start, len, Advice::LinuxPopulateRead) {
        Err(Errno::INVAL) => advise(start, len, Advice::WillNeed),
        result => result,
    }
}

fn advise(start: *mut u8, len: usize, advice: Advice) -> rustix::io::Result<()> {
    loop {
        // SAFETY: the advices passed here never change contents.
        match unsafe { madvise(start.cast(), len, advice) } {
            Err(Errno::INTR | Errno::AGAIN) => {}
            result => return result,
        }
    }
}

/// The whole pages that contain a range.
fn page_span(start: NonNull<u8>, len: usize) -> (*mut u8, usize) {
    let skipped = start.as_ptr().addr() % PAGE_BYTES;
    (start.as_ptr().wrapping_sub(skipped), round_up(len + skipped, PAGE_BYTES))
}

fn round_up(bytes: usize, unit: usize) -> usize {
    bytes.next_multiple_of(unit)
}
