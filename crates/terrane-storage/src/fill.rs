//! Data files with extents from elsewhere, for a restore.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_base::{Error, ExtentId, Result};
use terrane_device::{Disk, File, OpenMode};

use crate::data_file::{self, slot_offset};
use crate::slots::FILE_SLOTS;
use crate::store::SLOT_BYTES;

/// The data files of a new store in an empty directory. Slots without an extent are holes.
#[derive(Debug)]
pub struct ExtentFiles {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    /// By number: the file, and the end of its last extent in slots.
    files: BTreeMap<u32, (Arc<dyn File>, u32)>,
}

impl ExtentFiles {
    /// Creates files in `dir`, an existing directory without data files.
    #[must_use]
    pub fn new(disk: Arc<dyn Disk>, dir: &Path) -> Self {
        ExtentFiles { disk, dir: dir.to_owned(), files: BTreeMap::new() }
    }

    /// Writes the extent with this id and number of slots.
    ///
    /// # Errors
    /// `Corrupt` if it lies outside a data file or does not fit its slots; `Full`, `Io`.
    pub fn put(&mut self, id: ExtentId, slots: u32, bytes: &[u8]) -> Result<()> {
        let end = id.slot.checked_add(slots).filter(|end| *end <= FILE_SLOTS && id.file > 0 && slots > 0);
        let end = end.filter(|_| bytes.len() <= slots as usize * SLOT_BYTES);
        let end = end.ok_or_else(|| {
            Error::corrupt(format!("extent {id} of {slots} slots and {} bytes is out of range", bytes.len()))
        })?;
        if !self.files.contains_key(&id.file) {
            let path = self.dir.join(data_file::name(id.file));
            self.files.insert(id.file, (self.disk.open(&path, OpenMode::Create, false)?, 0));
        }
        let (file, last) = self.files.get_mut(&id.file).expect("made above");
        file.write_at(slot_offset(id.slot), bytes)?;
        *last = end.max(*last);
        debug_assert!(*last <= FILE_SLOTS, "the file would end behind its last slot");
        Ok(())
    }

    /// Makes everything durable, except the entry of the directory itself.
    ///
    /// # Errors
    /// `Full`, `Io`.
    pub fn finish(self) -> Result<()> {
        debug_assert!(self.files.keys().all(|number| *number > 0), "a data file has a number above 0");
        for (file, end) in self.files.values() {
            file.set_len(slot_offset(*end))?;
            file.sync()?;
        }
        self.disk.sync_dir(&self.dir)
    }
}
