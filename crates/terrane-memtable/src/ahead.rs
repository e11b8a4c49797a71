//! What a walk asks for before it gets there.
//!
//! Each key costs a miss for its entry and one for its record, and where it hangs below a small node of its own one more in
//! front, each behind the other. So the children in front of a walk pass the same stations ahead of it: what a link leads to
//! is asked for, and looked into at a later step of the walk, when it has come: then the next station is asked for.
//!
//! [`Ahead`] is the list of what was asked for and not yet looked into. It only hints: what does not fit is left out.

use std::ptr::from_ref;

use terrane_base::prefetch::{prefetch, prefetch_lines};

use crate::node::{Child, Kind, Link, Node};

/// Most links that are under way at once: about as many as misses that processors have under way.
const LINKS_MAX: usize = 16;
/// Most children of a node below that are asked for when it has come.
const BELOW_MAX: usize = 4;
/// Lines of a record: those of a short value.
const RECORD_LINES: usize = 2;

/// See the [module](self).
pub(crate) struct Ahead<'t> {
    links: [Link<'t>; LINKS_MAX],
    count: usize,
}

impl<'t> Ahead<'t> {
    pub(crate) fn new() -> Self {
        Ahead { links: [Link::EMPTY; LINKS_MAX], count: 0 }
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        self.count = 0;
    }

    /// Asks for what is below a slot.
    #[inline]
    pub(crate) fn ask(&mut self, child: Child<'t>) {
        let link = match child {
            Child::Leaf(entry) => {
                prefetch(from_ref(entry));
                Link::leaf(entry)
            }
            Child::Node(node) => {
                node.link().prefetch(0);
                node.link()
            }
            Child::Empty => return,
        };
        if let Some(place) = self.links.get_mut(self.count) {
            *place = link;
            self.count += 1;
        }
    }

    /// Looks into what was asked for before this step.
    #[inline]
    pub(crate) fn go_on(&mut self) {
        if self.count > 0 {
            self.look_into_all();
        }
    }

    fn look_into_all(&mut self) {
        let links = self.links;
        let count = std::mem::replace(&mut self.count, 0);
        for link in &links[..count] {
            match link.child() {
                Child::Leaf(entry) => prefetch_lines(entry.record().start(), RECORD_LINES),
                Child::Node(node) if matches!(node.kind(), Kind::N4 | Kind::N16) => self.ask_below(node),
                // Too large to have been asked for as a whole.
                Child::Node(_) | Child::Empty => {}
            }
        }
    }

    fn ask_below(&mut self, node: Node<'t>) {
        self.ask(node.terminal().load().child());
        let mut from = 0;
        for _ in 0..BELOW_MAX {
            let Some((byte, child)) = node.child_from(from) else { return };
            self.ask(child);
            from = usize::from(byte) + 1;
        }
    }
}
