//! Orders of keys for tables of a run. The model knows the order of bytes alone.
//!
//! * One in which every byte takes two. It is the order of bytes, but no key is kept as it is: one that passes the border
//!   uncoded in either direction is found.
//! * The reverse order, looked at from its end.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use terrane::{Cursor, Db, Env, Error, KeyOrder, KeyOrders, Options, Result, Row, Table};
use terrane_device::Disk;

use crate::numbers::Numbers;
use crate::op::all_keys;

const REVERSE: &str = "reverse";

/// The option of a table that has one of them.
pub(crate) fn draw(numbers: &mut Numbers) -> (String, String) {
    let name = if numbers.one_in(2) { REVERSE } else { Halves.name() };
    ("key_order".to_owned(), name.to_owned())
}

/// Whether a table has the reverse order.
pub(crate) fn is_turned(table: &Table) -> bool {
    table.key_order() == REVERSE
}

/// Rows in the order of bytes, from both ends.
pub(crate) type Rows<'r> = Box<dyn DoubleEndedIterator<Item = Result<Row>> + 'r>;

/// The rows of a table in the order of bytes.
pub(crate) fn facing<'r>(table: &Table, rows: impl DoubleEndedIterator<Item = Result<Row>> + 'r) -> Rows<'r> {
    if is_turned(table) { Box::new(rows.rev()) } else { Box::new(rows) }
}

/// A range of keys in the order of a table.
pub(crate) struct Between {
    pub(crate) first: Vec<u8>,
    pub(crate) behind: Vec<u8>,
    /// Those that a run may have there.
    pub(crate) keys: Vec<Vec<u8>>,
}

/// The keys between two keys. `None` if that is nothing.
pub(crate) fn range_in_order(is_turned: bool, start: &Vec<u8>, end: &Vec<u8>) -> Option<Between> {
    if start >= end {
        return None;
    }
    // In the reverse order the range begins at the greater key, and then that is in it.
    let (first, behind) = if is_turned { (end, start) } else { (start, end) };
    let is_within = |key: &Vec<u8>| (start < key && key < end) || key == first;
    let keys: BTreeSet<_> = all_keys().filter(is_within).collect();
    Some(Between { first: first.clone(), behind: behind.clone(), keys: keys.into_iter().collect() })
}

/// The two ends of a range of the order of bytes, in that of a table.
pub(crate) fn turned<T>(table: &Table, (lower, upper): (T, T)) -> (T, T) {
    if is_turned(table) { (upper, lower) } else { (lower, upper) }
}

/// A cursor that goes by the order of bytes.
pub(crate) struct Facing {
    cursor: Cursor,
    is_turned: bool,
}

impl Facing {
    pub(crate) fn new(table: &Table, cursor: Cursor) -> Self {
        Facing { cursor, is_turned: is_turned(table) }
    }

    pub(crate) fn refresh(&mut self) {
        self.cursor.refresh();
    }

    pub(crate) fn row(&self) -> Option<(&[u8], &[u8])> {
        self.cursor.row()
    }

    pub(crate) fn next(&mut self) -> Result<()> {
        if self.is_turned { self.cursor.prev() } else { self.cursor.next() }
    }

    pub(crate) fn prev(&mut self) -> Result<()> {
        if self.is_turned { self.cursor.next() } else { self.cursor.prev() }
    }

    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<()> {
        if self.is_turned { self.cursor.seek_back(key) } else { self.cursor.seek(key) }
    }

    pub(crate) fn seek_back(&mut self, key: &[u8]) -> Result<()> {
        if self.is_turned { self.cursor.seek(key) } else { self.cursor.seek_back(key) }
    }

    pub(crate) fn seek_first(&mut self) -> Result<()> {
        if self.is_turned { self.cursor.seek_last() } else { self.cursor.seek_first() }
    }

    pub(crate) fn seek_last(&mut self) -> Result<()> {
        if self.is_turned { self.cursor.seek_first() } else { self.cursor.seek_last() }
    }
}

/// Opens a database of a run.
///
/// # Errors
/// As [`Db::open_with_functions_on`].
pub(crate) fn open(disk: Arc<dyn Disk>, path: impl AsRef<Path>, options: &Options, env: Env) -> Result<Db> {
    Db::open_with_functions_on(disk, path, options, env, orders()?)
}

/// The orders that tables of a run may name.
pub(crate) fn orders() -> Result<KeyOrders> {
    KeyOrders::new().with(Arc::new(Halves))
}

/// The upper half of a byte, then the lower one.
#[derive(Debug)]
struct Halves;

impl KeyOrder for Halves {
    fn name(&self) -> &str {
        "sim.halves"
    }

    fn encode(&self, key: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.encode_prefix(key, out);
        Ok(())
    }

    fn decode(&self, encoded: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let (pairs, rest) = encoded.as_chunks::<2>();
        if !rest.is_empty() || encoded.iter().any(|half| *half > 15) {
            return Err(Error::corrupt("a key that is not made of halves"));
        }
        out.extend(pairs.iter().map(|[upper, lower]| upper << 4 | lower));
        Ok(())
    }

    fn encode_prefix(&self, prefix: &[u8], out: &mut Vec<u8>) -> bool {
        out.extend(prefix.iter().flat_map(|byte| [byte >> 4, byte & 15]));
        true
    }
}
