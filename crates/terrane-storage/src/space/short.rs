//! Extents that end long before their slots do: a slot that has space in part, and files that grow without
//! space.

use super::Space;
use terrane_base::{ExtentId, verify};

impl Space {
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
