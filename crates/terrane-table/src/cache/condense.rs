//! Giving chunks of the arena back: what is left in the sparsest ones is moved into gaps of the others.
//!
//! Steps: 1. a chunk is chosen, and takes nothing more in; 2. each object in it that is published is copied, and the copy
//! takes its place under its home, in the books and behind its swip; 3. the old ones are retired: readers that see them
//! finish, and when the last has left, the chunk is empty and goes back to the system.
//!
//! What somebody holds beyond an epoch, a cursor or a read under way, stays until it is let go.

#![expect(unsafe_code, reason = "objects are found by their place")]

use std::ptr::NonNull;

use terrane_base::sync::atomic::Ordering;

use super::arena::{Draining, Group};
use super::object::Object;
use super::room::{COLLECT_TURNS, MISS_STEP_BYTES, books_bytes};
use super::{Cache, Home};
use crate::swip::{self, Epoch};

/// Objects that are moved under one epoch: others wait for memory.
const EPOCH_OBJECTS: usize = 16;

impl Cache {
    /// Empties chunks while there is more memory than `target`, until about `bytes` have been moved.
    pub(super) fn condense(&self, target: u64, bytes: u64) {
        let Some(arena) = &self.arena else { return };
        let mut moved = 0;
        while self.used_bytes() > target {
            let before = moved;
            if let Some(chunk) = arena.drain_sparsest() {
                self.empty(chunk, &mut moved);
            }
            let is_stuck = moved == before;
            if is_stuck && arena.gap_bytes(Group::Movable) >= arena.chunk_bytes() {
                // There are gaps, and what is left fits into none: some of it must go.
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

    /// Moves what can be moved out of a chunk.
    fn empty(&self, chunk: Draining, moved: &mut u64) {
        let Some(arena) = &self.arena else { return };
        let mut last = None;
        loop {
            // Entered before the notes are read: what they name lives until it is left.
            let epoch = swip::enter();
            let objects =
                arena.noted(chunk).into_iter().filter(|object| last.is_none_or(|last| *object > last));
            let batch: Vec<NonNull<u8>> = objects.take(EPOCH_OBJECTS).collect();
            let Some(&end) = batch.last() else { return };
            last = Some(end);
            for object in batch {
                // SAFETY: noted after the epoch was entered, and objects leave the notes before they are retired, so
                // this one is alive; a noted spot begins with the header of its object.
                let object: &Object = unsafe { object.cast().as_ref() };
                *moved += self.move_object(object, &epoch).unwrap_or(0);
            }
        }
    }

    /// Moves a published object; returns how many bytes it took. `None` if it left the books meanwhile, cannot be moved, or
    /// finds no gap.
    fn move_object(&self, object: &Object, epoch: &Epoch) -> Option<u64> {
        let address = object.home.load(Ordering::Relaxed);
        let _shard = self.shard(address).lock();
        if address.is_null() || object.home.load(Ordering::Relaxed) != address {
            return None;
        }
        // SAFETY: under the lock of its shard the home of a published object is there (invariant 2 of the shard).
        let home: &Home = unsafe { &*address };
        let charge = object.charge.as_ref()?;
        let (arena, spot) = (self.arena.as_ref()?, charge.spot.as_ref()?);
        let spot = arena.take_elsewhere(spot.bytes())?;
        // Every published object has a charge, and that keeps the cache.
        self.used.fetch_add(books_bytes(charge.kind) as u64, Ordering::Relaxed);
        let copy = object.copy(charge.cache.enter(charge.kind, spot.bytes(), Some(spot)))?;
        copy.inherit(object);
        let bytes = charge.bytes as u64;
        self.leave(object);
        self.note(&copy, home);
        let is_exchanged = home.swip.exchange(epoch, object, copy);
        debug_assert!(
            is_exchanged,
            "the swip of a published object changes under the lock of its shard only"
        );
        Some(bytes)
    }
}
