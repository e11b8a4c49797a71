//! The cache of data blocks, index blocks, filters and range deletes. On a hit readers follow swips and never
//! call the cache. The cache decides which objects swips may point to.
//!
//! Steps of a miss: 1. `reserve` bytes, evicting if need be, before anything is read; 2. read, check, decode;
//! 3. `publish` the object under its swip. If no bytes can be reserved, the object is used once and never
//!    published (a *bypass*): the read succeeds, and it exceeds the limit by the one block that it holds.
//!
//! Objects lie in an arena (`arena`), or each in a heap allocation. Two counters: `used` is the memory that
//! the process has, with chunks of the arena counted as a whole; `live` is what objects take of it. Evictions
//! are decided by `live`: they leave gaps in chunks, and new objects go into gaps. When the limit falls,
//! chunks are emptied by moving their remaining objects (`condense`).
//!
//! Invariants:
//! 1. `used` never exceeds the limit (except for a moment after `resize` to less). It counts an object from
//!    before it is read until its memory is free, which includes evicted objects with readers and objects
//!    that cursors hold; and it counts a chunk until its last object is gone.
//! 2. A shard's lock is held for a bounded number of steps, never across I/O. The arena's lock may be taken
//!    under it, never the reverse, and no two shards are locked at once.
//!
//! Hits are not counted, because that would be the only shared write on this path. `misses`, compared to the
//! reads that the engine counts, gives the rate.

#![expect(unsafe_code, reason = "owners promise to remove a slot before they free it")]

mod arena;
mod condense;
pub(crate) mod memory;
mod object;
mod room;
mod shard;
pub(crate) mod windows;

use std::fmt;
use std::sync::Arc;

use terrane_base::sync::Mutex;
use terrane_base::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use self::arena::Arena;
use self::room::COLLECT_TURNS;
use self::shard::Shard;
use self::windows::WindowBudget;
use crate::swip::{self, Epoch};

pub(crate) use self::memory::ObjectRef;
pub use self::object::ObjectKind;
pub(crate) use self::object::{Charge, Index, Object, Payload, Rows, SwipSlot};
pub(crate) use self::room::Ahead;

/// With fewer bytes per shard, more shards would only make the queues short.
const SHARD_BYTES_MIN: u64 = 1 << 20;
const SHARDS_MAX: u64 = 64;

/// See the [module](self).
pub struct Cache {
    limit: AtomicU64,
    /// The part of the limit that stays while writers use all of their memory; see [`Cache::reserve_ahead`].
    lasting: AtomicU64,
    /// Bytes of memory: the arena's chunks, and all objects on the heap.
    used: AtomicU64,
    /// Bytes reserved, cached or retired: `used` without the gaps in chunks.
    live: AtomicU64,
    /// Bytes of removed objects that readers may still see.
    retired: AtomicU64,
    shards: Box<[Mutex<Shard>]>,
    /// The shard that evicts next.
    hand: AtomicUsize,
    /// The memory of objects; `None`: each has a heap allocation.
    arena: Option<Arena>,
    kinds: [KindCounters; ObjectKind::ALL.len()],
    /// Memory of the scans that use this cache, beside it.
    windows: WindowBudget,
}

#[derive(Debug, Default)]
struct KindCounters {
    bytes: AtomicU64,
    misses: AtomicU64,
    bypasses: AtomicU64,
    evictions: AtomicU64,
}

/// Contents and counters of the cache. Read without a lock, so the figures may disagree slightly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUsage {
    /// The limit, in bytes.
    pub limit_bytes: u64,
    /// Bytes of memory held, at most the limit.
    pub used_bytes: u64,
    /// Bytes of objects in it; the rest are gaps in chunks of the arena.
    pub live_bytes: u64,
    /// Bytes among them that were evicted and still have readers.
    pub retired_bytes: u64,
    /// Bytes of the cache's own structures, independent of its content: shards and counters. Not part of
    /// `used_bytes`.
    pub accounting_bytes: u64,
    /// By kind, in the order of [`ObjectKind::ALL`].
    pub kinds: [KindUsage; ObjectKind::ALL.len()],
}

/// Contents and counters for one kind of object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindUsage {
    /// Bytes held.
    pub bytes: u64,
    /// Objects that had to be read from the store.
    pub misses: u64,
    /// The misses whose object found no room in the cache.
    pub bypasses: u64,
    /// Objects evicted to make room.
    pub evictions: u64,
}

impl Cache {
    /// A cache of at most `bytes` whose objects lie on the heap.
    #[must_use]
    pub fn new(bytes: u64) -> Arc<Cache> {
        Cache::with_memory(bytes, bytes, None)
    }

    /// A cache of at most `bytes` that may be [resized](Cache::set_limit) up to `bytes_max`, with shards for
    /// that size. `bytes` is also the [lasting limit](Cache::set_lasting_limit). Objects lie in an arena of
    /// chunks of `chunk_bytes`, which are unmapped when they are empty.
    ///
    /// # Panics
    /// If `chunk_bytes` is 0 or no multiple of 512.
    #[must_use]
    pub fn with_memory(bytes_max: u64, bytes: u64, chunk_bytes: Option<usize>) -> Arc<Cache> {
        // The shard of a slot follows from its address, which an explorer of schedules does not choose.
        let shards_max = if terrane_base::sync::points::is_explored() { 1 } else { SHARDS_MAX };
        let shards = (bytes_max / SHARD_BYTES_MIN).clamp(1, shards_max).next_power_of_two();
        Arc::new(Cache {
            limit: AtomicU64::new(bytes),
            lasting: AtomicU64::new(bytes),
            used: AtomicU64::new(0),
            live: AtomicU64::new(0),
            retired: AtomicU64::new(0),
            shards: (0..shards).map(|_| Mutex::new(Shard::default())).collect(),
            hand: AtomicUsize::new(0),
            arena: chunk_bytes.map(Arena::new),
            kinds: Default::default(),
            windows: WindowBudget::default(),
        })
    }

    /// Changes the limit. Evicts the excess at once; its memory is free when its last reader has left.
    pub fn resize(&self, bytes: u64) {
        self.set_limit(bytes);
        self.shrink_to(bytes);
    }

    /// Changes the limit without evicting: misses and [`Cache::shrink_some`] do that.
    pub fn set_limit(&self, bytes: u64) {
        // Loaded first, because readers that miss share this cache line.
        if self.limit.load(Ordering::Relaxed) != bytes {
            self.limit.store(bytes, Ordering::Relaxed);
        }
    }

    /// Changes the bytes that the cache has of its own: a limit above them holds for a while only.
    pub fn set_lasting_limit(&self, bytes: u64) {
        self.lasting.store(bytes, Ordering::Relaxed);
    }

    /// Evicts at most `bytes` of the excess over the limit, so that the caller waits for a bounded time only;
    /// frees what earlier evictions left, as far as readers allow.
    pub fn shrink_some(&self, bytes: u64) {
        let limit = self.limit.load(Ordering::Relaxed);
        if self.used_bytes() <= limit {
            return;
        }
        self.evict_to(self.goal_within(limit).max(self.kept().saturating_sub(bytes)));
        for _ in 0..COLLECT_TURNS {
            swip::enter().collect();
        }
        self.condense(limit, bytes);
    }

    /// Bytes of memory held, evicted objects with readers included.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// The limit, in bytes.
    #[must_use]
    pub fn limit_bytes(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Evicts all that is above the limit, and frees what earlier evictions left.
    pub fn shrink(&self) {
        self.shrink_to(self.limit_bytes());
    }

    /// Evicts every object that is not pinned by another one.
    pub fn clear(&self) {
        self.shrink_to(0);
    }

    /// The contents and the counts of the cache.
    #[must_use]
    pub fn usage(&self) -> CacheUsage {
        CacheUsage {
            limit_bytes: self.limit.load(Ordering::Relaxed),
            used_bytes: self.used_bytes(),
            live_bytes: self.live.load(Ordering::Relaxed),
            retired_bytes: self.retired.load(Ordering::Relaxed),
            accounting_bytes: (size_of::<Cache>() + size_of_val(&*self.shards)) as u64,
            kinds: ObjectKind::ALL.map(|kind| self.kinds[kind as usize].usage()),
        }
    }

    /// Bytes held of a kind.
    #[must_use]
    pub fn holds(&self, kind: ObjectKind) -> u64 {
        self.kinds[kind as usize].bytes.load(Ordering::Relaxed)
    }

    /// Objects of a kind that had to be read from the store.
    #[must_use]
    pub fn misses(&self, kind: ObjectKind) -> u64 {
        self.kinds[kind as usize].misses.load(Ordering::Relaxed)
    }

    /// Publishes a charged object under `slot`. Returns false if another thread was faster, or if `parent`,
    /// the index block that holds `slot`, was removed: then the object belongs to its reader alone.
    ///
    /// # Safety
    /// The owner of `slot` calls [`Cache::remove`] for it before `slot` is dropped or moved. If `slot` lies
    /// in an index block, that is its `parent`.
    pub(crate) unsafe fn publish(
        &self,
        slot: &SwipSlot,
        parent: Option<&Object>,
        object: &ObjectRef,
    ) -> bool {
        let Some(charge) = &object.charge else { return false };
        let mut shard = self.shard(slot).lock();
        if parent.is_some_and(|parent| !parent.add_child()) {
            return false;
        }
        object.attach();
        if slot.swip.publish(object.clone()).is_err() {
            object.close();
            if let Some(parent) = parent {
                parent.remove_child();
            }
            return false;
        }
        // SAFETY: by the caller's promise, and because a parent with a child stays in the accounting.
        let entry = unsafe { shard.insert(slot, parent, charge.bytes) };
        debug_assert!(object.accepts_children(), "published and not evicted: the shard is locked");
        object.entry.store(entry, Ordering::Relaxed);
        self.note(object, slot);
        true
    }

    /// Makes a published object visible to threads that move objects. Requires: the shard is locked.
    fn note(&self, object: &Object, slot: &SwipSlot) {
        debug_assert!(object.slot.load(Ordering::Relaxed).is_null(), "an object lies under one slot");
        object.slot.store(std::ptr::from_ref(slot).cast_mut(), Ordering::Relaxed);
        if let (Some(arena), Some(spot)) = (&self.arena, object.charge.as_ref().and_then(|c| c.spot.as_ref()))
        {
            arena.note(spot, true);
        }
    }

    /// Removes the object under `slot`, if any, and its children from the cache. When it returns, the cache
    /// does not access `slot` any more. Requires: no thread publishes under `slot` or under the slots of its
    /// object from now on.
    pub(crate) fn remove(&self, slot: &SwipSlot, epoch: &Epoch) {
        if let Some(object) = slot.swip.load(epoch)
            && let Payload::Index(index) = &object.payload
        {
            object.close();
            for child in index.slots.iter().filter(|child| child.swip.load(epoch).is_some()) {
                self.remove(child, epoch);
            }
        }
        // Locked even if the swip is null: an evicting thread may still use `slot`.
        let mut shard = self.shard(slot).lock();
        if let Some(object) = slot.swip.load(epoch) {
            shard.remove(object.entry.load(Ordering::Relaxed));
            self.retire(slot, object, epoch);
        }
        debug_assert!(slot.swip.load(epoch).is_none(), "no thread publishes under a slot that goes");
    }

    /// Returns true if the object under `slot` was used more than once since it was loaded; `None` if no
    /// object is there.
    pub(crate) fn was_reused(&self, slot: &SwipSlot, epoch: &Epoch) -> Option<bool> {
        let shard = self.shard(slot).lock();
        let object = slot.swip.load(epoch)?;
        debug_assert!(object.charge.is_some(), "an object that is not charged has no entry in the shard");
        Some(object.is_referenced() || shard.is_in_main(object.entry.load(Ordering::Relaxed)))
    }

    /// Makes the next object under `slot` enter the main queue directly.
    pub(crate) fn mark_established(&self, slot: &SwipSlot) {
        self.shard(slot).lock().mark_established(slot);
    }

    /// Clears the swip of an object that was just removed from the accounting. Requires: the shard is still
    /// locked.
    fn retire(&self, slot: &SwipSlot, object: &Object, epoch: &Epoch) {
        debug_assert!(
            slot.swip.load(epoch).is_some_and(|found| std::ptr::eq(found, object)),
            "the object that is removed lies under its slot"
        );
        self.leave(object);
        slot.swip.clear(epoch);
    }

    /// Counts an object as retired, before it is retired. Requires: the shard is locked.
    fn leave(&self, object: &Object) {
        object.slot.store(std::ptr::null_mut(), Ordering::Relaxed);
        let charge = object.charge.as_ref().expect("only charged objects are published");
        if let (Some(arena), Some(spot)) = (&self.arena, &charge.spot) {
            arena.note(spot, terrane_base::planted!(KeepNotes));
        }
        let was_retired = charge.retired.swap(true, Ordering::Relaxed);
        assert!(!was_retired, "an object leaves the cache once: its bytes would be counted as kept for ever");
        self.retired.fetch_add(charge.bytes as u64, Ordering::Relaxed);
    }

    /// Evicts until at most `goal` bytes are in the accounting, or no shard can evict more.
    fn evict_to(&self, goal: u64) {
        debug_assert!(
            self.shards.len().is_power_of_two(),
            "the hand would never come to some of {} shards",
            self.shards.len()
        );
        let mut fruitless = 0;
        while self.kept() > goal && fruitless < 2 * self.shards.len() {
            let epoch = swip::enter();
            let hand = self.hand.fetch_add(1, Ordering::Relaxed) & (self.shards.len() - 1);
            let mut shard = self.shards[hand].lock();
            let Some((slot, object)) = shard.evict(&epoch) else {
                fruitless += 1;
                continue;
            };
            fruitless = 0;
            self.retire(slot, object, &epoch);
            let charge = object.charge.as_ref().expect("only charged objects are published");
            self.kinds[charge.kind as usize].evictions.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The shard that manages `slot`.
    fn shard(&self, slot: *const SwipSlot) -> &Mutex<Shard> {
        debug_assert!(
            self.shards.len().is_power_of_two(),
            "a mask selects one of {} shards",
            self.shards.len()
        );
        // Fibonacci hashing: slots are adjacent in memory, so their low bits alone would be uneven.
        let hash = (slot.addr() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &self.shards[(hash >> 32) as usize & (self.shards.len() - 1)]
    }
}

impl KindCounters {
    fn usage(&self) -> KindUsage {
        KindUsage {
            bytes: self.bytes.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            bypasses: self.bypasses.load(Ordering::Relaxed),
            evictions: self.evictions.load(Ordering::Relaxed),
        }
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        // Each charge holds the cache, so all bytes were given back.
        let usage = self.usage();
        debug_assert_eq!(
            (usage.used_bytes, usage.live_bytes, usage.retired_bytes),
            (0, 0, 0),
            "bytes without object"
        );
        debug_assert!(usage.kinds.iter().all(|kind| kind.bytes == 0), "bytes without object: {usage:?}");
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cache").field(&self.usage()).finish()
    }
}
