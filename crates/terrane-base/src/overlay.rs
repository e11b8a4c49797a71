//! The rows of a base under the changes of a batch: one position that moves in both directions.
//!
//! The base and the changes are both at their next row in the direction of the last motion. The smaller key
//! (backward, the greater one) is next. Of equal keys the change counts, folded with the row below it if it
//! has operands only. A row that lies in a deleted range is passed together with the range.
//!
//! The batch may change between two motions. A change that was added shows once the position is placed, or
//! turns, or reaches it; a change that was taken back is no longer visible, unless the position is at it.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Bound;

use crate::Collation;
use crate::ordered_map::Compare;

/// Where a motion goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To greater keys.
    Forward,
    /// To smaller keys.
    Backward,
}

/// A key and its value.
pub type Row = (Vec<u8>, Vec<u8>);

/// The rows below the changes.
pub trait Base {
    /// Why a motion fails.
    type Error;

    /// The row at the position; none at the end, and once it was taken.
    fn row(&self) -> Option<(&[u8], &[u8])>;

    /// The key at the position, also after its row was taken.
    fn key(&self) -> Option<Cow<'_, [u8]>> {
        self.row().map(|(key, _)| Cow::Borrowed(key))
    }

    /// The value that operands are folded with. None if the row is gone meanwhile.
    ///
    /// # Errors
    /// The value cannot be read.
    fn value(&self) -> Result<Option<Vec<u8>>, Self::Error>;

    /// Moves the row at the position out.
    fn take(&mut self) -> Option<Row>;

    /// Goes to the first row in this direction, from a bound on.
    ///
    /// # Errors
    /// The row cannot be read.
    fn place(&mut self, direction: Direction, from: Bound<&[u8]>) -> Result<(), Self::Error>;

    /// Goes to the next row, in the direction in which it was placed.
    ///
    /// # Errors
    /// The row cannot be read.
    fn step(&mut self, direction: Direction) -> Result<(), Self::Error>;

    /// Goes to the next row, as [`Base::step`], and moves it out.
    ///
    /// # Errors
    /// As [`Base::step`].
    fn take_next(&mut self, direction: Direction) -> Result<Option<Row>, Self::Error> {
        self.step(direction)?;
        Ok(self.take())
    }

    /// Takes the row back that was moved out at the position.
    fn put_back(&mut self, row: Row);
}

/// The effect of a batch on one key.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing any more: the change was taken back.
    Nothing,
    /// The key has no row.
    Deleted,
    /// The key has this value.
    Value(Vec<u8>),
}

/// The keys that a batch changes, and what it does to them.
pub trait Changes {
    /// Why a change cannot be applied.
    type Error;

    /// The changed key at the position.
    fn key(&self) -> Option<&[u8]>;

    /// Goes to the first changed key in this direction, from a bound on.
    fn place(&mut self, direction: Direction, from: Bound<&[u8]>);

    /// Goes to the next changed key, in the direction in which it was placed.
    fn step(&mut self, direction: Direction);

    /// The start of the deleted range that holds the key of a row, and the first key behind the range. None
    /// if the base has no rows of deleted ranges.
    fn deleted_around(&self, key: &[u8]) -> Option<(Vec<u8>, Vec<u8>)>;

    /// Applies the changes of the key at the position to the row below, which is read only if it counts.
    ///
    /// # Errors
    /// The row cannot be read, or operands cannot be folded.
    fn apply(
        &self,
        below: impl FnOnce() -> Result<Option<Vec<u8>>, Self::Error>,
    ) -> Result<Outcome, Self::Error>;
}

/// Where the position is.
#[derive(Debug, Default)]
enum At {
    /// At no row.
    #[default]
    Nowhere,
    /// At the row of the base.
    Row,
    /// At a change; whether the base is at the same key.
    Change { value: Vec<u8>, hides_row: bool },
}

/// See the [module](self).
#[derive(Debug)]
pub struct Overlay<B, C, O = Collation> {
    base: B,
    changes: C,
    /// The order of the keys of both.
    order: O,
    direction: Direction,
    at: At,
}

impl<B: Base, C: Changes<Error = B::Error>, O: Compare> Overlay<B, C, O> {
    /// These changes over a base, at no row.
    pub fn new(base: B, changes: C, order: O) -> Self {
        Overlay { base, changes, order, direction: Direction::Forward, at: At::Nowhere }
    }

    /// The base.
    pub fn base(&self) -> &B {
        &self.base
    }

    /// The base. Only a motion of the overlay may move it.
    pub fn base_mut(&mut self) -> &mut B {
        &mut self.base
    }

    /// The row at the position.
    #[inline]
    pub fn row(&self) -> Option<(&[u8], &[u8])> {
        match &self.at {
            At::Nowhere => None,
            At::Row => self.base.row(),
            At::Change { value, .. } => Some((self.changes.key()?, value)),
        }
    }

    /// The key at the position, also after its row was taken.
    pub fn key(&self) -> Option<Cow<'_, [u8]>> {
        match &self.at {
            At::Nowhere => None,
            At::Row => self.base.key(),
            At::Change { .. } => self.changes.key().map(Cow::Borrowed),
        }
    }

    /// Moves the row at the position out, once. The position stays.
    #[inline]
    pub fn take(&mut self) -> Option<Row> {
        match &mut self.at {
            At::Nowhere => None,
            At::Row => self.base.take(),
            At::Change { value, .. } => Some((self.changes.key()?.to_vec(), std::mem::take(value))),
        }
    }

    /// Leaves the position: it is at no row until it is placed.
    pub fn reset(&mut self) {
        self.at = At::Nowhere;
    }

    /// Goes to the first row in this direction, from a bound on. At no row after an error.
    ///
    /// # Errors
    /// Those of the base and of the changes.
    pub fn place(&mut self, direction: Direction, from: Bound<&[u8]>) -> Result<(), B::Error> {
        self.at = At::Nowhere;
        self.direction = direction;
        self.changes.place(direction, from);
        self.base.place(direction, from)?;
        self.find()
    }

    /// Goes to the next row in this direction. From no row it goes nowhere. At no row after an error.
    ///
    /// # Errors
    /// Those of the base and of the changes.
    #[inline]
    pub fn step(&mut self, direction: Direction) -> Result<(), B::Error> {
        if direction != self.direction {
            return self.turn(direction);
        }
        match std::mem::take(&mut self.at) {
            At::Nowhere => return Ok(()),
            At::Row => self.base.step(direction)?,
            At::Change { hides_row, .. } => {
                self.changes.step(direction);
                if hides_row {
                    self.base.step(direction)?;
                }
            }
        }
        self.find()
    }

    /// Goes to the next row in this direction, as [`Overlay::step`], and moves it out.
    ///
    /// # Errors
    /// As [`Overlay::step`].
    #[inline]
    pub fn take_next(&mut self, direction: Direction) -> Result<Option<Row>, B::Error> {
        if !matches!(self.at, At::Row) || direction != self.direction {
            self.step(direction)?;
            return Ok(self.take());
        }
        self.at = At::Nowhere;
        if let Some(row) = self.base.take_next(direction)? {
            let is_next = self.changes.key().is_none_or(|change| self.relation(&row.0, change).is_lt());
            if is_next && self.changes.deleted_around(&row.0).is_none() {
                self.at = At::Row;
                return Ok(Some(row));
            }
            self.base.put_back(row);
        }
        self.find()?;
        Ok(self.take())
    }

    /// Goes to the next row in the other direction.
    #[inline(never)]
    fn turn(&mut self, direction: Direction) -> Result<(), B::Error> {
        let Some(key) = self.key().map(Cow::into_owned) else { return Ok(()) };
        self.place(direction, Bound::Excluded(&key))
    }

    /// Finds the next row that shows, from where base and changes are.
    #[inline]
    fn find(&mut self) -> Result<(), B::Error> {
        debug_assert!(matches!(self.at, At::Nowhere), "the position was left");
        loop {
            let Some(next) = self.next() else { return Ok(()) };
            if next == Ordering::Less {
                if self.pass_deleted_range()? {
                    continue;
                }
                self.at = At::Row;
                return Ok(());
            }
            let hides_row = next == Ordering::Equal;
            let below = || if hides_row { self.base.value() } else { Ok(None) };
            match self.changes.apply(below)? {
                Outcome::Value(value) => {
                    self.at = At::Change { value, hides_row };
                    return Ok(());
                }
                Outcome::Deleted if hides_row => self.base.step(self.direction)?,
                Outcome::Deleted | Outcome::Nothing => {}
            }
            self.changes.step(self.direction);
        }
    }

    /// Which is next: the row (less), the change (greater), or both; none if both have come to their end.
    #[inline]
    fn next(&self) -> Option<Ordering> {
        match (self.base.row(), self.changes.key()) {
            (None, None) => None,
            (Some(_), None) => Some(Ordering::Less),
            (None, Some(_)) => Some(Ordering::Greater),
            (Some((row, _)), Some(change)) => Some(self.relation(row, change)),
        }
    }

    /// How the key of a row relates to that of a change, in the direction.
    #[inline]
    fn relation(&self, row: &[u8], change: &[u8]) -> Ordering {
        match self.direction {
            Direction::Forward => self.order.compare(row, change),
            Direction::Backward => self.order.compare(change, row),
        }
    }

    /// Takes the base out of the deleted range that holds its row; whether there is one.
    fn pass_deleted_range(&mut self) -> Result<bool, B::Error> {
        let Some((key, _)) = self.base.row() else { return Ok(false) };
        let Some((start, end)) = self.changes.deleted_around(key) else { return Ok(false) };
        debug_assert!(
            !self.order.is_bytes() || start[..] <= *key && *key < end[..],
            "the range holds the row, so that the base goes on"
        );
        match self.direction {
            Direction::Forward => self.base.place(Direction::Forward, Bound::Included(&end))?,
            Direction::Backward => self.base.place(Direction::Backward, Bound::Excluded(&start))?,
        }
        Ok(true)
    }
}
