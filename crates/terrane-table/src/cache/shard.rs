//! The books of one shard of the cache: which objects there are and who goes next.
//!
//! Policy: S3-FIFO (Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023) with one reference
//! bit. New objects enter a *small* queue that holds a tenth of the bytes at first; those used again before they reach
//! its head move to the *main* queue, a CLOCK; those that were not leave quickly, so a scan cannot wash out the main
//! queue. The ghost queue is a time stamp beside each swip: an object that comes back before the queue it left has
//! turned over as many objects as the other queue holds goes straight to the main queue.
//!
//! The small queue's share follows what comes back, as in ARC (Megiddo and Modha, FAST 2003): each object that the small
//! queue gave up too early makes it larger, each that the main queue did makes it smaller, by more. So a new set of what
//! is used comes in at once, and a scan, of which nothing comes back, changes nothing.
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

/// The small queue's share of the bytes, in thousandths: at first and at least, and at most.
const SMALL_SHARE_MIN: u64 = 100;
const SMALL_SHARE_MAX: u64 = 800;

/// How much the share rises for an object that the small queue gave up too early, and falls for one that the main queue
/// did, times the share of one object in a shard: a few hundred returns, whatever the size of the cache, change it.
const SHARE_UP: u64 = 2;
const SHARE_DOWN: u64 = 8;

/// Of a ghost's time stamp: whether the main queue gave the object up, and whether nobody did (see [`Shard::vouch`]).
const FROM_MAIN: u32 = 1 << 31;
const VOUCHED: u32 = 1 << 30;
/// The rest of it is the time.
const TIME: u32 = VOUCHED - 1;

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
    /// Evictions from the small queue so far, from 1, within [`TIME`]: the time that its ghosts are stamped with.
    clock: u32,
    /// The same for the main queue.
    main_clock: u32,
    /// The small queue's share of the bytes, in millionths.
    share: u64,
}

impl Default for Shard {
    fn default() -> Self {
        Shard {
            entries: Vec::new(),
            free: NONE,
            small: Queue::EMPTY,
            main: Queue::EMPTY,
            clock: 1,
            main_clock: 1,
            share: SMALL_SHARE_MIN * 1000,
        }
    }
}

impl Shard {
    /// Enters an object of `bytes` whose swip in `home` was just published.
    ///
    /// # Safety
    /// `home` and `landlord` stay where they are until the entry has left the books.
    pub(super) unsafe fn insert(&mut self, home: &Home, landlord: Option<&Object>, bytes: usize) -> u32 {
        let ghost = home.ghost.swap(0, Ordering::Relaxed);
        let returns = ghost != 0 && self.welcome(ghost);
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

    /// Whether an object with this time stamp comes back early enough; if so, the share of the small queue follows.
    fn welcome(&mut self, ghost: u32) -> bool {
        let is_from_main = ghost & FROM_MAIN != 0;
        let (clock, others) =
            if is_from_main { (self.main_clock, self.small.len) } else { (self.clock, self.main.len) };
        // Clocks go round.
        if clock.wrapping_sub(ghost) & TIME > others {
            return false;
        }
        if ghost & VOUCHED != 0 {
            return true;
        }
        let one = 1_000_000 / u64::from((self.small.len + self.main.len).max(1));
        let share = match is_from_main {
            true => self.share.saturating_sub(one * SHARE_DOWN),
            false => self.share + one * SHARE_UP,
        };
        self.share = share.clamp(SMALL_SHARE_MIN * 1000, SMALL_SHARE_MAX * 1000);
        true
    }

    /// Whether the entry `index`, which is in the books, is in the main queue.
    pub(super) fn is_in_main(&self, index: u32) -> bool {
        self.entries[index as usize].place == Place::Main
    }

    /// Stamps `home` as if its object had just been evicted, but by nobody's fault: the next one returns.
    pub(super) fn vouch(&self, home: &Home) {
        home.ghost.store(self.clock | VOUCHED, Ordering::Relaxed);
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
            let bytes = u128::from(self.small.bytes + self.main.bytes);
            let small_is_due = u128::from(self.small.bytes) * 1_000_000 > bytes * u128::from(self.share);
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
            let (clock, mark) = match from_small {
                true => (&mut self.clock, 0),
                false => (&mut self.main_clock, FROM_MAIN),
            };
            home.ghost.store(*clock | mark, Ordering::Relaxed);
            // 0 says "no ghost".
            *clock = ((*clock + 1) & TIME).max(1);
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
