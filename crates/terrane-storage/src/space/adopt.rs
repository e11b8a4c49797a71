//! Files from outside.

use terrane_base::{Error, ExtentId, Result};

use super::Space;

impl Space {
    /// Adds a file from outside, whose slots are all held; it is sealed. Its extents are (first slot, slots).
    ///
    /// # Errors
    /// `Corrupt` if they overlap or lie outside the file; nothing changes then. `Invalid` if the number is
    /// not free.
    pub fn adopt(&mut self, file: u32, len: u32, extents: &[(u32, u32)]) -> Result<()> {
        if self.files.contains_key(&file) {
            return Err(Error::invalid(format!("data file {file} exists already")));
        }
        let mut alone = Space::new();
        alone.add_file(file, len);
        extents.iter().try_for_each(|&(slot, slots)| alone.restore(ExtentId { file, slot }, slots))?;
        let mut slots = alone.files.remove(&file).expect("added just now");
        slots.held.insert(0..slots.len);
        debug_assert!(alone.counts.taken <= alone.counts.total, "extents lie in the file");
        self.counts.total += alone.counts.total;
        self.counts.taken += alone.counts.taken;
        self.counts.files += 1;
        self.files.insert(file, slots);
        self.seal(file);
        Ok(())
    }
}
