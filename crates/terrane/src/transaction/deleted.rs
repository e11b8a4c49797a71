//! The rest of a range of keys without the keys that a batch deletes.

use std::ops::Bound;

use terrane_base::{KeyRanges, ordered_map};
use terrane_engine::Bounds;

/// The parts of `bounds` outside deleted ranges, in order.
pub(crate) fn rest_of(deleted: &KeyRanges, bounds: Bounds) -> Vec<Bounds> {
    let mut rest = Vec::new();
    let collation = bounds.collation;
    let mut lower = bounds.lower;
    for (start, end) in deleted.iter() {
        let upper = Bound::Excluded(start.to_vec());
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
        lower = Bound::Included(end.to_vec());
    }
    let last = Bounds { lower, upper: bounds.upper, collation };
    if !is_empty(&last) {
        rest.push(last);
    }
    rest
}

/// Returns true if no key can lie there.
fn is_empty(bounds: &Bounds) -> bool {
    let as_slice = |bound| Bound::as_ref(bound).map(Vec::as_slice);
    ordered_map::is_empty(&bounds.collation, as_slice(&bounds.lower), as_slice(&bounds.upper))
}

#[cfg(test)]
mod tests {
    use terrane_base::{Collation, Rng};

    use super::*;

    /// Over all small ranges: keys of one of them are not in the rest, all other keys are, once and in order.
    #[test]
    fn the_rest_are_the_ranges_that_are_not_deleted() {
        let key = |at: u8| vec![b'a' + at];
        let mut rng = Rng::new(1);
        let mut below = |bound: u64| rng.below(bound) as u8;
        for _ in 0..2000 {
            let mut deleted = KeyRanges::new(Collation::bytes());
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
            let rest = rest_of(&deleted, bounds.clone());
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
