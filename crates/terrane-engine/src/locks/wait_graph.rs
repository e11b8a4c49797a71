//! The wait graph: which owner waits for which. It is searched when an owner begins to wait: the edge that
//! closes a cycle is always the last one, and its waiter is refused. A cycle can exist only if its last
//! waiter has turned deadlock detection off; it ends by a timeout.
//!
//! Invariant: the edges of a waiter name exactly the owners that must release or withdraw before it is
//! granted.

use std::collections::BTreeMap;

use crate::locks::lock_table::{LockKey, Owner};

/// One edge of a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    /// The owner that waits.
    pub(crate) waiter: Owner,
    /// The owner for which it waits.
    pub(crate) holder: Owner,
    /// At which key.
    pub(crate) key: LockKey,
}

#[derive(Debug)]
struct Wait {
    key: LockKey,
    on: Vec<Owner>,
}

/// The graph.
#[derive(Debug, Default)]
pub(crate) struct WaitGraph {
    by_waiter: BTreeMap<Owner, Wait>,
}

impl WaitGraph {
    /// Adds a waiter, unless that closes a cycle and `finds` is set: then returns the cycle, beginning with
    /// the new waiter.
    pub(crate) fn add(
        &mut self,
        waiter: Owner,
        key: LockKey,
        on: Vec<Owner>,
        finds: bool,
    ) -> Option<Vec<Edge>> {
        let before = self.by_waiter.insert(waiter, Wait { key, on });
        debug_assert!(before.is_none(), "an owner waits for one lock at a time");
        let cycle = if finds { self.cycle(waiter) } else { None };
        if cycle.is_some() {
            self.by_waiter.remove(&waiter);
        }
        cycle
    }

    /// Replaces the owners for which a waiter waits.
    pub(crate) fn update(&mut self, waiter: Owner, on: Vec<Owner>) {
        debug_assert!(self.by_waiter.contains_key(&waiter), "an owner in a queue has its edges in the graph");
        if let Some(wait) = self.by_waiter.get_mut(&waiter) {
            wait.on = on;
        }
    }

    /// Takes a waiter out.
    pub(crate) fn remove(&mut self, waiter: Owner) {
        self.by_waiter.remove(&waiter);
    }

    /// A way from `start` back to it.
    fn cycle(&self, start: Owner) -> Option<Vec<Edge>> {
        debug_assert!(self.by_waiter.contains_key(&start), "a cycle is looked for from an owner that waits");
        let mut reached_from: BTreeMap<Owner, Owner> = BTreeMap::new();
        let mut open = vec![start];
        while let Some(waiter) = open.pop() {
            let Some(wait) = self.by_waiter.get(&waiter) else { continue };
            for &holder in &wait.on {
                if holder == start {
                    return Some(self.way(start, waiter, &reached_from));
                }
                reached_from.entry(holder).or_insert_with(|| {
                    open.push(holder);
                    waiter
                });
            }
        }
        None
    }

    /// The edges from `start` to `last` and from there back to `start`.
    fn way(&self, start: Owner, last: Owner, reached_from: &BTreeMap<Owner, Owner>) -> Vec<Edge> {
        let mut edges = Vec::new();
        let (mut waiter, mut holder) = (last, start);
        loop {
            let key = self.by_waiter[&waiter].key.clone();
            edges.push(Edge { waiter, holder, key });
            if waiter == start {
                break;
            }
            holder = waiter;
            waiter = reached_from[&waiter];
        }
        edges.reverse();
        debug_assert!(
            edges.windows(2).all(|pair| pair[0].holder == pair[1].waiter),
            "a cycle is closed: {edges:?}"
        );
        edges
    }
}
