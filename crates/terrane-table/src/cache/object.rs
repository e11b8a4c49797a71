//! Cached objects, and the slots with the swips that point at them.
//!
//! Life of an object: created with a [`Charge`] (managed) or without (used once) -> published, and from then
//! on managed by one shard -> evicted or removed: out of the shard, its swip null, *retired* -> dropped when
//! no reader can see it and no cursor holds it; only then is its charge returned.
//!
//! The children of an index block are its published data blocks. Their swip slots lie in the index block, so
//! it stays in the cache while it has any. `children` counts them, or is [`DETACHED`]: then the index block
//! accepts no children. DETACHED -> 0 when the index block is published; 0 -> DETACHED when it is evicted.

use std::mem::offset_of;
use std::ptr;
use std::sync::Arc;

use terrane_base::prefetch::{LINE_BYTES, prefetch, prefetch_lines};
use terrane_base::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use terrane_format::block::Block;
use terrane_format::filter::{self, Filter};
use terrane_format::index::IndexBlock;
use terrane_format::range_deletes::Fragments;

use super::Cache;
use super::arena::Spot;
use super::memory::{self, Home, ObjectRef, SwipSlots, Tail};
use crate::swip::Swip;

/// Kinds of cached objects, as statistics distinguish them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// A data block.
    Data = 0,
    /// An extent's index block, with the swips of its data blocks.
    Index = 1,
    /// An extent's filter.
    Filter = 2,
    /// A part of the row cache.
    Rows = 3,
    /// An extent's range deletes.
    Ranges = 4,
}

impl ObjectKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [ObjectKind; 5] =
        [ObjectKind::Data, ObjectKind::Index, ObjectKind::Filter, ObjectKind::Rows, ObjectKind::Ranges];

    /// Returns true if the bytes of this kind never lie in the arena: they are several allocations, or the
    /// cache does not define their layout.
    pub(super) fn lies_outside(self) -> bool {
        matches!(self, ObjectKind::Rows | ObjectKind::Ranges)
    }
}

/// A swip, with the time of the last eviction of its object.
#[derive(Debug, Default)]
pub(crate) struct SwipSlot {
    pub(crate) swip: Swip<Object, ObjectRef>,
    /// The shard's clock at that eviction, and the queue; 0 for none. Used instead of ghost queues.
    pub(super) ghost: AtomicU32,
}

/// The contents of an object.
#[derive(Debug)]
pub(crate) enum Payload {
    Data(Block<Tail>),
    Index(Index),
    Filter(Filter<Tail>),
    Ranges(Box<Fragments>),
}

/// The rows of an index block.
pub(crate) type Rows = IndexBlock<Tail>;

/// An index block and the swip slots of its data blocks.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) rows: Rows,
    pub(crate) slots: SwipSlots,
}

impl Index {
    /// Prefetches the slots among which that of `key` will be found.
    #[inline]
    pub(crate) fn prefetch_slots(&self, key: &[u8]) {
        debug_assert!(self.slots.len() == self.rows.len(), "each block has a slot");
        let slots = self.slots.get(self.rows.neighbours(key)).unwrap_or_default();
        prefetch_lines(slots.as_ptr(), size_of_val(slots).div_ceil(LINE_BYTES));
    }

    /// The block in which a search for `key` begins; its slot is prefetched meanwhile.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> usize {
        self.prefetch_slots(key);
        let at = self.rows.find(key);
        debug_assert!(at <= self.rows.len(), "a search ends in a block or behind the last one");
        at
    }

    /// Returns true if the next block may hold versions of `key` that are not in block `at`.
    #[inline]
    pub(crate) fn continues(&self, at: usize, key: &[u8]) -> bool {
        self.rows.last_key(at) == key && self.rows.goes_on(at)
    }
}

/// The cache lines of an object that a search reads, from the reference bit to the end of the payload.
const SEARCH_AT: usize = offset_of!(Object, referenced) / LINE_BYTES * LINE_BYTES;
const SEARCH_LINES: usize = (size_of::<Object>() - SEARCH_AT).div_ceil(LINE_BYTES);

const DETACHED: u32 = 1 << 31;

/// See the [module](self). What it refers to follows it in the same memory (`memory`).
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Object {
    /// References: of its swip, of its retirement, and of holders beyond an epoch.
    pub(super) references: AtomicUsize,
    /// The owner to which its memory returns.
    pub(super) home: Home,
    /// Its slot while it is published. Written under the lock of the slot's shard.
    pub(super) slot: AtomicPtr<SwipSlot>,
    pub(super) charge: Option<Charge>,
    /// Index of its entry in the shard while published; only accessed under the shard's lock.
    pub(super) entry: AtomicU32,
    children: AtomicU32,
    referenced: AtomicBool,
    pub(crate) payload: Payload,
}

impl Object {
    pub(super) fn new(payload: Payload, charge: Option<Charge>, home: Home) -> Object {
        Object {
            references: AtomicUsize::new(1),
            home,
            slot: AtomicPtr::new(ptr::null_mut()),
            charge,
            entry: AtomicU32::new(0),
            children: AtomicU32::new(DETACHED),
            referenced: AtomicBool::new(false),
            payload,
        }
    }

    /// The block, if this is one.
    #[inline]
    pub(crate) fn block(&self) -> &Block<Tail> {
        match &self.payload {
            Payload::Data(block) => block,
            _ => unreachable!("slots in index blocks hold data blocks only"),
        }
    }

    /// The index, if this is one.
    #[inline]
    pub(crate) fn index(&self) -> &Index {
        match &self.payload {
            Payload::Index(index) => index,
            _ => unreachable!("an extent's slot for its index holds nothing else"),
        }
    }

    /// The filter, if this is one.
    #[inline]
    pub(crate) fn filter(&self) -> &Filter<Tail> {
        match &self.payload {
            Payload::Filter(filter) => filter,
            _ => unreachable!("an extent's slot for its filter holds nothing else"),
        }
    }

    /// The range deletes, if these are some.
    #[inline]
    pub(crate) fn ranges(&self) -> &Fragments {
        match &self.payload {
            Payload::Ranges(fragments) => fragments,
            _ => unreachable!("an extent's slot for its range deletes holds nothing else"),
        }
    }

    /// Prefetches the lines that a search reads first.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch_lines(ptr::from_ref(self).cast::<u8>().wrapping_add(SEARCH_AT), SEARCH_LINES);
    }

    /// As [`Object::prefetch`], for callers that also take a reference.
    #[inline]
    pub(crate) fn prefetch_whole(&self) {
        prefetch(ptr::from_ref(self));
        self.prefetch();
    }

    /// Prefetches the lines that a query of this filter reads, header and bits, which would otherwise wait
    /// for each other. `encoded_len` is the length of the filter in its extent.
    #[inline]
    pub(crate) fn prefetch_filter(&self, hash: u64, encoded_len: u32) {
        debug_assert!(
            matches!(self.payload, Payload::Filter(_)),
            "lines of another object would be prefetched"
        );
        let line = memory::HEAD_BYTES + filter::line_offset(hash, encoded_len as usize);
        prefetch(ptr::from_ref(self).cast::<u8>().wrapping_add(line));
        self.prefetch();
    }

    /// Sets the reference bit. Writes the shared line only if the bit is clear.
    #[inline]
    pub(crate) fn touch(&self) {
        if !self.referenced.load(Ordering::Relaxed) {
            self.referenced.store(true, Ordering::Relaxed);
        }
    }

    /// Returns true if it was used since the evicting thread last checked.
    pub(super) fn is_referenced(&self) -> bool {
        self.referenced.load(Ordering::Relaxed)
    }

    /// Returns true if it was used since the last call.
    pub(super) fn take_referenced(&self) -> bool {
        self.referenced.load(Ordering::Relaxed) && self.referenced.swap(false, Ordering::Relaxed)
    }

    /// Accepts children from now on. Called only before the object is published.
    pub(super) fn attach(&self) {
        debug_assert!(!self.has_children(), "an object that is published has no children yet");
        self.children.store(0, Ordering::Relaxed);
    }

    /// Replaces `old`, which is published and has no children: takes over its entry and its reference bit.
    pub(super) fn inherit(&self, old: &Object) {
        debug_assert!(!old.has_children(), "an object that moves has no children: they hold its address");
        self.attach();
        self.entry.store(old.entry.load(Ordering::Relaxed), Ordering::Relaxed);
        self.referenced.store(old.is_referenced(), Ordering::Relaxed);
    }

    /// Refuses children from now on; fails while there are any.
    pub(super) fn detach(&self) -> bool {
        // Acquire: pairs with the Release of `remove_child`; the removal of a child happens before our end.
        self.children.compare_exchange(0, DETACHED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Refuses children from now on, whether there are any or not: the owner removes them itself.
    pub(super) fn close(&self) {
        self.children.fetch_or(DETACHED, Ordering::AcqRel);
    }

    /// Counts one more child; refused once detached.
    pub(super) fn add_child(&self) -> bool {
        let count = |children| if children & DETACHED == 0 { Some(children + 1) } else { None };
        self.children.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count).is_ok()
    }

    /// Counts one child less.
    pub(super) fn remove_child(&self) {
        let before = self.children.fetch_sub(1, Ordering::Release);
        debug_assert!(before & !DETACHED > 0, "every child was counted before");
    }

    /// Returns true if children are accepted: only children of a cached index block can be published.
    pub(crate) fn accepts_children(&self) -> bool {
        self.children.load(Ordering::Relaxed) & DETACHED == 0
    }

    pub(super) fn has_children(&self) -> bool {
        self.children.load(Ordering::Relaxed) & !DETACHED > 0
    }
}

/// An object's share of the cache's limit, and its spot in the arena if it has one; returned on drop, when
/// the spot is not used any more.
#[derive(Debug)]
pub(crate) struct Charge {
    pub(super) cache: Arc<Cache>,
    pub(super) kind: ObjectKind,
    pub(super) bytes: usize,
    pub(super) spot: Option<Spot>,
    /// Set when the object was removed and only waits for its last reader.
    pub(super) retired: AtomicBool,
}

impl Charge {
    pub(super) fn new(cache: Arc<Cache>, kind: ObjectKind, bytes: usize, spot: Option<Spot>) -> Self {
        Charge { cache, kind, bytes, spot, retired: AtomicBool::new(false) }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        debug_assert!(
            self.bytes >= super::room::accounting_bytes(self.kind),
            "an object is charged for its accounting"
        );
        let retired = self.retired.load(Ordering::Relaxed);
        self.cache.give_back(self.kind, self.bytes, self.spot.take(), retired);
    }
}
