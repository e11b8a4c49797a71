//! Creates another directory with the same extents, and manages the files that two directories share.
//!
//! A file is sealed before it is linked: on this side in memory, on the other side by its second name, which
//! both detect at opening. While it has two names neither side writes to it, because the other side may still
//! use what one side freed. When one side has freed all of it, or is deleted, its name is removed, and the
//! other side writes to the file again.
//!
//! Slots of an extent that is being written while its file is linked are free on the other side, and stay
//! free as long as this side lives: such a write does no harm.

use std::collections::BTreeMap;
use std::path::Path;
use terrane_base::sync::atomic::Ordering;

use terrane_base::{ExtentId, Result};
use terrane_device::OpenMode;

use super::LocalStore;
use crate::data_file::{self, slot_offset};
use crate::store::StoreCopy;

/// Most sealed files that are checked when space is wanted: each check is a system call.
const LOOKS: usize = 8;

impl LocalStore {
    /// See [`Store::copy_to`](crate::Store::copy_to).
    pub(super) fn copy_files(&self, dir: &Path, live: &[(ExtentId, u32)]) -> Result<StoreCopy> {
        let mut by_file: BTreeMap<u32, Vec<(u32, u32)>> = BTreeMap::new();
        for (id, slots) in live {
            by_file.entry(id.file).or_default().push((id.slot, *slots));
        }
        let mut copy = StoreCopy::default();
        for (number, extents) in &by_file {
            if self.link_file(*number, dir)? {
                copy.files_linked += 1;
            } else {
                copy.bytes_copied += self.copy_extents(*number, dir, extents)?;
            }
        }
        debug_assert!(copy.files_linked <= by_file.len() as u64, "a file is linked once");
        self.disk.sync_dir(dir)?;
        Ok(copy)
    }

    fn link_file(&self, number: u32, dir: &Path) -> Result<bool> {
        let file = self.file(number)?;
        // While it is held, no thread truncates or grows the file.
        let _layout = self.layout.lock();
        self.space.lock().space.seal(number);
        let linked = self.disk.link(file.path(), &dir.join(data_file::name(number)));
        if !matches!(linked, Ok(true)) && !file.is_shared()? {
            self.space.lock().space.unseal(number);
        }
        linked
    }

    fn copy_extents(&self, number: u32, dir: &Path, extents: &[(u32, u32)]) -> Result<u64> {
        let from = self.file(number)?;
        let to = self.disk.open(&dir.join(data_file::name(number)), OpenMode::Create, false)?;
        let mut bytes = 0;
        for (slot, slots) in extents {
            bytes += from.copy_to(&*to, *slot, slot + slots)?;
        }
        let end = extents.iter().map(|(slot, slots)| slot + slots).max().unwrap_or(0);
        debug_assert!(bytes <= slot_offset(end), "{bytes} bytes of extents below slot {end}: two overlap");
        to.set_len(slot_offset(end))?;
        to.sync()?;
        Ok(bytes)
    }

    /// Checks whether some sealed files have lost their second name; returns true if one has.
    pub(super) fn unseal_some(&self) -> bool {
        // Relaxed: the starting point only distributes the checks.
        let from = self.next_look.load(Ordering::Relaxed);
        let sealed: Vec<u32> = {
            let accounting = self.space.lock();
            accounting.space.sealed_from(from).take(LOOKS).collect()
        };
        let next = sealed.last().filter(|_| sealed.len() == LOOKS).map_or(0, |last| last.saturating_add(1));
        debug_assert!(sealed.is_sorted_by(|a, b| a < b), "the next look goes on behind the last file");
        self.next_look.store(next, Ordering::Relaxed);
        let mut found = false;
        for number in sealed {
            // A file that cannot be checked stays sealed.
            let is_alone = self.file(number).and_then(|file| file.is_shared()).is_ok_and(|shared| !shared);
            if is_alone {
                self.space.lock().space.unseal(number);
                found = true;
            }
        }
        found
    }
}
