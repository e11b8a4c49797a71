use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::rc::Rc;

use super::*;
use crate::batch_index::Step;
use crate::{BatchIndex, Rng};

/// The order of bytes, or its reverse.
#[derive(Clone, Copy, Debug)]
struct Order {
    is_reverse: bool,
}

impl Compare for Order {
    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        if self.is_reverse { right.cmp(left) } else { left.cmp(right) }
    }

    fn is_bytes(&self) -> bool {
        !self.is_reverse
    }
}

/// A sorted base; it notes the keys that it was at.
struct Rows {
    order: Order,
    /// In the order.
    rows: Vec<Row>,
    at: Option<usize>,
    is_taken: bool,
    seen: Vec<Vec<u8>>,
}

impl Rows {
    fn go_to(&mut self, at: Option<usize>) {
        self.at = at.filter(|at| *at < self.rows.len());
        self.is_taken = false;
        self.seen.extend(self.at.map(|at| self.rows[at].0.clone()));
    }
}

impl Base for Rows {
    type Error = Infallible;

    fn row(&self) -> Option<(&[u8], &[u8])> {
        self.at.filter(|_| !self.is_taken).map(|at| (&self.rows[at].0[..], &self.rows[at].1[..]))
    }

    fn key(&self) -> Option<Cow<'_, [u8]>> {
        self.at.map(|at| Cow::Borrowed(&self.rows[at].0[..]))
    }

    fn take(&mut self) -> Option<Row> {
        let row = self.row().map(|(key, value)| (key.to_vec(), value.to_vec()));
        self.is_taken = true;
        row
    }

    fn put_back(&mut self, row: Row) {
        assert!(self.is_taken && self.at.is_some_and(|at| self.rows[at] == row), "what was moved out");
        self.is_taken = false;
    }

    fn value(&self) -> Result<Option<Vec<u8>>, Infallible> {
        Ok(self.row().map(|(_, value)| value.to_vec()))
    }

    fn place(&mut self, direction: Direction, from: Bound<&[u8]>) -> Result<(), Infallible> {
        let at = match direction {
            Direction::Forward => {
                self.rows.iter().position(|(key, _)| reaches(self.order, direction, key, from))
            }
            Direction::Backward => {
                self.rows.iter().rposition(|(key, _)| reaches(self.order, direction, key, from))
            }
        };
        self.go_to(at);
        Ok(())
    }

    fn step(&mut self, direction: Direction) -> Result<(), Infallible> {
        let at = self.at.expect("only a base at a row goes on");
        self.go_to(match direction {
            Direction::Forward => Some(at + 1),
            Direction::Backward => at.checked_sub(1),
        });
        Ok(())
    }
}

/// Returns true if a key lies at a bound or behind it, in a direction.
fn reaches(order: Order, direction: Direction, key: &[u8], from: Bound<&[u8]>) -> bool {
    let relation = |from| match direction {
        Direction::Forward => order.compare(key, from),
        Direction::Backward => order.compare(from, key),
    };
    match from {
        Bound::Unbounded => true,
        Bound::Included(from) => relation(from).is_ge(),
        Bound::Excluded(from) => relation(from).is_gt(),
    }
}

#[derive(Clone, Debug)]
enum Record {
    Put(u8),
    Merge(u8),
    Delete,
}

struct Batch {
    records: Vec<Record>,
    index: BatchIndex<Order>,
}

/// A batch, with a position among its keys.
struct Own {
    batch: Rc<RefCell<Batch>>,
    key: Option<Vec<u8>>,
}

impl Changes for Own {
    type Error = Infallible;

    fn key(&self) -> Option<&[u8]> {
        self.key.as_deref()
    }

    fn place(&mut self, direction: Direction, from: Bound<&[u8]>) {
        let batch = self.batch.borrow();
        self.key = match direction {
            Direction::Forward => batch.index.first(from, Bound::Unbounded).map(<[u8]>::to_vec),
            Direction::Backward => batch.index.last(Bound::Unbounded, from).map(<[u8]>::to_vec),
        };
    }

    fn step(&mut self, direction: Direction) {
        let key = self.key.take().expect("only changes at a key go on");
        self.place(direction, Bound::Excluded(&key));
    }

    fn deleted_around(&self, key: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        let batch = self.batch.borrow();
        batch.index.deleted().around(key).map(|(start, end)| (start.to_vec(), end.to_vec()))
    }

    fn apply(
        &self,
        below: impl FnOnce() -> Result<Option<Vec<u8>>, Infallible>,
    ) -> Result<Outcome, Infallible> {
        let batch = self.batch.borrow();
        let (mut operands, mut base) = (Vec::new(), None);
        let steps = batch.index.steps(self.key.as_deref().expect("at a key"));
        if steps.len() == 0 {
            return Ok(Outcome::Nothing);
        }
        for step in steps {
            match step {
                Step::RangeDelete => base = Some(None),
                Step::Record(at) => match batch.records[at] {
                    Record::Put(byte) => base = Some(Some(vec![byte])),
                    Record::Delete => base = Some(None),
                    Record::Merge(byte) => {
                        operands.push(byte);
                        continue;
                    }
                },
            }
            break;
        }
        operands.reverse();
        let base = base.map_or_else(below, Ok)?;
        Ok(match base {
            None if operands.is_empty() => Outcome::Deleted,
            base => Outcome::Value([base.unwrap_or_default(), operands].concat()),
        })
    }
}

/// A base, a batch over it, and what a sorted map makes of both.
struct World {
    overlay: Overlay<Rows, Own, Order>,
    batch: Rc<RefCell<Batch>>,
    order: Order,
    model: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl World {
    fn new(order: Order, rows: &BTreeMap<Vec<u8>, Vec<u8>>) -> World {
        let batch = Batch { records: Vec::new(), index: BatchIndex::new(&order) };
        let batch = Rc::new(RefCell::new(batch));
        let mut sorted: Vec<Row> = rows.clone().into_iter().collect();
        sorted.sort_by(|left, right| order.compare(&left.0, &right.0));
        let base = Rows { order, rows: sorted, at: None, is_taken: false, seen: Vec::new() };
        let changes = Own { batch: batch.clone(), key: None };
        World { overlay: Overlay::new(base, changes, order), batch, order, model: rows.clone() }
    }

    fn add(&mut self, key: u8, record: Record) {
        let mut batch = self.batch.borrow_mut();
        let at = batch.records.len();
        batch.index.note(&[key], at);
        match record {
            Record::Put(byte) => drop(self.model.insert(vec![key], vec![byte])),
            Record::Merge(byte) => self.model.entry(vec![key]).or_default().push(byte),
            Record::Delete => drop(self.model.remove(&[key][..])),
        }
        batch.records.push(record);
    }

    fn delete_range(&mut self, one: u8, other: u8) {
        let (mut start, mut end) = ([one], [other]);
        if self.order.compare(&start, &end).is_gt() {
            std::mem::swap(&mut start, &mut end);
        }
        if start != end {
            self.batch.borrow_mut().index.note_range_delete(&start, &end);
            let order = self.order;
            self.model
                .retain(|key, _| order.compare(key, &start).is_lt() || order.compare(key, &end).is_ge());
        }
    }

    /// The row of the model from a bound on, in a direction.
    fn wanted(&self, direction: Direction, from: Bound<&[u8]>) -> Option<Row> {
        let rows = self.model.iter().filter(|(key, _)| reaches(self.order, direction, key, from));
        let rows = rows.map(|(key, value)| (key.clone(), value.clone()));
        match direction {
            Direction::Forward => rows.min_by(|left, right| self.order.compare(&left.0, &right.0)),
            Direction::Backward => rows.max_by(|left, right| self.order.compare(&left.0, &right.0)),
        }
    }

    fn shown(&self) -> Option<Row> {
        self.overlay.row().map(|(key, value)| (key.to_vec(), value.to_vec()))
    }
}

fn random_world(rng: &mut Rng) -> World {
    let order = Order { is_reverse: rng.below(2) == 0 };
    let rows = (0..rng.below(24)).map(|at| (vec![rng.below(32) as u8], vec![at as u8, b'.'])).collect();
    let mut world = World::new(order, &rows);
    for byte in 0..rng.below(24) as u8 {
        let key = rng.below(32) as u8;
        match rng.below(8) {
            0..=2 => world.add(key, Record::Put(byte)),
            3..=4 => world.add(key, Record::Merge(byte)),
            5..=6 => world.add(key, Record::Delete),
            _ => world.delete_range(key, rng.below(33) as u8),
        }
    }
    world
}

/// Random placements, steps and turns over random changes, in the order of bytes and in its reverse, show the
/// rows of a sorted map with the changes, whether rows are taken or not.
#[test]
fn an_overlay_shows_what_a_sorted_map_has() {
    let mut rng = Rng::new(19);
    for _ in 0..300 {
        let mut world = random_world(&mut rng);
        let mut at: Option<Vec<u8>> = None;
        for _ in 0..60 {
            let direction = if rng.below(2) == 0 { Direction::Forward } else { Direction::Backward };
            let key = [rng.below(33) as u8];
            let takes = rng.below(3) == 0;
            let wanted = match (rng.below(8), at) {
                (0, _) => {
                    let from = [Bound::Unbounded, Bound::Included(&key[..]), Bound::Excluded(&key[..])];
                    let from = from[rng.below(3) as usize];
                    world.overlay.place(direction, from).expect("infallible");
                    world.wanted(direction, from)
                }
                (_, None) => {
                    world.overlay.step(direction).expect("infallible");
                    None
                }
                (_, Some(before)) if takes => {
                    let wanted = world.wanted(direction, Bound::Excluded(&before));
                    assert_eq!(world.overlay.take_next(direction).expect("infallible"), wanted);
                    at = wanted.map(|(key, _)| key);
                    assert_eq!(world.overlay.key().as_deref(), at.as_deref(), "the position stays");
                    continue;
                }
                (_, Some(at)) => {
                    world.overlay.step(direction).expect("infallible");
                    world.wanted(direction, Bound::Excluded(&at))
                }
            };
            assert_eq!(world.shown(), wanted);
            at = wanted.as_ref().map(|(key, _)| key.clone());
            assert_eq!(world.overlay.key().as_deref(), at.as_deref());
            if takes {
                assert_eq!(world.overlay.take(), wanted);
                assert_eq!(world.overlay.key().as_deref(), at.as_deref(), "the position stays");
            }
        }
    }
}

/// Of the rows in a deleted range the base shows one to each scan: then it is placed behind the range.
#[test]
fn a_deleted_range_is_passed_as_one() {
    for (direction, first, last) in [(Direction::Forward, 5, 30), (Direction::Backward, 29, 4)] {
        let rows = (0..32).map(|key| (vec![key], vec![key])).collect();
        let mut world = World::new(Order { is_reverse: false }, &rows);
        world.delete_range(5, 30);
        world.overlay.place(direction, Bound::Unbounded).expect("infallible");
        let mut shown = 0;
        while world.overlay.row().is_some() {
            shown += 1;
            world.overlay.step(direction).expect("infallible");
        }
        assert_eq!(shown, 7);
        let seen = &world.overlay.base().seen;
        let at = seen.iter().position(|key| key[..] == [first]).expect("the first row of the range");
        assert_eq!((seen.len(), &seen[at + 1][..]), (8, &[last][..]), "{direction:?} {seen:?}");
    }
}

/// A change that is taken back is no longer visible, but the row below does; one that is added shows where
/// the position has not been.
#[test]
fn the_batch_may_change_between_two_motions() {
    let rows = [1, 3, 5, 7].map(|key| (vec![key], vec![key])).into();
    let mut world = World::new(Order { is_reverse: false }, &rows);
    world.add(3, Record::Delete);
    world.overlay.place(Direction::Forward, Bound::Unbounded).expect("infallible");
    assert_eq!(world.shown(), Some((vec![1], vec![1])));
    world.batch.borrow_mut().index.take_back(&[3]);
    world.overlay.step(Direction::Forward).expect("infallible");
    assert_eq!(world.shown(), Some((vec![3], vec![3])));
    world.add(4, Record::Put(40));
    world.overlay.place(Direction::Forward, Bound::Excluded(&[3])).expect("infallible");
    assert_eq!(world.shown(), Some((vec![4], vec![40])));
    world.add(6, Record::Put(60));
    world.overlay.step(Direction::Forward).expect("infallible");
    world.overlay.step(Direction::Forward).expect("infallible");
    assert_eq!(world.shown(), Some((vec![6], vec![60])));
    world.overlay.reset();
    world.overlay.step(Direction::Forward).expect("infallible");
    assert_eq!(world.shown(), None);
}
