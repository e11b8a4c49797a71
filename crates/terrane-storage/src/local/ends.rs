//! The ends of extents: how many slots a write takes, and what slots have behind the ends of their extents.

use terrane_base::{Error, ExtentId, Result};

use super::LocalStore;
use crate::data_file::slot_offset;
use crate::space::{BLOCK_BYTES, LooseEnd, used_blocks};
use crate::store::{SLOT_BYTES, Store};

impl LocalStore {
    /// Makes sure that `bytes` fit an extent, and records where it ends.
    pub(super) fn begin_write(&self, id: ExtentId, bytes: u64) -> Result<()> {
        let slots = u32::try_from(bytes.div_ceil(SLOT_BYTES as u64).max(1)).unwrap_or(u32::MAX);
        let space = &mut self.accounting()?.space;
        if !space.is_taken(id, slots) {
            let message = format!("{bytes} bytes do not fit extent {id}: it has fewer slots");
            return Err(Error::invalid(message));
        }
        debug_assert!(bytes <= slot_offset(slots), "{bytes} bytes in {slots} slots");
        space.note_end(id, bytes);
        Ok(())
    }

    /// Gives back what slots have behind the ends of their extents; returns the number of bytes.
    pub(super) fn cut_loose_ends(&self) -> Result<u64> {
        self.check_writable("give space back")?;
        let ends = self.accounting()?.space.loose_ends();
        let mut bytes = 0;
        for end in ends {
            // A thread that links or grows a file goes first.
            let Some(_layout) = self.layout.try_lock() else { break };
            // An extent that is freed meanwhile keeps its slots: in those of another one its bytes would be
            // lost.
            self.hold();
            let cut = self.cut_held_end(end);
            self.release();
            bytes += cut?;
        }
        Ok(bytes)
    }

    /// Requires: `layout` is locked, and extents that are freed keep their slots.
    fn cut_held_end(&self, end: LooseEnd) -> Result<u64> {
        if !self.space.lock().space.is_loose(end) {
            return Ok(0);
        }
        let mut used = used_blocks(end.used);
        if terrane_base::planted!(CutUsedEnd) {
            used -= BLOCK_BYTES;
        }
        let (from, to) = (slot_offset(end.slot) + used, slot_offset(end.slot + 1));
        self.file(end.file)?.punch_bytes(from, to)?;
        self.space.lock().space.cut(end);
        debug_assert!(from < to, "{end:?} has nothing behind it");
        Ok(to - from)
    }
}
