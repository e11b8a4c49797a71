//! What swips point at, and what a swip needs around it.
//!
//! Life of an object: made with a [`Charge`] (managed) or without (in hand only) -> published, from then on in the
//! books of one shard -> evicted or removed: out of the books, its swip null, *retired* -> dropped when no reader
//! can see it and no cursor holds it; only then is its charge given back.
//!
//! Tenants of an index block are its published data blocks. Their homes lie in the index block, so it stays in
//! the books while it has any. `tenants` counts them, or says [`DETACHED`]: no more can come.
//! DETACHED -> 0 when the index block is published; 0 -> DETACHED when it is evicted.

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
use super::memory::{self, Homes, ObjectRef, Tail};
use crate::swip::Swip;

/// Kinds of cached objects, as statistics tell them apart.
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

    /// Whether its bytes never lie in the arena: they are not in one piece, or not the cache's to lay out.
    pub(super) fn lies_outside(self) -> bool {
        matches!(self, ObjectKind::Rows | ObjectKind::Ranges)
    }
}

/// A swip, and when its object was last evicted.
#[derive(Debug, Default)]
pub(crate) struct Home {
    pub(crate) swip: Swip<Object, ObjectRef>,
    /// The shard's clock at that eviction, and from which queue; 0 for none. Stands in for ghost queues.
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

/// What an index block says.
pub(crate) type Rows = IndexBlock<Tail>;

/// An index block and the homes of the data blocks that it names.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) rows: Rows,
    pub(crate) homes: Homes,
}

impl Index {
    /// Asks for the homes among which that of `key` will be found.
    #[inline]
    pub(crate) fn prefetch_homes(&self, key: &[u8]) {
        let homes = self.homes.get(self.rows.neighbours(key)).unwrap_or_default();
        prefetch_lines(homes.as_ptr(), size_of_val(homes).div_ceil(LINE_BYTES));
    }

    /// The block in which a search for `key` begins; its home is asked for meanwhile.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> usize {
        self.prefetch_homes(key);
        self.rows.find(key)
    }

    /// Whether versions of `key` that are not in block `at` may be in the next one.
    #[inline]
    pub(crate) fn continues(&self, at: usize, key: &[u8]) -> bool {
        self.rows.last_key(at) == key && self.rows.goes_on(at)
    }
}

/// The lines of an object that a search reads, from the bit that notes a use to the end of the payload.
const SEARCH_AT: usize = offset_of!(Object, referenced) / LINE_BYTES * LINE_BYTES;
const SEARCH_LINES: usize = (size_of::<Object>() - SEARCH_AT).div_ceil(LINE_BYTES);

const DETACHED: u32 = 1 << 31;

/// See the [module](self). What it refers to lies behind it in the same memory (`memory`).
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Object {
    /// References: of its swip, of what retired it, of those that hold it beyond an epoch.
    pub(super) references: AtomicUsize,
    /// Bytes of the heap that it lies in; 0 if it lies in the arena.
    pub(super) heap_bytes: usize,
    /// Its home while it is published. Written under the lock of the home's shard.
    pub(super) home: AtomicPtr<Home>,
    pub(super) charge: Option<Charge>,
    /// Index in the shard's books while published; only read and written under the shard's lock.
    pub(super) entry: AtomicU32,
    tenants: AtomicU32,
    referenced: AtomicBool,
    pub(crate) payload: Payload,
}

impl Object {
    pub(super) fn new(payload: Payload, charge: Option<Charge>, heap_bytes: usize) -> Object {
        Object {
            references: AtomicUsize::new(1),
            heap_bytes,
            home: AtomicPtr::new(ptr::null_mut()),
            charge,
            entry: AtomicU32::new(0),
            tenants: AtomicU32::new(DETACHED),
            referenced: AtomicBool::new(false),
            payload,
        }
    }

    /// The block, if this is one.
    #[inline]
    pub(crate) fn block(&self) -> &Block<Tail> {
        match &self.payload {
            Payload::Data(block) => block,
            _ => unreachable!("homes in index blocks hold data blocks only"),
        }
    }

    /// The index, if this is one.
    #[inline]
    pub(crate) fn index(&self) -> &Index {
        match &self.payload {
            Payload::Index(index) => index,
            _ => unreachable!("an extent's home for its index holds nothing else"),
        }
    }

    /// The filter, if this is one.
    #[inline]
    pub(crate) fn filter(&self) -> &Filter<Tail> {
        match &self.payload {
            Payload::Filter(filter) => filter,
            _ => unreachable!("an extent's home for its filter holds nothing else"),
        }
    }

    /// The range deletes, if these are some.
    #[inline]
    pub(crate) fn ranges(&self) -> &Fragments {
        match &self.payload {
            Payload::Ranges(fragments) => fragments,
            _ => unreachable!("an extent's home for its range deletes holds nothing else"),
        }
    }

    /// Asks for the lines that a search reads first.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch_lines(ptr::from_ref(self).cast::<u8>().wrapping_add(SEARCH_AT), SEARCH_LINES);
    }

    /// As [`Object::prefetch`], for those who hold the object as well.
    #[inline]
    pub(crate) fn prefetch_whole(&self) {
        prefetch(ptr::from_ref(self));
        self.prefetch();
    }

    /// Asks for the lines that a question to this filter reads, header and bits, which wait for each other otherwise.
    /// `encoded_len` is the length of the filter in its extent.
    #[inline]
    pub(crate) fn prefetch_filter(&self, hash: u64, encoded_len: u32) {
        let line = memory::HEAD_BYTES + filter::line_offset(hash, encoded_len as usize);
        prefetch(ptr::from_ref(self).cast::<u8>().wrapping_add(line));
        self.prefetch();
    }

    /// Notes a use. Writes the shared line only if nobody did since the evictor last came by.
    #[inline]
    pub(crate) fn touch(&self) {
        if !self.referenced.load(Ordering::Relaxed) {
            self.referenced.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it was used since the evictor last came by.
    pub(super) fn is_referenced(&self) -> bool {
        self.referenced.load(Ordering::Relaxed)
    }

    /// Whether it was used since the last call.
    pub(super) fn take_referenced(&self) -> bool {
        self.referenced.load(Ordering::Relaxed) && self.referenced.swap(false, Ordering::Relaxed)
    }

    /// Allows tenants. Only by whoever is about to publish the object.
    pub(super) fn attach(&self) {
        self.tenants.store(0, Ordering::Relaxed);
    }

    /// Takes the place of `old`, which is published and has no tenants: what the books and the policy know of it.
    pub(super) fn inherit(&self, old: &Object) {
        self.attach();
        self.entry.store(old.entry.load(Ordering::Relaxed), Ordering::Relaxed);
        self.referenced.store(old.is_referenced(), Ordering::Relaxed);
    }

    /// Forbids tenants from now on; refused while there are any.
    pub(super) fn detach(&self) -> bool {
        // Acquire: pairs with the Release of `move_out`; what a tenant's removal did comes before our end.
        self.tenants.compare_exchange(0, DETACHED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Forbids tenants from now on, whether there are any or not: the owner is going and removes them itself.
    pub(super) fn close(&self) {
        self.tenants.fetch_or(DETACHED, Ordering::AcqRel);
    }

    /// Counts one more tenant; refused once detached.
    pub(super) fn move_in(&self) -> bool {
        let count = |tenants| if tenants & DETACHED == 0 { Some(tenants + 1) } else { None };
        self.tenants.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count).is_ok()
    }

    /// Counts one tenant less.
    pub(super) fn move_out(&self) {
        let before = self.tenants.fetch_sub(1, Ordering::Release);
        debug_assert!(before & !DETACHED > 0, "every tenant moved in before");
    }

    /// Whether tenants are accepted: only those of an index block in the books can be published.
    pub(crate) fn accepts_tenants(&self) -> bool {
        self.tenants.load(Ordering::Relaxed) & DETACHED == 0
    }

    pub(super) fn has_tenants(&self) -> bool {
        self.tenants.load(Ordering::Relaxed) & !DETACHED > 0
    }
}

/// Bytes that an object holds of the cache's limit, and its place in the arena if it has one; given back on drop, when
/// nobody uses the place any more.
#[derive(Debug)]
pub(crate) struct Charge {
    pub(super) cache: Arc<Cache>,
    pub(super) kind: ObjectKind,
    pub(super) bytes: usize,
    pub(super) spot: Option<Spot>,
    /// Set when the object left the books and only waits for its last reader.
    pub(super) retired: AtomicBool,
}

impl Charge {
    pub(super) fn new(cache: Arc<Cache>, kind: ObjectKind, bytes: usize, spot: Option<Spot>) -> Self {
        Charge { cache, kind, bytes, spot, retired: AtomicBool::new(false) }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let retired = self.retired.load(Ordering::Relaxed);
        self.cache.give_back(self.kind, self.bytes, self.spot.take(), retired);
    }
}
