//! The settings of a journal: sizes of segments and groups, and how many files are kept.

use terrane_base::{Error, Result};

/// Settings of a journal.
#[derive(Clone, Debug)]
pub struct JournalSettings {
    /// Most bytes of a segment, 4 KiB to 1 GiB; a larger batch gets a segment of its own size.
    pub segment_bytes: u64,
    /// Batches that fit no segment of `segment_bytes` and follow each other make all segments as long as they
    /// are, up to this many bytes; none do if it is less than `segment_bytes`. The active segment, the one
    /// before it and the prepared one take memory.
    pub long_segment_bytes: u64,
    /// Bytes of the first segment, at least 4 KiB. Each further one has twice the bytes of the one before, up
    /// to `segment_bytes`, until the journal is idle: a small database takes little space, and a load soon
    /// has long segments.
    pub first_segment_bytes: u64,
    /// Slots of the commit ring, a power of two, at least 2; more threads than that wait for a slot.
    pub ring_slots: usize,
    /// A group with this many bytes of records takes no further batch.
    pub group_bytes_max: usize,
    /// Batches of at least this size are copied by their own threads, if the group has several batches.
    pub parallel_copy_bytes: usize,
    /// Most files of trimmed segments that are kept for reuse.
    pub spare_files_max: usize,
    /// A segment is only made if the device then has as many bytes free as the live segments may hold: for a
    /// journal whose records are flushed into files of the same device.
    pub leaves_room: bool,
}

impl Default for JournalSettings {
    fn default() -> Self {
        JournalSettings {
            segment_bytes: 64 << 20,
            long_segment_bytes: 0,
            first_segment_bytes: 64 << 10,
            ring_slots: 256,
            group_bytes_max: 1 << 20,
            parallel_copy_bytes: 64 << 10,
            // A flush releases about four segments at once, and as many may wait for readers. If a file more
            // is released it is removed, perhaps on a writer's thread, and a new one is created meanwhile.
            spare_files_max: 8,
            leaves_room: false,
        }
    }
}

impl JournalSettings {
    pub(crate) fn check(&self) -> Result<()> {
        let refuse =
            |is_wrong: bool, message: &str| if is_wrong { Err(Error::invalid(message)) } else { Ok(()) };
        refuse(
            !(4096..=1 << 30).contains(&self.segment_bytes),
            "journal setting segment_bytes: accepted is 4 KiB to 1 GiB",
        )?;
        refuse(
            self.first_segment_bytes < 4096,
            "journal setting first_segment_bytes: accepted is 4 KiB or more",
        )?;
        refuse(
            !self.ring_slots.is_power_of_two() || !(2..=1 << 16).contains(&self.ring_slots),
            "journal setting ring_slots: accepted is a power of two from 2 to 65536",
        )
    }
}
