//! Which files are in use: own ones, and those of the originals of a clone.

use std::collections::BTreeSet;

use super::super::names::DataName;
use super::{Group, State};

impl State {
    /// The groups that do not lie in an original.
    fn own_groups(&self) -> impl Iterator<Item = (&u32, &Group)> {
        self.groups.iter().filter(|(number, _)| self.is_own(**number))
    }

    /// Returns true if the file is not one of an original.
    pub(in crate::store) fn is_own(&self, number: u32) -> bool {
        number > self.floor
    }

    /// The files of originals that have an extent.
    pub(in crate::store) fn used_of_originals(&self) -> BTreeSet<u32> {
        let used = self.groups.iter().filter(|(number, group)| !self.is_own(**number) && !group.is_dead());
        used.map(|(number, _)| *number).collect()
    }

    /// Epochs and numbers of own files that have an extent, or may get one.
    pub(in crate::store) fn used(&self) -> BTreeSet<(u64, u32)> {
        let used = self.own_groups().filter(|(_, group)| !group.is_dead());
        used.map(|(number, group)| (group.epoch, *number)).collect()
    }

    /// Notes that objects are deleted.
    pub(in crate::store) fn deleted(&mut self, names: &[DataName]) {
        for name in names {
            let Some(group) = self.groups.get_mut(&name.number) else { continue };
            if group.epoch != name.epoch || name.number <= self.floor {
                continue;
            }
            assert!(group.is_dead(), "{name} was deleted, and has extents that live");
            group.parts.remove(&name.part);
            if group.parts.is_empty() {
                self.dead_slots -= group.dead_slots;
                self.groups.remove(&name.number);
            }
        }
    }
}
