//! The two sources of a [`BatchIter`](super::BatchIter): the rows of the database outside the ranges that the
//! batch deletes, and the keys that the batch changes.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Bound;

use terrane_base::batch_index::{History, Keys};
use terrane_base::overlay::{Base, Changes, Direction, Outcome};
use terrane_base::{BatchIndex, Error, Result};
use terrane_engine::{Bounds, PinnedRange};

use crate::snapshot::Pin;
use crate::transaction::indexed::IndexedBatch;
use crate::{Row, Table};

/// The part of `bounds` in a direction from a bound on.
fn from_on(bounds: &Bounds, direction: Direction, from: Bound<&[u8]>) -> Bounds {
    let mut bounds = bounds.clone();
    let (Bound::Included(key) | Bound::Excluded(key)) = from else { return bounds };
    match direction {
        Direction::Forward if bounds.above_lower(key) => bounds.lower = from.map(<[u8]>::to_vec),
        Direction::Backward if bounds.below_upper(key) => bounds.upper = from.map(<[u8]>::to_vec),
        _ => {}
    }
    bounds
}

/// The rows of the database, with stored keys. Ranges that the batch deletes are not read.
pub(super) struct Rows<'b> {
    batch: &'b IndexedBatch,
    table: Table,
    pin: Pin,
    bounds: Bounds,
    /// The parts of the bounds that are not begun, in order.
    left: VecDeque<Bounds>,
    /// The part that the position is in, read in this direction.
    part: Option<PinnedRange>,
    direction: Direction,
    row: Option<Row>,
    /// True if rows have empty values, and separated ones are not read.
    leaves_values: bool,
}

impl<'b> Rows<'b> {
    pub(super) fn new(batch: &'b IndexedBatch, table: Table, bounds: Bounds, pin: Pin) -> Self {
        let left = VecDeque::new();
        let (part, direction) = (None, Direction::Forward);
        Rows { batch, table, pin, bounds, left, part, direction, row: None, leaves_values: false }
    }

    /// The same rows, at none of them.
    pub(super) fn again(&self) -> Self {
        let rows = Rows::new(self.batch, self.table.clone(), self.bounds.clone(), self.pin.clone());
        Rows { leaves_values: self.leaves_values, ..rows }
    }

    /// The keys within the same bounds that the batch changes.
    pub(super) fn changes(&self) -> OwnChanges<'b> {
        let (table, bounds) = (self.table.clone(), self.bounds.clone());
        let index = self.batch.index_of(&table);
        OwnChanges { batch: self.batch, index, table, bounds, keys: None, next: None }
    }

    /// The next rows have empty values.
    pub(super) fn leave_values(&mut self) {
        self.leaves_values = true;
        if let Some(part) = &mut self.part {
            part.leave_values(true);
        }
    }

    /// The first row of the next part that has one.
    #[inline(never)]
    fn next_part(&mut self, direction: Direction) -> Result<Option<Row>> {
        loop {
            let next = match direction {
                Direction::Forward => self.left.pop_front(),
                Direction::Backward => self.left.pop_back(),
            };
            let Some(bounds) = next else { return Ok(None) };
            let mut part = self.table.encoded_iter_at(bounds, self.pin.clone());
            part.leave_values(self.leaves_values);
            let part = self.part.insert(part);
            let row = match direction {
                Direction::Forward => part.next(),
                Direction::Backward => part.next_back(),
            };
            if row.is_some() {
                return row.transpose();
            }
        }
    }
}

impl Base for Rows<'_> {
    type Error = Error;

    #[inline]
    fn row(&self) -> Option<(&[u8], &[u8])> {
        self.row.as_ref().map(|(key, value)| (&key[..], &value[..]))
    }

    fn key(&self) -> Option<Cow<'_, [u8]>> {
        match &self.row {
            Some((key, _)) => Some(Cow::Borrowed(key)),
            // It was taken.
            None => self.part.as_ref()?.last_key(self.direction == Direction::Forward).map(Cow::Owned),
        }
    }

    /// None if the row has expired meanwhile: values that are left are read now.
    fn value(&self) -> Result<Option<Vec<u8>>> {
        let Some((key, value)) = &self.row else { return Ok(None) };
        if !self.leaves_values {
            return Ok(Some(value.clone()));
        }
        debug_assert!(value.is_empty(), "a row whose value was left has none");
        let mut value = Vec::new();
        let mode = self.table.mode(Some(self.pin.seq()));
        let is_there = self.table.engine.get(&self.table.inner, key, mode, &mut value)?;
        self.pin.check().map(|()| is_there.then_some(value))
    }

    #[inline]
    fn take(&mut self) -> Option<Row> {
        self.row.take()
    }

    #[inline]
    fn put_back(&mut self, row: Row) {
        debug_assert!(self.row.is_none(), "it was moved out");
        self.row = Some(row);
    }

    fn place(&mut self, direction: Direction, from: Bound<&[u8]>) -> Result<()> {
        self.left = self.batch.rest_of(&self.table, from_on(&self.bounds, direction, from)).into();
        (self.part, self.direction) = (None, direction);
        self.step(direction)
    }

    #[inline]
    fn step(&mut self, direction: Direction) -> Result<()> {
        self.row = self.take_next(direction)?;
        Ok(())
    }

    #[inline]
    fn take_next(&mut self, direction: Direction) -> Result<Option<Row>> {
        debug_assert_eq!(direction, self.direction, "only a placement turns");
        self.row = None;
        let row = match (&mut self.part, direction) {
            (Some(part), Direction::Forward) => part.next(),
            (Some(part), Direction::Backward) => part.next_back(),
            (None, _) => None,
        };
        if row.is_some() { row.transpose() } else { self.next_part(direction) }
    }
}

/// The keys that a batch changes within bounds.
pub(super) struct OwnChanges<'b> {
    batch: &'b IndexedBatch,
    /// The index of the table; none if the batch does not change it.
    index: Option<&'b BatchIndex>,
    table: Table,
    bounds: Bounds,
    /// Those behind the position.
    keys: Option<Keys<'b>>,
    next: Option<(&'b Vec<u8>, &'b History)>,
}

impl Changes for OwnChanges<'_> {
    type Error = Error;

    #[inline]
    fn key(&self) -> Option<&[u8]> {
        self.next.map(|(key, _)| &key[..])
    }

    fn place(&mut self, direction: Direction, from: Bound<&[u8]>) {
        let bounds = from_on(&self.bounds, direction, from);
        let as_slice = |bound| Bound::as_ref(bound).map(Vec::as_slice);
        self.keys = self.index.map(|index| index.range(as_slice(&bounds.lower), as_slice(&bounds.upper)));
        self.step(direction);
    }

    #[inline]
    fn step(&mut self, direction: Direction) {
        self.next = match (&mut self.keys, direction) {
            (Some(keys), Direction::Forward) => keys.next(),
            (Some(keys), Direction::Backward) => keys.next_back(),
            (None, _) => None,
        };
    }

    #[inline]
    fn deleted_around(&self, _: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        None
    }

    fn apply(&self, below: impl FnOnce() -> Result<Option<Vec<u8>>>) -> Result<Outcome> {
        let Some(((key, history), index)) = self.next.zip(self.index) else { return Ok(Outcome::Nothing) };
        let value = self.batch.resolve_over(&self.table, key, index.steps_of(key, history), below)?;
        Ok(value.map_or(Outcome::Deleted, Outcome::Value))
    }
}
