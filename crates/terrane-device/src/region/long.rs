//! Long writes to a mapped file: by a system call, where that is cheaper than stores.
//!
//! The first store to a page of a file mapping takes a fault, and so does the first one after each sync,
//! because the file system has to prepare the page for its change. A fault costs several times the copy of
//! the page. A call prepares all its pages at once, and needs no page of memory to be mapped before. Where
//! the pages were allocated for writing beforehand, by another thread, stores are cheaper. Both reach the
//! same page cache, so readers of the mapping see the bytes either way.
//!
//! A call may fail where a store does not, for the process may write no further or the kernel lacks it:
//! then the bytes that are left are stored. Where the device cannot read a page that is written in part,
//! both fail, and the store by a signal; so the journal reads the pages of a file that is used again
//! before it uses it.

use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::io::Errno;

/// From this many bytes on a write is long. A call for 2 KiB takes as long as the faults.
pub(super) const LONG_BYTES: usize = 4096;
/// From this many bytes on a write is bulk: a call costs less than to allocate its pages beforehand and to
/// store, all threads together, and the writer hardly waits longer.
pub(super) const BULK_BYTES: usize = 64 << 10;

/// The file beneath a mapping.
pub(super) struct Beneath {
    file: Arc<OwnedFd>,
    /// The pages are allocated for writing. Like the sum below only a hint.
    is_populated: AtomicBool,
    /// Bytes of bulk writes.
    bulk: AtomicU64,
}

impl Beneath {
    pub(super) fn new(file: Arc<OwnedFd>) -> Self {
        Beneath { file, is_populated: AtomicBool::new(false), bulk: AtomicU64::new(0) }
    }

    /// Bytes of bulk writes.
    pub(super) fn bulk_bytes(&self) -> u64 {
        // Relaxed, as all here: hints publish nothing.
        self.bulk.load(Ordering::Relaxed)
    }

    /// Notes that the pages are allocated for writing.
    pub(super) fn note_populated(&self) {
        self.is_populated.store(true, Ordering::Relaxed);
    }

    /// Returns true if a write of `len` bytes is to be made by a call.
    pub(super) fn takes(&self, len: usize) -> bool {
        if len >= BULK_BYTES {
            self.bulk.fetch_add(len as u64, Ordering::Relaxed);
        }
        len >= LONG_BYTES && !self.is_populated.load(Ordering::Relaxed)
    }

    /// Writes `parts` one behind the other at `offset`; returns how many bytes are written, from the front.
    #[cold]
    pub(super) fn write<const N: usize>(&self, offset: usize, parts: [&[u8]; N]) -> usize {
        let mut slices = parts.map(IoSlice::new);
        let (mut left, mut done) = (&mut slices[..], 0);
        while !left.is_empty() {
            match rustix::io::pwritev(&self.file, left, (offset + done) as u64) {
                Ok(0) => break,
                Ok(len) => {
                    done += len;
                    IoSlice::advance_slices(&mut left, len);
                }
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        assert!(done <= parts.iter().map(|part| part.len()).sum(), "{done} bytes are more than there are");
        done
    }
}
