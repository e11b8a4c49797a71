//! Moves of a walk to a version: at a node of the list, below a node of the tree, or at a key's newest or
//! oldest one.

use terrane_base::SeqNo;

use super::{At, Walk};
use crate::list::{List, ListNodeId};
use crate::node::{Child, Node};
use crate::version::VersionEntry;

impl<'t> Walk<'t> {
    #[cold]
    pub(super) fn seek_in(&mut self, list: &'t List, key: &[u8], seq: SeqNo) {
        debug_assert!(self.path.is_empty(), "a walk over a list has no path");
        let (list_node, is_key) = list.at_or_behind(key);
        self.list_node = list_node;
        match list_node.and_then(|list_node| list.head(list_node)) {
            Some(head) if is_key => self.land_visible(head, seq),
            _ => self.land_at(list, list_node),
        }
    }

    /// Goes to the newest version of the key of a list node.
    #[cold]
    pub(super) fn land_at(&mut self, list: &'t List, list_node: Option<ListNodeId>) {
        self.list_node = list_node;
        match list_node.and_then(|list_node| list.head(list_node)) {
            Some(head) => self.land(head),
            None => self.at = None,
        }
        debug_assert!(list_node.is_none() || self.at.is_some(), "a node that is linked has a version");
    }

    /// Goes to the oldest version of the key of a list node.
    #[cold]
    pub(super) fn land_oldest_at(&mut self, list: &'t List, list_node: Option<ListNodeId>) {
        self.list_node = list_node;
        match list_node.and_then(|list_node| list.head(list_node)) {
            Some(head) => self.land_oldest(head),
            None => self.at = None,
        }
        debug_assert!(list_node.is_none() || self.at.is_some(), "a node that is linked has a version");
    }

    /// Goes to the newest version of the first key in `node`.
    pub(super) fn descend_first(&mut self, node: Node<'t>) {
        debug_assert!(self.list.is_none(), "a walk over a list enters no node");
        self.push(node, 0);
        match node.terminal().load().child() {
            Child::Leaf(head) => self.land(head),
            _ => self.next_key(),
        }
    }

    /// Goes to the oldest version of the last key in `node`.
    pub(super) fn descend_last(&mut self, node: Node<'t>) {
        const BEHIND_ALL: usize = 257;
        debug_assert!(self.list.is_none(), "a walk over a list enters no node");
        self.push(node, BEHIND_ALL);
        self.prev_key();
    }

    pub(super) fn land(&mut self, head: &'t VersionEntry) {
        debug_assert!(
            self.list.is_none() || self.list_node.is_some(),
            "the next step would begin at the front of the list"
        );
        self.at = Some(At { head, entry: head, view: head.view() });
        self.newer.clear();
        self.newer_known = true;
    }

    pub(super) fn land_visible(&mut self, head: &'t VersionEntry, seq: SeqNo) {
        let Some(entry) = head.visible_at(seq) else { return self.next_key() };
        debug_assert!(entry.seq() <= seq, "a reader would see a later version");
        self.land(head);
        if entry.seq() != head.seq() {
            self.at = Some(At { head, entry, view: entry.view() });
            self.newer_known = false;
        }
    }

    pub(super) fn land_oldest(&mut self, head: &'t VersionEntry) {
        self.land(head);
        let mut entry = head;
        while let Some(older) = entry.older() {
            debug_assert!(older.seq() < entry.seq(), "a walk would meet versions in another order");
            self.newer.push(entry);
            entry = older;
        }
        self.at = Some(At { head, entry, view: entry.view() });
    }
}
