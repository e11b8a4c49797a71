//! A read of a direct file that runs while its caller continues. For cached files the page cache does this
//! after a hint; without a ring a direct read is made when the caller waits for it.
#![expect(unsafe_code, reason = "the kernel writes to memory that no Rust code borrows")]

use std::any::Any;
use std::sync::Arc;

use terrane_base::Result;

use crate::batch::{Announced, buffer_at_least};
use crate::mapping::PAGE_BYTES;
use crate::posix_file::PosixFile;
use crate::ring::{Ring, Rings};
use crate::{File, PendingRead, ReadBytes, keep_buffer};

/// Starts to read `len` bytes from `offset`; see [`crate::Disk::begin_read`].
pub(crate) fn begin(
    rings: &Arc<Rings>,
    file: &Arc<dyn File>,
    offset: u64,
    len: usize,
    memory: Vec<u8>,
) -> Box<dyn PendingRead> {
    let any: &dyn Any = &**file;
    let sector = any.downcast_ref::<PosixFile>().and_then(|file| file.reader().1);
    if let Some(sector) = sector
        && len > 0
        && let Some(ring) = rings.take()
    {
        return Box::new(Begun::new(rings, ring, file, offset, (len, sector), memory));
    }
    Box::new(Announced::new(file.clone(), offset, len, memory))
}

/// See the [module](self). The ring is in use, and the kernel owns the memory, until `reap`.
#[derive(Debug)]
struct Begun {
    rings: Arc<Rings>,
    /// `None` once the read was reaped.
    ring: Option<Ring>,
    file: Arc<dyn File>,
    offset: u64,
    len: usize,
    memory: Vec<u8>,
    /// Offset in `memory` of the first sector, and the distance from there to the first requested byte.
    start: usize,
    skip: usize,
}

impl Begun {
    fn new(
        rings: &Arc<Rings>,
        mut ring: Ring,
        file: &Arc<dyn File>,
        offset: u64,
        (len, sector): (usize, usize),
        memory: Vec<u8>,
    ) -> Begun {
        let skip = (offset % sector as u64) as usize;
        let whole = (skip + len).next_multiple_of(sector);
        let mut memory = buffer_at_least(memory, whole + PAGE_BYTES);
        let start = memory.as_ptr().align_offset(PAGE_BYTES);
        debug_assert!(skip < sector && whole >= skip + len, "whole sectors around what was asked for");
        let any: &dyn Any = &**file;
        if let Some(posix) = any.downcast_ref::<PosixFile>() {
            let target = memory[start..start + whole].as_mut_ptr();
            // SAFETY: `file` and `memory` go into the value that is returned, which touches neither before it
            // has been reaped, also when it is dropped; moving the `Vec` does not move its bytes.
            unsafe { ring.begin(posix.reader().0, offset - skip as u64, target, whole) };
        }
        let (rings, file) = (rings.clone(), file.clone());
        Begun { rings, ring: Some(ring), file, offset, len, memory, start, skip }
    }

    /// Waits until the kernel no longer uses the memory; returns true if all bytes were read.
    fn reap(&mut self) -> bool {
        let Some(mut ring) = self.ring.take() else { return false };
        let read = ring.reap_pending();
        self.rings.put(ring);
        let is_whole = read.is_some_and(|read| read >= self.skip + self.len);
        if is_whole {
            self.rings.note_read();
        }
        is_whole
    }
}

impl PendingRead for Begun {
    fn finish(mut self: Box<Self>) -> Result<ReadBytes> {
        let is_whole = self.reap();
        let mut memory = std::mem::take(&mut self.memory);
        let from = self.start + self.skip;
        if !is_whole {
            // A read that was incomplete is made again alone, which also reports its error.
            self.file.read_at(self.offset, &mut memory[from..from + self.len])?;
        }
        Ok(ReadBytes::new(memory, from, self.len))
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.reap();
        keep_buffer(std::mem::take(&mut self.memory));
    }
}
