//! The space manager: which slots of which data files are taken. Pure: it accesses no file, it only decides.
//!
//! # States of a slot
//! ```text
//!               grow                take
//!  (no slot) ────────► FREE, held ────────► TAKEN
//!      ▲                 ▲  │   ▲             │
//!      │ shrink          │  │   └──give back──┘
//!      └── FREE, hole ◄──┼──┘ punch
//!               └────────┘ take (the caller reserves real space first)
//! ```
//! 1. A slot is *taken* (by an extent, or by running work on it) or *free*.
//! 2. A taken slot is *held*: it has space on the device; but the last one of a short extent has as much as
//!    the extent takes of it. A free one is held, a *hole*, or, after a restart or a short extent, of unknown
//!    state; then both its bits are clear. A short extent in a held slot has a *loose end* (`short.rs`).
//!
//! 3. A *sealed* file has another name, in another database: nothing in it is written, truncated or punched,
//!    so no slot of it is taken. Slots may be freed; when the last one is, the file is removed.
//!
//! Runs are taken in the lowest file first, lowest slot first, so that files stay compact and the highest
//! ones become free.

mod adopt;
mod check;
mod file;
mod growth;
mod sealed;
mod short;

use std::collections::BTreeMap;
use std::ops::Range;

use terrane_base::{Error, ExtentId, Result, verify};

use crate::slots::FILE_SLOTS;
use file::FileSlots;
pub use growth::Growth;
pub use short::LooseEnd;
pub(crate) use short::{BLOCK_BYTES, is_short, used_blocks};

/// Fewest free slots that keep their space.
const RESERVE_SLOTS_MIN: u32 = 16;
/// The reserve beyond that, as a share of the taken slots: one in this many.
const RESERVE_SHARE: u32 = 16;

/// A run of slots in one data file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Number of the data file.
    pub file: u32,
    /// Slots in it.
    pub slots: Range<u32>,
}

impl Run {
    fn of(id: ExtentId, slots: u32) -> Option<Run> {
        let end = id.slot.checked_add(slots).filter(|&end| slots > 0 && end <= FILE_SLOTS)?;
        Some(Run { file: id.file, slots: id.slot..end })
    }
}

/// How to free space on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reclaim {
    /// Punch these slots out.
    Punch(Run),
    /// Truncate the file at the start of the run; remove it if that is slot 0.
    Shrink(Run),
}

/// Free slots that keep their space when space is freed on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserve {
    /// A share of the taken slots, for the next extents.
    Share,
    /// None.
    Nothing,
}

/// Number of slots in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotCounts {
    /// In all data files.
    pub total: u64,
    /// Taken.
    pub taken: u64,
    /// Free, and known to take no space.
    pub holes: u64,
    /// Free slots of sealed files, without holes.
    pub sealed: u64,
    /// Data files.
    pub files: u32,
}

/// The error for an extent in a data file that is there and has no slot.
#[cold]
pub(crate) fn cut_short(id: ExtentId, slots: u32) -> Error {
    Error::corrupt(format!(
        "extent {id} of {slots} slots lies after the end of its data file, which is cut before its first slot"
    ))
}

/// Which slots of which data files are taken.
#[derive(Debug, Default)]
pub struct Space {
    files: BTreeMap<u32, FileSlots>,
    counts: SlotCounts,
    /// No file with a lower number has a free slot.
    first_free: u32,
    /// File and slot of each loose end, and the bytes that the extent takes of the slot.
    loose_ends: BTreeMap<(u32, u32), u64>,
}

impl Space {
    /// No file at all.
    #[must_use]
    pub fn new() -> Self {
        Space::default()
    }

    /// Adds a data file of `len` slots (at most the limit of a file), all free and of unknown state.
    pub fn add_file(&mut self, file: u32, len: u32) {
        let len = len.min(FILE_SLOTS);
        let old = self.files.insert(file, FileSlots { len, run_max: len, ..FileSlots::default() });
        assert!(old.is_none(), "file {file} is added twice: its taken slots would be free");
        self.counts.total += u64::from(len);
        self.counts.files += 1;
        self.first_free = self.first_free.min(file);
    }

    /// The same files, all their slots free and of unknown state.
    #[must_use]
    pub fn without_extents(&self) -> Space {
        let mut space = Space::new();
        for (&number, file) in &self.files {
            space.add_file(number, file.len);
            if file.is_sealed {
                space.seal(number);
            }
        }
        debug_assert!(space.counts.total == self.counts.total, "the files have the same slots as before");
        space
    }

    /// Returns true if there is a data file of this number with a slot.
    #[must_use]
    pub fn has_file(&self, number: u32) -> bool {
        self.files.contains_key(&number)
    }

    /// Takes the slots of an existing extent.
    ///
    /// # Errors
    /// `Corrupt` if they are outside the files or taken by another extent.
    pub fn restore(&mut self, id: ExtentId, slots: u32) -> Result<()> {
        let wrong = |why: &str| Error::corrupt(format!("extent {id} of {slots} slots {why}"));
        let run = Run::of(id, slots).ok_or_else(|| wrong("is empty or longer than a data file"))?;
        let file = self.files.get_mut(&run.file).ok_or_else(|| wrong("is in a data file that is missing"))?;
        if run.slots.end > file.len {
            return Err(wrong(&format!("lies after the end of its data file, which has {} slots", file.len)));
        }
        if !file.taken.contains_none(run.slots.clone()) {
            return Err(wrong("overlaps another extent"));
        }
        let end = run.slots.end;
        file.take(run.slots);
        // Nothing says how much of its last slot has space, and it is not written again.
        file.held.remove(end - 1..end);
        file.unsure.remove(end - 1..end);
        self.counts.taken += u64::from(slots);
        debug_assert!(self.counts.taken <= self.counts.total, "extents lie in the files");
        Ok(())
    }

    /// Takes the lowest free run of `slots`. Also returns which of its slots may lack space: the caller
    /// reserves it, or returns the run by [`Space::untake`].
    pub fn take(&mut self, slots: u32) -> Option<(ExtentId, Vec<Range<u32>>)> {
        let mut full_so_far = true;
        for (&number, file) in self.files.range_mut(self.first_free..) {
            if let Some(run) = file.find(slots) {
                debug_assert!(run.len() == slots as usize, "{run:?} for an extent of {slots} slots");
                let lacking = file.lacking(run.clone());
                return Some((self.take_run(Run { file: number, slots: run }), lacking));
            }
            full_so_far &= file.run_max == 0 || file.is_sealed;
            if full_so_far {
                // No number follows the last possible one. This store never creates such a file, but one may
                // exist.
                self.first_free = number.saturating_add(1);
            }
        }
        None
    }

    /// Takes the lowest free run of `slots` that has space already; for a full device.
    pub fn take_held(&mut self, slots: u32) -> Option<ExtentId> {
        let found = self.files.iter().filter(|(_, file)| !file.is_sealed).find_map(|(&number, file)| {
            let mut gaps = file.taken.union(&file.held.complement()).gaps(file.len);
            let gap = gaps.find(|gap| gap.len() as u32 >= slots)?;
            let run = gap.start..gap.start + slots;
            debug_assert!(file.held.contains_all(run.clone()), "a slot of {run:?} has no space");
            Some(Run { file: number, slots: run })
        });
        found.map(|run| self.take_run(run))
    }

    /// Requires: the run is free.
    fn take_run(&mut self, run: Run) -> ExtentId {
        let id = ExtentId { file: run.file, slot: run.slots.start };
        let file = self.files.get_mut(&run.file).expect("the run was found in this file");
        assert!(!file.is_sealed && run.slots.end <= file.len, "{run:?} of a file of {} slots", file.len);
        self.counts.holes -= u64::from(file.holes.count(run.slots.clone()));
        self.counts.taken += run.slots.len() as u64;
        file.take(run.slots);
        verify!(self.check());
        id
    }

    /// Returns a run whose space could not be reserved: its state is unknown now.
    pub fn untake(&mut self, id: ExtentId, slots: u32) {
        let freed = self.free(id, slots);
        debug_assert!(freed.is_ok(), "taken just before");
        if let Some(file) = self.files.get_mut(&id.file) {
            file.held.remove(id.slot..id.slot + slots);
        }
    }

    /// Frees the slots of an extent.
    ///
    /// # Errors
    /// `Invalid` if they are not all taken; nothing changes then.
    pub fn free(&mut self, id: ExtentId, slots: u32) -> Result<()> {
        let Some(run) = self.taken_run(id, slots) else {
            return Err(Error::invalid(format!("extent {id} of {slots} slots is not allocated")));
        };
        if let Some(file) = self.files.get_mut(&run.file) {
            file.free(run.slots.clone());
        }
        self.forget_loose_ends(&run);
        self.counts.taken -= u64::from(slots);
        self.first_free = self.first_free.min(run.file);
        verify!(self.check());
        Ok(())
    }

    /// Returns true if all slots of an extent are taken.
    #[must_use]
    pub fn is_taken(&self, id: ExtentId, slots: u32) -> bool {
        self.taken_run(id, slots).is_some()
    }

    fn taken_run(&self, id: ExtentId, slots: u32) -> Option<Run> {
        let run = Run::of(id, slots)?;
        let file = self.files.get(&run.file)?;
        debug_assert!(file.len <= FILE_SLOTS, "file {} has {} slots", run.file, file.len);
        (run.slots.end <= file.len && file.taken.contains_all(run.slots.clone())).then_some(run)
    }

    /// How to make room for a run of `slots` that [`Space::take`] did not find: the lowest file that can grow
    /// enough, or a new one.
    #[must_use]
    pub fn plan_growth(&self, slots: u32) -> Growth {
        debug_assert!((1..=FILE_SLOTS).contains(&slots), "an extent of {slots} slots lies in no file");
        for (&number, file) in &self.files {
            let needed = slots.saturating_sub(file.tail());
            if !file.is_sealed && file.len + needed <= FILE_SLOTS {
                return Growth::new(number, file.len, needed);
            }
        }
        Growth::new(self.unused_file(), 0, slots)
    }

    /// The lowest number that no data file has.
    #[must_use]
    pub fn unused_file(&self) -> u32 {
        let mut unused = 1;
        for &number in self.files.keys() {
            if number == unused {
                unused += 1;
            }
        }
        debug_assert!(!self.files.contains_key(&unused), "a new file would replace data file {unused}");
        unused
    }

    /// Records that a data file has grown to `len` slots, the new ones with space.
    pub fn grown(&mut self, file: u32, len: u32) {
        if !self.files.contains_key(&file) {
            self.add_file(file, 0);
        }
        let slots = self.files.get_mut(&file).expect("added above");
        assert!(slots.len <= len && len <= FILE_SLOTS, "file {file} of {} slots grows to {len}", slots.len);
        slots.held.insert(slots.len..len);
        self.counts.total += u64::from(len - slots.len);
        slots.len = len;
        slots.run_max = len;
        self.first_free = self.first_free.min(file);
    }

    /// Number of free slots beyond the reserve.
    fn excess(&self, reserve: Reserve) -> u32 {
        let SlotCounts { total, taken, holes, sealed, .. } = self.counts();
        let reserve = match reserve {
            Reserve::Share => (taken / u64::from(RESERVE_SHARE)).max(u64::from(RESERVE_SLOTS_MIN)),
            Reserve::Nothing => 0,
        };
        (total - taken - holes - sealed).saturating_sub(reserve).min(u64::from(FILE_SLOTS)) as u32
    }

    /// Free slots of sealed files, without holes.
    fn sealed_slots(&self) -> u64 {
        let sealed = self.files.values().filter(|file| file.is_sealed);
        sealed.map(|file| u64::from(file.unused())).sum()
    }

    /// Takes a whole sealed file without used slots: only its name is removed.
    fn plan_removal(&mut self) -> Option<Reclaim> {
        let (&number, file) =
            self.files.iter_mut().find(|(_, file)| file.is_sealed && file.taken.last_end(file.len) == 0)?;
        let slots = 0..file.len;
        assert!(file.taken.contains_none(slots.clone()), "file {number} is removed and holds extents");
        self.counts.holes -= u64::from(file.holes.count(slots.clone()));
        self.counts.taken += slots.len() as u64;
        file.taken.insert(slots.clone());
        Some(Reclaim::Shrink(Run { file: number, slots }))
    }

    /// Takes the highest free run beyond the reserve, so that the caller can free it on the device and then
    /// call [`Space::reclaimed`]. `None` if no slot is beyond the reserve.
    pub fn plan_reclaim(&mut self, reserve: Reserve) -> Option<Reclaim> {
        if let Some(removal) = self.plan_removal() {
            return Some(removal);
        }
        let excess = self.excess(reserve);
        if excess == 0 {
            return None;
        }
        for (&number, file) in self.files.iter_mut().rev().filter(|(_, file)| !file.is_sealed) {
            let Some(gap) = file.last_punchable_gap() else { continue };
            let mut slots = file.top(gap, excess);
            slots.start -= u32::from(terrane_base::planted!(ReclaimTaken) && slots.start > 0);
            assert!(
                file.taken.contains_none(slots.clone()),
                "extents in {slots:?} of file {number} would be lost"
            );
            // Taken while the work runs, so that no other thread uses them.
            self.counts.holes -= u64::from(file.holes.count(slots.clone()));
            self.counts.taken += slots.len() as u64;
            file.taken.insert(slots.clone());
            let run = Run { file: number, slots };
            return Some(if run.slots.end == file.len { Reclaim::Shrink(run) } else { Reclaim::Punch(run) });
        }
        None
    }

    /// Completes what [`Space::plan_reclaim`] started. If it was not `done`, the slots are free again, of
    /// unknown state.
    pub fn reclaimed(&mut self, reclaim: &Reclaim, done: bool) {
        let (Reclaim::Punch(run) | Reclaim::Shrink(run)) = reclaim;
        let len = run.slots.len() as u64;
        let Some(file) = self.files.get_mut(&run.file) else { return };
        assert!(file.taken.contains_all(run.slots.clone()), "{run:?} was not taken for the work on it");
        self.counts.taken -= len;
        file.taken.remove(run.slots.clone());
        file.held.remove(run.slots.clone());
        file.holes.remove(run.slots.clone());
        match reclaim {
            Reclaim::Punch(_) if done => {
                file.holes.insert(run.slots.clone());
                self.counts.holes += len;
            }
            Reclaim::Shrink(_) if done => {
                file.len = run.slots.start;
                self.counts.total -= len;
            }
            _ => {}
        }
        file.run_max = file.len;
        self.first_free = self.first_free.min(run.file);
        if file.len == 0 {
            self.files.remove(&run.file);
            self.counts.files -= 1;
        }
        verify!(self.check());
    }

    /// Number of slots in each state.
    #[must_use]
    pub fn counts(&self) -> SlotCounts {
        let counts = SlotCounts { sealed: self.sealed_slots(), ..self.counts };
        let SlotCounts { total, taken, holes, sealed, .. } = counts;
        debug_assert!(taken + holes + sealed <= total, "a slot has one state: {counts:?}");
        counts
    }
}
