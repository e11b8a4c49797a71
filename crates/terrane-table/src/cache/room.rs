//! Makes room: bytes are reserved for an object before it is read, and returned when its memory is free.
//!
//! `used` counts memory that the process has: an object on the heap or in a buffer, or a chunk of the arena.
//! `live` counts objects in any of them. Evictions lower `live`; `used` follows when the evicted objects are
//! freed, on the heap and in buffers at once, in the arena with the last object of a chunk.

use std::sync::Arc;

use terrane_base::sync::atomic::Ordering;
use terrane_base::sync::spin;

use super::arena::{Arena, Group, Spot};
use super::shard::ENTRY_BYTES;
use super::{Cache, Charge, ObjectKind, memory};
use crate::swip;

/// Attempts to find room before a read bypasses the cache. Memory is freed two epochs after its eviction, so
/// several are needed; more only help if a reader was suspended inside its epoch.
const RESERVE_TURNS: u32 = 12;

/// Share of the limit that is kept free in advance, so that a miss need not wait for its own eviction: one
/// part in this many.
const SLACK_SHARE: u64 = 32;

/// Bytes that a miss evicts in one turn beyond what it needs.
pub(super) const MISS_STEP_BYTES: u64 = 128 << 10;

/// Attempts to find room for a part that no read has asked for: what one of them evicts is free two later,
/// and none waits for readers.
const AHEAD_TURNS: u32 = RESERVE_TURNS / 2;

/// The parts into which the limit is divided for [`Ahead::share`].
const AHEAD_PARTS: u64 = 8;

/// A part of an extent that is cached before any read of it, in the order of its worth: a read asks the
/// filters of all levels, but the index block of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ahead {
    Filter,
    /// The index block of an extent above the last level.
    Index,
    /// Of one in the last level, which has most of them, or of a value table.
    LastIndex,
}

impl Ahead {
    fn kind(self) -> ObjectKind {
        match self {
            Ahead::Filter => ObjectKind::Filter,
            Ahead::Index | Ahead::LastIndex => ObjectKind::Index,
        }
    }

    /// The eighths of the limit that filters and index blocks may have together once this part is there: up
    /// to half, all of them come; beyond that the index blocks that are worth least stay out first.
    fn share(self) -> u64 {
        match self {
            Ahead::Filter => 6,
            Ahead::Index => 5,
            Ahead::LastIndex => 4,
        }
    }
}

/// Epoch steps of a shrink: memory is free two epochs after its eviction.
pub(super) const COLLECT_TURNS: u32 = 3;

impl Cache {
    /// Reserves `bytes` for an object of `kind` before it is read; evicts to make room. `None` if no room can
    /// be made: then the object is not cached.
    pub(crate) fn reserve(self: &Arc<Self>, kind: ObjectKind, bytes: usize) -> Option<Charge> {
        let counters = &self.kinds[kind as usize];
        counters.misses.fetch_add(1, Ordering::Relaxed);
        let charge = self.charge_evicting(kind, bytes);
        debug_assert!(
            charge.as_ref().is_none_or(|charge| charge.kind == kind && charge.bytes >= bytes),
            "the object gets the memory that it needs"
        );
        if charge.is_none() {
            counters.bypasses.fetch_add(1, Ordering::Relaxed);
        }
        charge
    }

    /// Takes memory for an object; evicts to make room.
    fn charge_evicting(self: &Arc<Self>, kind: ObjectKind, bytes: usize) -> Option<Charge> {
        let need = self.bytes_taken(kind, bytes) as u64;
        for turn in 0..RESERVE_TURNS {
            if need > self.limit.load(Ordering::Relaxed) {
                break;
            }
            let charge = self.charge_object(kind, bytes);
            debug_assert!(
                charge.as_ref().is_none_or(|charge| charge.bytes as u64 >= need),
                "the limit is kept for what the object takes, {need} bytes"
            );
            // There may be gaps that are too short: each turn makes more of them, also for the next misses.
            let gaps = if self.arena.is_some() { u64::from(turn + 1) * MISS_STEP_BYTES } else { 0 };
            self.make_room(if charge.is_some() { 0 } else { need + gaps });
            if charge.is_some() {
                return charge;
            }
            if self.needs_chunks(kind, bytes) {
                self.free_chunks(need);
            }
            if turn >= RESERVE_TURNS / 2 {
                spin(u32::MAX);
            }
        }
        None
    }

    /// Reserves `bytes` for a part that no read has asked for yet. `None` if filters and index blocks
    /// together would have more than their share of the limit, or if it needs more than the gaps that
    /// the eviction of a few data blocks leaves. No miss.
    pub(crate) fn reserve_ahead(self: &Arc<Self>, part: Ahead, bytes: usize) -> Option<Charge> {
        // Memory lent to the cache goes back to writers, and their threads would evict the part.
        let limit = self.limit.load(Ordering::Relaxed).min(self.lasting.load(Ordering::Relaxed));
        let most = limit / AHEAD_PARTS * part.share();
        debug_assert!(most < limit || limit == 0, "data blocks keep a share of {limit} bytes, not of {most}");
        // No data block lies in a gap between index blocks.
        let gaps = self.arena.as_ref().map_or(0, |arena| arena.gap_bytes(Group::Fixed));
        let kind = part.kind();
        let need = self.bytes_taken(kind, bytes) as u64;
        let held = self.holds(ObjectKind::Filter) + self.holds(ObjectKind::Index) + gaps;
        if held + need > most {
            return None;
        }
        for _ in 0..AHEAD_TURNS {
            let charge = self.charge_object(kind, bytes);
            // Without as many data blocks an eviction displaces another part; and chunks are not emptied for
            // a part that may stay unread.
            let is_last = self.holds(ObjectKind::Data) <= need || self.needs_chunks(kind, bytes);
            if charge.is_some() || is_last {
                return charge;
            }
            self.make_room(need);
        }
        None
    }

    /// As [`Cache::reserve`], but without evicting anything.
    pub(crate) fn reserve_spare(self: &Arc<Self>, kind: ObjectKind, bytes: usize) -> Option<Charge> {
        let counters = &self.kinds[kind as usize];
        counters.misses.fetch_add(1, Ordering::Relaxed);
        let limit = self.limit.load(Ordering::Relaxed);
        let is_spare = self.live.load(Ordering::Relaxed) + bytes as u64 <= self.goal_within(limit);
        let charge = if is_spare { self.charge_object(kind, bytes) } else { None };
        debug_assert!(
            charge.as_ref().is_none_or(|charge| charge.kind == kind && charge.bytes >= bytes),
            "the object gets the memory that it needs"
        );
        if charge.is_none() {
            counters.bypasses.fetch_add(1, Ordering::Relaxed);
        }
        charge
    }

    /// Returns true if objects lie in an arena, but for those that are too large.
    pub(super) fn has_arena(&self) -> bool {
        self.arena.is_some()
    }

    /// Bytes of memory for an object of `bytes`. One that is too large for the arena has a whole buffer.
    fn bytes_taken(&self, kind: ObjectKind, bytes: usize) -> usize {
        let lies_in_buffer =
            self.arena.as_ref().is_some_and(|arena| !kind.lies_outside() && !arena.takes(bytes));
        let taken = if lies_in_buffer { memory::bytes_in_buffer(bytes) } else { bytes };
        debug_assert!(taken >= bytes, "an object of {bytes} bytes in {taken}");
        taken
    }

    /// Takes memory for an object if it fits into the limit.
    fn charge_object(self: &Arc<Self>, kind: ObjectKind, bytes: usize) -> Option<Charge> {
        let arena = self.arena.as_ref().filter(|arena| !kind.lies_outside() && arena.takes(bytes));
        let accounting = accounting_bytes(kind) as u64;
        let (bytes, spot) = match arena {
            None => {
                let bytes = self.bytes_taken(kind, bytes);
                (self.charge(bytes as u64 + accounting).then_some(bytes)?, None)
            }
            Some(arena) => {
                // A new chunk is charged as a whole, besides what is accounted already, so that the sum never
                // exceeds the limit.
                self.charge(accounting).then_some(())?;
                let spot = arena.take(bytes, group_of(kind), || self.charge(arena.chunk_bytes()));
                let Some(spot) = spot else {
                    self.used.fetch_sub(accounting, Ordering::Relaxed);
                    return None;
                };
                assert!(spot.bytes() >= bytes, "a spot of {} bytes for an object of {bytes}", spot.bytes());
                (spot.bytes(), Some(spot))
            }
        };
        Some(self.enter(kind, bytes, spot))
    }

    /// Counts an object that has memory.
    pub(super) fn enter(self: &Arc<Self>, kind: ObjectKind, bytes: usize, spot: Option<Spot>) -> Charge {
        debug_assert!(
            spot.as_ref().is_none_or(|spot| spot.bytes() == bytes),
            "an object in a spot counts as the whole spot: {bytes} bytes, {spot:?}"
        );
        let bytes = bytes + accounting_bytes(kind);
        self.live.fetch_add(bytes as u64, Ordering::Relaxed);
        self.kinds[kind as usize].bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        Charge::new(self.clone(), kind, bytes, spot)
    }

    /// Takes `need` bytes of memory if they fit.
    fn charge(&self, need: u64) -> bool {
        let limit = self.limit.load(Ordering::Relaxed);
        let fit = |used: u64| {
            used.checked_add(need).filter(|used| *used <= limit || terrane_base::planted!(UnlimitedCache))
        };
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fit).is_ok()
    }

    /// Evicts until `need` bytes and the slack are free, and frees what earlier evictions left.
    fn make_room(&self, need: u64) {
        let limit = self.limit.load(Ordering::Relaxed);
        if self.used_bytes() > limit {
            self.condense(limit, MISS_STEP_BYTES);
        }
        let goal = self.goal_within(limit).saturating_sub(need);
        if self.live.load(Ordering::Relaxed) <= goal {
            return;
        }
        let kept = self.kept();
        // If it is not over the goal, what was evicted already is free two epochs later.
        if kept > goal {
            // In steps: after a large reduction of the limit the first reader must not wait for all of it.
            // And several at once, for the next misses: objects that are evicted together take one bag of the
            // collector, 2 KiB, and with many readers the epoch stands still while any of them waits for a
            // processor.
            let batch = (limit / SLACK_SHARE / 2).min(MISS_STEP_BYTES);
            self.evict_to(goal.saturating_sub(batch).max(kept.saturating_sub(need + MISS_STEP_BYTES)));
        }
        // A new epoch each time, because our own must not block the collector.
        swip::enter().collect();
    }

    /// The part of the limit for objects: some stays free in advance, and chunks are whole.
    pub(super) fn goal_within(&self, limit: u64) -> u64 {
        let full = match &self.arena {
            None => limit,
            Some(arena) => {
                let others = self.used.load(Ordering::Relaxed).saturating_sub(arena.resident_bytes());
                let chunks = limit.saturating_sub(others) / arena.chunk_bytes();
                // Gaps between index blocks can only be used by index blocks.
                let full = chunks * arena.chunk_bytes() + others.min(limit);
                full.saturating_sub(arena.gap_bytes(Group::Fixed))
            }
        };
        debug_assert!(full <= limit, "evictions keep the cache within {limit} bytes, not {full}");
        full - full / SLACK_SHARE
    }

    pub(super) fn shrink_to(&self, goal: u64) {
        self.evict_to(self.goal_within(goal));
        for _ in 0..RESERVE_TURNS {
            swip::enter().collect();
        }
        self.condense(self.limit.load(Ordering::Relaxed), u64::MAX);
    }

    /// Returns true if an object does not fit into gaps, but only where a whole chunk was freed.
    fn needs_chunks(&self, kind: ObjectKind, bytes: usize) -> bool {
        let is_outside = |arena: &Arena| kind.lies_outside() || !arena.takes(bytes);
        self.arena.as_ref().is_some_and(|arena| is_outside(arena) || group_of(kind) == Group::Fixed)
    }

    /// Frees whole chunks for `need` bytes.
    fn free_chunks(&self, need: u64) {
        let Some(arena) = &self.arena else { return };
        let limit = self.limit.load(Ordering::Relaxed);
        let limit = limit.saturating_sub(need.next_multiple_of(arena.chunk_bytes()));
        self.evict_to(self.goal_within(limit));
        swip::enter().collect();
        self.condense(limit, u64::MAX);
    }

    /// Bytes that are reserved or accounted.
    pub(super) fn kept(&self) -> u64 {
        self.live.load(Ordering::Relaxed).saturating_sub(self.retired.load(Ordering::Relaxed))
    }

    pub(super) fn give_back(&self, kind: ObjectKind, bytes: usize, spot: Option<Spot>, retired: bool) {
        let object = bytes as u64;
        let of_kind = self.kinds[kind as usize].bytes.fetch_sub(object, Ordering::Relaxed);
        assert!(of_kind >= object, "{object} bytes of {kind:?} objects are given back of {of_kind}");
        let freed = match (&self.arena, spot) {
            (Some(arena), Some(spot)) => accounting_bytes(kind) as u64 + arena.give_back(spot),
            _ => object,
        };
        let used = self.used.fetch_sub(freed, Ordering::Relaxed);
        assert!(used >= freed, "{freed} bytes are given back of {used}: nothing would be cached any more");
        let live = self.live.fetch_sub(object, Ordering::Relaxed);
        assert!(live >= object, "{object} bytes of objects are given back of {live}");
        if retired {
            let retired = self.retired.fetch_sub(object, Ordering::Relaxed);
            assert!(retired >= object, "{object} bytes of retired objects are given back of {retired}");
        }
    }
}

/// Accounting bytes per object.
pub(super) fn accounting_bytes(kind: ObjectKind) -> usize {
    if kind == ObjectKind::Rows { 0 } else { ENTRY_BYTES }
}

/// The group of chunks for objects of a kind: the children of an index block hold its address.
fn group_of(kind: ObjectKind) -> Group {
    if kind == ObjectKind::Index { Group::Fixed } else { Group::Movable }
}
