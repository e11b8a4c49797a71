//! Prefetching for walks.
//!
//! Each key of a walk costs a cache miss for its entry and one for its record; if it hangs below a small node
//! of its own, also one for that node; each miss waits for the one before. So the next children of a node go
//! through the same stages ahead of the walk: the target of a link is prefetched, and a later step of the
//! walk, when it has arrived, reads it and prefetches the next stage.
//!
//! * [`Coming`]: the next children of a node, in the order of the walk. The walk takes its children from
//!   there, so each is looked up once. A child is the content of the slot at the time of the prefetch, which
//!   is after the walk was placed: a walk promises nothing later.
//! * [`Ahead`]: targets that were prefetched and not yet read. These are hints only: those that do not fit
//!   are dropped.

use std::ptr::from_ref;

use terrane_base::prefetch::{prefetch, prefetch_lines};

use crate::node::{Child, Link, Node};

/// Number of children that are looked up ahead, at first and at most: it doubles, so that short walks cost
/// little.
const COMING_MIN: usize = 2;
const COMING_MAX: usize = 8;
/// Most prefetches in flight: about as many misses as a processor handles at once.
const LINKS_MAX: usize = 16;
/// Cache lines of a record: enough for a short value at any alignment.
const RECORD_LINES: usize = 3;

/// See the [module](self).
pub(crate) struct Coming<'t> {
    links: [Link<'t>; COMING_MAX],
    bytes: [u8; COMING_MAX],
    /// The children are the `len` ones from `start` on, wrapping around.
    start: usize,
    len: usize,
    /// True if these are the last children of the node.
    is_last: bool,
}

impl<'t> Coming<'t> {
    #[inline]
    pub(crate) fn new() -> Self {
        Coming { links: [Link::EMPTY; COMING_MAX], bytes: [0; COMING_MAX], start: 0, len: 0, is_last: false }
    }

    /// The child of `node` after `place` in a direction.
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
        debug_assert!(self.len <= COMING_MAX, "a child was prefetched over another");
        self.len = self.len.checked_sub(1)?;
        let first = self.start % COMING_MAX;
        self.start += 1;
        Some((self.bytes[first], self.links[first].child()))
    }

    /// Looks up more children and prefetches them.
    pub(crate) fn fill(&mut self, ahead: &mut Ahead<'t>, node: Node<'t>, place: usize, is_backward: bool) {
        let last = (self.start + self.len).wrapping_sub(1) % COMING_MAX;
        let mut place = if self.len == 0 { place } else { usize::from(self.bytes[last]) + 1 };
        while self.len < ahead.coming_count {
            // Bytes from a place on come after it: the place of a byte is the byte + 1.
            let child = match is_backward {
                true => node.child_below(place.saturating_sub(1)),
                false => node.child_from(place),
            };
            let Some((byte, child)) = child else {
                self.is_last = true;
                return;
            };
            debug_assert!(self.len < COMING_MAX, "there is a place for the child");
            debug_assert!(if is_backward {
                usize::from(byte) + 1 < place
            } else {
                usize::from(byte) >= place
            });
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
    /// Number of children of a node to look up ahead.
    coming_count: usize,
}

impl<'t> Ahead<'t> {
    pub(crate) fn new() -> Self {
        Ahead { links: [Link::EMPTY; LINKS_MAX], count: 0, coming_count: COMING_MIN }
    }

    /// Starts over for a new walk.
    #[inline]
    pub(crate) fn restart(&mut self) {
        self.count = 0;
        self.coming_count = COMING_MIN;
    }

    /// Prefetches the target of a slot; returns its link if the slot is not empty.
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
        debug_assert!(self.count <= LINKS_MAX, "links that are looked into are there");
        Some(link)
    }

    /// Reads what was prefetched before this step.
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
