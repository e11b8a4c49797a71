//! Inner nodes of the radix tree (Leis, Kemper, Neumann: The Adaptive Radix Tree, ICDE 2013).
//!
//! ```text
//! head, 32 bytes:  lock u32 | prefix length u32 | count u32 | keys of a Node4 u32 | prefix 8 | terminal 8
//! Node4      64 bytes:  head | 4 slots                     keys unsorted, in order of arrival
//! Node16    192 bytes:  head | 16 key bytes | 16 slots     likewise
//! Node48    704 bytes:  head | 256 index bytes | 48 slots  index: 0 = absent, i = slot i - 1
//! Node256  2112 bytes:  head | 256 slots
//!
//! link, 8 bytes:   null | version entry + 1 | node + kind << 1 + prefix length << 3 (7: see the head)
//! ```
//!
//! The *prefix* is the run of key bytes that all keys below share: up to 8 bytes are stored in the head,
//! longer ones are a pointer into segment memory. The *terminal* slot holds the key that ends where the
//! prefix ends. A link carries kind and prefix length, so that a lookup reads only the cache lines of a node
//! that it needs.
//!
//! # Which thread may touch what
//! 1. Until a node is published only its creator uses it.
//! 2. Kind, prefix and a used key or index byte never change: a writer that needs another prefix or more room
//!    publishes a copy in the parent's slot and retires the node.
//! 3. Slots, keys, index and count are written only under the node's lock. The lock of a retired node cannot
//!    be taken. Readers take no lock.
//! 4. A filled slot never becomes empty, and a reachable node was never freed (arena). So a reader that
//!    reached a node before it was retired finds in it, and below it, everything that was inserted before the
//!    reader started.
//! 5. Links stored in a node point to entries and nodes of the same arena; so does the link to the root,
//!    which the tree keeps beside its arena.
//!
//! # Memory ordering
//! A slot is stored with Release and loaded with Acquire, which publishes its target. In a Node4 and a Node16
//! the count is stored with Release after key and slot, in a Node48 the index after the slot; readers load it
//! first, with Acquire.
#![expect(unsafe_code, reason = "tagged pointers and unions in the memory of the arena")]

mod layout;
mod link;
mod search;

use std::marker::PhantomData;

use terrane_base::sync::atomic::Ordering;
use terrane_base::sync::spin;

use crate::arena::{LaneGuard, NODE_ALIGN};

pub(crate) use link::{Child, Link, Slot, prefetch};

use layout::{Head, Node4, Node16, Node48, Node256, PREFIX_INLINE, init_head, init_slots, init_words};
use search::{SmallKeys, byte_at, index_below, index_from, position};

const LEAF: usize = 1;
const KIND_SHIFT: u32 = 1;
const PREFIX_SHIFT: u32 = 3;
const PREFIX_LONG: usize = 7;
const TAG_MASK: usize = NODE_ALIGN - 1;

const LOCKED: u32 = 1;
const RETIRED: u32 = 2;

/// The size class of a node: its maximal number of children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// 4.
    N4 = 0,
    /// 16.
    N16 = 1,
    /// 48.
    N48 = 2,
    /// 256.
    N256 = 3,
}

/// A link to a node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Node<'t>(Link<'t>);

impl<'t> Node<'t> {
    /// A node without children. `prefix` lies in segment memory that the memtable pins, or in a node's head.
    pub(crate) fn new(lane: &mut LaneGuard<'t>, kind: Kind, prefix: &'t [u8]) -> Self {
        let bytes = match kind {
            Kind::N4 => size_of::<Node4>(),
            Kind::N16 => size_of::<Node16>(),
            Kind::N48 => size_of::<Node48>(),
            Kind::N256 => size_of::<Node256>(),
        };
        let memory = lane.node_memory(bytes).as_ptr();
        // SAFETY: fresh memory of the kind's size and alignment, which no other thread has.
        unsafe {
            init_head(memory.cast(), prefix);
            match kind {
                Kind::N4 => init_slots(&raw mut (*memory.cast::<Node4>()).slots),
                Kind::N16 => {
                    init_words(&raw mut (*memory.cast::<Node16>()).keys);
                    init_slots(&raw mut (*memory.cast::<Node16>()).slots);
                }
                Kind::N48 => {
                    init_words(&raw mut (*memory.cast::<Node48>()).index);
                    init_slots(&raw mut (*memory.cast::<Node48>()).slots);
                }
                Kind::N256 => init_slots(&raw mut (*memory.cast::<Node256>()).slots),
            }
        }
        let tag = (kind as usize) << KIND_SHIFT | prefix.len().min(PREFIX_LONG) << PREFIX_SHIFT;
        debug_assert!(tag & !TAG_MASK == 0, "the tag {tag:#x} would change the address");
        Node(Link { tagged: memory.map_addr(|address| address | tag), arena: PhantomData })
    }

    #[inline]
    pub(crate) fn link(self) -> Link<'t> {
        self.0
    }

    #[inline]
    pub(crate) fn kind(self) -> Kind {
        match self.0.tagged.addr() >> KIND_SHIFT & 3 {
            0 => Kind::N4,
            1 => Kind::N16,
            2 => Kind::N48,
            _ => Kind::N256,
        }
    }

    #[inline]
    fn head(self) -> &'t Head {
        // SAFETY: every kind of node starts with a head; it lives for `'t`.
        unsafe { &*self.address().cast::<Head>() }
    }

    #[inline]
    fn address(self) -> *mut u8 {
        self.0.tagged.map_addr(|address| address & !TAG_MASK)
    }

    /// Bytes of the prefix.
    #[inline]
    pub(crate) fn prefix_len(self) -> usize {
        match self.0.tagged.addr() >> PREFIX_SHIFT & PREFIX_LONG {
            PREFIX_LONG => {
                let len = self.head().prefix_len as usize;
                debug_assert!(len >= PREFIX_LONG, "a prefix of {len} bytes has its length in the link");
                len
            }
            len => len,
        }
    }

    #[inline]
    pub(crate) fn prefix(self) -> &'t [u8] {
        let len = self.prefix_len();
        if len == 0 {
            return &[];
        }
        let head = self.head();
        debug_assert!(head.prefix_len as usize == len, "link and head say two lengths of the prefix");
        // SAFETY: the length says which field of the union was set; bytes outside lie in pinned segment
        // memory.
        unsafe {
            if len <= PREFIX_INLINE {
                std::slice::from_raw_parts((&raw const head.prefix.inline).cast::<u8>(), len)
            } else {
                std::slice::from_raw_parts(head.prefix.outside, len)
            }
        }
    }

    /// The slot of the key that ends where the prefix ends.
    #[inline]
    pub(crate) fn terminal(self) -> &'t Slot {
        &self.head().terminal
    }

    /// The slot of `byte`; `None` if it has no slot yet. A Node256 has a slot, maybe empty, for every byte.
    #[inline]
    pub(crate) fn slot(self, byte: u8) -> Option<&'t Slot> {
        match self.body() {
            Body::N4(node) => {
                // Acquire: pairs with the Release in `add`; keys and slots below the count are visible.
                let count = node.head.count.load(Ordering::Acquire) as usize;
                let index = position(u64::from(node.head.keys4.load(Ordering::Relaxed)), byte);
                if index < count { Some(&node.slots[index]) } else { None }
            }
            Body::N16(node) => {
                let count = node.head.count.load(Ordering::Acquire) as usize;
                let low = position(node.keys[0].load(Ordering::Relaxed), byte);
                let index = match low {
                    8 => 8 + position(node.keys[1].load(Ordering::Relaxed), byte),
                    low => low,
                };
                // An unused key is 0, as a used one may be, but its index is not below the count.
                if index < count { Some(&node.slots[index]) } else { None }
            }
            Body::N48(node) => {
                let word = node.index[usize::from(byte / 8)].load(Ordering::Acquire);
                let index = byte_at(word, byte % 8);
                if index == 0 { None } else { Some(&node.slots[usize::from(index) - 1]) }
            }
            Body::N256(node) => Some(&node.slots[usize::from(byte)]),
        }
    }

    /// The child at `byte`.
    #[inline]
    pub(crate) fn child(self, byte: u8) -> Child<'t> {
        self.slot(byte).map_or(Child::Empty, |slot| slot.load().child())
    }

    #[inline]
    fn body(self) -> Body<'t> {
        let address = self.address();
        // SAFETY: the tag says which struct was made there; it lives for `'t`.
        unsafe {
            match self.kind() {
                Kind::N4 => Body::N4(&*address.cast()),
                Kind::N16 => Body::N16(&*address.cast()),
                Kind::N48 => Body::N48(&*address.cast()),
                Kind::N256 => Body::N256(&*address.cast()),
            }
        }
    }

    /// The child with the smallest byte from `from` on.
    #[inline]
    pub(crate) fn child_from(self, from: usize) -> Option<(u8, Child<'t>)> {
        let byte = match self.body() {
            Body::N4(_) | Body::N16(_) => self.small_keys().byte_from(from)?,
            Body::N48(node) => index_from(&node.index, from)?,
            Body::N256(node) => {
                let filled = |byte: &usize| node.slots[*byte].load() != Link::EMPTY;
                (from..256).find(filled)? as u8
            }
        };
        debug_assert!(usize::from(byte) >= from, "byte {byte} was passed");
        Some((byte, self.child(byte)))
    }

    /// The child with the greatest byte below `below`.
    pub(crate) fn child_below(self, below: usize) -> Option<(u8, Child<'t>)> {
        let byte = match self.body() {
            Body::N4(_) | Body::N16(_) => self.small_keys().byte_below(below)?,
            Body::N48(node) => index_below(&node.index, below)?,
            Body::N256(node) => {
                let filled = |byte: &usize| node.slots[*byte].load() != Link::EMPTY;
                (0..below).rev().find(filled)? as u8
            }
        };
        debug_assert!(usize::from(byte) < below, "byte {byte} was passed");
        Some((byte, self.child(byte)))
    }

    fn small_keys(self) -> SmallKeys {
        debug_assert!(matches!(self.kind(), Kind::N4 | Kind::N16), "a larger node has an index of bytes");
        let count = self.head().count.load(Ordering::Acquire) as usize;
        let words = match self.body() {
            Body::N16(node) => [node.keys[0].load(Ordering::Relaxed), node.keys[1].load(Ordering::Relaxed)],
            _ => [u64::from(self.head().keys4.load(Ordering::Relaxed)), 0],
        };
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&words[0].to_le_bytes());
        bytes[8..].copy_from_slice(&words[1].to_le_bytes());
        SmallKeys { bytes, count }
    }

    /// Returns true if [`Node::add`] has no room. This never changes back.
    #[inline]
    pub(crate) fn is_full(self) -> bool {
        let count = self.head().count.load(Ordering::Relaxed);
        let room = match self.kind() {
            Kind::N4 => 4,
            Kind::N16 => 16,
            Kind::N48 => 48,
            Kind::N256 => return false,
        };
        debug_assert!(count <= room, "{count} children in a node for {room}");
        count == room
    }

    /// Adds a child. Requires: the lock, or the node is unpublished; the slot of `byte` is empty; the node is
    /// not full.
    pub(crate) fn add(self, byte: u8, link: Link<'t>) {
        debug_assert!(!self.is_full());
        debug_assert!(matches!(self.child(byte), Child::Empty), "a byte has one child");
        let head = self.head();
        let count = head.count.load(Ordering::Relaxed) as usize;
        match self.body() {
            Body::N4(node) => {
                node.slots[count].store(link);
                let keys = head.keys4.load(Ordering::Relaxed);
                head.keys4.store(keys | u32::from(byte) << (8 * count), Ordering::Relaxed);
            }
            Body::N16(node) => {
                node.slots[count].store(link);
                let keys = &node.keys[count / 8];
                let word = keys.load(Ordering::Relaxed) | u64::from(byte) << (8 * (count % 8));
                keys.store(word, Ordering::Relaxed);
            }
            Body::N48(node) => {
                node.slots[count].store(link);
                let index = &node.index[usize::from(byte / 8)];
                let word = index.load(Ordering::Relaxed) | (count as u64 + 1) << (8 * (byte % 8));
                // Release: pairs with the Acquire in `slot`; the slot is visible.
                index.store(word, Ordering::Release);
            }
            Body::N256(node) => node.slots[usize::from(byte)].store(link),
        }
        // Release: pairs with the Acquire in `slot`; key and slot are visible.
        head.count.store(count as u32 + 1, Ordering::Release);
    }

    /// A copy with room for more children. Requires: the lock; the node is full.
    pub(crate) fn grown(self, lane: &mut LaneGuard<'t>) -> Node<'t> {
        debug_assert!(self.kind() != Kind::N256, "a node with a slot for each byte is never full");
        let kind = match self.kind() {
            Kind::N4 => Kind::N16,
            Kind::N16 => Kind::N48,
            Kind::N48 | Kind::N256 => Kind::N256,
        };
        self.copied(lane, kind, self.prefix())
    }

    /// A copy with another prefix. Requires: the lock.
    pub(crate) fn with_prefix(self, lane: &mut LaneGuard<'t>, prefix: &'t [u8]) -> Node<'t> {
        self.copied(lane, self.kind(), prefix)
    }

    fn copied(self, lane: &mut LaneGuard<'t>, kind: Kind, prefix: &'t [u8]) -> Node<'t> {
        debug_assert!(kind as u8 >= self.kind() as u8, "a smaller copy has no room for the children");
        let copy = Node::new(lane, kind, prefix);
        copy.terminal().store(self.terminal().load());
        match self.body() {
            Body::N4(Node4 { slots, .. }) => copy.add_all(&self.small_keys(), slots),
            Body::N16(Node16 { slots, .. }) => copy.add_all(&self.small_keys(), slots),
            Body::N48(node) => {
                let mut from = 0;
                while let Some(byte) = index_from(&node.index, from) {
                    let index = byte_at(node.index[usize::from(byte / 8)].load(Ordering::Relaxed), byte % 8);
                    copy.add(byte, node.slots[usize::from(index) - 1].load());
                    from = usize::from(byte) + 1;
                }
            }
            Body::N256(node) => {
                for (byte, slot) in (0..=255).zip(&node.slots) {
                    copy.add(byte, slot.load());
                }
            }
        }
        copy
    }

    fn add_all(self, keys: &SmallKeys, slots: &'t [Slot]) {
        debug_assert!(keys.count <= slots.len(), "a child without a slot would be lost");
        for (byte, slot) in keys.bytes[..keys.count].iter().zip(slots) {
            self.add(*byte, slot.load());
        }
    }

    /// Locks the node; `None` if it is retired: then the caller starts again from the root.
    #[inline]
    pub(crate) fn lock(self) -> Option<NodeGuard<'t>> {
        let lock = &self.head().lock;
        let mut turn = 0;
        loop {
            // Acquire: pairs with the Release of the last holder.
            match lock.compare_exchange(0, LOCKED, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(NodeGuard(self)),
                Err(state) if state & RETIRED != 0 => return None,
                Err(_) => spin(turn),
            }
            turn += 1;
        }
    }
}

/// A locked node; unlocked when dropped.
pub(crate) struct NodeGuard<'t>(Node<'t>);

impl NodeGuard<'_> {
    /// Removes the node from the tree. Requires: its replacement is published.
    pub(crate) fn retire(self) {
        assert!(self.0.kind() != Kind::N256 || self.0.prefix_len() > 0, "the root stays");
        self.0.head().lock.store(RETIRED, Ordering::Release);
        std::mem::forget(self);
    }
}

impl Drop for NodeGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        debug_assert_eq!(self.0.head().lock.load(Ordering::Relaxed), LOCKED, "held by this guard");
        self.0.head().lock.store(0, Ordering::Release);
    }
}

enum Body<'t> {
    N4(&'t Node4),
    N16(&'t Node16),
    N48(&'t Node48),
    N256(&'t Node256),
}
