//! Indexes of batches and deleted ranges against a replay of their steps, and under comparators that
//! contradict themselves.
#![allow(clippy::unwrap_used, reason = "a test says by panicking that it failed")]

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicU32};

use proptest::prelude::*;
use terrane_base::batch_index::Step;
use terrane_base::{BatchIndex, Collation, Comparator, KeyOrders, KeyRanges, Rng};

/// The greatest byte first.
#[derive(Debug)]
struct Reverse;

impl Comparator for Reverse {
    fn name(&self) -> &str {
        "backwards"
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        right.cmp(left)
    }
}

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

fn collation(comparator: Arc<dyn Comparator>) -> Collation {
    let name = comparator.name().to_owned();
    KeyOrders::new().with_comparator(comparator).unwrap().collation(&name)
}

/// A key of the model as it is kept under a comparator: with a mark behind it.
fn key(at: u8) -> [u8; 2] {
    [b'a' + at, 0]
}

const KEYS: u8 = 8;

#[derive(Clone, Copy, Debug)]
enum Op {
    Record(u8),
    RangeDelete(u8, u8),
    SetSavepoint,
    RollBack,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        5 => (0..KEYS).prop_map(Op::Record),
        2 => (0..KEYS, 0..=KEYS).prop_map(|(start, end)| Op::RangeDelete(start, end)),
        1 => Just(Op::SetSavepoint),
        1 => Just(Op::RollBack),
    ];
    prop::collection::vec(op, 1..60)
}

/// Returns true if a range delete in this order holds a key.
fn holds(order: &Collation, (start, end): (u8, u8), at: u8) -> bool {
    !order.cmp(&key(at), &key(start)).is_lt() && order.cmp(&key(at), &key(end)).is_lt()
}

fn check(index: &BatchIndex, ops: &[Op]) {
    let order = index.order().clone();
    let mut named = Vec::new();
    let mut live = 0;
    for at in 0..KEYS {
        let of_key = ops.iter().enumerate().filter_map(|(place, op)| match *op {
            Op::Record(of) if of == at => Some(Step::Record(place)),
            Op::RangeDelete(start, end) if holds(&order, (start, end), at) => Some(Step::RangeDelete),
            _ => None,
        });
        let steps: Vec<Step> = of_key.collect();
        // What stands before the first range delete that hides records counts as one mark, if anything does.
        let found: Vec<Step> = index.steps(&key(at)).collect();
        assert_eq!(index.steps(&key(at)).len(), found.len());
        let to_mark = |steps: &mut dyn Iterator<Item = Step>| {
            let mut open = Vec::new();
            for step in steps {
                open.push(step);
                if step == Step::RangeDelete {
                    break;
                }
            }
            open
        };
        assert_eq!(
            to_mark(&mut found.into_iter()),
            to_mark(&mut steps.iter().rev().copied()),
            "{ops:?} {at}"
        );
        live += usize::from(matches!(steps.last(), Some(Step::Record(_))));
        if steps.iter().any(|step| *step != Step::RangeDelete) {
            named.push(key(at));
        }
        let is_deleted = steps.contains(&Step::RangeDelete);
        assert_eq!(index.deleted().holds(&key(at)), is_deleted);
    }
    assert_eq!(index.live_keys(), live, "{ops:?}");
    assert_eq!(index.is_empty(), ops.is_empty());
    named.sort_by(|left, right| order.cmp(left, right));
    let found = index.range(Bound::Unbounded, Bound::Unbounded);
    assert!(found.map(|(key, _)| &key[..]).eq(named.iter().map(|key| &key[..])));
    for at in 0..KEYS {
        let at = key(at);
        let ahead = named.iter().find(|named| order.cmp(&named[..], &at).is_gt());
        assert_eq!(index.first(Bound::Excluded(&at), Bound::Unbounded), ahead.map(|key| &key[..]));
        let back = named.iter().rfind(|named| order.cmp(&named[..], &at).is_le());
        assert_eq!(index.last(Bound::Unbounded, Bound::Included(&at)), back.map(|key| &key[..]));
        let alone = named.contains(&at).then_some(&at[..]);
        assert_eq!(index.first(Bound::Included(&at), Bound::Included(&at)), alone);
        assert_eq!(index.last(Bound::Included(&at), Bound::Included(&at)), alone);
    }
}

/// Each key has its steps, whatever was noted and taken back.
fn run(order: &Collation, ops: Vec<Op>) {
    let mut index = BatchIndex::new(order);
    let (mut done, mut savepoints): (Vec<Op>, Vec<usize>) = (Vec::new(), Vec::new());
    for op in ops {
        match op {
            Op::Record(at) => index.note(&key(at), done.len()),
            Op::RangeDelete(start, end) if order.cmp(&key(start), &key(end)).is_lt() => {
                index.note_range_delete(&key(start), &key(end));
            }
            Op::RangeDelete(..) => continue,
            Op::SetSavepoint => {
                savepoints.push(done.len());
                continue;
            }
            Op::RollBack => {
                for op in done.drain(savepoints.pop().unwrap_or(0)..).rev() {
                    match op {
                        Op::Record(at) => index.take_back(&key(at)),
                        Op::RangeDelete(start, end) => index.take_back_range_delete(&key(start), &key(end)),
                        Op::SetSavepoint | Op::RollBack => unreachable!("they are not kept"),
                    }
                }
                check(&index, &done);
                continue;
            }
        }
        done.push(op);
        check(&index, &done);
    }
}

proptest! {
    #[test]
    fn an_index_by_bytes_has_the_steps_of_each_key(ops in ops()) {
        run(&Collation::BYTES, ops);
    }

    #[test]
    fn an_index_under_a_comparator_has_the_steps_of_each_key(ops in ops()) {
        run(&collation(Arc::new(Reverse)), ops);
    }
}

#[test]
fn a_comparator_that_contradicts_itself_ends_in_no_panic() {
    let order = collation(Arc::new(Odd(AtomicU32::new(0))));
    let marked = |number: u32| [&number.to_be_bytes()[..], &[0]].concat();
    let mut ranges = KeyRanges::new(&order);
    let mut added = Vec::new();
    let mut index = BatchIndex::new(&order);
    for n in 0..600u32 {
        let [start, end] = [n * 7919 % 600, n * 104_729 % 600].map(marked);
        added.push(ranges.add(&start, &end));
        index.note(&start, n as usize);
        index.note_range_delete(&start, &end);
    }
    assert!(!ranges.is_empty() && ranges.iter().count() > 0);
    added.into_iter().rev().for_each(|added| ranges.take_back(added));
    for n in (0..600u32).rev() {
        let [start, end] = [n * 7919 % 600, n * 104_729 % 600].map(marked);
        index.take_back_range_delete(&start, &end);
        index.take_back(&start);
    }
}

#[test]
fn ranges_are_taken_back_as_they_were() {
    let mut rng = Rng::new(3);
    let mut below = |bound: u64| rng.below(bound) as u8;
    for _ in 0..500 {
        let mut ranges = KeyRanges::new(Collation::bytes());
        let mut states = Vec::new();
        for _ in 0..below(8) {
            let before: Vec<_> = ranges.iter().map(|(start, end)| (start.to_vec(), end.to_vec())).collect();
            let start = below(11);
            let end = start + 1 + below(u64::from(11 - start));
            states.push((before, ranges.add(&[start], &[end])));
        }
        while let Some((before, added)) = states.pop() {
            ranges.take_back(added);
            let now: Vec<_> = ranges.iter().map(|(start, end)| (start.to_vec(), end.to_vec())).collect();
            assert_eq!(now, before);
        }
    }
}
