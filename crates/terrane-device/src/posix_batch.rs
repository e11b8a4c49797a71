//! A batch of reads of the operating system's files, through one ring.
//!
//! 1. For a direct read whose buffer or range is not aligned to sectors, whole sectors are read into a
//!    buffer of the process.
//! 2. The ring makes the reads, as many at once as need [`SECTOR_BYTES_MAX`] of such memory.
//! 3. A read that it did not complete is made again alone, which also reports
//!    the error.

use std::any::Any;
use std::ops::Range;

use crate::mapping::PAGE_BYTES;
use crate::posix_direct::is_aligned;
use crate::posix_file::PosixFile;
use crate::ring::{Ring, RingRead, Rings};
use crate::{Buffer, FileRead, take_buffer};

/// Fewest reads for which a ring is used: a single read costs as many system calls without it.
const READS_MIN: usize = 2;

/// Bytes of whole sectors that are read at once; a longer read has its own. So many in flight keep a device
/// busy, and a buffer of the process as long keeps its pages for the next batch.
const SECTOR_BYTES_MAX: usize = 256 << 10;

/// Makes the reads; see the [module](self).
pub(crate) fn read(rings: &Rings, reads: &mut [FileRead<'_>]) {
    let is_ours = |read: &FileRead<'_>| posix(read).is_some();
    let is_for_ring = reads.len() >= READS_MIN && reads.iter().all(is_ours);
    let Some(mut ring) = is_for_ring.then(|| rings.take()).flatten() else {
        return reads.iter_mut().for_each(FileRead::read_alone);
    };
    let sectors: Vec<Range<u64>> = reads.iter().map(bounced).collect();
    let (mut rest, mut sectors) = (reads, &sectors[..]);
    while !rest.is_empty() && !ring.is_broken() {
        let (now, later) = rest.split_at_mut(fitting(sectors));
        let (own, others) = sectors.split_at(now.len());
        read_part(rings, &mut ring, now, own);
        (rest, sectors) = (later, others);
    }
    rest.iter_mut().for_each(FileRead::read_alone);
    rings.put(ring);
}

/// How many of the first reads are made at once: one at least.
fn fitting(sectors: &[Range<u64>]) -> usize {
    let mut bytes = 0;
    let fits = sectors.iter().take_while(|sectors| {
        bytes += bytes_of(sectors);
        bytes <= SECTOR_BYTES_MAX
    });
    fits.count().max(1)
}

/// Makes reads that are in flight together.
fn read_part(rings: &Rings, ring: &mut Ring, reads: &mut [FileRead<'_>], sectors: &[Range<u64>]) {
    let len: usize = sectors.iter().map(bytes_of).sum();
    // Of the buffers of the process: rings that kept memory of their own had some megabytes of it idle.
    let mut scratch = Buffer::from(if len > 0 { take_buffer(len + PAGE_BYTES) } else { Vec::new() });
    let start = if len > 0 { scratch.as_ptr().align_offset(PAGE_BYTES) } else { 0 };
    let is_done = read_by_ring(rings, ring, reads, sectors, &mut scratch[start..]);
    take_over(reads, sectors, &scratch[start..], &is_done);
}

/// Makes the reads into their buffers or, for reads with `sectors`, into `bounce`; returns which reads
/// completed. Fewer results than reads mean that the ring broke.
fn read_by_ring(
    rings: &Rings,
    ring: &mut Ring,
    reads: &mut [FileRead<'_>],
    sectors: &[Range<u64>],
    mut bounce: &mut [u8],
) -> Vec<bool> {
    let mut begun = Vec::with_capacity(reads.len());
    for (read, sectors) in reads.iter_mut().zip(sectors) {
        let Some(file) = posix(read) else { continue };
        let (fd, _) = file.reader();
        let (offset, buf) = if sectors.is_empty() {
            (read.offset, &mut *read.buf)
        } else {
            let (buf, behind) = bounce.split_at_mut(bytes_of(sectors));
            bounce = behind;
            (sectors.start, buf)
        };
        begun.push(RingRead { fd, offset, buf, is_done: false });
    }
    match rings.read_all(ring, &mut begun) {
        Ok(()) => begun.iter().map(|read| read.is_done).collect(),
        Err(_) => Vec::new(),
    }
}

/// Copies the requested bytes out of the sectors, and makes alone the reads that did not complete.
fn take_over(reads: &mut [FileRead<'_>], sectors: &[Range<u64>], mut bounce: &[u8], is_done: &[bool]) {
    for (index, (read, sectors)) in reads.iter_mut().zip(sectors).enumerate() {
        let (bytes, behind) = bounce.split_at(bytes_of(sectors));
        bounce = behind;
        if !is_done.get(index).is_some_and(|&is_done| is_done) {
            read.read_alone();
            continue;
        }
        if !sectors.is_empty() {
            let skip = (read.offset - sectors.start) as usize;
            read.buf.copy_from_slice(&bytes[skip..skip + read.buf.len()]);
        }
        read.result = Ok(());
    }
}

fn posix<'b>(read: &FileRead<'b>) -> Option<&'b PosixFile> {
    (read.file as &dyn Any).downcast_ref()
}

/// The whole sectors to read if the kernel cannot read directly into the buffer; empty if it can.
fn bounced(read: &FileRead<'_>) -> Range<u64> {
    let Some(sector) = posix(read).and_then(|file| file.reader().1) else { return 0..0 };
    let unit = sector as u64;
    let end =
        read.offset.checked_add(read.buf.len() as u64).and_then(|end| end.checked_next_multiple_of(unit));
    match end {
        Some(end) if !is_aligned(read.offset, read.buf, sector) => read.offset / unit * unit..end,
        _ => 0..0,
    }
}

fn bytes_of(sectors: &Range<u64>) -> usize {
    (sectors.end - sectors.start) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_in_flight_need_a_bounded_buffer_and_each_read_is_made() {
        let unit = 16 << 10;
        let at = |first: u64, units: u64| first * unit..(first + units) * unit;
        let most = SECTOR_BYTES_MAX as u64 / unit;
        let one: Vec<_> = (0..100).map(|number| at(number, 1)).collect();
        assert_eq!(fitting(&one), most as usize);
        assert_eq!(fitting(&one[95..]), 5, "those that are left");
        assert_eq!(fitting(&[at(0, most + 1), at(100, 1)]), 1, "a longer one has a buffer of its own");
        assert_eq!(fitting(&vec![0..0; 100]), 100, "reads into aligned buffers need none");
    }
}
