//! State of the extents of a store: work in memory only. `uses.rs`: which files are in use.

mod uses;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use bytes::Bytes;
use terrane_base::{Error, ExtentId, Result};
use terrane_storage::{SLOT_BYTES, StoreUsage};

use super::extents;
use super::names::{DataName, PARTS_MAX};
use super::table::{FILE_SLOTS, Row, Table};
use crate::tier::ObjectKey;

/// Where the bytes of an extent are.
#[derive(Clone, Debug)]
pub(super) enum Location {
    /// Nowhere: this many bytes of the stage are reserved for them.
    Reserved(u64),
    /// In the stage.
    Staged(Bytes),
    /// In the stage, and being uploaded to the part of this number.
    Uploading { bytes: Bytes, part: u32 },
    /// In the part of this number.
    Stored { part: u32, offset: u64, row: Row },
    /// In some part; the tables are not read yet.
    Listed,
}

#[derive(Clone, Debug)]
pub(super) struct Extent {
    pub(super) slots: u32,
    pub(super) place: Location,
    /// True if an object has bytes of it, so that its slots are dead once it is freed.
    pub(super) is_in_object: bool,
}

/// The extents of one file, and the objects that hold them.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// The epoch of the writer.
    pub(super) epoch: u64,
    /// By first slot.
    pub(super) extents: BTreeMap<u32, Extent>,
    /// The objects by part, with their bytes.
    pub(super) parts: BTreeMap<u32, u64>,
    /// The numbers that the objects' writers drew, by part, as far as they are known.
    pub(super) nonces: BTreeMap<u32, u128>,
    pub(super) next_part: u32,
    pub(super) next_slot: u32,
    /// Bytes reserved for extents, written or not.
    bytes: u64,
    dead_slots: u64,
    /// Objects that are under way.
    uploading: u32,
    /// True if further extents may be allocated in it.
    is_open: bool,
}

impl Group {
    /// Returns true if no extent of it will ever be read or written again.
    pub(super) fn is_dead(&self) -> bool {
        self.extents.is_empty() && self.uploading == 0 && !self.is_open
    }

    /// The identity of an object of this group, whose number is `number`.
    pub(super) fn key(&self, number: u32, part: u32) -> Option<ObjectKey> {
        let nonce = *self.nonces.get(&part)?;
        Some(ObjectKey { nonce, epoch: self.epoch, number, part })
    }

    fn is_written(&self) -> bool {
        !self.extents.values().any(|extent| matches!(extent.place, Location::Reserved(_)))
    }

    fn has_staged(&self) -> bool {
        self.extents.values().any(|extent| matches!(extent.place, Location::Staged(_)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// There are objects, but it is not known yet which extents live.
    Unknown,
    /// There is no object. A restore is not needed, but restoring nothing is allowed.
    Empty,
    /// Restored, or written to.
    Open,
}

/// The bytes of an object that is to be created, in the order of its table.
#[derive(Debug)]
pub(super) struct Packed {
    pub(super) name: DataName,
    pub(super) extents: Vec<(u32, u32, Bytes)>,
}

/// All that a store knows.
#[derive(Debug)]
pub(super) struct State {
    pub(super) phase: Phase,
    pub(super) groups: BTreeMap<u32, Group>,
    pub(super) epoch: u64,
    /// The group in which the next extent is allocated.
    open: Option<u32>,
    pub(super) next_number: u32,
    /// Files up to this number are those of originals.
    floor: u32,
    /// The numbers that this store may take: those behind what it reads of originals; those of its lease in
    /// the store of a worker.
    pub(super) numbers: Range<u32>,
    /// Numbers that workers write under: the first one of each range, and the one behind it.
    pub(super) leases: BTreeMap<u32, u32>,
    /// Bytes that are reserved or written, and not being uploaded.
    pub(super) staged_bytes: u64,
    /// Bytes that are being uploaded.
    pub(super) uploading_bytes: u64,
    pub(super) live_slots: u64,
    dead_slots: u64,
    /// Running copies, and what was freed since the first of them began.
    pub(super) held: (u32, BTreeMap<ExtentId, u32>),
    /// Groups that may have staged bytes.
    staging: BTreeSet<u32>,
    /// Objects of which no extent lives any more, for the tier.
    dead: Vec<ObjectKey>,
}

impl State {
    /// The state at opening: the parts that the buckets list. Files up to `floor` are those of originals.
    pub(super) fn new(epoch: u64, floor: u32, listed: &BTreeMap<DataName, u64>) -> Self {
        let mut groups: BTreeMap<u32, Group> = BTreeMap::new();
        for (name, bytes) in listed {
            // In the order of epochs: the newest one counts.
            let group = groups.entry(name.number).or_default();
            if group.epoch != name.epoch {
                *group = Group { epoch: name.epoch, ..Group::default() };
            }
            group.parts.insert(name.part, *bytes);
            group.next_part = name.part + 1;
        }
        let last = groups.last_key_value().map_or(0, |(number, _)| *number);
        let last = match terrane_base::planted!(ReuseNumbersOfOriginal) {
            true => groups.keys().rev().find(|number| **number > floor).map_or(0, |number| *number),
            false => last.max(floor),
        };
        let last = if terrane_base::planted!(ReuseDataNumbers) { 0 } else { last };
        State {
            phase: if groups.is_empty() { Phase::Empty } else { Phase::Unknown },
            groups,
            epoch,
            open: None,
            next_number: last.saturating_add(1),
            floor,
            numbers: floor + 1..u32::MAX,
            leases: BTreeMap::new(),
            staged_bytes: 0,
            uploading_bytes: 0,
            live_slots: 0,
            dead_slots: 0,
            held: (0, BTreeMap::new()),
            staging: BTreeSet::new(),
            dead: Vec::new(),
        }
    }

    /// Takes over which extents live. Groups without one are forgotten: their objects are garbage.
    pub(super) fn restore(&mut self, live: &[(ExtentId, u32)]) -> Result<()> {
        let has_object = |file: u32| self.groups.get(&file).is_some_and(|group| !group.parts.is_empty());
        let taken = extents::by_file(live, has_object)?;
        self.groups.retain(|number, _| taken.contains_key(number));
        for (number, extents) in taken {
            let group = self.groups.get_mut(&number).expect("checked above");
            let whole = |(slot, slots): (u32, u32)| {
                (slot, Extent { slots, place: Location::Listed, is_in_object: true })
            };
            group.extents = extents.into_iter().map(whole).collect();
            self.live_slots += group.extents.values().map(|extent| u64::from(extent.slots)).sum::<u64>();
            let end = group.extents.last_key_value().map_or(0, |(slot, extent)| slot + extent.slots);
            group.next_slot = end;
        }
        self.phase = Phase::Open;
        Ok(())
    }

    /// Allocates an extent; its group takes up to `object_bytes`.
    pub(super) fn allocate(&mut self, slots: u32, bytes: u64, object_bytes: u64) -> Result<ExtentId> {
        self.phase = Phase::Open;
        let fits = self.open.and_then(|number| self.groups.get(&number)).is_some_and(|group| {
            group.next_slot + slots <= FILE_SLOTS
                && (group.bytes == 0 || group.bytes.saturating_add(bytes) <= object_bytes)
        });
        if !fits {
            self.begin_group()?;
        }
        let number = self.open.expect("a group is open");
        let group = self.groups.get_mut(&number).expect("an open group is known");
        debug_assert!(group.parts.is_empty() && group.epoch == self.epoch, "an object is never added to");
        let slot = group.next_slot;
        group.next_slot += slots;
        group.bytes += bytes;
        group.extents.insert(slot, Extent { slots, place: Location::Reserved(bytes), is_in_object: false });
        self.staged_bytes += bytes;
        self.live_slots += u64::from(slots);
        Ok(ExtentId { file: number, slot })
    }

    fn begin_group(&mut self) -> Result<()> {
        self.close_open_group();
        let number = self.next_number;
        let next = self.number_behind(1)?;
        let group = Group { epoch: self.epoch, is_open: true, ..Group::default() };
        let replaced = self.groups.insert(number, group);
        assert!(replaced.is_none(), "a number is never used twice");
        (self.open, self.next_number) = (Some(number), next);
        Ok(())
    }

    fn close_open_group(&mut self) {
        let Some(number) = self.open.take() else { return };
        if let Some(group) = self.groups.get_mut(&number) {
            group.is_open = false;
        }
        self.forget_if_void(number);
    }

    /// Forgets a group that is dead and has no object.
    fn forget_if_void(&mut self, number: u32) {
        if self.groups.get(&number).is_some_and(|group| group.is_dead() && group.parts.is_empty()) {
            let group = self.groups.remove(&number).expect("just found");
            debug_assert_eq!(group.dead_slots, 0, "no object has bytes of it");
        }
    }

    pub(super) fn extent(&self, id: ExtentId) -> Option<&Extent> {
        self.groups.get(&id.file)?.extents.get(&id.slot)
    }

    /// Stages the bytes of an extent.
    pub(super) fn stage(&mut self, id: ExtentId, bytes: Bytes) -> Result<()> {
        let needed = bytes.len().div_ceil(SLOT_BYTES);
        // What another writer stored is never written again: its parts have that writer's epoch, or are not
        // parts of this worker's lease.
        let is_own = |group: &&mut Group| group.epoch == self.epoch && self.numbers.contains(&id.file);
        let group = self.groups.get_mut(&id.file).filter(is_own);
        let extent = group.and_then(|group| group.extents.get_mut(&id.slot));
        let Some(extent) = extent.filter(|extent| needed <= extent.slots as usize) else {
            let message = format!("{} bytes do not fit extent {id}: it has fewer slots", bytes.len());
            return Err(Error::invalid(message));
        };
        let before = match &extent.place {
            Location::Reserved(bytes) => *bytes,
            Location::Staged(bytes) => bytes.len() as u64,
            // These are counted by their upload, or not at all.
            Location::Uploading { .. } | Location::Stored { .. } | Location::Listed => 0,
        };
        self.staged_bytes = self.staged_bytes - before + bytes.len() as u64;
        extent.place = Location::Staged(bytes);
        self.staging.insert(id.file);
        Ok(())
    }

    /// The groups that have bytes to upload: all of them, or only those that are full and wholly written.
    pub(super) fn staged(&self, only_full: bool) -> Vec<u32> {
        // A further part, of what was written late, waits for a sync: it is small.
        let full = |group: &Group| !group.is_open && group.next_part == 0 && group.is_written();
        let due = |number: &&u32| {
            self.groups.get(number).is_some_and(|group| group.has_staged() && (!only_full || full(group)))
        };
        self.staging.iter().filter(due).copied().collect()
    }

    /// Takes the staged bytes of a group for its next part; the group takes no further extent. `None` if it
    /// has none.
    pub(super) fn pack(&mut self, number: u32) -> Result<Option<Packed>> {
        if self.open == Some(number) {
            self.close_open_group();
        }
        self.staging.remove(&number);
        let Some(group) = self.groups.get_mut(&number).filter(|group| group.has_staged()) else {
            return Ok(None);
        };
        let part = group.next_part;
        if part > PARTS_MAX {
            return Err(Error::invalid(format!("extents of file {number} were written {part} times")));
        }
        (group.next_part, group.uploading) = (part + 1, group.uploading + 1);
        let mut extents = Vec::new();
        for (slot, extent) in &mut group.extents {
            if let Location::Staged(bytes) = &extent.place {
                let bytes = bytes.clone();
                extents.push((*slot, extent.slots, bytes.clone()));
                self.staged_bytes -= bytes.len() as u64;
                self.uploading_bytes += bytes.len() as u64;
                extent.place = Location::Uploading { bytes, part };
                extent.is_in_object = true;
            }
        }
        let name = DataName { epoch: group.epoch, number, part };
        debug_assert!(!extents.is_empty(), "an object has an extent");
        assert_eq!(name.epoch, self.epoch, "objects are created under the own epoch only");
        Ok(Some(Packed { name, extents }))
    }

    /// Notes that an object exists.
    pub(super) fn stored(&mut self, name: DataName, nonce: u128, table: &Table, object_bytes: u64) {
        let group = self.groups.get_mut(&name.number).expect("a group lives while a part is under way");
        group.nonces.insert(name.part, nonce);
        assert!(group.parts.insert(name.part, object_bytes).is_none(), "a part is created once");
        assert!(group.uploading > 0, "{name} was under way");
        group.uploading -= 1;
        for (offset, row) in &table.0 {
            self.uploading_bytes -= u64::from(row.len);
            if let Some(extent) = group.extents.get_mut(&row.slot)
                && matches!(extent.place, Location::Uploading { part, .. } if part == name.part)
            {
                extent.place = Location::Stored { part: name.part, offset: *offset, row: *row };
            }
        }
        self.note_dead(name.number);
    }

    /// Notes the objects of a group of which no extent will ever be read.
    fn note_dead(&mut self, number: u32) {
        let Some(group) = self.groups.get(&number).filter(|group| group.is_dead()) else { return };
        self.dead.extend(group.parts.keys().filter_map(|part| group.key(number, *part)));
    }

    /// The objects that died since the last call.
    pub(super) fn take_dead(&mut self) -> Vec<ObjectKey> {
        std::mem::take(&mut self.dead)
    }

    /// Frees an extent, or notes that it is to be freed after the last copy.
    pub(super) fn free(&mut self, id: ExtentId, slots: u32) -> Result<()> {
        if self.held.1.contains_key(&id) || self.extent(id).is_none_or(|extent| extent.slots != slots) {
            return Err(Error::invalid(format!("extent {id} of {slots} slots is not allocated")));
        }
        if self.held.0 > 0 {
            self.held.1.insert(id, slots);
        } else {
            self.free_now(id);
        }
        Ok(())
    }

    fn free_now(&mut self, id: ExtentId) {
        let group = self.groups.get_mut(&id.file).expect("the extent was found");
        let extent = group.extents.remove(&id.slot).expect("the extent was found");
        self.staged_bytes -= match &extent.place {
            Location::Reserved(bytes) => *bytes,
            Location::Staged(bytes) => bytes.len() as u64,
            _ => 0,
        };
        self.live_slots -= u64::from(extent.slots);
        if extent.is_in_object {
            group.dead_slots += u64::from(extent.slots);
            self.dead_slots += u64::from(extent.slots);
        }
        self.note_dead(id.file);
        self.forget_if_void(id.file);
    }

    pub(super) fn hold(&mut self) {
        self.held.0 += 1;
    }

    pub(super) fn release(&mut self) {
        debug_assert!(self.held.0 > 0, "a release ends a hold");
        self.held.0 = self.held.0.saturating_sub(1);
        if self.held.0 == 0 {
            std::mem::take(&mut self.held.1).into_iter().for_each(|(id, _)| self.free_now(id));
        }
    }

    /// Bytes of the objects that have extents, without those of originals.
    pub(super) fn object_bytes(&self) -> u64 {
        let own = self.groups.range(self.floor.saturating_add(1)..);
        own.flat_map(|(_, group)| group.parts.values()).sum()
    }

    pub(super) fn usage(&self) -> StoreUsage {
        let bytes = |slots: u64| slots * SLOT_BYTES as u64;
        StoreUsage {
            file_bytes: bytes(self.live_slots + self.dead_slots),
            live_bytes: bytes(self.live_slots),
            sealed_bytes: bytes(self.dead_slots),
            files: self.groups.len() as u32,
            ..StoreUsage::default()
        }
    }
}
