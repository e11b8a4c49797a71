//! Files that come from outside: they are linked under the next free number, and sealed while they have two names, as files
//! are that a checkpoint shares (`copy.rs`).
//!
//! A crash on the way leaves a data file in which nothing lives: its name goes with the next reclaiming, or its slots are
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
        // Nobody gives the number away, or looks at what is not in the books yet.
        let _layout = self.layout.lock();
        let number = self.books()?.space.unused_file();
        let name = self.dir.join(data_file::name(number));
        if self.disk.exists(&name)? {
            // No book knows it: what a growth that failed could not remove.
            self.disk.remove(&name)?;
        }
        if !self.disk.link(path, &name)? {
            return Ok(None);
        }
        self.dir_dirty.store(true, Ordering::Release);
        let adopted = self.enter(number, end, extents);
        if adopted.is_err() {
            self.files.write().remove(&number);
            // Left behind, it is a data file in which nothing lives.
            let _ = self.disk.remove(&name);
        }
        adopted.map(|()| Some(number))
    }

    fn enter(&self, number: u32, slots: u32, extents: &[(u32, u32)]) -> Result<()> {
        let path = self.dir.join(data_file::name(number));
        let file = self.disk.open(&path, OpenMode::Write, self.settings.direct_io)?;
        if file.len()? < slot_offset(slots) {
            let error = Error::corrupt(format!("a file of {} bytes cannot hold {slots} slots", file.len()?));
            return Err(error.at(path.display().to_string(), 0));
        }
        let file = Arc::new(DataFile::new(file));
        // Whoever copied the file may have left holes in it; it is dirty now, so that the next sync makes it durable.
        file.hold(0, slots).map_err(|error| self.no_room(slots, error))?;
        self.files.write().insert(number, file);
        self.space.lock().space.adopt(number, slots, extents)
    }
}
