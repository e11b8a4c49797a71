//! Sorting by a comparator, which may contradict itself: the sorts of the standard library may panic then.
//!
//! A merge sort from the bottom up, of places: each comparison only decides which of two runs gives its next
//! item, so whatever is answered, every item comes out once.

use std::cmp::Ordering;

use super::Collation;

impl Collation {
    /// Sorts items by their keys; those of one key stay in the order in which they are. A comparator that
    /// contradicts itself gets them in some order.
    ///
    /// ```
    /// use terrane_base::Collation;
    /// let mut spans = [(b"b", 1), (b"a", 2), (b"b", 0)];
    /// Collation::BYTES.sort_by_key(&mut spans, |span| span.0);
    /// assert_eq!(spans, [(b"a", 2), (b"b", 1), (b"b", 0)]);
    /// ```
    pub fn sort_by_key<T>(&self, items: &mut [T], key: impl Fn(&T) -> &[u8]) {
        if self.is_bytes() {
            return items.sort_by(|left, right| key(left).cmp(key(right)));
        }
        let order = merged(items.len(), |left, right| self.cmp(key(&items[left]), key(&items[right])));
        arrange(items, &order);
    }
}

/// The places of `len` items in the order in which they belong.
fn merged(len: usize, compare: impl Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let (mut from, mut to): (Vec<usize>, Vec<usize>) = ((0..len).collect(), Vec::with_capacity(len));
    let mut run = 1;
    while run < len {
        for pair in from.chunks(2 * run) {
            let (mut left, mut right) = pair.split_at(run.min(pair.len()));
            while let ([first, left_rest @ ..], [second, right_rest @ ..]) = (left, right) {
                if compare(*second, *first) == Ordering::Less {
                    to.push(*second);
                    right = right_rest;
                } else {
                    to.push(*first);
                    left = left_rest;
                }
            }
            to.extend_from_slice(left);
            to.extend_from_slice(right);
        }
        std::mem::swap(&mut from, &mut to);
        to.clear();
        run *= 2;
    }
    from
}

/// Brings each item to its place. Requires: `order` has every place once.
fn arrange<T>(items: &mut [T], order: &[usize]) {
    let mut goes_to = vec![0; order.len()];
    order.iter().enumerate().for_each(|(to, from)| goes_to[*from] = to);
    for at in 0..items.len() {
        while goes_to[at] != at {
            let to = goes_to[at];
            items.swap(at, to);
            goes_to.swap(at, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Comparator;

    /// The greatest first, or answers that depend on the bytes only and follow no order.
    #[derive(Debug)]
    struct Odd {
        is_order: bool,
    }

    impl Comparator for Odd {
        fn name(&self) -> &str {
            "odd"
        }

        fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
            if self.is_order {
                return right.cmp(left);
            }
            let mix = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
            match left.iter().chain(right).fold(0x811c_9dc5, mix) >> 7 & 3 {
                0 => Ordering::Less,
                1 => Ordering::Equal,
                _ => Ordering::Greater,
            }
        }
    }

    fn items(count: u32) -> Vec<(Vec<u8>, u32)> {
        let key = |n: u32| [&(n.wrapping_mul(0x9e37_79b9) % 97).to_be_bytes()[..], &[0]].concat();
        (0..count).map(|n| (key(n), n)).collect()
    }

    #[test]
    fn items_are_sorted_and_items_of_one_key_keep_their_order() {
        let backward = Collation::by(Arc::new(Odd { is_order: true }));
        for count in [0, 1, 2, 3, 7, 64, 65, 300] {
            let mut sorted = items(count);
            backward.sort_by_key(&mut sorted, |item| &item.0);
            let mut expected = items(count);
            expected.sort_by_key(|(key, n)| (std::cmp::Reverse(key.clone()), *n));
            assert_eq!(sorted, expected);
            Collation::BYTES.sort_by_key(&mut sorted, |item| &item.0);
            assert!(sorted.is_sorted_by_key(|item| &item.0));
        }
    }

    #[test]
    fn a_contradictory_comparator_loses_no_item() {
        let odd = Collation::by(Arc::new(Odd { is_order: false }));
        for count in 0..600 {
            let mut sorted = items(count);
            odd.sort_by_key(&mut sorted, |item| &item.0);
            sorted.sort_by_key(|(_, n)| *n);
            assert_eq!(sorted, items(count));
        }
    }
}
