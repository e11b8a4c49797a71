//! The books of one shard of the cache: which objects there are and who goes next.
//!
//! Policy: S3-FIFO (Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023) with one reference
//! bit. New objects enter a *small* queue that holds a tenth of the bytes; those used again before they reach its
//! head move to the *main* queue, a CLOCK; those that were not leave quickly, so a scan cannot wash out the main
//! queue. The ghost queue is a time stamp beside each swip: an object that comes back before the small queue has
//! turned over as many objects as the main queue holds goes straight to the main queue.
//!
//! Layout: entries in a slab, linked by index into one of the two queues or the free list.
//!
//! Invariants:
//! 1. An entry is in the books exactly while its home's swip is not null; both change under the shard's lock.
//! 2. A home outlives its entry, and so does the index block it lies in: see `Cache::publish`.
//! 3. Only under the lock, and before the swip is cleared, does the evictor touch a home.

#![expect(unsafe_code, reason = "entries point at homes that their owners keep alive")]

use std::ptr::NonNull;

use terrane_base::sync::atomic::Ordering;

use super::object::{Home, Object};
use crate::swip::Epoch;

/// Bytes of the books per object.
pub(super) const ENTRY_BYTES: usize = size_of::<Entry>();

/// Entries that one call of [`Shard::evict`] looks at, so that the lock is held for microseconds. The hand stays
/// where it is, so the next call goes on.
const STEPS_MAX: u32 = 256;

/// The small queue's share of the bytes is one in this many.
const SMALL_SHARE: u64 = 10;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Free,
    Small,
    Main,
}

#[derive(Debug)]
struct Entry {
    home: NonNull<Home>,
    /// The index block that `home` lies in; `None` for a home in an extent.
    landlord: Option<NonNull<Object>>,
    bytes: usize,
    place: Place,
    next: u32,
    previous: u32,
}

// SAFETY: `Home` and `Object` are `Sync`, and invariant 2 keeps them alive from any thread's point of view.
unsafe impl Send for Entry {}

#[derive(Debug)]
struct Queue {
    head: u32,
    tail: u32,
    len: u32,
    bytes: u64,
}

impl Queue {
    const EMPTY: Queue = Queue { head: NONE, tail: NONE, len: 0, bytes: 0 };
}

#[derive(Debug)]
pub(super) struct Shard {
    entries: Vec<Entry>,
    free: u32,
    small: Queue,
    main: Queue,
    /// Evictions from the small queue so far, from 1: the time that ghosts are stamped with.
    clock: u32,
}

impl Default for Shard {
    fn default() -> Self {
        Shard { entries: Vec::new(), free: NONE, small: Queue::EMPTY, main: Queue::EMPTY, clock: 1 }
    }
}

impl Shard {
    /// Enters an object of `bytes` whose swip in `home` was just published.
    ///
    /// # Safety
    /// `home` and `landlord` stay where they are until the entry has left the books.
    pub(super) unsafe fn insert(&mut self, home: &Home, landlord: Option<&Object>, bytes: usize) -> u32 {
        let ghost = home.ghost.swap(0, Ordering::Relaxed);
        let returns = ghost != 0 && self.clock.wrapping_sub(ghost) <= self.main.len;
        let place = if returns { Place::Main } else { Place::Small };
        let entry = Entry {
            home: NonNull::from(home),
            landlord: landlord.map(NonNull::from),
            bytes,
            place: Place::Free,
            next: NONE,
            previous: NONE,
        };
        let index = self.free;
        let index = if index == NONE {
            self.entries.push(entry);
            (self.entries.len() - 1) as u32
        } else {
            self.free = self.entries[index as usize].next;
            self.entries[index as usize] = entry;
            index
        };
        self.push(index, place);
        index
    }

    /// Whether the entry `index`, which is in the books, is in the main queue.
    pub(super) fn is_in_main(&self, index: u32) -> bool {
        self.entries[index as usize].place == Place::Main
    }

    /// Stamps `home` as if its object had just been evicted: the next one returns.
    pub(super) fn vouch(&self, home: &Home) {
        home.ghost.store(self.clock, Ordering::Relaxed);
    }

    /// Takes an entry out of the books. The caller clears the swip before it unlocks.
    pub(super) fn remove(&mut self, index: u32) {
        self.unlink(index);
        let entry = &mut self.entries[index as usize];
        entry.next = self.free;
        self.free = index;
        if let Some(landlord) = entry.landlord.take() {
            // SAFETY: invariant 2; the tenant that moves out here is what kept the landlord.
            unsafe { landlord.as_ref() }.move_out();
        }
    }

    /// Takes the object that the policy gives up first out of the books, and returns its home, whose swip the
    /// caller clears before it unlocks. `None` if none was found within [`STEPS_MAX`] steps.
    pub(super) fn evict<'e>(&mut self, epoch: &'e Epoch) -> Option<(&'e Home, &'e Object)> {
        for _ in 0..STEPS_MAX.min(2 * (self.small.len + self.main.len) + 1) {
            let small_is_due = self.small.bytes * SMALL_SHARE > self.small.bytes + self.main.bytes;
            let from_small = self.small.len > 0 && (small_is_due || self.main.len == 0);
            let index = if from_small { self.small.head } else { self.main.head };
            if index == NONE {
                return None;
            }
            // SAFETY: invariant 2. A home in an extent stays until its owner has held this lock after us; a home
            // in an index block is retired through the epoch, which we are in.
            let home: &'e Home = unsafe { self.entries[index as usize].home.as_ref() };
            let object = home.swip.load(epoch).expect("invariant 1: an entry's swip is not null");
            if object.has_tenants() || object.take_referenced() || !object.detach() {
                self.unlink(index);
                self.push(index, Place::Main);
                continue;
            }
            if from_small {
                home.ghost.store(self.clock, Ordering::Relaxed);
                // 0 says "no ghost".
                self.clock = self.clock.wrapping_add(1).max(1);
            }
            self.remove(index);
            return Some((home, object));
        }
        None
    }

    fn queue(&mut self, place: Place) -> &mut Queue {
        match place {
            Place::Small => &mut self.small,
            Place::Main => &mut self.main,
            Place::Free => unreachable!("free entries are in no queue"),
        }
    }

    fn push(&mut self, index: u32, place: Place) {
        let bytes = self.entries[index as usize].bytes as u64;
        let queue = self.queue(place);
        let tail = queue.tail;
        queue.tail = index;
        queue.len += 1;
        queue.bytes += bytes;
        if tail == NONE {
            queue.head = index;
        } else {
            self.entries[tail as usize].next = index;
        }
        let entry = &mut self.entries[index as usize];
        (entry.place, entry.previous, entry.next) = (place, tail, NONE);
    }

    fn unlink(&mut self, index: u32) {
        let entry = &mut self.entries[index as usize];
        let (place, previous, next, bytes) = (entry.place, entry.previous, entry.next, entry.bytes as u64);
        entry.place = Place::Free;
        if previous != NONE {
            self.entries[previous as usize].next = next;
        }
        if next != NONE {
            self.entries[next as usize].previous = previous;
        }
        let queue = self.queue(place);
        queue.len -= 1;
        queue.bytes -= bytes;
        if previous == NONE {
            queue.head = next;
        }
        if next == NONE {
            queue.tail = previous;
        }
    }
}
