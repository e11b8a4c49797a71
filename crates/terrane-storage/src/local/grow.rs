//! Makes room for extents that do not fit into free space.

use std::sync::Arc;
use terrane_base::sync::atomic::Ordering;

use terrane_base::{Error, Kind, Result};
use terrane_device::OpenMode;

use super::LocalStore;
use crate::data_file::{self, DataFile, slot_offset};
use crate::space::{Growth, is_short, used_blocks};

/// The bytes that are reserved for an extent of `bytes` in `slots`: all of them, unless much would stay
/// unused. A slot that has space only in part is reserved again when it is used again.
pub(super) fn reserved_bytes(slots: u32, bytes: u64) -> u64 {
    if is_short(slots, bytes) { used_blocks(bytes) } else { slot_offset(slots) }
}

impl LocalStore {
    /// Makes room for a run: grows a data file or creates one. Requires: `layout` is held.
    pub(super) fn grow(&self, slots: u32) -> Result<()> {
        if self.unseal_some() {
            return Ok(());
        }
        let plan = self.space.lock().space.plan_growth(slots);
        let known = self.files.read().get(&plan.file).cloned();
        let file = known.map_or_else(|| self.make_file(plan.file), Ok)?;
        let len = match file.hold(plan.from, plan.to) {
            Ok(()) => plan.to,
            // The larger step is optional; the required length may still fit.
            Err(error) if error.kind() == Kind::Full && plan.at_least < plan.to => {
                file.hold(plan.from, plan.at_least)
                    .map_err(|error| self.undo_growth(plan, slots, &file, error))?;
                plan.at_least
            }
            Err(error) => return Err(self.undo_growth(plan, slots, &file, error)),
        };
        debug_assert!(plan.at_least <= len && len <= plan.to, "{len} slots, planned were {plan:?}");
        self.space.lock().space.grown(plan.file, len);
        Ok(())
    }

    /// Cleans up after a failed growth as far as possible; the rest is found free at the next open.
    fn undo_growth(&self, plan: Growth, slots: u32, file: &DataFile, error: Error) -> Error {
        if plan.from == 0 {
            self.files.write().remove(&plan.file);
            let _ = self.disk.remove(file.path());
            self.dir_dirty.store(true, Ordering::Release);
        } else {
            let _ = file.shrink(plan.from);
        }
        self.no_room(slot_offset(slots), error)
    }

    /// Makes a file long enough for a run of a short extent. Its space is reserved when the run is taken.
    /// Requires: `layout` is held.
    pub(super) fn extend(&self, slots: u32) -> Result<()> {
        if self.unseal_some() {
            return Ok(());
        }
        let plan = self.space.lock().space.plan_growth(slots);
        let known = self.files.read().get(&plan.file).cloned();
        let file = known.map_or_else(|| self.make_file(plan.file), Ok)?;
        assert!(plan.from <= plan.at_least, "a growth would cut off extents: {plan:?}");
        file.extend(plan.at_least).map_err(|error| self.undo_growth(plan, slots, &file, error))?;
        self.space.lock().space.extended(plan.file, plan.at_least);
        Ok(())
    }

    fn make_file(&self, number: u32) -> Result<Arc<DataFile>> {
        let path = self.dir.join(data_file::name(number));
        let create = || self.disk.open(&path, OpenMode::Create, self.settings.direct_io);
        // The number is new to the accounting: a file with that name is what a failed growth could not
        // remove.
        let file =
            create().or_else(|error| self.disk.remove(&path).map_err(|_| error).and_then(|()| create()))?;
        self.dir_dirty.store(true, Ordering::Release);
        let file = Arc::new(DataFile::new(file));
        let before = self.files.write().insert(number, Arc::clone(&file));
        debug_assert!(before.is_none(), "data file {number} is made, and one is open already");
        Ok(file)
    }
}
