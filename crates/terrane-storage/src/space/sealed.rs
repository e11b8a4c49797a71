//! Files that are sealed: they have another name, in another database.

use super::Space;
use crate::slots::FILE_SLOTS;

impl Space {
    /// From now on no slot of the file is taken.
    pub fn seal(&mut self, file: u32) {
        if let Some(slots) = self.files.get_mut(&file) {
            debug_assert!(slots.run_max <= slots.len, "no run that is free is longer than its file");
            slots.is_sealed = !terrane_base::planted!(WriteLinkedFile);
        }
    }

    /// The file may be written again.
    pub fn unseal(&mut self, file: u32) {
        if let Some(slots) = self.files.get_mut(&file) {
            debug_assert!(slots.len <= FILE_SLOTS, "file {file} has {} slots", slots.len);
            slots.is_sealed = false;
            slots.run_max = slots.len;
            self.first_free = self.first_free.min(file);
        }
    }

    /// The sealed files, lowest first, from a number on.
    pub fn sealed_from(&self, file: u32) -> impl Iterator<Item = u32> + '_ {
        self.files.range(file..).filter(|(_, slots)| slots.is_sealed).map(|(&number, _)| number)
    }
}
