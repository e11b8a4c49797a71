//! The rows of a range, as an iterator of owned rows.

use std::fmt;
use std::iter::FusedIterator;
use std::sync::Arc;

use terrane_base::key_order::Order;
use terrane_base::{Error, Result};
use terrane_engine::PinnedRange;

/// A key and its value.
pub type Row = (Vec<u8>, Vec<u8>);

/// The rows of a range in key order, from both ends. It has no lifetime: it keeps the database open, and goes
/// on after a [`Db::close`](crate::Db::close): see [`Db`](crate::Db#handles).
///
/// It sees the table as it was when the iterator was made. After an error it ends; one is `TooOld`, if it is
/// older than the option `reader_age_max_ms` allows.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let db = terrane::Db::open_in_memory()?;
/// # let table = db.default_table();
/// for (key, value) in [("a", "1"), ("b", "2"), ("c", "3")] {
///     table.put(key, value)?;
/// }
/// let rows: Vec<terrane::Row> = table.range("b"..).collect::<terrane::Result<_>>()?;
/// assert_eq!(rows.len(), 2);
/// let newest_first: Vec<Vec<u8>> = table.iter().keys().rev().collect::<terrane::Result<_>>()?;
/// assert_eq!(newest_first, [b"c", b"b", b"a"]);
/// # Ok(())
/// # }
/// ```
pub struct Iter {
    /// None once it has ended by an error of its own.
    rows: Option<PinnedRange>,
    /// The error that ends it.
    failed: Option<Error>,
    order: Option<Arc<Order>>,
    /// True if all rows have empty values.
    is_valueless: bool,
}

impl Iter {
    /// The rows with their keys decoded, or the error alone.
    pub(crate) fn new(rows: Result<PinnedRange>, order: Option<Arc<Order>>) -> Self {
        match rows {
            Ok(rows) => Iter { rows: Some(rows), failed: None, order, is_valueless: false },
            Err(error) => Iter { rows: None, failed: Some(error), order, is_valueless: false },
        }
    }

    /// The keys alone; separated values are not read. [`Iterator::count`] and [`Iterator::nth`] do not read
    /// those of the rows that they pass by either.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("a", "1")?;
    /// for key in db.default_table().iter().keys() {
    ///     assert_eq!(key?, b"a");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn keys(self) -> impl DoubleEndedIterator<Item = Result<Vec<u8>>> + FusedIterator {
        self.without_values().map(|row| row.map(|(key, _)| key))
    }

    /// The rows with empty values: [`Iter::keys`] for code that takes an `Iter`.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("a", "1")?;
    /// for row in db.default_table().iter().without_values() {
    ///     assert_eq!(row?, (b"a".to_vec(), Vec::new()));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn without_values(mut self) -> Self {
        self.is_valueless = true;
        self.leave_values(true);
        self
    }

    /// The values alone, in the order of their keys.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("a", "1")?;
    /// let values: Vec<Vec<u8>> = db.default_table().iter().values().collect::<terrane::Result<_>>()?;
    /// assert_eq!(values, [b"1"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn values(self) -> impl DoubleEndedIterator<Item = Result<Vec<u8>>> + FusedIterator {
        self.map(|row| row.map(|(_, value)| value))
    }

    /// Sets whether the next rows have empty values: then separated ones are not read.
    fn leave_values(&mut self, leaves_values: bool) {
        if let Some(rows) = &mut self.rows {
            rows.leave_values(leaves_values);
        }
    }

    /// Passes `rows` rows by without their values; returns whether there were so many.
    fn pass_by(&mut self, rows: usize, step: impl Fn(&mut Self) -> Option<Result<Row>>) -> bool {
        self.leave_values(true);
        debug_assert!(rows > 0, "a caller that passes no row by has no values to leave");
        let passed = (0..rows).all(|_| step(self).is_some());
        self.leave_values(self.is_valueless);
        passed
    }

    #[inline]
    fn step(&mut self, step: impl FnOnce(&mut PinnedRange) -> Option<Result<Row>>) -> Option<Result<Row>> {
        let Some(rows) = &mut self.rows else { return self.failed.take().map(Err) };
        let row = step(rows);
        let Some(order) = &self.order else { return row };
        let row = match row {
            Some(row) => Some(row.and_then(|row| decoded(order, row))),
            // Without the comparator it is unknown whether this is the end.
            None => order.collation().check().err().map(Err),
        };
        if !matches!(row, Some(Ok(_))) {
            self.rows = None;
        }
        row
    }
}

/// A row with its key as users know it.
pub(crate) fn decoded(order: &Order, (key, value): Row) -> Result<Row> {
    Ok((order.decode(&key)?, value))
}

impl Iterator for Iter {
    type Item = Result<Row>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.step(Iterator::next)
    }

    /// Without the values of the rows that it passes by.
    fn nth(&mut self, rows: usize) -> Option<Self::Item> {
        if rows > 0 && !self.pass_by(rows, Self::next) {
            return None;
        }
        self.next()
    }

    /// Without values.
    fn count(mut self) -> usize {
        self.leave_values(true);
        self.fold(0, |count, _| count + 1)
    }
}

impl DoubleEndedIterator for Iter {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(DoubleEndedIterator::next_back)
    }

    /// Without the values of the rows that it passes by.
    fn nth_back(&mut self, rows: usize) -> Option<Self::Item> {
        if rows > 0 && !self.pass_by(rows, Self::next_back) {
            return None;
        }
        self.next_back()
    }
}

impl FusedIterator for Iter {}

impl fmt::Debug for Iter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").finish_non_exhaustive()
    }
}
