//! Copies the batches of a group, with their headers, to their reserved place in a segment.
#![expect(unsafe_code, reason = "writes segment memory that only the leader and the owners may touch")]

use std::ops::Range;

use terrane_format::segment::{self, BATCH_HEADER_BYTES};

use super::Log;
use crate::ring::{Entry, Ring, phase};

impl Log {
    /// Copies the only batch of a group together with what lies around it, so that a long one takes one
    /// write, and adds its checksum to the chain.
    pub(super) fn copy_only(&mut self, ring: &Ring, tickets: &Range<u64>, header: &[u8], padding: &[u8]) {
        // SAFETY: rule 2 of the ring.
        let mut entries = tickets.clone().map(|ticket| unsafe { &*ring.entry(ticket) });
        let entry = entries.find(|entry| entry.len() > 0).expect("a group with one batch is being placed");
        debug_assert!(entries.all(|entry| entry.len() == 0), "a second batch of the group would be lost");
        let active = self.active.as_mut().expect("a group is being placed");
        // SAFETY: the owner waits in FILLED; the whole group was reserved for this batch in `place`.
        let checksum = unsafe { copy_between(entry, header, padding) };
        active.checksum = segment::chain(active.checksum, checksum);
    }

    /// Copies all batches and adds their checksums to the chain. Owners of large batches copy their own.
    pub(super) fn copy(&mut self, ring: &Ring, tickets: &Range<u64>, own: Option<u64>) {
        // SAFETY: rule 2 of the ring; from `advance` on, entry and owner only read it.
        let entry = |ticket| unsafe { &*ring.entry(ticket) };
        let by_owner = |ticket| Some(ticket) != own && entry(ticket).len() >= self.parallel_copy_bytes;
        let copies = tickets.clone().filter(|&ticket| by_owner(ticket)).count();
        if copies > 0 {
            ring.expect_copies(copies as u32);
            for ticket in tickets.clone().filter(|&ticket| by_owner(ticket)) {
                ring.advance(ticket, phase::COPY);
            }
        }
        let active = self.active.as_mut().expect("a group is being placed");
        debug_assert!(active.used < active.memory().region.len(), "there is room behind the used bytes");
        for ticket in tickets.clone().filter(|&ticket| entry(ticket).len() > 0 && !by_owner(ticket)) {
            // SAFETY: the owner waits in FILLED; the range was reserved for this batch in `place`.
            let checksum = unsafe { copy_batch(entry(ticket)) };
            if copies == 0 {
                active.checksum = segment::chain(active.checksum, checksum);
            }
        }
        if copies > 0 {
            ring.wait_for_copies();
            for entry in tickets.clone().map(entry).filter(|entry| entry.len() > 0) {
                // SAFETY: the batch header was written above or by an owner that has called `copy_done`.
                let checksum = unsafe { active.memory().region.slice(entry.offset as usize - 4, 4) };
                active.checksum = terrane_format::checksum::crc32c(active.checksum, checksum);
            }
        }
    }
}

/// Copies the records of `entry` with their batch header to their location; returns the batch's checksum.
///
/// # Safety
/// The entry is placed (its fields contain the location), its owner keeps the records alive, and no other
/// thread writes there.
pub(crate) unsafe fn copy_batch(entry: &Entry) -> u32 {
    // SAFETY: the caller's promise is the same, and there is nothing around the batch.
    unsafe { copy_between(entry, &[], &[]) }
}

/// As [`copy_batch`], with `before` in front of the batch header and `after` after the records.
///
/// # Safety
/// As of [`copy_batch`], for all bytes.
#[inline(always)]
unsafe fn copy_between(entry: &Entry, before: &[u8], after: &[u8]) -> u32 {
    let header_offset = entry.offset as usize - BATCH_HEADER_BYTES;
    debug_assert!(!entry.segment.is_null(), "the entry is placed");
    debug_assert!(before.len() <= header_offset, "what lies before the batch is in the segment");
    // SAFETY: by the caller's promise; the log keeps the segment's `Arc` in place until the ticket is
    // published.
    let (records, segment) = unsafe { (entry.records(), &*entry.segment) };
    let checksum =
        segment::batch_checksum(entry.group_checksum, header_offset as u64, entry.record_count(), records);
    let header = segment::encode_batch_header(records.len() as u32, entry.record_count(), checksum);
    // SAFETY: the range lies in the group, for which the log made room.
    unsafe { segment.region.write_parts(header_offset - before.len(), [before, &header, records, after]) };
    checksum
}
