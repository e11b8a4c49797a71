//! The ordered list: the index of a memtable whose keys a comparator orders.
//!
//! A skip list (Pugh: Skip Lists, CACM 1990) that only grows. Each key has a *node* with the newest version
//! of the key, a link to the next node on each of its levels, and a link back on the lowest. A random quarter
//! of the nodes of each level are also on the next level. Nodes lie in buckets, each twice as large as the
//! one before, and refer to each other by number.
//!
//! Readers neither wait nor take a lock. A writer searches like a reader, takes the list's lock, advances its
//! search result over nodes that others inserted meanwhile, and links its node.
//!
//! # Which thread may touch what
//! 1. Links and slots of nodes are written under the list's lock only; anyone may read them.
//! 2. A node's links are set before the first link to it; a filled slot never becomes empty.
//! 3. A node is never removed and never changes its position relative to others.
//!
//! # Memory ordering
//! A link is stored with Release and loaded with Acquire, which makes visible the node that it names, its
//! slot and its links. Links to a new node are set from the lowest level up, and the link back to it last, by
//! the thread that inserts it.

use std::cmp::Ordering;
use std::sync::OnceLock;

use terrane_base::sync::Mutex;
use terrane_base::sync::atomic::{AtomicU32, AtomicU64, Ordering as Memory};
use terrane_base::{Collation, rng};

use crate::arena::LaneGuard;
use crate::node::{Child, Link, Slot};
use crate::version::{Pushed, VersionEntry, push};

/// Levels of the list: with a quarter on each next one enough for 16 million keys.
const LEVELS: usize = 12;
/// Nodes of the first bucket.
const BUCKET_FIRST: usize = 64;
const BUCKETS: usize = 26;
/// A bucket is created this many nodes before it is needed.
const AHEAD: u32 = 16;
/// Number of the node before all keys; as a next link it means the end.
const END: u32 = 0;

/// A key's node in the list.
struct ListNode {
    /// The newest version of the key; empty in the first node.
    slot: Slot,
    next: [AtomicU32; LEVELS],
    /// The previous node; for the first node, the last one.
    before: AtomicU32,
}

#[cfg(not(feature = "shuttle"))]
const _: () = assert!(size_of::<ListNode>() == 64); // a line for each key

/// See the [module](self).
pub(crate) struct List {
    collation: Collation,
    buckets: [OnceLock<Box<[ListNode]>>; BUCKETS],
    /// Number of nodes, including the first one. Changed under the lock only.
    count: AtomicU32,
    lock: Mutex<()>,
    bytes: AtomicU64,
}

/// A node of a list, as the position of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListNodeId(u32);

/// The result of a search.
struct Found {
    /// The last node before the key, on each level.
    before: [u32; LEVELS],
    /// The next node when the search ran; its key is not less than the searched one. Other nodes may have
    /// been inserted between the two since.
    behind: [u32; LEVELS],
    /// The node of the key itself.
    node: Option<u32>,
}

impl List {
    pub(crate) fn new(collation: &Collation) -> Self {
        let list = List {
            collation: collation.clone(),
            buckets: std::array::from_fn(|_| OnceLock::new()),
            count: AtomicU32::new(1),
            lock: Mutex::new(()),
            bytes: AtomicU64::new(0),
        };
        list.make_bucket(0);
        list
    }

    /// Bytes of memory that the list takes beside its versions.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Memory::Relaxed)
    }

    /// Key order of the table.
    pub(crate) fn collation(&self) -> &Collation {
        &self.collation
    }

    /// The newest version of `key`.
    pub(crate) fn find(&self, key: &[u8]) -> Option<&VersionEntry> {
        self.search(key).node.and_then(|node| self.head(ListNodeId(node)))
    }

    /// The newest version at a node.
    pub(crate) fn head(&self, at: ListNodeId) -> Option<&VersionEntry> {
        match self.node(at.0).slot.load().child() {
            Child::Leaf(head) => Some(head),
            _ => None,
        }
    }

    /// The first node whose key is not less than `key`, and whether it is that of `key`.
    pub(crate) fn at_or_behind(&self, key: &[u8]) -> (Option<ListNodeId>, bool) {
        let found = self.search(key);
        match found.node {
            Some(node) => (Some(ListNodeId(node)), true),
            // Not the current next node of the one before: that may be a newer node before the key.
            None => (node_id(found.behind[0]), false),
        }
    }

    /// The last node whose key is less than `key`.
    pub(crate) fn before(&self, key: &[u8]) -> Option<ListNodeId> {
        node_id(self.search(key).before[0])
    }

    pub(crate) fn first(&self) -> Option<ListNodeId> {
        self.next(ListNodeId(END))
    }

    pub(crate) fn last(&self) -> Option<ListNodeId> {
        self.prev(ListNodeId(END))
    }

    pub(crate) fn next(&self, at: ListNodeId) -> Option<ListNodeId> {
        node_id(self.node(at.0).next[0].load(Memory::Acquire))
    }

    pub(crate) fn prev(&self, at: ListNodeId) -> Option<ListNodeId> {
        node_id(self.node(at.0).before.load(Memory::Acquire))
    }

    /// Inserts a version of `key`, which is the key of `entry`'s record.
    pub(crate) fn insert<'t>(
        &'t self,
        lane: &mut LaneGuard<'t>,
        key: &'t [u8],
        entry: &'t VersionEntry,
    ) -> Pushed<'t> {
        debug_assert!(entry.key() == key, "a node of this key would have a version of another one");
        let mut found = self.search(key);
        // Allocated here, so that no thread waits for memory under the lock, unless very many writers come at
        // once.
        self.bucket(place_of(self.count.load(Memory::Relaxed).saturating_add(AHEAD)).0, lane);
        let _alone = self.lock.lock();
        let count = self.count.load(Memory::Relaxed);
        if found.node.is_none() {
            self.catch_up(key, &mut found, levels_of(count));
        }
        if let Some(node) = found.node {
            let slot = &self.node(node).slot;
            let Child::Leaf(head) = slot.load().child() else { unreachable!("a linked node has a key") };
            return push(lane, slot, head, entry);
        }
        self.bucket(place_of(count).0, lane);
        self.link(count, &found.before, entry);
        let next = count.checked_add(1).expect("a memtable has fewer keys than 32 bits count");
        self.count.store(next, Memory::Relaxed);
        Pushed::First
    }

    /// Advances a search result over nodes that were inserted since, on the lowest `levels`. Nodes that the
    /// search saw are not compared again. Requires: the lock.
    fn catch_up(&self, key: &[u8], found: &mut Found, levels: usize) {
        debug_assert!(found.node.is_none(), "a key that has a node needs no place for one");
        for level in 0..levels {
            loop {
                let next = self.node(found.before[level]).next[level].load(Memory::Acquire);
                if next == found.behind[level] || next == END {
                    break;
                }
                match self.compare(next, key) {
                    Ordering::Less => found.before[level] = next,
                    Ordering::Equal => return found.node = Some(next),
                    Ordering::Greater => break,
                }
            }
        }
    }

    /// Links a new node with the number `new` after `before`. Requires: the lock, and the bucket of the node.
    fn link(&self, new: u32, before: &[u32; LEVELS], entry: &VersionEntry) {
        let (node, levels) = (self.node(new), levels_of(new));
        debug_assert!(matches!(node.slot.load().child(), Child::Empty), "a node is linked once");
        node.slot.store(Link::leaf(entry));
        node.before.store(before[0], Memory::Relaxed);
        for (level, &before) in before.iter().enumerate().take(levels) {
            let next = self.node(before).next[level].load(Memory::Relaxed);
            node.next[level].store(next, Memory::Relaxed);
        }
        let behind = node.next[0].load(Memory::Relaxed);
        for (level, &before) in before.iter().enumerate().take(levels) {
            // Release: pairs with the Acquire of a reader that follows this link.
            self.node(before).next[level].store(new, Memory::Release);
        }
        // Release: likewise. The first node also follows the last one.
        self.node(behind).before.store(new, Memory::Release);
    }

    fn search(&self, key: &[u8]) -> Found {
        let mut found = Found { before: [END; LEVELS], behind: [END; LEVELS], node: None };
        let mut at = END;
        // The node that ended the search on the level above; it need not be compared again.
        let mut behind = END;
        for level in (0..LEVELS).rev() {
            loop {
                let next = self.node(at).next[level].load(Memory::Acquire);
                found.behind[level] = next;
                if next == END || next == behind {
                    break;
                }
                match self.compare(next, key) {
                    Ordering::Less => at = next,
                    order => {
                        if order == Ordering::Equal {
                            found.node = Some(next);
                        }
                        behind = next;
                        break;
                    }
                }
            }
            found.before[level] = at;
        }
        debug_assert!(at == END || found.behind[0] != at, "node {at} follows itself");
        found
    }

    fn compare(&self, node: u32, key: &[u8]) -> Ordering {
        let head = self.head(ListNodeId(node));
        debug_assert!(head.is_some(), "node {node} is linked, and it has no version");
        head.map_or(Ordering::Greater, |head| self.collation.cmp(head.key(), key))
    }

    #[inline]
    fn node(&self, number: u32) -> &ListNode {
        let (bucket, place) = place_of(number);
        &self.buckets[bucket].get().expect("a number is known only after its bucket was set")[place]
    }

    /// Makes sure that a bucket is there; what it takes is noted in the account of the lane's arena.
    fn bucket(&self, bucket: usize, lane: &LaneGuard<'_>) {
        let made = self.make_bucket(bucket);
        if made > 0 {
            lane.account().take(made);
        }
    }

    /// As [`List::bucket`], but returns the bytes that it took.
    fn make_bucket(&self, bucket: usize) -> u64 {
        let mut made = 0;
        self.buckets[bucket].get_or_init(|| {
            let nodes: Box<[ListNode]> = (0..BUCKET_FIRST << bucket).map(|_| ListNode::empty()).collect();
            made = size_of_val(&*nodes) as u64;
            nodes
        });
        debug_assert!(
            self.buckets[bucket].get().is_some_and(|nodes| nodes.len() == BUCKET_FIRST << bucket),
            "the number of a node would lead to another one"
        );
        if made > 0 {
            self.bytes.fetch_add(made, Memory::Relaxed);
        }
        made
    }
}

impl ListNode {
    fn empty() -> Self {
        ListNode {
            slot: Slot::empty(),
            next: std::array::from_fn(|_| AtomicU32::new(END)),
            before: AtomicU32::new(END),
        }
    }
}

fn node_id(node: u32) -> Option<ListNodeId> {
    (node != END).then_some(ListNodeId(node))
}

/// Bucket of a node, and its index there.
#[inline]
fn place_of(number: u32) -> (usize, usize) {
    let from_first = number as usize + BUCKET_FIRST;
    let bucket = (from_first / BUCKET_FIRST).ilog2() as usize;
    (bucket, from_first - (BUCKET_FIRST << bucket))
}

/// Number of levels of a node: pseudo-random, by its number (Steele, Lea, Flood: `SplitMix`, OOPSLA 2014).
fn levels_of(number: u32) -> usize {
    let mixed = rng::mix(u64::from(number).wrapping_mul(rng::STEP));
    let zeros = mixed.trailing_zeros() as usize;
    1 + (zeros / 2).min(LEVELS - 1)
}
