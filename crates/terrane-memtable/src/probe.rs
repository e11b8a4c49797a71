//! Many lookups at once. Each takes one step in turn and prefetches the cache line of its next step before
//! the others run, so that their misses overlap.

use crate::node::{Child, Node, prefetch};
use crate::version::VersionEntry;

/// Lookups in flight: enough to hide a miss (processors handle 10 to 32 at once), few enough to stay in
/// registers and the first-level cache.
pub(crate) const GROUP: usize = 16;

#[derive(Clone, Copy)]
enum State<'t> {
    /// At a node, after this many bytes of the key, the node's prefix included.
    Node(Node<'t>, usize),
    /// At a leaf whose entry was prefetched.
    Entry(&'t VersionEntry),
    /// At a leaf whose record was prefetched.
    Record(&'t VersionEntry),
    Done(Option<&'t VersionEntry>),
}

/// The newest version of each of up to [`GROUP`] keys.
pub(crate) fn find_group<'t>(root: Node<'t>, keys: &[&[u8]]) -> [Option<&'t VersionEntry>; GROUP] {
    assert!(keys.len() <= GROUP);
    let mut states = [State::Node(root, 0); GROUP];
    let mut found = [None; GROUP];
    let mut open = keys.len();
    while open > 0 {
        for ((state, key), found) in states.iter_mut().zip(keys).zip(&mut found) {
            if let State::Done(_) = state {
                continue;
            }
            *state = step(*state, key);
            if let State::Done(head) = state {
                *found = *head;
                open -= 1;
            }
        }
    }
    found
}

fn step<'t>(state: State<'t>, key: &[u8]) -> State<'t> {
    match state {
        State::Node(node, depth) => {
            let link = match key.get(depth) {
                Some(&byte) => node.slot(byte).map(|slot| slot.load()),
                None => Some(node.terminal().load()),
            };
            let Some(link) = link else { return State::Done(None) };
            match link.child() {
                Child::Empty => State::Done(None),
                Child::Leaf(head) => {
                    link.prefetch(0);
                    State::Entry(head)
                }
                Child::Node(child) => {
                    let depth = depth + 1 + child.prefix_len();
                    link.prefetch(key.get(depth).copied().unwrap_or(0));
                    State::Node(child, depth)
                }
            }
        }
        State::Entry(head) => {
            prefetch(head.record().start());
            State::Record(head)
        }
        State::Record(head) => State::Done((head.key() == key).then_some(head)),
        State::Done(_) => state,
    }
}
