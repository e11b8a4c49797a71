//! The segments to which a memtable points: each is kept alive, and its use is counted.
//!
//! The table only grows, so a record pointer names its segment by index as long as the memtable lives.
//! Finding the index costs two loads and no lock if the same segment was used recently; only the first record
//! of a segment takes a lock.

use std::sync::{Arc, OnceLock};

use crossbeam_utils::CachePadded;
use terrane_base::SegmentId;
use terrane_base::sync::Mutex;
use terrane_base::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use terrane_device::SegmentMemory;

use crate::account::Account;
use crate::arena::{LANES, LaneGuard, add};

/// How much of one segment a memtable or global index uses. Exact when no writer is active; otherwise a few
/// records behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentUse {
    /// The segment.
    pub id: SegmentId,
    /// Bytes of its records that were indexed, including dead ones.
    pub bytes: u64,
    /// Bytes of those that a newer version of the same key shadows, or that a merge dropped. A snapshot may
    /// still need a shadowed version: dead bytes show what may be worth cleaning; they do not show what may
    /// be removed.
    pub dead_bytes: u64,
}

/// Segments share an element of `recent` by their low bits: neighbouring segments never collide.
const RECENT: usize = 16;
/// Bucket `b` holds `4 << b` segments, so 14 buckets hold 65532.
const BUCKETS: usize = 14;

pub(crate) struct SegmentTable {
    /// Index + 1 of the segment last seen with these low bits; 0 for none.
    recent: [AtomicU32; RECENT],
    buckets: [OnceLock<Bucket>; BUCKETS],
    /// Stored with Release after the entry, loaded with Acquire before it.
    count: AtomicU32,
    growing: Mutex<()>,
    /// The oldest segment that the owner has noted; `u64::MAX` for none. Only falls.
    noted: AtomicU64,
}

type Bucket = Box<[OnceLock<Box<Pinned>>]>;

/// A segment whose memory lives as long as the table.
pub(crate) struct Pinned {
    pub(crate) memory: Arc<SegmentMemory>,
    /// The lane that came first: of a table that is hardly written, the only one.
    first_lane: usize,
    /// Written only by the holder of that lane.
    first: CachePadded<LaneUse>,
    /// For all other lanes; each is written only by its lane's holder.
    others: OnceLock<Box<[CachePadded<LaneUse>; LANES]>>,
    /// Bytes of records that a merge dropped.
    dropped: AtomicU64,
}

/// The records of a segment as one lane counts them.
#[derive(Default)]
struct LaneUse {
    /// Bytes of records that the lane has indexed.
    indexed: AtomicU64,
    /// Bytes of records, of any lane, that the lane has found shadowed.
    shadowed: AtomicU64,
}

impl SegmentTable {
    pub(crate) fn new() -> Self {
        SegmentTable {
            recent: std::array::from_fn(|_| AtomicU32::new(0)),
            buckets: std::array::from_fn(|_| OnceLock::new()),
            count: AtomicU32::new(0),
            growing: Mutex::new(()),
            noted: AtomicU64::new(u64::MAX),
        }
    }

    #[inline]
    pub(crate) fn is_noted(&self, id: SegmentId) -> bool {
        // Acquire: pairs with the release in `note`; what the owner noted before is seen.
        self.noted.load(Ordering::Acquire) <= id.0
    }

    pub(crate) fn note(&self, oldest: SegmentId) {
        debug_assert!(self.find(oldest).is_some(), "{oldest} is noted, and no record lies there");
        self.noted.fetch_min(oldest.0, Ordering::Release);
    }

    /// The index of a segment, which is kept alive from now on, for the holder of a lane. What it takes of
    /// memory goes to the account.
    #[inline]
    pub(crate) fn pin(&self, segment: &Arc<SegmentMemory>, lane: usize, account: &Account) -> (u16, &Pinned) {
        let recent = self.recent[segment.id.0 as usize % RECENT].load(Ordering::Acquire);
        if recent != 0 {
            let pinned = self.get(recent - 1);
            if pinned.memory.id == segment.id {
                debug_assert!(pinned.is_of(segment), "segment {} has two memories", segment.id);
                return ((recent - 1) as u16, pinned);
            }
        }
        self.pin_slow(segment, lane, account)
    }

    /// The segment with an index that [`SegmentTable::pin`] returned.
    #[inline]
    pub(crate) fn at(&self, index: u16) -> &Pinned {
        self.get(u32::from(index))
    }

    /// All segments, by id.
    pub(crate) fn uses(&self) -> Vec<SegmentUse> {
        let mut uses: Vec<_> = self.iter().map(Pinned::segment_use).collect();
        uses.sort_unstable_by_key(|segment| segment.id);
        debug_assert!(uses.is_sorted_by(|a, b| a.id < b.id), "a segment is counted once");
        uses
    }

    /// Bytes of what the table keeps of its segments, without their memory.
    pub(crate) fn bytes(&self) -> u64 {
        let buckets = self.buckets.iter().filter_map(OnceLock::get);
        let buckets: usize = buckets.map(|bucket| size_of_val(&**bucket)).sum();
        buckets as u64 + self.iter().map(Pinned::bytes).sum::<u64>()
    }

    pub(crate) fn oldest(&self) -> Option<SegmentId> {
        self.iter().map(|pinned| pinned.memory.id).min()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Pinned> {
        (0..self.count.load(Ordering::Acquire)).map(|index| self.get(index))
    }

    fn get(&self, index: u32) -> &Pinned {
        let (bucket, place) = place_of(index);
        let bucket = self.buckets[bucket].get().and_then(|bucket| bucket[place].get());
        bucket.expect("an index below the count")
    }

    #[cold]
    fn pin_slow(&self, segment: &Arc<SegmentMemory>, lane: usize, account: &Account) -> (u16, &Pinned) {
        let index = self.find(segment.id).unwrap_or_else(|| self.grow(segment, lane, account));
        debug_assert!(self.get(index).is_of(segment), "records of {} point elsewhere", segment.id);
        // Release: a thread that finds the index here finds the entry.
        self.recent[segment.id.0 as usize % RECENT].store(index + 1, Ordering::Release);
        (index as u16, self.get(index))
    }

    fn find(&self, id: SegmentId) -> Option<u32> {
        let index = self.iter().position(|pinned| pinned.memory.id == id);
        index.map(|index| index as u32)
    }

    fn grow(&self, segment: &Arc<SegmentMemory>, lane: usize, account: &Account) -> u32 {
        let _growing = self.growing.lock();
        if let Some(index) = self.find(segment.id) {
            return index;
        }
        let index = self.count.load(Ordering::Relaxed);
        let (bucket, place) = place_of(index);
        assert!(bucket < BUCKETS, "an index points into at most 65532 segments");
        let mut made = size_of::<Pinned>();
        let bucket = self.buckets[bucket].get_or_init(|| {
            let bucket: Bucket = (0..4 << bucket).map(|_| OnceLock::new()).collect();
            made += size_of_val(&*bucket);
            bucket
        });
        let new = bucket[place].set(Box::new(Pinned::new(segment.clone(), lane)));
        assert!(new.is_ok(), "an element is filled once, under the lock");
        account.take(made as u64);
        self.count.store(index + 1, Ordering::Release);
        index
    }
}

impl Pinned {
    fn new(memory: Arc<SegmentMemory>, first_lane: usize) -> Self {
        debug_assert!(first_lane < LANES, "lane {first_lane} of {LANES}");
        Pinned {
            memory,
            first_lane,
            first: CachePadded::default(),
            others: OnceLock::new(),
            dropped: AtomicU64::new(0),
        }
    }

    /// True if this is `segment`: a record pointer names its segment by index, and lies in that memory.
    fn is_of(&self, segment: &SegmentMemory) -> bool {
        self.memory.id == segment.id && self.memory.region.start() == segment.region.start()
    }

    /// Counts a record that was indexed.
    #[inline]
    pub(crate) fn count(&self, lane: &LaneGuard<'_>, bytes: usize) {
        debug_assert!(bytes > 0, "a record has at least one byte");
        add(&self.use_by(lane).indexed, bytes as u64);
    }

    /// The counters of a lane.
    #[inline]
    fn use_by(&self, lane: &LaneGuard<'_>) -> &LaneUse {
        debug_assert!(lane.index() < LANES, "lane {} of {LANES}", lane.index());
        if lane.index() == self.first_lane { &self.first } else { self.use_by_other(lane) }
    }

    /// The counters of a lane that did not come first.
    fn use_by_other(&self, lane: &LaneGuard<'_>) -> &LaneUse {
        debug_assert!(lane.index() != self.first_lane, "the first lane has counters of its own");
        let mut made = 0;
        let others = self.others.get_or_init(|| {
            made = size_of::<[CachePadded<LaneUse>; LANES]>();
            Box::new(std::array::from_fn(|_| CachePadded::default()))
        });
        if made > 0 {
            lane.account().take(made as u64);
        }
        &others[lane.index()]
    }

    fn bytes(&self) -> u64 {
        let others = self.others.get().map_or(0, |others| size_of_val(&**others));
        (size_of::<Self>() + others) as u64
    }

    /// Counts a record that a newer version shadows. The writer that finds it holds `lane`.
    #[inline]
    pub(crate) fn count_shadowed(&self, lane: &LaneGuard<'_>, bytes: usize) {
        debug_assert!(bytes > 0, "a record has at least one byte");
        add(&self.use_by(lane).shadowed, bytes as u64);
    }

    /// Counts records that a merge dropped.
    pub(crate) fn count_dropped(&self, bytes: u64) {
        self.dropped.fetch_add(bytes, Ordering::Relaxed);
    }

    fn segment_use(&self) -> SegmentUse {
        let dropped = self.dropped.load(Ordering::Relaxed);
        let others = self.others.get().into_iter().flat_map(|others| others.iter());
        let (mut indexed, mut shadowed) = (0, 0);
        for lane in std::iter::once(&self.first).chain(others) {
            indexed += lane.indexed.load(Ordering::Relaxed);
            shadowed += lane.shadowed.load(Ordering::Relaxed);
        }
        // A record may be shadowed before the thread that inserted it has counted it.
        let (bytes, dead_bytes) = (indexed + dropped, shadowed.min(indexed) + dropped);
        debug_assert!(dead_bytes <= bytes, "of {bytes} bytes {dead_bytes} are dead");
        SegmentUse { id: self.memory.id, bytes, dead_bytes }
    }
}

/// Bucket of an index, and its position there.
fn place_of(index: u32) -> (usize, usize) {
    let rank = index + 4;
    let bucket = rank.ilog2() - 2;
    (bucket as usize, (rank - (4 << bucket)) as usize)
}
