//! A read of a direct file that is under way while its caller does something else. The page cache does the same for
//! the other files when it is told of the read, and without a ring a direct read is made when it is waited for.
#![expect(unsafe_code, reason = "the kernel writes to memory that nobody borrows")]

use std::any::Any;
use std::sync::Arc;

use terrane_base::Result;

use crate::batch::{Announced, at_least};
use crate::mapping::PAGE_BYTES;
use crate::posix_file::PosixFile;
use crate::ring::{Ring, Rings};
use crate::{File, PendingRead, ReadBytes};

/// Begins to read `len` bytes from `offset`; see [`crate::Disk::begin_read`].
pub(crate) fn begin(
    rings: &Arc<Rings>,
    file: &Arc<dyn File>,
    offset: u64,
    len: usize,
    memory: Vec<u8>,
) -> Box<dyn PendingRead> {
    let any: &dyn Any = &**file;
    let is_direct = any.downcast_ref::<PosixFile>().is_some_and(|file| file.reader().1);
    if is_direct
        && len > 0
        && let Some(ring) = rings.take()
    {
        return Box::new(Begun::new(rings, ring, file, offset, len, memory));
    }
    Box::new(Announced::new(file.clone(), offset, len, memory))
}

/// See the [module](self). The ring is in use, and the memory the kernel's, until `settle`.
#[derive(Debug)]
struct Begun {
    rings: Arc<Rings>,
    /// `None` once settled.
    ring: Option<Ring>,
    file: Arc<dyn File>,
    offset: u64,
    len: usize,
    memory: Vec<u8>,
    /// Where in `memory` the first page of the read is, and how far behind it the read begins.
    start: usize,
    skip: usize,
}

impl Begun {
    fn new(
        rings: &Arc<Rings>,
        mut ring: Ring,
        file: &Arc<dyn File>,
        offset: u64,
        len: usize,
        memory: Vec<u8>,
    ) -> Begun {
        let skip = (offset % PAGE_BYTES as u64) as usize;
        let pages = (skip + len).next_multiple_of(PAGE_BYTES);
        let mut memory = at_least(memory, pages + PAGE_BYTES);
        let start = memory.as_ptr().align_offset(PAGE_BYTES);
        let any: &dyn Any = &**file;
        if let Some(posix) = any.downcast_ref::<PosixFile>() {
            let target = memory[start..start + pages].as_mut_ptr();
            // SAFETY: `file` and `memory` go into the value that is returned, which touches neither before it has
            // settled, also when it is dropped; moving the `Vec` does not move its bytes.
            unsafe { ring.begin(posix.reader().0, offset - skip as u64, target, pages) };
        }
        let (rings, file) = (rings.clone(), file.clone());
        Begun { rings, ring: Some(ring), file, offset, len, memory, start, skip }
    }

    /// Waits until the kernel has let go of the memory; whether all bytes are there.
    fn settle(&mut self) -> bool {
        let Some(mut ring) = self.ring.take() else { return false };
        let brought = ring.settle();
        self.rings.put(ring);
        let is_whole = brought.is_some_and(|brought| brought >= self.skip + self.len);
        if is_whole {
            self.rings.note_read();
        }
        is_whole
    }
}

impl PendingRead for Begun {
    fn finish(mut self: Box<Self>) -> Result<ReadBytes> {
        let is_whole = self.settle();
        let mut memory = std::mem::take(&mut self.memory);
        let from = self.start + self.skip;
        if !is_whole {
            // Alone it fails with the error that a read has.
            self.file.read_at(self.offset, &mut memory[from..from + self.len])?;
        }
        Ok(ReadBytes::new(memory, from, self.len))
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.settle();
    }
}
