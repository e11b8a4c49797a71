//! One shard of the cache: which objects it has and which is evicted next.
//!
//! Policy: S3-FIFO (Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023) with one
//! reference bit. New objects enter a *small* queue that holds a tenth of the bytes at first; those used
//! again before they reach its head move to the *main* queue, a CLOCK; the others leave quickly, so a scan
//! cannot flush the main queue. Instead of a ghost queue there is a time stamp beside each swip: an object
//! that returns before the queue that evicted it has turned over as many objects as the other queue holds
//! goes directly to the main queue.
//!
//! The share of the small queue adapts, as in ARC (Megiddo and Modha, FAST 2003): each object that the small
//! queue evicted too early makes it larger, each that the main queue evicted too early makes it smaller, by
//! more. So a new working set enters at once, and a scan, whose objects do not return, changes nothing.
//!
//! Layout: entries in a slab, linked by index into one of the two queues or the free list.
//!
//! Invariants:
//! 1. An entry exists exactly while the swip of its slot is not null; both change under the shard's lock.
//! 2. A slot outlives its entry, and so does the index block that holds it: see `Cache::publish`.
//! 3. An evicting thread accesses a slot only under the lock and before it clears the swip.

#![expect(unsafe_code, reason = "entries point at slots that their owners keep alive")]

use std::ptr::NonNull;

use terrane_base::sync::atomic::Ordering;
use terrane_base::verify;

use super::object::{Object, SwipSlot};
use crate::swip::Epoch;

/// Accounting bytes per object.
pub(super) const ENTRY_BYTES: usize = size_of::<Entry>();

/// Entries that one call of [`Shard::evict`] visits, so that the lock is held for microseconds. The next call
/// continues at the same position.
const STEPS_MAX: u32 = 256;

/// The small queue's share of the bytes, in thousandths: first the initial and smallest one, then the
/// largest.
const SMALL_SHARE_MIN: u64 = 100;
const SMALL_SHARE_MAX: u64 = 800;

/// How much the share rises for an object that the small queue evicted too early, and falls for one that the
/// main queue did, times the share of one object in a shard: a few hundred returns change it, at any size of
/// the cache.
const SHARE_UP: u64 = 2;
const SHARE_DOWN: u64 = 8;

/// Flags of a ghost's time stamp: the main queue evicted the object; the object was not evicted (see
/// [`Shard::mark_established`]).
const FROM_MAIN: u32 = 1 << 31;
const ESTABLISHED: u32 = 1 << 30;
/// The other bits of the stamp are the time.
const TIME: u32 = ESTABLISHED - 1;

const NONE: u32 = u32::MAX;

/// One of so many entries that leave makes [`Shard::check`] walk the queues.
const CHECKED_ENTRIES: u32 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QueueId {
    Free,
    Small,
    Main,
}

#[derive(Debug)]
struct Entry {
    slot: NonNull<SwipSlot>,
    /// The index block that holds `slot`; `None` for a slot in an extent.
    parent: Option<NonNull<Object>>,
    bytes: usize,
    queue: QueueId,
    next: u32,
    previous: u32,
}

// SAFETY: `SwipSlot` and `Object` are `Sync`, and invariant 2 keeps them alive from any thread's point of
// view.
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
    /// Number of evictions from the small queue, from 1, modulo [`TIME`]: the time stamp of its ghosts.
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
    /// Adds an object of `bytes` whose swip in `slot` was just published.
    ///
    /// # Safety
    /// `slot` and `parent` stay at their addresses until the entry is removed.
    pub(super) unsafe fn insert(&mut self, slot: &SwipSlot, parent: Option<&Object>, bytes: usize) -> u32 {
        let ghost = slot.ghost.swap(0, Ordering::Relaxed);
        let returns = ghost != 0 && self.admit_ghost(ghost);
        let queue_id = if returns { QueueId::Main } else { QueueId::Small };
        let entry = Entry {
            slot: NonNull::from(slot),
            parent: parent.map(NonNull::from),
            bytes,
            queue: QueueId::Free,
            next: NONE,
            previous: NONE,
        };
        let index = self.free;
        let index = if index == NONE {
            self.entries.push(entry);
            (self.entries.len() - 1) as u32
        } else {
            debug_assert!(self.entries[index as usize].queue == QueueId::Free, "an entry is given out twice");
            self.free = self.entries[index as usize].next;
            self.entries[index as usize] = entry;
            index
        };
        self.push(index, queue_id);
        index
    }

    /// Returns true if an object with this time stamp returned early enough; adapts the share of the small
    /// queue then.
    fn admit_ghost(&mut self, ghost: u32) -> bool {
        let shares = SMALL_SHARE_MIN * 1000..=SMALL_SHARE_MAX * 1000;
        debug_assert!(
            shares.contains(&self.share),
            "the share of the small queue stays within its bounds: {} millionths",
            self.share
        );
        let is_from_main = ghost & FROM_MAIN != 0;
        let (clock, others) =
            if is_from_main { (self.main_clock, self.small.len) } else { (self.clock, self.main.len) };
        // Clocks wrap around.
        if clock.wrapping_sub(ghost) & TIME > others {
            return false;
        }
        if ghost & ESTABLISHED != 0 {
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

    /// Returns true if the entry `index`, which is in use, is in the main queue.
    pub(super) fn is_in_main(&self, index: u32) -> bool {
        self.entries[index as usize].queue == QueueId::Main
    }

    /// Stamps `slot` as if its object had just been evicted, but without changing the share: the next object
    /// enters the main queue.
    pub(super) fn mark_established(&self, slot: &SwipSlot) {
        slot.ghost.store(self.clock | ESTABLISHED, Ordering::Relaxed);
    }

    /// Removes an entry. The caller clears the swip before it unlocks.
    pub(super) fn remove(&mut self, index: u32) {
        self.unlink(index);
        verify!(!index.is_multiple_of(CHECKED_ENTRIES) || self.check());
        let entry = &mut self.entries[index as usize];
        entry.next = self.free;
        self.free = index;
        if let Some(parent) = entry.parent.take() {
            // SAFETY: invariant 2; the child that moves out here is what kept the parent.
            unsafe { parent.as_ref() }.remove_child();
        }
    }

    /// Removes the object that the policy evicts first, and returns its slot, whose swip the caller clears
    /// before it unlocks. `None` if none was found within [`STEPS_MAX`] steps.
    pub(super) fn evict<'e>(&mut self, epoch: &'e Epoch) -> Option<(&'e SwipSlot, &'e Object)> {
        for _ in 0..STEPS_MAX.min(2 * (self.small.len + self.main.len) + 1) {
            let bytes = u128::from(self.small.bytes + self.main.bytes);
            let small_is_due = u128::from(self.small.bytes) * 1_000_000 > bytes * u128::from(self.share);
            let from_small = self.small.len > 0 && (small_is_due || self.main.len == 0);
            let index = if from_small { self.small.head } else { self.main.head };
            if index == NONE {
                return None;
            }
            // SAFETY: invariant 2. A slot in an extent stays until its owner has held this lock after us; a
            // slot in an index block is retired through the epoch, which we are in.
            let slot: &'e SwipSlot = unsafe { self.entries[index as usize].slot.as_ref() };
            let object = slot.swip.load(epoch).expect("invariant 1: an entry's swip is not null");
            if object.has_children() || object.take_referenced() || !object.detach() {
                self.unlink(index);
                self.push(index, QueueId::Main);
                continue;
            }
            let (clock, mark) = match from_small {
                true => (&mut self.clock, 0),
                false => (&mut self.main_clock, FROM_MAIN),
            };
            slot.ghost.store(*clock | mark, Ordering::Relaxed);
            debug_assert!(!object.accepts_children(), "an evicted object has no children, and takes none");
            // 0 means "no ghost".
            *clock = ((*clock + 1) & TIME).max(1);
            self.remove(index);
            return Some((slot, object));
        }
        None
    }

    fn queue(&mut self, queue_id: QueueId) -> &mut Queue {
        match queue_id {
            QueueId::Small => &mut self.small,
            QueueId::Main => &mut self.main,
            QueueId::Free => unreachable!("free entries are in no queue"),
        }
    }

    /// Walks both queues and asserts that their links, lengths and bytes are those of their entries.
    fn check(&self) -> bool {
        for (queue, queue_id) in [(&self.small, QueueId::Small), (&self.main, QueueId::Main)] {
            let (mut at, mut previous, mut len, mut bytes) = (queue.head, NONE, 0, 0);
            while at != NONE {
                let entry = &self.entries[at as usize];
                assert!(entry.queue == queue_id, "entry {at} of {queue_id:?}: {entry:?}");
                assert!(entry.previous == previous, "entry {at} of {queue_id:?}: {entry:?}");
                (previous, len, bytes) = (at, len + 1, bytes + entry.bytes as u64);
                at = entry.next;
            }
            assert!(
                (len, bytes, previous) == (queue.len, queue.bytes, queue.tail),
                "{len}, {bytes}: {queue:?}"
            );
        }
        true
    }

    fn push(&mut self, index: u32, queue_id: QueueId) {
        debug_assert!(self.entries[index as usize].queue == QueueId::Free, "an entry is in one queue");
        let bytes = self.entries[index as usize].bytes as u64;
        let queue = self.queue(queue_id);
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
        (entry.queue, entry.previous, entry.next) = (queue_id, tail, NONE);
    }

    fn unlink(&mut self, index: u32) {
        let entry = &mut self.entries[index as usize];
        let (queue_id, previous, next, bytes) = (entry.queue, entry.previous, entry.next, entry.bytes as u64);
        entry.queue = QueueId::Free;
        if previous != NONE {
            self.entries[previous as usize].next = next;
        }
        if next != NONE {
            self.entries[next as usize].previous = previous;
        }
        let queue = self.queue(queue_id);
        assert!(queue.len > 0 && queue.bytes >= bytes, "{bytes} bytes leave {queue:?}");
        queue.len -= 1;
        queue.bytes -= bytes;
        debug_assert!(queue.len > 0 || queue.bytes == 0, "an empty queue has no bytes: {queue:?}");
        if previous == NONE {
            queue.head = next;
        }
        if next == NONE {
            queue.tail = previous;
        }
    }
}
