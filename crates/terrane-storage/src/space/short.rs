//! Extents that end long before their slots do: a slot that has space in part, files that grow without
//! space, and the space behind the end of an extent in a slot that an earlier, longer one had.

use super::{Run, Space};
use crate::data_file::slot_offset;
use crate::store::SLOT_BYTES;
use terrane_base::{ExtentId, verify};

/// Bytes of a block of the device, for which space is reserved as a whole.
pub(crate) const BLOCK_BYTES: u64 = 4 << 10;
/// Most bytes behind the end of an extent that keep their space.
const UNUSED_BYTES_MAX: u64 = 256 << 10;

/// Returns true if the end of `slots` behind an extent of `bytes` is long enough to be freed on the device.
pub(crate) fn is_short(slots: u32, bytes: u64) -> bool {
    used_blocks(bytes) + UNUSED_BYTES_MAX < slot_offset(slots)
}

/// The bytes of the blocks that `bytes` take.
pub(crate) fn used_blocks(bytes: u64) -> u64 {
    bytes.next_multiple_of(BLOCK_BYTES)
}

/// The part of a taken slot that its extent does not need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LooseEnd {
    /// Number of the data file.
    pub file: u32,
    /// Slot in it.
    pub slot: u32,
    /// Bytes of the slot that the extent takes.
    pub used: u64,
}

impl Space {
    /// Records that an extent ends after `bytes`, so that the rest of its last slot can be given back.
    /// Requires: the extent has the slots that `bytes` take.
    pub fn note_end(&mut self, id: ExtentId, bytes: u64) {
        let slots = bytes.div_ceil(SLOT_BYTES as u64).max(1) as u32;
        let (last, used) = (id.slot + slots - 1, bytes - slot_offset(slots - 1));
        let Some(file) = self.files.get(&id.file) else { return };
        debug_assert!(file.taken.contains_all(id.slot..last + 1), "{id} is written, and it is not taken");
        // A slot that was a hole was reserved for a short extent, which takes the space of its bytes.
        let may_be_longer = file.held.union(&file.unsure).contains_all(last..last + 1);
        if !file.is_sealed && may_be_longer && is_short(1, used) {
            self.loose_ends.insert((id.file, last), used);
        } else {
            self.loose_ends.remove(&(id.file, last));
        }
    }

    /// The loose ends of files that may be written.
    #[must_use]
    pub fn loose_ends(&self) -> Vec<LooseEnd> {
        let ends = self.loose_ends.iter().map(|(&(file, slot), &used)| LooseEnd { file, slot, used });
        ends.filter(|end| self.is_loose(*end)).collect()
    }

    /// Returns true if the extent is still there, ends there, and its file may be written.
    #[must_use]
    pub fn is_loose(&self, end: LooseEnd) -> bool {
        let is_known = self.loose_ends.get(&(end.file, end.slot)) == Some(&end.used);
        is_known && self.files.get(&end.file).is_some_and(|slots| !slots.is_sealed)
    }

    /// Records that a loose end was given back to the device. Requires: its extent was not freed meanwhile.
    pub fn cut(&mut self, end: LooseEnd) {
        let known = self.loose_ends.remove(&(end.file, end.slot));
        assert!(known == Some(end.used), "bytes behind {end:?} were lost: the extent ends at {known:?}");
        if let Some(file) = self.files.get_mut(&end.file) {
            debug_assert!(file.taken.contains_all(end.slot..end.slot + 1), "{end:?} is of no extent");
            file.held.remove(end.slot..end.slot + 1);
            file.unsure.remove(end.slot..end.slot + 1);
        }
        verify!(self.check());
    }

    /// The space behind the ends of extents is free with their slots.
    pub(super) fn forget_loose_ends(&mut self, run: &Run) {
        debug_assert!(!run.slots.is_empty(), "an extent has a slot, which may have a loose end");
        let mut within = self.loose_ends.range((run.file, run.slots.start)..(run.file, run.slots.end));
        while let Some((&end, _)) = within.next() {
            self.loose_ends.remove(&end);
            within = self.loose_ends.range(end..(run.file, run.slots.end));
        }
    }

    /// The last slot of an extent has space for a part of it only: its state is unknown once it is free.
    pub fn shorten(&mut self, id: ExtentId, slots: u32) {
        if let Some(file) = self.files.get_mut(&id.file) {
            let end = id.slot + slots;
            debug_assert!(file.taken.contains_all(id.slot..end), "{id} is shortened, and it is not taken");
            file.held.remove(end - 1..end);
        }
    }

    /// Records that a data file has grown to `len` slots, the new ones without space.
    pub fn extended(&mut self, file: u32, len: u32) {
        let before = self.files.get(&file).map_or(0, |slots| slots.len);
        self.grown(file, len);
        if let Some(slots) = self.files.get_mut(&file) {
            debug_assert!(slots.taken.contains_none(before..len), "no extent lies in the new slots");
            slots.held.remove(before..len);
            slots.holes.insert(before..len);
            self.counts.holes += u64::from(len - before);
        }
        verify!(self.check());
    }
}
