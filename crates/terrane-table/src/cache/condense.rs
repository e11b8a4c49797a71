//! Frees chunks of the arena: moves the remaining objects of the sparsest chunks into gaps of the others.
//!
//! Steps: 1. a chunk is selected and accepts no further objects; 2. each published object in it is copied,
//! and the copy replaces it in its swip and in the accounting; 3. the old objects are retired: readers that
//! see them finish, and after the last one the chunk is empty and is unmapped.
//!
//! An object that a cursor or a running read holds beyond an epoch stays until it is released.

#![expect(unsafe_code, reason = "reaches objects by their addresses in the arena")]

use std::ptr::NonNull;

use terrane_base::sync::atomic::Ordering;

use super::arena::{Draining, Group};
use super::object::Object;
use super::room::{COLLECT_TURNS, MISS_STEP_BYTES, accounting_bytes};
use super::{Cache, SwipSlot};
use crate::swip::{self, Epoch};

/// Objects that are moved under one epoch; other threads wait for memory meanwhile.
const EPOCH_OBJECTS: usize = 16;

impl Cache {
    /// Empties chunks while more memory than `target` is used, until about `bytes` have been moved.
    pub(super) fn condense(&self, target: u64, bytes: u64) {
        let Some(arena) = &self.arena else { return };
        let mut moved = 0;
        while self.used_bytes() > target {
            let before = moved;
            if let Some(chunk) = arena.drain_sparsest() {
                self.empty(chunk, &mut moved);
            }
            debug_assert!(
                moved >= before,
                "bytes that were moved are counted once, or condensing would not end"
            );
            let is_stuck = moved == before;
            if is_stuck && arena.gap_bytes(Group::Movable) >= arena.chunk_bytes() {
                // There are gaps, but no remaining object fits into one: some objects must be evicted.
                self.evict_to(self.kept().saturating_sub(MISS_STEP_BYTES));
            }
            for _ in 0..COLLECT_TURNS {
                swip::enter().collect();
            }
            if is_stuck || moved >= bytes {
                return;
            }
        }
        arena.stop_draining();
    }

    /// Moves the movable objects out of a chunk.
    fn empty(&self, chunk: Draining, moved: &mut u64) {
        let Some(arena) = &self.arena else { return };
        let mut last = None;
        loop {
            // Entered before the notes are read: the objects that they name live until it is left.
            let epoch = swip::enter();
            let objects =
                arena.noted(chunk).into_iter().filter(|object| last.is_none_or(|last| *object > last));
            let batch: Vec<NonNull<u8>> = objects.take(EPOCH_OBJECTS).collect();
            let Some(&end) = batch.last() else { return };
            debug_assert!(
                batch.is_sorted(),
                "objects are visited in the order of their addresses, each once"
            );
            last = Some(end);
            for object in batch {
                // SAFETY: noted after the epoch was entered, and objects leave the notes before they are
                // retired, so this one is alive; a noted spot begins with the header of its object.
                let object: &Object = unsafe { object.cast().as_ref() };
                *moved += self.move_object(object, &epoch).unwrap_or(0);
            }
        }
    }

    /// Moves a published object; returns its bytes. `None` if it was removed meanwhile, cannot be moved, or
    /// finds no gap.
    fn move_object(&self, object: &Object, epoch: &Epoch) -> Option<u64> {
        let address = object.slot.load(Ordering::Relaxed);
        let _shard = self.shard(address).lock();
        if address.is_null() || object.slot.load(Ordering::Relaxed) != address {
            return None;
        }
        // SAFETY: under the lock of its shard the slot of a published object is there (invariant 2 of the
        // shard).
        let slot: &SwipSlot = unsafe { &*address };
        let charge = object.charge.as_ref()?;
        let (arena, spot) = (self.arena.as_ref()?, charge.spot.as_ref()?);
        let spot = arena.take_elsewhere(spot.bytes())?;
        // Every published object has a charge, which keeps the cache alive.
        self.used.fetch_add(accounting_bytes(charge.kind) as u64, Ordering::Relaxed);
        let copy = object.copy(charge.cache.enter(charge.kind, spot.bytes(), Some(spot)))?;
        copy.inherit(object);
        let bytes = charge.bytes as u64;
        self.leave(object);
        self.note(&copy, slot);
        let is_exchanged = slot.swip.exchange(epoch, object, copy);
        debug_assert!(
            is_exchanged,
            "the swip of a published object changes under the lock of its shard only"
        );
        Some(bytes)
    }
}
