//! Files from outside: they are linked under the next free number, and sealed while they have two names, like
//! files that a checkpoint shares (`copy.rs`).
//!
//! A crash meanwhile leaves a data file without extents: a later reclaim removes its name, or its slots are
//! used once the other name is gone.

use std::path::Path;
use std::sync::Arc;
use terrane_base::sync::atomic::Ordering;

use terrane_base::{Error, Result};
use terrane_device::OpenMode;

use super::LocalStore;
use crate::data_file::{self, DataFile, slot_offset};
use crate::slots::FILE_SLOTS;

impl LocalStore {
    /// See [`Store::adopt`](crate::Store::adopt).
    pub(super) fn adopt_file(&self, path: &Path, extents: &[(u32, u32)]) -> Result<Option<u32>> {
        self.check_writable("take a file in")?;
        let end = extents.iter().map(|(slot, slots)| slot.saturating_add(*slots)).max().unwrap_or(0);
        if end == 0 || end > FILE_SLOTS {
            return Err(Error::invalid(format!("a file of {end} slots: 1 to {FILE_SLOTS} are possible")));
        }
        // While it is held, no other thread takes the number or sees files that are not in the accounting
        // yet.
        let _layout = self.layout.lock();
        let number = self.accounting()?.space.unused_file();
        let name = self.dir.join(data_file::name(number));
        if self.disk.exists(&name)? {
            // The accounting does not know it: a growth that failed could not remove it.
            self.disk.remove(&name)?;
        }
        if !self.disk.link(path, &name)? {
            return Ok(None);
        }
        self.dir_dirty.store(true, Ordering::Release);
        let adopted = self.enter(number, end, extents);
        if adopted.is_err() {
            self.files.write().remove(&number);
            // If it stays, it is a data file without extents.
            let _ = self.disk.remove(&name);
        }
        adopted.map(|()| Some(number))
    }

    fn enter(&self, number: u32, slots: u32, extents: &[(u32, u32)]) -> Result<()> {
        debug_assert!((1..=FILE_SLOTS).contains(&slots), "a file of {slots} slots is adopted");
        let path = self.dir.join(data_file::name(number));
        let file = self.disk.open(&path, OpenMode::Write, self.settings.direct_io)?;
        if file.len()? < slot_offset(slots) {
            let error = Error::corrupt(format!("a file of {} bytes cannot hold {slots} slots", file.len()?));
            return Err(error.at(path.display().to_string(), 0));
        }
        let file = Arc::new(DataFile::new(file));
        // The file may contain holes if it was copied; it is marked dirty, so that the next sync makes it
        // durable.
        file.hold(0, slots).map_err(|error| self.no_room(slot_offset(slots), error))?;
        self.files.write().insert(number, file);
        self.space.lock().space.adopt(number, slots, extents)
    }
}
