//! What a walk asks for before it gets there.
//!
//! Each key costs a miss for its entry and one for its record, and where it hangs below a small node of its own one more in
//! front, each behind the other. So the children in front of a walk pass the same stations ahead of it: what a link leads to
//! is asked for, and looked into at a later step of the walk, when it has come: then the next station is asked for.
//!
//! * [`Coming`]: the next children of a node, in the order of the walk. A child is taken from there, so each is looked for
//!   once. It is what the slot held when it was asked for, after the walk was placed: all that the walk promises.
//! * [`Ahead`]: what was asked for and not yet looked into. It only hints: what does not fit is left out.

use std::ptr::from_ref;

use terrane_base::prefetch::{prefetch, prefetch_lines};

use crate::node::{Child, Link, Node};

/// How many children are known ahead after a placement, and at most: it doubles, so that short walks pay little.
const COMING_MIN: usize = 2;
const COMING_MAX: usize = 8;
/// Most links that are under way at once: about as many as misses that processors have under way.
const LINKS_MAX: usize = 16;
/// Lines of a record: those of a short value, wherever in a line it begins.
const RECORD_LINES: usize = 3;

/// See the [module](self).
pub(crate) struct Coming<'t> {
    links: [Link<'t>; COMING_MAX],
    bytes: [u8; COMING_MAX],
    /// The children are those from `start` on, around the end, `len` of them.
    start: usize,
    len: usize,
    /// Whether there are no more in the node.
    is_last: bool,
}

impl<'t> Coming<'t> {
    #[inline]
    pub(crate) fn new() -> Self {
        Coming { links: [Link::EMPTY; COMING_MAX], bytes: [0; COMING_MAX], start: 0, len: 0, is_last: false }
    }

    /// The child of `node` behind `place` in a direction.
    #[inline]
    pub(crate) fn next(
        &mut self,
        ahead: &mut Ahead<'t>,
        node: Node<'t>,
        place: usize,
        is_backward: bool,
    ) -> Option<(u8, Child<'t>)> {
        if self.len <= ahead.coming_count / 2 && !self.is_last {
            self.fill(ahead, node, place, is_backward);
        }
        self.len = self.len.checked_sub(1)?;
        let first = self.start % COMING_MAX;
        self.start += 1;
        Some((self.bytes[first], self.links[first].child()))
    }

    /// Looks for more children and asks for them.
    pub(crate) fn fill(&mut self, ahead: &mut Ahead<'t>, node: Node<'t>, place: usize, is_backward: bool) {
        let last = (self.start + self.len).wrapping_sub(1) % COMING_MAX;
        let mut place = if self.len == 0 { place } else { usize::from(self.bytes[last]) + 1 };
        while self.len < ahead.coming_count {
            // Bytes from a place on are those behind it: a byte's place is one more than the byte.
            let child = match is_backward {
                true => node.child_below(place.saturating_sub(1)),
                false => node.child_from(place),
            };
            let Some((byte, child)) = child else {
                self.is_last = true;
                return;
            };
            let Some(link) = ahead.ask(child) else { return };
            let end = (self.start + self.len) % COMING_MAX;
            (self.bytes[end], self.links[end]) = (byte, link);
            self.len += 1;
            place = usize::from(byte) + 1;
        }
        ahead.coming_count = (ahead.coming_count * 2).min(COMING_MAX);
    }
}

/// See the [module](self).
pub(crate) struct Ahead<'t> {
    links: [Link<'t>; LINKS_MAX],
    count: usize,
    /// How many children of a node are to be known ahead.
    coming_count: usize,
}

impl<'t> Ahead<'t> {
    pub(crate) fn new() -> Self {
        Ahead { links: [Link::EMPTY; LINKS_MAX], count: 0, coming_count: COMING_MIN }
    }

    /// The walk begins anew.
    #[inline]
    pub(crate) fn restart(&mut self) {
        self.count = 0;
        self.coming_count = COMING_MIN;
    }

    /// Asks for what is below a slot, and returns its link if there is anything.
    #[inline]
    pub(crate) fn ask(&mut self, child: Child<'t>) -> Option<Link<'t>> {
        let link = match child {
            Child::Leaf(entry) => {
                prefetch(from_ref(entry));
                Link::leaf(entry)
            }
            Child::Node(node) => {
                node.link().prefetch(0);
                node.link()
            }
            Child::Empty => return None,
        };
        if let Some(place) = self.links.get_mut(self.count) {
            *place = link;
            self.count += 1;
        }
        Some(link)
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
                Child::Node(node) => {
                    for child in node.smallest() {
                        self.ask(child);
                    }
                }
                Child::Empty => {}
            }
        }
    }
}
