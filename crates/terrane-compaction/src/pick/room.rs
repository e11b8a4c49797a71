//! Jobs on a device that is nearly full.
//!
//! The output of a merge takes room before its inputs give theirs back. So where little is free
//! ([`crate::TableShape::room_bytes`]):
//!
//! 1. extents are short, and a merge publishes its output between any two of its target: it needs the room of
//!    one of them, and goes on in that of those which it has replaced;
//! 2. of the overflow runs that one goes first whose merge has room: the same job picked again and again
//!    would never find it, though a merge of others, most of which is deleted, has room and makes more;
//! 3. small neighbours are not gathered, as that has no room and would make extents long.

use terrane_format::extent::ExtentMeta;
use terrane_storage::SLOT_BYTES;

use super::Picker;
use crate::job::{JobKind, JobSpec};

/// An extent takes at most one part in so many of the room that there is, ..
const ROOM_SHARE: u64 = 16;
/// .. but never less than this.
const EXTENT_BYTES_MIN: u64 = 64 << 10;
/// A merge on a device that is nearly full publishes its output as soon as it has one part in so many of an
/// extent, between two extents of its target.
const PART_SHARE: u64 = 8;

/// At how many bytes the extents end that a job writes.
pub(super) fn extent_bytes_max(room_bytes: u64) -> u64 {
    (room_bytes / ROOM_SHARE).clamp(EXTENT_BYTES_MIN, SLOT_BYTES as u64)
}

/// Returns true if a device with `room_bytes` free has no room for a merge of full extents.
#[must_use]
pub fn is_scarce(room_bytes: u64) -> bool {
    extent_bytes_max(room_bytes) < SLOT_BYTES as u64
}

/// Output bytes after which a job publishes a part. Flushes have steps of their own.
pub(super) fn part_bytes(kind: JobKind, room_bytes: u64) -> u64 {
    let has_parts = !matches!(kind, JobKind::Flush | JobKind::Collect);
    if has_parts && is_scarce(room_bytes) { extent_bytes_max(room_bytes) / PART_SHARE } else { u64::MAX }
}

impl Picker<'_> {
    /// The first of `jobs` whose output has room on the device, as far as sums tell; the one with the least
    /// output if none has. Where the first one has room no other is made.
    pub(super) fn first_with_room(&self, mut jobs: impl Iterator<Item = JobSpec>) -> Option<JobSpec> {
        let first = jobs.next()?;
        if self.shape.room_bytes == u64::MAX {
            return Some(first);
        }
        debug_assert!(first.table == self.shape.table, "a picker chooses for the table that it looks at");
        let mut least = (expected_bytes(&first), first);
        while least.0 > self.shape.room_bytes
            && let Some(job) = jobs.next()
        {
            let bytes = expected_bytes(&job);
            if bytes < least.0 {
                least = (bytes, job);
            }
        }
        Some(least.1)
    }
}

/// The bytes of the output if each delete of an input hides an entry of an older one. Deletes go, too, where
/// deeper levels have nothing of the range.
fn expected_bytes(job: &JobSpec) -> u64 {
    let (mut bytes, mut deletes_above) = (0u64, 0u64);
    for input in &job.inputs {
        // A manifest's numbers are not ours: their sums saturate.
        let sum = |of: fn(&ExtentMeta) -> u64| {
            input.extents.iter().fold(0_u64, |sum, meta| sum.saturating_add(of(meta)))
        };
        let (stored, entries, deletes) = (input.bytes(), sum(|meta| meta.entries), sum(|meta| meta.deletes));
        let gone = deletes_above.saturating_add(if job.below.is_empty() { deletes } else { 0 });
        let left = u128::from(entries.saturating_sub(gone));
        let part = u128::from(stored) * left / u128::from(entries.max(1));
        bytes = bytes.saturating_add(u64::try_from(part).unwrap_or(u64::MAX));
        deletes_above = deletes_above.saturating_add(deletes);
    }
    bytes
}
