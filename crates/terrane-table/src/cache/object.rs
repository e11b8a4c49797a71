//! What swips point at, and what a swip needs around it.
//!
//! Life of an object: made with a [`Charge`] (managed) or without (in hand only) -> published, from then on in the
//! books of one shard -> evicted or removed: out of the books, its swip null, *retired* -> dropped when no reader
//! can see it and no cursor holds it; only then is its charge given back.
//!
//! Tenants of an index block are its published data blocks. Their homes lie in the index block, so it stays in
//! the books while it has any. `tenants` counts them, or says [`DETACHED`]: no more can come.
//! DETACHED -> 0 when the index block is published; 0 -> DETACHED when it is evicted.

use std::sync::Arc;

use terrane_base::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use terrane_format::block::Block;
use terrane_format::filter::Filter;
use terrane_format::index::IndexBlock;

use super::Cache;
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
}

impl ObjectKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [ObjectKind; 4] =
        [ObjectKind::Data, ObjectKind::Index, ObjectKind::Filter, ObjectKind::Rows];
}

/// A swip, and when its object was last evicted without having been used twice.
#[derive(Debug, Default)]
pub(crate) struct Home {
    pub(crate) swip: Swip<Object>,
    /// The shard's clock at that eviction; 0 for none. Stands in for the ghost queue of S3-FIFO.
    pub(super) ghost: AtomicU32,
}

/// The contents of an object.
#[derive(Debug)]
pub(crate) enum Payload {
    Data(Block),
    Index(Index),
    Filter(Filter),
}

/// An index block and the homes of the data blocks that it names.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) rows: IndexBlock,
    pub(crate) homes: Box<[Home]>,
}

impl Index {
    /// Whether versions of `key` that are not in block `at` may be in the next one.
    #[inline]
    pub(crate) fn continues(&self, at: usize, key: &[u8]) -> bool {
        self.rows.goes_on(at) && self.rows.row(at).last_key == key
    }
}

/// Bytes that an object costs beside its contents: itself, its entry in the books, the allocations' heads.
pub(crate) const OBJECT_BYTES: usize = size_of::<Object>() + super::shard::ENTRY_BYTES + 32;

const DETACHED: u32 = 1 << 31;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) payload: Payload,
    referenced: AtomicBool,
    tenants: AtomicU32,
    /// Index in the shard's books while published; only read and written under the shard's lock.
    pub(super) entry: AtomicU32,
    pub(super) charge: Option<Charge>,
}

impl Object {
    pub(crate) fn new(payload: Payload, charge: Option<Charge>) -> Arc<Object> {
        Arc::new(Object {
            payload,
            referenced: AtomicBool::new(false),
            tenants: AtomicU32::new(DETACHED),
            entry: AtomicU32::new(0),
            charge,
        })
    }

    /// The block, if this is one.
    #[inline]
    pub(crate) fn block(&self) -> &Block {
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
    pub(crate) fn filter(&self) -> &Filter {
        match &self.payload {
            Payload::Filter(filter) => filter,
            _ => unreachable!("an extent's home for its filter holds nothing else"),
        }
    }

    /// Notes a use. Writes the shared line only if nobody did since the evictor last came by.
    #[inline]
    pub(crate) fn touch(&self) {
        if !self.referenced.load(Ordering::Relaxed) {
            self.referenced.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it was used since the last call.
    pub(super) fn take_referenced(&self) -> bool {
        self.referenced.load(Ordering::Relaxed) && self.referenced.swap(false, Ordering::Relaxed)
    }

    /// Allows tenants. Only by whoever is about to publish the object.
    pub(super) fn attach(&self) {
        self.tenants.store(0, Ordering::Relaxed);
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

/// Bytes that an object holds of the cache's limit; given back on drop.
#[derive(Debug)]
pub(crate) struct Charge {
    pub(super) cache: Arc<Cache>,
    pub(super) kind: ObjectKind,
    pub(super) bytes: usize,
    /// Set when the object left the books and only waits for its last reader.
    pub(super) retired: AtomicBool,
}

impl Charge {
    pub(super) fn new(cache: Arc<Cache>, kind: ObjectKind, bytes: usize) -> Self {
        Charge { cache, kind, bytes, retired: AtomicBool::new(false) }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let retired = self.retired.load(Ordering::Relaxed);
        self.cache.give_back(self.kind, self.bytes, retired);
    }
}
