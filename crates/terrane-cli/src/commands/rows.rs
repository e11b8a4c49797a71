//! The rows of a range, one after the other, whatever a writer beside does.
//!
//! A follower's view can lose extents that the writer has merged. Then a newer view is opened, and the rows
//! go on behind the last one; a line on standard error says so, since those rows are of a later state. An
//! earlier moment (`--at`) has no newer view: what was deleted of it ends the rows with an error.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use terrane::{Iter, Kind, Row, Table};

use super::functions;
use super::store::{Access, bounds, check_range, end, open_table, start};
use crate::arguments::{Engine, Range, TableArgs};
use crate::exit::{Code, Failure};
use crate::signals::stop_on_signals;
use crate::text::key_argument;

/// How often in a row a view may be replaced without one row coming out of it.
const RETRIES_MAX: u32 = 20;

/// Rows of a range of a table.
pub(super) struct Rows<'a> {
    engine: &'a Engine,
    place: &'a TableArgs,
    /// Kept open with its rows.
    pub(super) table: Table,
    pub(super) db: terrane::Db,
    rows: Iter,
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
    prefix: Option<Vec<u8>>,
    is_reverse: bool,
    last: Option<Vec<u8>>,
    retries: u32,
    is_valueless: bool,
    /// Rows that [`Rows::next_whole`] passed over.
    pub(super) left_out: u64,
    stop: Arc<AtomicBool>,
}

impl<'a> Rows<'a> {
    /// Opens the database and the range.
    pub(super) fn open(
        engine: &'a Engine,
        place: &'a TableArgs,
        range: &Range,
        is_reverse: bool,
    ) -> Result<Rows<'a>, Failure> {
        let prefix = range.prefix.as_deref().map(key_argument).transpose()?;
        let (from, to) = if prefix.is_some() { (None, None) } else { bounds(range)? };
        let (db, table) = open_table(engine, place, Access::Read)?;
        check_range(&table, &from, &to)?;
        let rows = match &prefix {
            Some(prefix) => table.prefix(prefix),
            None => table.range((start(from.as_deref()), end(to.as_deref()))),
        };
        let stop = stop_on_signals()?;
        let (last, retries, left_out, is_valueless) = (None, 0, 0, false);
        Ok(Rows {
            engine,
            place,
            table,
            db,
            rows,
            from,
            to,
            prefix,
            is_reverse,
            last,
            retries,
            is_valueless,
            left_out,
            stop,
        })
    }

    /// The rows with empty values.
    pub(super) fn without_values(self) -> Rows<'a> {
        Rows { rows: self.rows.without_values(), is_valueless: true, ..self }
    }

    /// The next row that has a value; none at the end. Passes over keys with operands of an unknown merge
    /// operator.
    ///
    /// # Errors
    /// As [`Rows::next`].
    pub(super) fn next_whole(&mut self) -> Result<Option<Row>, Failure> {
        loop {
            match self.next()? {
                Some((_, value)) if functions::operands(&value).is_some() => self.left_out += 1,
                next => return Ok(next),
            }
        }
    }

    /// The next row, or none at the end.
    ///
    /// # Errors
    /// `Stopped` by a signal; of the engine.
    pub(super) fn next(&mut self) -> Result<Option<Row>, Failure> {
        loop {
            // Acquire: pairs with the store of the thread that waits for signals.
            if self.stop.load(Ordering::Acquire) {
                return Err(Failure::new(Code::Stopped, "stopped by a signal before the last row"));
            }
            let next = if self.is_reverse { self.rows.next_back() } else { self.rows.next() };
            match next.transpose() {
                Ok(Some(row)) => {
                    let (key, _) = &row;
                    if self.prefix.as_deref().is_some_and(|prefix| !key.starts_with(prefix)) {
                        return Ok(None);
                    }
                    self.retries = 0;
                    let last = self.last.get_or_insert_default();
                    last.clear();
                    last.extend_from_slice(key);
                    return Ok(Some(row));
                }
                Ok(None) => return Ok(None),
                Err(gone) if self.goes_on_behind(&gone) => self.open_newer()?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns true if a newer view has the rows. An earlier moment has none, and the view of a shell stays
    /// until `.refresh`.
    fn goes_on_behind(&self, error: &terrane::Error) -> bool {
        let stays = self.engine.moment().is_some() || self.engine.opened.is_some();
        error.kind() == Kind::Gone && self.retries < RETRIES_MAX && !stays
    }

    fn open_newer(&mut self) -> Result<(), Failure> {
        self.retries += 1;
        (self.db, self.table) = open_table(self.engine, self.place, Access::Read)?;
        eprintln!("terrane: the writer merged what was being read: what follows is of that later state");
        let rows = match (self.last.as_deref(), self.is_reverse, &self.prefix) {
            (None, _, Some(prefix)) => self.table.prefix(prefix),
            (None, _, None) => self.table.range((start(self.from.as_deref()), end(self.to.as_deref()))),
            (Some(last), false, None) => self.table.range((Bound::Excluded(last), end(self.to.as_deref()))),
            (Some(last), true, None) => {
                self.table.range((start(self.from.as_deref()), Bound::Excluded(last)))
            }
            (Some(last), false, Some(_)) => self.table.range((Bound::Excluded(last), Bound::Unbounded)),
            (Some(last), true, Some(_)) => self.table.range((Bound::Unbounded, Bound::Excluded(last))),
        };
        self.rows = if self.is_valueless { rows.without_values() } else { rows };
        Ok(())
    }
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
