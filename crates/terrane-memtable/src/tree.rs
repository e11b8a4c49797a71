//! The radix tree: insertion and lookup.
//!
//! Synchronised by the ROWEX protocol (read-optimised write exclusion; Leis, Scheibner, Kemper, Neumann: The
//! ART of Practical Synchronization, DaMoN 2016): readers never lock, check or restart. A writer descends
//! like a reader, locks the node that it changes, and checks the slot again before it changes it. Optimistic
//! lock coupling would need a version check per node on every read; here nothing is ever removed, so a slow
//! reader sees an older, but complete, tree.
//!
//! # Insertion
//! 1. Descend, comparing prefixes, until the key ends, a byte has no child, or a leaf or a prefix differs.
//! 2. Lock the node (if it is retired, start again); check the slot again (if it changed, start again).
//! 3. Do one of: push a version; add a leaf; grow the node (locks the parent first); split a leaf (a Node4
//!    takes its slot); split a prefix (a Node4 takes the child's slot, above a copy of the child with the
//!    shorter prefix).
//!
//! # Invariants
//! 1. A node's path from the root is fixed while the node is not retired: no thread changes a prefix in
//!    place, and a live child of a retired parent hangs below the parent's replacement at the same byte.
//! 2. Hence, with a parent and a child locked (so neither retired), the parent's slot holds the child.
//! 3. Locks are taken from parent to child, so there is no deadlock.
//! 4. The root is a Node256 without prefix: never full, never split, never retired. The first insertion makes
//!    it: a tree without keys takes no memory.

use terrane_base::key::common_len;
use terrane_base::sync::{Mutex, spin};

use crate::account::Account;
use crate::arena::{Arena, LaneGuard};
use crate::node::{Child, Kind, Link, Node, Slot};
use crate::version::{Pushed, VersionEntry, push};

pub(crate) struct Tree {
    arena: Arena,
    /// Empty, or the root, which then stays.
    root: Slot,
    /// Held while the root is made.
    planting: Mutex<()>,
}

impl Tree {
    pub(crate) fn new(account: Account) -> Self {
        Tree { arena: Arena::new(account), root: Slot::empty(), planting: Mutex::new(()) }
    }

    #[inline]
    pub(crate) fn arena(&self) -> &Arena {
        &self.arena
    }

    /// The root, if anything was inserted.
    #[inline]
    pub(crate) fn root(&self) -> Option<Node<'_>> {
        self.root.load().node()
    }

    /// Where the root is, for walks that begin before it is made.
    #[inline]
    pub(crate) fn root_slot(&self) -> &Slot {
        &self.root
    }

    /// Makes the root, unless another writer has.
    #[cold]
    fn plant<'t>(&'t self, lane: &mut LaneGuard<'t>) -> Node<'t> {
        let _planting = self.planting.lock();
        if let Some(root) = self.root() {
            return root;
        }
        let root = Node::new(lane, Kind::N256, &[]);
        debug_assert!(root.kind() == Kind::N256 && root.prefix_len() == 0, "invariant 4");
        self.root.store(root.link());
        root
    }

    /// The newest version of `key`.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> Option<&VersionEntry> {
        let mut node = self.root()?;
        let mut depth = 0;
        loop {
            // Prefixes are skipped without a comparison; instead the leaf's whole key is compared: one miss
            // less per node.
            let child = match key.get(depth) {
                Some(&byte) => node.child(byte),
                None => node.terminal().load().child(),
            };
            match child {
                Child::Empty => return None,
                Child::Leaf(head) => return (head.key() == key).then_some(head),
                Child::Node(child) => {
                    depth += 1 + child.prefix_len();
                    node = child;
                }
            }
        }
    }

    /// Inserts a version of `key`, which is the key of `entry`'s record.
    #[inline]
    pub(crate) fn insert<'t>(
        &'t self,
        lane: &mut LaneGuard<'t>,
        key: &'t [u8],
        entry: &'t VersionEntry,
    ) -> Pushed<'t> {
        debug_assert!(entry.key() == key, "the leaf of this key would have a version of another one");
        let mut restarts = 0;
        loop {
            if let Some(pushed) = self.try_insert(lane, key, entry) {
                return pushed;
            }
            spin(restarts);
            restarts += 1;
        }
    }

    /// As [`Tree::insert`]; `None` if another writer changed the slot at the same time.
    #[inline]
    fn try_insert<'t>(
        &'t self,
        lane: &mut LaneGuard<'t>,
        key: &'t [u8],
        entry: &'t VersionEntry,
    ) -> Option<Pushed<'t>> {
        let mut parent = None;
        let mut node = match self.root() {
            Some(root) => root,
            None => self.plant(lane),
        };
        let mut depth = 0;
        loop {
            // `key[..depth]` is the path to `node`, its prefix included.
            debug_assert!(depth <= key.len(), "the key would end at a node behind its path");
            let Some((&byte, rest)) = key.get(depth..).and_then(<[u8]>::split_first) else {
                return end_here(lane, node, entry);
            };
            match node.child(byte) {
                Child::Empty => return add_leaf(lane, parent, (node, byte), entry),
                Child::Leaf(head) => {
                    let other = head.key();
                    if other == key {
                        return push_version(lane, (node, byte), entry);
                    }
                    return split_leaf(lane, (node, byte), &other[depth + 1..], rest, entry);
                }
                Child::Node(child) => {
                    let prefix = child.prefix();
                    let common = if prefix.is_empty() { 0 } else { common_len(prefix, rest) };
                    if common < prefix.len() {
                        return split_prefix(lane, (node, byte), child, common, rest, entry);
                    }
                    depth += 1 + common;
                    parent = Some((node, byte));
                    node = child;
                }
            }
        }
    }
}

/// A node and the byte of one of its slots.
type NodeSlot<'t> = (Node<'t>, u8);

/// Handles a key that ends at `node`.
fn end_here<'t>(lane: &mut LaneGuard<'t>, node: Node<'t>, entry: &'t VersionEntry) -> Option<Pushed<'t>> {
    let _locked = node.lock()?;
    put_version(lane, node.terminal(), entry)
}

/// Handles a key that was found at a leaf.
#[inline]
fn push_version<'t>(
    lane: &mut LaneGuard<'t>,
    (node, byte): NodeSlot<'t>,
    entry: &'t VersionEntry,
) -> Option<Pushed<'t>> {
    let _locked = node.lock()?;
    put_version(lane, node.slot(byte)?, entry)
}

/// Requires: the lock of the slot's node; the leaf that is in the slot, or was when it was last read, has the
/// key.
fn put_version<'t>(lane: &mut LaneGuard<'t>, slot: &'t Slot, entry: &'t VersionEntry) -> Option<Pushed<'t>> {
    match slot.load().child() {
        Child::Empty => {
            debug_assert!(entry.older().is_none(), "the first version of its key");
            slot.store(Link::leaf(entry));
            Some(Pushed::First)
        }
        // A leaf in a slot is replaced by another leaf only by a push of the same key.
        Child::Leaf(head) => {
            debug_assert!(entry.key() == head.key(), "versions of one key are in a chain");
            Some(push(lane, slot, head, entry))
        }
        Child::Node(_) => None,
    }
}

/// Handles an empty slot at the byte.
#[inline]
fn add_leaf<'t>(
    lane: &mut LaneGuard<'t>,
    parent: Option<NodeSlot<'t>>,
    (node, byte): NodeSlot<'t>,
    entry: &'t VersionEntry,
) -> Option<Pushed<'t>> {
    if !node.is_full() {
        let _locked = node.lock()?;
        if !matches!(node.child(byte), Child::Empty) {
            return None;
        }
        if !node.is_full() {
            node.add(byte, Link::leaf(entry));
            debug_assert!(
                matches!(node.child(byte), Child::Leaf(_)),
                "a search for byte {byte} misses the leaf that was added there"
            );
            return Some(Pushed::First);
        }
    }
    grow(lane, parent.expect("the root is never full"), (node, byte), entry)
}

/// Handles an empty slot at the byte of a full node.
#[cold]
fn grow<'t>(
    lane: &mut LaneGuard<'t>,
    (parent, parent_byte): NodeSlot<'t>,
    (node, byte): NodeSlot<'t>,
    entry: &'t VersionEntry,
) -> Option<Pushed<'t>> {
    let _parent_locked = parent.lock()?;
    let locked = node.lock()?;
    if !matches!(node.child(byte), Child::Empty) {
        return None;
    }
    let slot = slot_of(parent, parent_byte, node);
    let grown = node.grown(lane);
    debug_assert!(!grown.is_full() && grown.prefix() == node.prefix(), "a larger node of the same path");
    grown.add(byte, Link::leaf(entry));
    slot.store(grown.link());
    locked.retire();
    Some(Pushed::First)
}

/// Handles another key at a leaf. `other` and `rest` are the parts of the two keys after the byte; the leaf's
/// key cannot have changed, only its newest version.
fn split_leaf<'t>(
    lane: &mut LaneGuard<'t>,
    (node, byte): NodeSlot<'t>,
    other: &[u8],
    rest: &'t [u8],
    entry: &'t VersionEntry,
) -> Option<Pushed<'t>> {
    let _locked = node.lock()?;
    let slot = node.slot(byte)?;
    let Child::Leaf(head) = slot.load().child() else { return None };
    let common = common_len(other, rest);
    debug_assert!(other.get(common) != rest.get(common), "two leaves for one key");
    let split = Node::new(lane, Kind::N4, &rest[..common]);
    hang(split, other.get(common), Link::leaf(head));
    hang(split, rest.get(common), Link::leaf(entry));
    slot.store(split.link());
    Some(Pushed::First)
}

/// Handles a child's prefix that differs from `rest` after `common` bytes.
#[cold]
fn split_prefix<'t>(
    lane: &mut LaneGuard<'t>,
    (node, byte): NodeSlot<'t>,
    child: Node<'t>,
    common: usize,
    rest: &'t [u8],
    entry: &'t VersionEntry,
) -> Option<Pushed<'t>> {
    let _locked = node.lock()?;
    let child_locked = child.lock()?;
    let slot = slot_of(node, byte, child);
    let prefix = child.prefix();
    debug_assert!(common < prefix.len() && prefix[..common] == rest[..common], "the prefix differs there");
    debug_assert!(rest.get(common) != Some(&prefix[common]), "the prefix differs there");
    let lower = child.with_prefix(lane, &prefix[common + 1..]);
    let split = Node::new(lane, Kind::N4, &rest[..common]);
    split.add(prefix[common], lower.link());
    hang(split, rest.get(common), Link::leaf(entry));
    slot.store(split.link());
    child_locked.retire();
    Some(Pushed::First)
}

/// The slot that holds `child`. Requires: both nodes are locked (invariant 2).
fn slot_of<'t>(parent: Node<'t>, byte: u8, child: Node<'t>) -> &'t Slot {
    let slot = parent.slot(byte).expect("a live node's slot for a live child");
    debug_assert!(slot.load() == child.link(), "a live child hangs below its live parent");
    slot
}

/// Adds a leaf to an unpublished node: at its next byte, or at the terminal slot if its key ends there.
fn hang<'t>(node: Node<'t>, next: Option<&u8>, leaf: Link<'t>) {
    match next {
        Some(&byte) => node.add(byte, leaf),
        None => node.terminal().store(leaf),
    }
}
