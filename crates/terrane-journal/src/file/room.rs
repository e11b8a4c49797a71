//! How long the next segment may be on a device with little space.
//!
//! The space of a segment comes back once its records are in extents, and these take as much first. So a new
//! segment leaves as much free as all live segments and it may hold: the flush that gives them back then
//! has room, but for many small tables, merges that run meanwhile, and extents that readers keep. Where the
//! wanted length does not fit, a shorter one is made.
//!
//! A caller that only removes rows may take of the space left free ([`crate::Journal::use_kept_room`]): the
//! flush of it is short, and merges behind it give space back.

use terrane_base::sync::atomic::Ordering;
use terrane_base::{Error, Kind, Result};

use super::{Live, Shared};
use crate::SegmentState;

impl Shared {
    /// Prepares a segment of `wanted` bytes, or the longest half, quarter and so on of it that the device has
    /// room for, of `needed` bytes at least.
    pub(super) fn prepare_fitting(&self, needed: u64, wanted: u64) -> Result<Live> {
        let least = needed.max(self.settings.first_segment_bytes.min(self.settings.segment_bytes));
        let mut bytes = wanted.max(needed);
        loop {
            match self.prepare(bytes) {
                Err(error) if error.kind() == Kind::Full && bytes > least => bytes = (bytes / 2).max(least),
                Ok(live) => {
                    assert!(live.info.bytes >= needed, "{:?} lacks room for {needed} bytes", live.info);
                    if bytes < wanted {
                        // The ones behind it grow from there.
                        self.state.lock().next_bytes = bytes;
                    }
                    return Ok(live);
                }
                refused => return refused,
            }
        }
    }

    /// Refuses a segment of `bytes`, of which `new` are taken from the device, if a flush would lack space.
    ///
    /// # Errors
    /// `Full`, with the remedy.
    pub(super) fn leave_room(&self, bytes: u64, new: u64) -> Result<()> {
        debug_assert!(new <= bytes, "a file that is there takes nothing, a new one all of it");
        if !self.settings.leaves_room || terrane_base::planted!(LeaveNoRoom) {
            return Ok(());
        }
        let shortest = self.settings.first_segment_bytes.min(self.settings.segment_bytes);
        // Relaxed: the flag publishes nothing, and the lock of the state orders it before the segment that
        // its caller asks for.
        if bytes <= shortest && self.may_use_kept_room.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let has_records = |live: &&Live| live.info.state != SegmentState::Unused;
        let live: u64 = self.state.lock().live.iter().filter(has_records).map(Live::memory_bytes).sum();
        // A device without such an answer says so when it is full.
        let Ok(free) = self.disk.free_bytes(&self.dir) else { return Ok(()) };
        let kept = live + bytes;
        assert!(kept >= new, "a new segment is flushed as well, {new} bytes of {kept}");
        if free >= new.saturating_add(kept) {
            return Ok(());
        }
        let dir = self.dir.display();
        Err(Error::new(
            Kind::Full,
            format!(
                "no space for a journal segment of {bytes} bytes in {dir}: of {free} bytes that are free {kept} are kept to \
                 flush what the journal holds; free some on the device, or delete rows, then commits succeed again"
            ),
        ))
    }
}
