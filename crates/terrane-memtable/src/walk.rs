//! Ordered iteration over a tree, both ways, while writers continue.
//!
//! A position is the path of nodes from the root, with the slot taken in each, and a version below the last
//! one. The walk locks nothing. Nodes of its path may have been retired since; they still hold everything
//! that was inserted before they were (`node`, rule 4). So a walk sees at least the tree at the time of its
//! placement, in order.
//!
//! A walk that continues in one direction prefetches the memory of the next keys (`ahead`), so that the
//! misses of several keys overlap with each other and with work between the steps.
#![expect(unsafe_code, reason = "a cursor that owns the memtable uses a walk without a lifetime")]

use std::cmp::Ordering;

use terrane_base::SeqNo;
use terrane_base::key::common_len;

use crate::ahead::{Ahead, Coming};
use crate::list::{List, ListNodeId};
use crate::node::{Child, Node, Slot};
use crate::version::VersionEntry;

mod land;
mod place;

pub(crate) use place::At;
use place::Frame;

pub(crate) struct Walk<'t> {
    /// Where the root is: a walk may be made before the first insertion makes it.
    root: &'t Slot,
    /// If a comparator orders the keys: the list, and the position in it.
    list: Option<&'t List>,
    list_node: Option<ListNodeId>,
    path: Vec<Frame<'t>>,
    ahead: Ahead<'t>,
    /// The direction of the prefetches.
    is_backward: bool,
    at: Option<At<'t>>,
    /// Versions newer than the one at the position, newest first; only if `newer_known`.
    newer: Vec<&'t VersionEntry>,
    newer_known: bool,
}

impl<'t> Walk<'t> {
    pub(crate) fn new(root: &'t Slot, list: Option<&'t List>) -> Self {
        Walk {
            root,
            list,
            list_node: None,
            path: Vec::new(),
            ahead: Ahead::new(),
            is_backward: false,
            at: None,
            newer: Vec::new(),
            newer_known: false,
        }
    }

    /// The same walk, not yet placed, for a borrow of any length.
    ///
    /// # Safety
    /// The result, and everything reached through it, is not used after the memtable is gone.
    pub(crate) unsafe fn unbound<'u>(self) -> Walk<'u> {
        let (root, list) = (std::ptr::from_ref(self.root), self.list.map(std::ptr::from_ref));
        // SAFETY: by the caller's promise; both lie where they are as long as the memtable that has them.
        unsafe { Walk::new(&*root, list.map(|list| &*list)) }
    }

    #[inline]
    fn root(&self) -> Option<Node<'t>> {
        self.root.load().node()
    }

    #[inline]
    pub(crate) fn at(&self) -> Option<&At<'t>> {
        self.at.as_ref()
    }

    fn start(&mut self) {
        debug_assert!(self.list.is_none(), "a walk over a list has no path");
        self.path.clear();
        self.ahead.restart();
        self.is_backward = false;
        // Where there is no key to land on.
        self.at = None;
    }

    /// Prefetches what [`Walk::seek`] of `key` will read. Changes nothing.
    pub(crate) fn prepare_seek(&mut self, key: &[u8]) {
        if self.list.is_some() {
            return;
        }
        self.ahead.restart();
        let Some(mut node) = self.root() else { return };
        let mut depth = 0;
        while let Some(&byte) = key.get(depth) {
            match node.child(byte) {
                Child::Empty => return,
                leaf @ Child::Leaf(_) => {
                    self.ahead.ask(leaf);
                    return;
                }
                Child::Node(child) => {
                    depth += 1 + child.prefix_len();
                    node = child;
                }
            }
        }
    }

    /// Prefetches the next stage after [`Walk::prepare_seek`], and removes the position.
    pub(crate) fn begin_seek(&mut self) {
        self.at = None;
        self.ahead.go_on();
    }

    pub(crate) fn seek_first(&mut self) {
        if let Some(list) = self.list {
            return self.land_at(list, list.first());
        }
        self.start();
        if let Some(root) = self.root() {
            self.descend_first(root);
        }
        debug_assert!(!self.is_backward, "what comes before the first key is prefetched");
    }

    pub(crate) fn seek_last(&mut self) {
        if let Some(list) = self.list {
            return self.land_oldest_at(list, list.last());
        }
        self.start();
        if let Some(root) = self.root() {
            self.descend_last(root);
        }
        debug_assert!(self.at.is_none() || self.is_backward, "what comes behind the last key is prefetched");
    }

    pub(crate) fn seek(&mut self, key: &[u8], seq: SeqNo) {
        if let Some(list) = self.list {
            return self.seek_in(list, key, seq);
        }
        self.seek_in_tree(key, seq);
        debug_assert!(self.at.as_ref().is_none_or(|at| at.head.key() >= key), "a seek lands before its key");
    }

    fn seek_in_tree(&mut self, key: &[u8], seq: SeqNo) {
        self.start();
        let Some(mut node) = self.root() else { return };
        let mut depth = 0;
        loop {
            let Some(&byte) = key.get(depth) else {
                self.push(node, 0);
                return match node.terminal().load().child() {
                    Child::Leaf(head) => self.land_visible(head, seq),
                    _ => self.next_key(),
                };
            };
            self.push(node, usize::from(byte) + 1);
            match node.child(byte) {
                Child::Empty => return self.next_key(),
                Child::Leaf(head) => {
                    // The next keys are prefetched while this one is awaited.
                    self.look_ahead();
                    match head.key().cmp(key) {
                        Ordering::Less => self.next_key(),
                        Ordering::Equal => self.land_visible(head, seq),
                        Ordering::Greater => self.land(head),
                    }
                    return self.ahead.go_on();
                }
                Child::Node(child) => match side(child.prefix(), &key[depth + 1..]) {
                    Ordering::Less => return self.next_key(),
                    Ordering::Equal => {
                        depth += 1 + child.prefix_len();
                        node = child;
                    }
                    Ordering::Greater => return self.descend_first(child),
                },
            }
        }
    }

    pub(crate) fn seek_before(&mut self, key: &[u8]) {
        if let Some(list) = self.list {
            return self.land_oldest_at(list, list.before(key));
        }
        self.start();
        let Some(mut node) = self.root() else { return };
        let mut depth = 0;
        while let Some(&byte) = key.get(depth) {
            self.push(node, usize::from(byte) + 1);
            match node.child(byte) {
                Child::Leaf(head) if head.key() < key => return self.land_oldest(head),
                Child::Empty | Child::Leaf(_) => return self.prev_key(),
                Child::Node(child) => match side(child.prefix(), &key[depth + 1..]) {
                    Ordering::Less => return self.descend_last(child),
                    Ordering::Equal => {
                        depth += 1 + child.prefix_len();
                        node = child;
                    }
                    Ordering::Greater => return self.prev_key(),
                },
            }
        }
        // The path to `node` is the key: every key in the node is equal or greater.
        self.prev_key();
    }

    pub(crate) fn next(&mut self) {
        let Some(at) = self.at.as_mut() else { return debug_assert!(false, "next without a position") };
        let before = at.head;
        match at.entry.older() {
            Some(older) => {
                if self.newer_known {
                    self.newer.push(at.entry);
                }
                at.entry = older;
                at.view = older.view();
            }
            None => {
                self.next_key();
                debug_assert!(self.is_ordered(Some(before), self.at.map(|at| at.head)), "keys ascend");
            }
        }
    }

    pub(crate) fn prev(&mut self) {
        let Some(at) = self.at.as_mut() else { return debug_assert!(false, "prev without a position") };
        if !self.newer_known {
            // The chain has no links back: it is walked once per key, not once per step.
            self.newer.clear();
            let chain = std::iter::successors(Some(at.head), |entry| entry.older());
            self.newer.extend(chain.take_while(|entry| entry.seq() > at.entry.seq()));
            debug_assert!(self.newer.is_sorted_by(|a, b| a.seq() > b.seq()), "numbers descend along a chain");
            self.newer_known = true;
        }
        match self.newer.pop() {
            Some(newer) => {
                at.entry = newer;
                at.view = newer.view();
            }
            None => {
                let before = at.head;
                self.prev_key();
                debug_assert!(self.is_ordered(self.at.map(|at| at.head), Some(before)), "keys descend");
            }
        }
    }

    /// Goes to the newest version of the next key after the path's place.
    pub(crate) fn next_key(&mut self) {
        if let Some(list) = self.list {
            return self.land_at(list, self.list_node.and_then(|list_node| list.next(list_node)));
        }
        self.face(false);
        while let Some(frame) = self.path.last_mut() {
            match frame.coming.next(&mut self.ahead, frame.node, frame.place, false) {
                Some((byte, child)) => {
                    debug_assert!(usize::from(byte) >= frame.place, "the walk goes back to byte {byte}");
                    frame.place = usize::from(byte) + 1;
                    return match child {
                        Child::Leaf(head) => self.land(head),
                        Child::Node(node) => self.descend_first(node),
                        Child::Empty => unreachable!("a filled slot never becomes empty"),
                    };
                }
                None => self.path.pop(),
            };
        }
        self.at = None;
    }

    /// Goes to the oldest version of the last key before the path's place.
    fn prev_key(&mut self) {
        if let Some(list) = self.list {
            return self.land_oldest_at(list, self.list_node.and_then(|list_node| list.prev(list_node)));
        }
        self.face(true);
        while let Some(frame) = self.path.last_mut() {
            if let Some((byte, child)) = frame.coming.next(&mut self.ahead, frame.node, frame.place, true) {
                debug_assert!(usize::from(byte) + 1 < frame.place, "the walk goes forward to byte {byte}");
                frame.place = usize::from(byte) + 1;
                return match child {
                    Child::Leaf(head) => self.land_oldest(head),
                    Child::Node(node) => self.descend_last(node),
                    Child::Empty => unreachable!("a filled slot never becomes empty"),
                };
            }
            if frame.place > 0
                && let Child::Leaf(head) = frame.node.terminal().load().child()
            {
                frame.place = 0;
                return self.land_oldest(head);
            }
            self.path.pop();
        }
        self.at = None;
    }

    /// True if the key of `first` comes before that of `second`, as far as there are both. A caller's
    /// comparator may break its promise.
    pub(crate) fn is_ordered(&self, first: Option<&VersionEntry>, second: Option<&VersionEntry>) -> bool {
        let (Some(first), Some(second)) = (first, second) else { return true };
        self.list.is_some() || first.key() < second.key()
    }

    fn push(&mut self, node: Node<'t>, place: usize) {
        self.path.push(Frame { node, place, coming: Coming::new() });
    }

    /// Continues with the prefetches, or starts over in the other direction.
    #[inline]
    fn face(&mut self, is_backward: bool) {
        debug_assert!(self.list.is_none(), "a walk over a list prefetches nothing");
        if self.is_backward != is_backward {
            self.is_backward = is_backward;
            self.ahead.restart();
            self.path.iter_mut().for_each(|frame| frame.coming = Coming::new());
        }
        self.ahead.go_on();
    }

    /// Prefetches the children after the path's position.
    fn look_ahead(&mut self) {
        debug_assert!(
            !self.path.is_empty(),
            "the children that come next are those of the last node of the path"
        );
        if let Some(frame) = self.path.last_mut() {
            frame.coming.fill(&mut self.ahead, frame.node, frame.place, false);
        }
    }
}

/// Where the keys below a prefix lie relative to a key with this `rest`: before it, on its path, or after it.
fn side(prefix: &[u8], rest: &[u8]) -> Ordering {
    let common = common_len(prefix, rest);
    match (prefix.get(common), rest.get(common)) {
        (None, _) => Ordering::Equal,
        (Some(_), None) => Ordering::Greater,
        (Some(prefix_byte), Some(key_byte)) => prefix_byte.cmp(key_byte),
    }
}
