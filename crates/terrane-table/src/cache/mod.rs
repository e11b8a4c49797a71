//! The manager of memory for data blocks, index blocks, filters and range deletes. Readers do not come here on a hit: they
//! follow swips. The cache decides what may be behind them.
//!
//! Steps of a miss: 1. `reserve` bytes, evicting if need be, before anything is read; 2. read, check, decode;
//! 3. `publish` the object under its swip. If no bytes can be had, the object is used once and never published
//! (a *bypass*): the read succeeds, and what it holds beyond the limit is the block in hand.
//!
//! Objects lie in an arena of their own (`arena`), or each by itself on the heap. Two books: `used` is memory that the
//! process has, chunks of the arena counted whole; `live` is what the objects take of it. Room is made by `live`: evictions
//! leave gaps in chunks, and objects go into gaps. When the limit falls, chunks are emptied by moving what is left in
//! them (`condense`).
//!
//! Invariants:
//! 1. `used` never passes the limit (but for a moment after `resize` to less). It counts an object from before it
//!    is read until its memory is free, that is, also while evicted objects wait for their last reader and while
//!    cursors hold them; a chunk until its last object is gone.
//! 2. A shard's lock is held for a bounded number of steps, never across I/O. The arena's lock may be taken under it, never
//!    the other way round, and no two shards are locked at a time.
//!
//! Hits are not counted: that would be a shared write on the one path that has none. `misses` against the reads
//! that the engine counts gives the rate.

#![expect(unsafe_code, reason = "homes are entered in the books by their owner's promise")]

mod arena;
mod condense;
pub(crate) mod memory;
mod object;
mod room;
mod shard;

use std::fmt;
use std::sync::Arc;

use terrane_base::sync::Mutex;
use terrane_base::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use self::arena::Arena;
use self::room::COLLECT_TURNS;
use self::shard::Shard;
use crate::swip::{self, Epoch};

pub(crate) use self::memory::ObjectRef;
pub use self::object::ObjectKind;
pub(crate) use self::object::{Charge, Home, Index, Object, Payload, Rows};

/// Below this many bytes for each, more shards would only make the queues short.
const SHARD_BYTES_MIN: u64 = 1 << 20;
const SHARDS_MAX: u64 = 64;

/// See the [module](self).
pub struct Cache {
    limit: AtomicU64,
    /// Bytes of memory: of the arena's chunks, and of everything that has its own.
    used: AtomicU64,
    /// Bytes promised, cached or retired; the whole of `used` but for gaps in chunks.
    live: AtomicU64,
    /// Bytes out of the books that some reader may still see.
    retired: AtomicU64,
    shards: Box<[Mutex<Shard>]>,
    /// Shard that gives up an object next.
    hand: AtomicUsize,
    /// Where objects lie; `None`: on the heap, each by itself.
    arena: Option<Arena>,
    kinds: [KindCounters; ObjectKind::ALL.len()],
}

#[derive(Debug, Default)]
struct KindCounters {
    bytes: AtomicU64,
    misses: AtomicU64,
    bypasses: AtomicU64,
    evictions: AtomicU64,
}

/// What the cache holds and did. Taken without a lock: figures of one moment may disagree slightly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUsage {
    /// The limit, in bytes.
    pub limit_bytes: u64,
    /// Bytes of memory held, at most the limit.
    pub used_bytes: u64,
    /// Bytes of objects in it; the rest are gaps in chunks of the arena.
    pub live_bytes: u64,
    /// Bytes among them that were evicted and wait for their last reader.
    pub retired_bytes: u64,
    /// Bytes of the cache itself, whatever it holds: its shards and its counters. No part of `used_bytes`.
    pub books_bytes: u64,
    /// By kind, in the order of [`ObjectKind::ALL`].
    pub kinds: [KindUsage; ObjectKind::ALL.len()],
}

/// What the cache holds and did of one kind of object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindUsage {
    /// Bytes held.
    pub bytes: u64,
    /// Objects that had to be read from the store.
    pub misses: u64,
    /// Of the misses, those that found no room in the cache.
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

    /// A cache of at most `bytes` that may be [resized](Cache::set_limit) to `bytes_max`, with shards for that many.
    /// Objects lie in an arena of chunks of `chunk_bytes`, which are given back to the system when they are empty.
    ///
    /// # Panics
    /// If `chunk_bytes` is 0 or no multiple of 512.
    #[must_use]
    pub fn with_memory(bytes_max: u64, bytes: u64, chunk_bytes: Option<usize>) -> Arc<Cache> {
        let shards = (bytes_max / SHARD_BYTES_MIN).clamp(1, SHARDS_MAX).next_power_of_two();
        Arc::new(Cache {
            limit: AtomicU64::new(bytes),
            used: AtomicU64::new(0),
            live: AtomicU64::new(0),
            retired: AtomicU64::new(0),
            shards: (0..shards).map(|_| Mutex::new(Shard::default())).collect(),
            hand: AtomicUsize::new(0),
            arena: chunk_bytes.map(Arena::new),
            kinds: Default::default(),
        })
    }

    /// Changes the limit. Evicts what is too much at once; its memory is free when its last reader has left.
    pub fn resize(&self, bytes: u64) {
        self.set_limit(bytes);
        self.shrink_to(bytes);
    }

    /// Changes the limit and evicts nothing: misses and [`Cache::shrink_some`] do.
    pub fn set_limit(&self, bytes: u64) {
        // Looked at first: the line is shared with readers that miss.
        if self.limit.load(Ordering::Relaxed) != bytes {
            self.limit.store(bytes, Ordering::Relaxed);
        }
    }

    /// Evicts at most `bytes` of what is above the limit, so that the caller is held up for a bounded time only; frees
    /// what earlier evictions left, where readers allow it.
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

    /// Bytes of memory held, evicted objects that wait for their last reader included.
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

    /// Evicts everything that is not held in place by something else.
    pub fn clear(&self) {
        self.shrink_to(0);
    }

    /// What the cache holds and did.
    #[must_use]
    pub fn usage(&self) -> CacheUsage {
        CacheUsage {
            limit_bytes: self.limit.load(Ordering::Relaxed),
            used_bytes: self.used_bytes(),
            live_bytes: self.live.load(Ordering::Relaxed),
            retired_bytes: self.retired.load(Ordering::Relaxed),
            books_bytes: (size_of::<Cache>() + size_of_val(&*self.shards)) as u64,
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

    /// Publishes a charged object under `home`. False if another thread was faster or `landlord`, the index block
    /// that `home` lies in, has left the books: the object is then its reader's alone.
    ///
    /// # Safety
    /// The owner of `home` calls [`Cache::remove`] for it before `home` is dropped or moved. A `home` in an index
    /// block names it as `landlord`.
    pub(crate) unsafe fn publish(&self, home: &Home, landlord: Option<&Object>, object: &ObjectRef) -> bool {
        let Some(charge) = &object.charge else { return false };
        let mut shard = self.shard(home).lock();
        if landlord.is_some_and(|landlord| !landlord.move_in()) {
            return false;
        }
        object.attach();
        if home.swip.publish(object.clone()).is_err() {
            object.close();
            if let Some(landlord) = landlord {
                landlord.move_out();
            }
            return false;
        }
        // SAFETY: by the caller's promise, and because a landlord with a tenant stays in the books.
        let entry = unsafe { shard.insert(home, landlord, charge.bytes) };
        object.entry.store(entry, Ordering::Relaxed);
        self.note(object, home);
        true
    }

    /// Lets those who move objects find one that was published. Requires: the shard is locked.
    fn note(&self, object: &Object, home: &Home) {
        object.home.store(std::ptr::from_ref(home).cast_mut(), Ordering::Relaxed);
        if let (Some(arena), Some(spot)) = (&self.arena, object.charge.as_ref().and_then(|c| c.spot.as_ref()))
        {
            arena.note(spot, true);
        }
    }

    /// Takes the object under `home`, if any, and its tenants out of the cache. When it returns, the cache does
    /// not touch `home` any more. Requires: nobody publishes under `home` or its object's homes from now on.
    pub(crate) fn remove(&self, home: &Home, epoch: &Epoch) {
        if let Some(object) = home.swip.load(epoch)
            && let Payload::Index(index) = &object.payload
        {
            object.close();
            for tenant in index.homes.iter().filter(|tenant| tenant.swip.load(epoch).is_some()) {
                self.remove(tenant, epoch);
            }
        }
        // Locked also if the swip is null: an evictor may be about to let go of `home`.
        let mut shard = self.shard(home).lock();
        if let Some(object) = home.swip.load(epoch) {
            shard.remove(object.entry.load(Ordering::Relaxed));
            self.retire(home, object, epoch);
        }
    }

    /// Whether the object under `home` was used more than once since it came; `None` if there is none.
    pub(crate) fn standing(&self, home: &Home, epoch: &Epoch) -> Option<bool> {
        let shard = self.shard(home).lock();
        let object = home.swip.load(epoch)?;
        Some(object.is_referenced() || shard.is_in_main(object.entry.load(Ordering::Relaxed)))
    }

    /// Lets the object that is published next under `home` go straight to those that are used again and again.
    pub(crate) fn vouch(&self, home: &Home) {
        self.shard(home).lock().vouch(home);
    }

    /// Clears the swip of an object that has just left the books. Requires: the shard is still locked.
    fn retire(&self, home: &Home, object: &Object, epoch: &Epoch) {
        self.leave(object);
        home.swip.clear(epoch);
    }

    /// Counts an object as retired, before it is. Requires: the shard is locked.
    fn leave(&self, object: &Object) {
        object.home.store(std::ptr::null_mut(), Ordering::Relaxed);
        let charge = object.charge.as_ref().expect("only charged objects are published");
        if let (Some(arena), Some(spot)) = (&self.arena, &charge.spot) {
            arena.note(spot, terrane_base::planted!(KeepNotes));
        }
        charge.retired.store(true, Ordering::Relaxed);
        self.retired.fetch_add(charge.bytes as u64, Ordering::Relaxed);
    }

    /// Evicts until at most `goal` bytes stay in the books, or every shard in turn has nothing to give.
    fn evict_to(&self, goal: u64) {
        let mut fruitless = 0;
        while self.kept() > goal && fruitless < 2 * self.shards.len() {
            let epoch = swip::enter();
            let hand = self.hand.fetch_add(1, Ordering::Relaxed) & (self.shards.len() - 1);
            let mut shard = self.shards[hand].lock();
            let Some((home, object)) = shard.evict(&epoch) else {
                fruitless += 1;
                continue;
            };
            fruitless = 0;
            self.retire(home, object, &epoch);
            let charge = object.charge.as_ref().expect("only charged objects are published");
            self.kinds[charge.kind as usize].evictions.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The shard that keeps the books for `home`.
    fn shard(&self, home: *const Home) -> &Mutex<Shard> {
        // Fibonacci hashing: homes lie side by side, so the low bits alone would be uneven.
        let hash = (home.addr() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
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

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cache").field(&self.usage()).finish()
    }
}
