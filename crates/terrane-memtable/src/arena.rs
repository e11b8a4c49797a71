//! The memory of one tree: bump allocation in chunks, all freed at once.
//!
//! ```text
//! chunk:  | version entries -> |          free          | <- nodes, each at a multiple of 64 |
//! ```
//!
//! A thread works in a *lane* that it enters for one insertion. The lane's flag is the arena's only
//! read-modify-write of an insertion: with the lane, the thread owns its chunk, counters and finger. Usually
//! there are more lanes than writers; a thread that finds its lane taken moves to the next.
//!
//! # Which thread may touch what
//! 1. `Lane::space` belongs to the holder of `Lane::busy`. Counters are written by the holder, read by
//!    anyone.
//! 2. Memory handed out belongs to the caller, uninitialised, until it publishes it by a release store.
//! 3. Nothing is freed or handed out twice before the arena is dropped, so published data stays readable as
//!    long as the arena is borrowed. Destructors do not run: the arena holds plain data and atomics only.
//!
//! # Memory ordering
//! `busy` is taken with Acquire and given back with Release, which hands `space` from holder to holder.
#![expect(unsafe_code, reason = "returns raw memory to its callers")]

use std::cell::UnsafeCell;
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;

use crossbeam_utils::CachePadded;
use terrane_base::SeqNo;
use terrane_base::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use terrane_base::sync::{Mutex, spin};
use terrane_device::Region;

use crate::account::Account;
use crate::version::VersionEntry;

/// Number of threads that can insert at once without waiting for a lane.
pub(crate) const LANES: usize = 16;
/// A lane's first chunk: the root of a tree and some tens of versions. Small: a database may have thousands
/// of tables that are hardly written.
const CHUNK_BYTES_FIRST: usize = 4 << 10;
/// From the second one on chunks double up to this, one huge page.
const CHUNK_BYTES_MAX: usize = terrane_device::HUGE_PAGE_BYTES;
/// Nodes start at a cache line; their links keep tags in the address bits that this frees.
pub(crate) const NODE_ALIGN: usize = 64;
const ENTRY_ALIGN: usize = 8;
/// Bytes of a lane.
const LANE_BYTES: u64 = size_of::<CachePadded<Lane>>() as u64;

pub(crate) struct Arena {
    /// Each is made when a thread first takes it.
    lanes: [OnceLock<Box<CachePadded<Lane>>>; LANES],
    /// A bit for each lane that may be taken: sums look at no others.
    made: AtomicU32,
    chunks: Mutex<Vec<Region>>,
    /// The memory of the index: the chunks, and the memory that its other parts add here.
    account: Account,
}

struct Lane {
    busy: AtomicBool,
    entries: AtomicU64,
    record_bytes: AtomicU64,
    last_seq: AtomicU64,
    space: UnsafeCell<Space>,
}

// SAFETY: `space` is used only by the holder of `busy` (rule 1).
unsafe impl Sync for Lane {}
// SAFETY: the pointers in `space` lead to memory that the arena owns.
unsafe impl Send for Lane {}

struct Space {
    low: *mut u8,
    high: *mut u8,
    chunk_bytes_next: usize,
    /// The version after which this lane last placed an older one; see `version::push`. It dangles only after
    /// the arena is gone.
    finger: *const VersionEntry,
}

impl Arena {
    pub(crate) fn new(account: Account) -> Self {
        Arena {
            lanes: std::array::from_fn(|_| OnceLock::new()),
            made: AtomicU32::new(0),
            chunks: Mutex::new(Vec::new()),
            account,
        }
    }

    /// Takes a lane, waiting only if more than [`LANES`] threads insert at once.
    pub(crate) fn enter(&self) -> LaneGuard<'_> {
        let first = hint::get();
        let mut turn = 0;
        loop {
            let index = (first + turn) % LANES;
            let is_made = self.made.load(Ordering::Acquire) >> index & 1 == 1;
            let lane = match self.lanes[index].get() {
                Some(lane) if is_made => lane,
                // Also if another thread has made it and has not set its bit yet.
                _ => self.make_lane(index),
            };
            if lane.try_take() {
                if turn > 0 {
                    hint::set(index);
                }
                return LaneGuard { arena: self, lane, index };
            }
            turn += 1;
            if turn >= LANES {
                spin((turn - LANES) as u32);
            }
        }
    }

    #[cold]
    fn make_lane(&self, index: usize) -> &CachePadded<Lane> {
        let mut made = 0;
        let lane = self.lanes[index].get_or_init(|| {
            made = LANE_BYTES;
            Box::new(CachePadded::new(Lane::new()))
        });
        self.account.take(made);
        // Whichever thread takes the lane has seen the bit or set it, so nothing is counted that a sum may
        // miss. Release: a sum that sees the bit sees the lane.
        self.made.fetch_or(1 << index, Ordering::Release);
        debug_assert!(self.made_lanes().count() <= LANES, "one lane for each of its numbers");
        lane
    }

    fn made_lanes(&self) -> impl Iterator<Item = &Lane> {
        let mut made = self.made.load(Ordering::Acquire);
        std::iter::from_fn(move || {
            let index = made.trailing_zeros() as usize;
            made &= made.wrapping_sub(1);
            let lane = self.lanes.get(index)?.get();
            debug_assert!(lane.is_some(), "a sum would end at lane {index}, which has a bit and is not made");
            lane.map(|lane| &***lane)
        })
    }

    /// Bytes of all chunks, used or not, and of the lanes: the memory of the tree.
    pub(crate) fn bytes(&self) -> u64 {
        let chunks: u64 = self.chunks.lock().iter().map(|chunk| chunk.len() as u64).sum();
        chunks + self.made_lanes().count() as u64 * LANE_BYTES
    }

    /// The account of the whole index.
    #[inline]
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    /// Version entries counted by [`LaneGuard::count`].
    pub(crate) fn entry_count(&self) -> u64 {
        self.made_lanes().map(|lane| lane.entries.load(Ordering::Relaxed)).sum()
    }

    /// Record bytes counted by [`LaneGuard::count`].
    pub(crate) fn record_bytes(&self) -> u64 {
        self.made_lanes().map(|lane| lane.record_bytes.load(Ordering::Relaxed)).sum()
    }

    /// Greatest sequence number counted by [`LaneGuard::count`]; 0 if none was.
    pub(crate) fn last_seq(&self) -> SeqNo {
        let last = self.made_lanes().map(|lane| lane.last_seq.load(Ordering::Relaxed)).max();
        SeqNo(last.unwrap_or(0))
    }

    #[cold]
    fn add_chunk(&self, bytes: usize) -> NonNull<u8> {
        let region = Region::heap(bytes);
        assert!(region.len() >= bytes, "a chunk of {bytes} bytes has {}", region.len());
        let start = region.start();
        debug_assert!(
            start.addr().get().is_multiple_of(NODE_ALIGN),
            "nodes lie at multiples of a cache line"
        );
        self.chunks.lock().push(region);
        self.account.take(bytes as u64);
        start
    }
}

impl Lane {
    fn new() -> Self {
        Lane {
            busy: AtomicBool::new(false),
            entries: AtomicU64::new(0),
            record_bytes: AtomicU64::new(0),
            last_seq: AtomicU64::new(0),
            space: UnsafeCell::new(Space {
                low: null_mut(),
                high: null_mut(),
                chunk_bytes_next: CHUNK_BYTES_FIRST,
                finger: std::ptr::null(),
            }),
        }
    }

    #[inline]
    fn try_take(&self) -> bool {
        // Loaded first, so that the cache line of a taken lane stays with its holder.
        !self.busy.load(Ordering::Relaxed)
            && self.busy.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }
}

/// A taken lane; returned when dropped.
pub(crate) struct LaneGuard<'t> {
    arena: &'t Arena,
    lane: &'t Lane,
    index: usize,
}

impl<'t> LaneGuard<'t> {
    /// Index of the lane, below [`LANES`].
    #[inline]
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// Memory for a node, aligned to [`NODE_ALIGN`].
    #[inline]
    pub(crate) fn node_memory(&mut self, bytes: usize) -> NonNull<u8> {
        let bytes = bytes.next_multiple_of(NODE_ALIGN);
        let space = self.space();
        // A chunk ends at a page's end, so `high` is always a multiple of `NODE_ALIGN`.
        if space.high.addr() - space.low.addr() < bytes {
            self.refill(bytes);
        }
        let space = self.space();
        space.high = space.high.wrapping_sub(bytes);
        debug_assert!(space.low <= space.high, "the node lies over version entries");
        debug_assert!(space.high.addr().is_multiple_of(NODE_ALIGN), "a link has its tag in the low bits");
        NonNull::new(space.high).expect("inside a chunk")
    }

    /// Memory for a version entry, aligned to 8.
    #[inline]
    pub(crate) fn entry_memory(&mut self) -> NonNull<VersionEntry> {
        const BYTES: usize = size_of::<VersionEntry>().next_multiple_of(ENTRY_ALIGN);
        const { assert!(align_of::<VersionEntry>() <= ENTRY_ALIGN) };
        let space = self.space();
        if space.high.addr() - space.low.addr() < BYTES {
            self.refill(BYTES);
        }
        let space = self.space();
        let entry = space.low;
        space.low = space.low.wrapping_add(BYTES);
        debug_assert!(space.low <= space.high, "the version entry lies over nodes");
        NonNull::new(entry.cast()).expect("inside a chunk")
    }

    /// Entries that the lane has counted.
    #[inline]
    pub(crate) fn entry_count(&self) -> u64 {
        self.lane().entries.load(Ordering::Relaxed)
    }

    /// The account of the whole index.
    pub(crate) fn account(&self) -> &'t Account {
        self.arena.account()
    }

    /// Number of entries that all lanes have counted; a sum, so not for every entry.
    pub(crate) fn arena_entry_count(&self) -> u64 {
        self.arena.entry_count()
    }

    /// Counts one entry that the tree has taken.
    #[inline]
    pub(crate) fn count(&mut self, record_bytes: usize, seq: SeqNo) {
        let lane = self.lane();
        debug_assert!(
            seq < SeqNo::MAX,
            "no record has the greatest number: readers ask with it for the newest"
        );
        add(&lane.entries, 1);
        add(&lane.record_bytes, record_bytes as u64);
        if seq.0 > lane.last_seq.load(Ordering::Relaxed) {
            lane.last_seq.store(seq.0, Ordering::Relaxed);
        }
    }

    /// The version that [`LaneGuard::set_finger`] stored in this lane.
    pub(crate) fn finger(&mut self) -> Option<&'t VersionEntry> {
        // SAFETY: set from a reference into this arena, which frees nothing while it is borrowed for `'t`.
        unsafe { self.space().finger.as_ref() }
    }

    /// Stores a version of this arena for the lane's next holder.
    pub(crate) fn set_finger(&mut self, entry: &'t VersionEntry) {
        self.space().finger = entry;
    }

    #[cold]
    fn refill(&mut self, bytes: usize) {
        let space = self.space();
        debug_assert!(space.high.addr() - space.low.addr() < bytes, "a chunk with room is left");
        let next = space.chunk_bytes_next;
        let chunk_bytes = next.max(bytes.next_multiple_of(4096));
        let start = self.arena.add_chunk(chunk_bytes).as_ptr();
        let space = self.space();
        // The second one is as long as the first: a lane has at most twice what it needs.
        let is_first = space.low.is_null();
        space.chunk_bytes_next = if is_first { next } else { (next * 2).min(CHUNK_BYTES_MAX) };
        space.low = start;
        space.high = start.wrapping_add(chunk_bytes);
    }

    #[inline]
    fn lane(&self) -> &'t Lane {
        self.lane
    }

    #[inline]
    fn space(&mut self) -> &mut Space {
        // SAFETY: this guard holds `busy` (rule 1), and `&mut self` makes the reference the only one.
        unsafe { &mut *self.lane().space.get() }
    }
}

impl Drop for LaneGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        debug_assert!(self.lane().busy.load(Ordering::Relaxed), "a lane is given back by its holder");
        // Release: pairs with the Acquire in `try_take`.
        self.lane().busy.store(false, Ordering::Release);
    }
}

/// Adds to a counter that only the caller's lane writes: no read-modify-write is needed.
#[inline]
pub(crate) fn add(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed) + by, Ordering::Relaxed);
}

/// The lane that a thread tries first: threads are assigned in turn and stay where they found a free one.
#[cfg(not(feature = "shuttle"))]
mod hint {
    use std::cell::Cell;

    use terrane_base::sync::thread_number;

    thread_local!(static HINT: Cell<usize> = const { Cell::new(usize::MAX) });

    #[inline]
    pub(super) fn get() -> usize {
        HINT.with(|hint| {
            if hint.get() == usize::MAX {
                hint.set(thread_number() % super::LANES);
            }
            hint.get()
        })
    }

    pub(super) fn set(lane: usize) {
        HINT.with(|hint| hint.set(lane));
    }
}

/// The schedule explorer runs all its threads on one: they meet at lane 0, which it is meant to explore.
#[cfg(feature = "shuttle")]
mod hint {
    pub(super) fn get() -> usize {
        0
    }

    pub(super) fn set(_lane: usize) {}
}
