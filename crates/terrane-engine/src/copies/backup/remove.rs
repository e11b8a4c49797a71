//! Removing backups, and the objects that no backup needs any more.
//!
//! The manifest goes first, durably; then the objects that no other backup names.

use terrane_base::{Error, Kind, Result};
use terrane_format::backup::ObjectKind;

use crate::copies::backup::Backups;
use crate::copies::backup::objects::{Names, Needed, object_name};

/// The result of a removal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Removed {
    /// Numbers of the backups.
    pub backups: Vec<u64>,
    /// Extents and segments that only they needed, and objects of unfinished backups.
    pub objects: u64,
    /// A backup that cannot be read: its objects are not known, so no object is removed as long as it is
    /// there.
    pub kept_for: Option<u64>,
}

impl Backups {
    /// Removes backup `id`, whole or damaged, and the objects that no other backup needs.
    ///
    /// # Errors
    /// `NotFound` if there is no such backup; `Busy` if another process or thread writes to the place; `Io`:
    /// then it is removed or not, and others are whole.
    pub fn delete(&self, id: u64) -> Result<Removed> {
        let _lock = self.lock()?;
        if !self.ids()?.contains(&id) {
            self.load(id)?;
        }
        self.remove(vec![id])
    }

    /// Removes all backups but the newest `keep`, and the objects that no backup needs. Those that cannot be
    /// read do not count and stay: [`Backups::delete`] removes them.
    ///
    /// # Errors
    /// As [`Backups::delete`].
    pub fn purge(&self, keep: usize) -> Result<Removed> {
        let _lock = self.lock()?;
        let mut old = self.needed()?.whole;
        debug_assert!(old.is_sorted(), "the oldest backups go first");
        old.truncate(old.len().saturating_sub(keep));
        self.remove(old)
    }

    /// The lock of a place that exists.
    fn lock(&self) -> Result<Box<dyn terrane_device::DiskLock>> {
        self.ids()?;
        self.place.prepare()?;
        self.place.lock()
    }

    /// Requires: the place is locked.
    fn remove(&self, backups: Vec<u64>) -> Result<Removed> {
        for id in &backups {
            self.place.delete(&object_name(ObjectKind::Manifest, (*id).into()))?;
        }
        if !backups.is_empty() {
            self.place.settle()?;
        }
        let removed = self.collect(&self.needed()?)?;
        debug_assert!(removed.backups.is_empty(), "a collection removes objects of no backup only");
        Ok(Removed { backups, ..removed })
    }

    /// Removes every object that no backup needs. Requires: the place is locked.
    pub(super) fn collect(&self, needed: &Needed) -> Result<Removed> {
        if let Some((id, _)) = needed.damaged {
            return Ok(Removed { kept_for: Some(id), ..Removed::default() });
        }
        let nothing = Names::new();
        let mut removed = Removed::default();
        for (kind, names) in [(ObjectKind::Extent, &needed.extents), (ObjectKind::Segment, &needed.segments)]
        {
            let kept = if terrane_base::planted!(CollectSharedObjects) { &nothing } else { names };
            for name in self.present(kind)?.difference(kept) {
                self.place.delete(&object_name(kind, *name))?;
                removed.objects += 1;
            }
        }
        if removed.objects > 0 {
            self.place.settle()?;
        }
        Ok(removed)
    }

    /// The number of the newest backup that can be read.
    ///
    /// # Errors
    /// `NotFound` if no backup can be read; `Io`.
    pub fn newest(&self) -> Result<u64> {
        let newest = self.list()?.backups.last().map(|backup| backup.id);
        newest.ok_or_else(|| {
            Error::new(Kind::NotFound, format!("there is no whole backup in {}", self.place.shown()))
        })
    }
}
