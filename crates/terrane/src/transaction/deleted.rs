//! The ranges that a batch deletes, disjoint and in order.

use std::ops::Bound;
use std::sync::Arc;

use terrane_base::{Collation, OrderedMap, ordered_map};
use terrane_engine::Bounds;

/// Ranges of keys of one table, each from its start to before its end. Clones share until one is changed.
#[derive(Clone, Debug)]
pub(crate) struct Deleted(Arc<OrderedMap<Vec<u8>>>);

impl Deleted {
    /// None, of a table whose keys are ordered so.
    pub(crate) fn new(collation: &Collation) -> Self {
        Deleted(Arc::new(OrderedMap::new(collation)))
    }

    /// Adds a range, which is not empty.
    pub(crate) fn add(&mut self, start: &[u8], end: &[u8]) {
        let ranges = Arc::make_mut(&mut self.0);
        let collation = ranges.order().clone();
        let (mut start, mut end) = (start.to_vec(), end.to_vec());
        // Those that begin before its end and reach its start become one with it.
        while let Some((from, to)) = ranges.last_within(Bound::Included(&end))
            && collation.le(&start, to)
        {
            let from = from.clone();
            // Not found again: the comparator contradicts itself.
            let Some(to) = ranges.remove(&from) else { break };
            start = collation.min(start, from);
            end = collation.max(end, to);
        }
        ranges.insert(start, end);
    }

    /// Returns true if `key` lies in one of them.
    pub(crate) fn holds(&self, key: &[u8]) -> bool {
        let before = self.0.last_within(Bound::Included(key));
        before.is_some_and(|(_, end)| self.0.order().lt(key, end))
    }

    /// The parts of `bounds` outside these ranges, in order.
    pub(crate) fn rest_of(&self, bounds: Bounds) -> Vec<Bounds> {
        let mut rest = Vec::new();
        let collation = bounds.collation;
        let mut lower = bounds.lower;
        for (start, end) in self.0.iter() {
            let upper = Bound::Excluded(start.clone());
            let part = Bounds { lower: lower.clone(), upper, collation: collation.clone() };
            let is_behind = match &bounds.upper {
                Bound::Unbounded => false,
                Bound::Included(upper) => collation.lt(upper, start),
                Bound::Excluded(upper) => collation.le(upper, start),
            };
            if is_behind {
                break;
            }
            let is_before = match &lower {
                Bound::Unbounded => false,
                Bound::Included(lower) | Bound::Excluded(lower) => collation.le(end, lower),
            };
            if is_before {
                continue;
            }
            if !is_empty(&part) {
                rest.push(part);
            }
            lower = Bound::Included(end.clone());
        }
        let last = Bounds { lower, upper: bounds.upper, collation };
        if !is_empty(&last) {
            rest.push(last);
        }
        rest
    }
}

/// Whether no key can lie there.
fn is_empty(bounds: &Bounds) -> bool {
    let as_slice = |bound| Bound::as_ref(bound).map(Vec::as_slice);
    ordered_map::is_empty(&bounds.collation, as_slice(&bounds.lower), as_slice(&bounds.upper))
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;
    use std::sync::atomic::{self, AtomicU32};

    use terrane_base::{Comparator, KeyOrders, Rng};

    use super::*;

    /// Answers that follow no order, and are others the next time.
    #[derive(Debug)]
    struct Odd(AtomicU32);

    impl Comparator for Odd {
        fn name(&self) -> &str {
            "odd"
        }

        fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
            let mix = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
            let asked = self.0.fetch_add(1, atomic::Ordering::Relaxed).to_be_bytes();
            let hash = left.iter().chain(right).chain(&asked).fold(0x811c_9dc5, mix);
            if hash >> 7 & 1 == 0 { Ordering::Less } else { Ordering::Greater }
        }
    }

    /// A number as a key under a comparator.
    fn marked(number: u32) -> Vec<u8> {
        [&number.to_be_bytes()[..], &[0]].concat()
    }

    #[test]
    fn a_comparator_that_contradicts_itself_ends_in_no_panic() {
        let orders = KeyOrders::new().with_comparator(Arc::new(Odd(AtomicU32::new(0)))).expect("a free name");
        let mut deleted = Deleted::new(&orders.collation("odd"));
        for n in 0..600u32 {
            let [start, end] = [n * 7919 % 600, n * 104_729 % 600].map(marked);
            deleted.add(&start, &end);
        }
        assert!(!deleted.0.is_empty());
    }

    /// Over all small ranges: keys of one of them are not in the rest, all other keys are, once and in order.
    #[test]
    fn the_rest_is_what_they_do_not_hold() {
        let key = |at: u8| vec![b'a' + at];
        let mut rng = Rng::new(1);
        let mut below = |bound: u64| rng.below(bound) as u8;
        for _ in 0..2000 {
            let mut deleted = Deleted::new(Collation::bytes());
            let mut model = [false; 12];
            for _ in 0..below(5) {
                let start = below(11);
                let end = start + 1 + below(u64::from(11 - start));
                deleted.add(&key(start), &key(end));
                (start..end).for_each(|at| model[at as usize] = true);
            }
            let bound = |kind, at| match kind {
                0 => Bound::Unbounded,
                1 => Bound::Included(key(at)),
                _ => Bound::Excluded(key(at)),
            };
            let (lower, upper) = (bound(below(3), below(12)), bound(below(3), below(12)));
            let bounds = Bounds { lower, upper, ..Bounds::all() };
            let rest = deleted.rest_of(bounds.clone());
            let holds = |bounds: &Bounds, at| bounds.above_lower(&key(at)) && bounds.below_upper(&key(at));
            for at in 0..12 {
                assert_eq!(deleted.holds(&key(at)), model[at as usize]);
                let count = rest.iter().filter(|part| holds(part, at)).count();
                let wanted = usize::from(holds(&bounds, at) && !model[at as usize]);
                assert_eq!(count, wanted, "{deleted:?} {bounds:?} {rest:?} {at}");
            }
        }
    }
}
