//! The content of a slot: a tagged pointer; part of [`node`](super), whose rules apply here.
#![expect(unsafe_code, reason = "follows tagged pointers within the arena")]

use std::marker::PhantomData;
use std::ptr::{from_ref, null_mut};

use terrane_base::sync::atomic::{AtomicPtr, Ordering};

use super::layout::Head;
use super::{Kind, LEAF, Node};
use crate::version::VersionEntry;

/// A location in a node that holds a [`Link`].
#[repr(transparent)]
pub(crate) struct Slot(AtomicPtr<u8>);

impl Slot {
    pub(crate) fn empty() -> Self {
        Slot(AtomicPtr::new(null_mut()))
    }

    #[inline]
    pub(crate) fn load(&self) -> Link<'_> {
        // Acquire: pairs with the Release in `store`.
        Link { tagged: self.0.load(Ordering::Acquire), arena: PhantomData }
    }

    /// Requires: rules 3 and 5.
    #[inline]
    pub(crate) fn store(&self, link: Link<'_>) {
        self.0.store(link.tagged, Ordering::Release);
    }
}

/// The content of a slot: nothing, the newest version of a key, or a node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link<'t> {
    pub(super) tagged: *mut u8,
    pub(super) arena: PhantomData<&'t VersionEntry>,
}

// SAFETY: leads to memory that many threads may use under the rules above and those of `version`.
unsafe impl Send for Link<'_> {}
// SAFETY: as above.
unsafe impl Sync for Link<'_> {}

/// A [`Link`], decoded.
#[derive(Clone, Copy)]
pub(crate) enum Child<'t> {
    Empty,
    Leaf(&'t VersionEntry),
    Node(Node<'t>),
}

impl<'t> Link<'t> {
    pub(crate) const EMPTY: Link<'t> = Link { tagged: null_mut(), arena: PhantomData };

    #[inline]
    pub(crate) fn leaf(entry: &'t VersionEntry) -> Self {
        let address = from_ref(entry).cast_mut().cast::<u8>();
        debug_assert!(address.addr() & LEAF == 0, "the tag would change the address");
        Link { tagged: address.map_addr(|address| address | LEAF), arena: PhantomData }
    }

    #[inline]
    pub(crate) fn child(self) -> Child<'t> {
        if self.tagged.is_null() {
            Child::Empty
        } else if self.tagged.addr() & LEAF != 0 {
            // SAFETY: tagged as an entry, which lives for `'t` (rule 5).
            Child::Leaf(unsafe { &*self.tagged.map_addr(|address| address & !LEAF).cast::<VersionEntry>() })
        } else {
            Child::Node(Node(self))
        }
    }

    /// The node in a slot that never holds a leaf, as that of the root. One check less than
    /// [`Link::child`], in each lookup.
    #[inline]
    pub(crate) fn node(self) -> Option<Node<'t>> {
        debug_assert!(self.tagged.addr() & LEAF == 0, "a root is not a leaf");
        if self.tagged.is_null() { None } else { Some(Node(self)) }
    }

    /// Prefetches the line that a lookup of `byte` below this link will read first.
    #[inline]
    pub(crate) fn prefetch(self, byte: u8) {
        debug_assert!(!self.tagged.is_null(), "an empty link leads to nothing that could be prefetched");
        if self.tagged.addr() & LEAF != 0 {
            return prefetch(self.tagged);
        }
        let offset = match Node(self).kind() {
            Kind::N4 | Kind::N16 => 0,
            Kind::N48 => size_of::<Head>() + usize::from(byte),
            Kind::N256 => size_of::<Head>() + usize::from(byte) * size_of::<Slot>(),
        };
        prefetch(Node(self).address().wrapping_add(offset));
    }
}

/// Prefetches a cache line; any address is allowed.
#[inline]
pub(crate) fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
