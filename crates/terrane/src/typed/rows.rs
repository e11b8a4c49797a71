//! The rows of a range, decoded.

use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;

use super::{DecodeKey, DecodeValue};
use crate::{Error, Iter, Result, Row};

/// The rows of a range of a [`TypedTable`](super::TypedTable) in key order, from both ends. A row that is
/// none of the types is an error, and the iterator goes on behind it.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// use terrane::typed::TypedTable;
/// let db = terrane::Db::open_in_memory()?;
/// let names: TypedTable<u64, String> = TypedTable::new(db.table_or_create("names")?)?;
/// names.put(1, "ada")?;
/// names.put(2, "grace")?;
/// let newest: Option<(u64, String)> = names.iter().next_back().transpose()?;
/// assert_eq!(newest, Some((2, "grace".to_owned())));
/// # Ok(())
/// # }
/// ```
pub struct Rows<K, V, I = Iter> {
    rows: I,
    table: String,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K, V, I> Rows<K, V, I> {
    pub(super) fn new(rows: I, table: &str) -> Self {
        Rows { rows, table: table.to_owned(), types: PhantomData }
    }
}

impl<K: DecodeKey, V> Rows<K, V> {
    /// The keys alone; separated values are not read.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// use terrane::typed::TypedTable;
    /// let db = terrane::Db::open_in_memory()?;
    /// let names: TypedTable<u64, String> = TypedTable::new(db.table_or_create("names")?)?;
    /// names.put(7, "ada")?;
    /// let keys: Vec<u64> = names.iter().keys().collect::<terrane::Result<_>>()?;
    /// assert_eq!(keys, [7]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn keys(self) -> impl DoubleEndedIterator<Item = Result<K>> + FusedIterator {
        let table = self.table;
        self.rows.keys().map(move |key| key.and_then(|key| decode_key(&table, &key)))
    }
}

/// The key that `bytes` encode.
pub(super) fn decode_key<K: DecodeKey>(table: &str, bytes: &[u8]) -> Result<K> {
    K::decode(bytes).ok_or_else(|| wrong::<K>(table, bytes, "the key"))
}

/// The value that `bytes` encode, which `key` has.
pub(super) fn decode_value<V: DecodeValue>(table: &str, key: &[u8], bytes: Vec<u8>) -> Result<V> {
    V::decode_value(bytes).ok_or_else(|| wrong::<V>(table, key, "the value of"))
}

fn wrong<T>(table: &str, key: &[u8], what: &str) -> Error {
    let (key, wanted) = (key.escape_ascii(), std::any::type_name::<T>());
    Error::invalid(format!(
        "table {table:?}: {what} b\"{key}\" is not a {wanted}: read it with the type that it was written with"
    ))
}

impl<K: DecodeKey, V: DecodeValue, I> Rows<K, V, I> {
    fn decoded(&self, row: Result<Row>) -> Result<(K, V)> {
        let (key, value) = row?;
        Ok((decode_key(&self.table, &key)?, decode_value(&self.table, &key, value)?))
    }
}

impl<K: DecodeKey, V: DecodeValue, I: Iterator<Item = Result<Row>>> Iterator for Rows<K, V, I> {
    type Item = Result<(K, V)>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = self.rows.next()?;
        Some(self.decoded(row))
    }

    /// Decodes none of the rows that it passes by.
    fn nth(&mut self, rows: usize) -> Option<Self::Item> {
        let row = self.rows.nth(rows)?;
        Some(self.decoded(row))
    }

    /// Decodes no row.
    fn count(self) -> usize {
        self.rows.count()
    }
}

impl<K: DecodeKey, V: DecodeValue, I: DoubleEndedIterator<Item = Result<Row>>> DoubleEndedIterator
    for Rows<K, V, I>
{
    fn next_back(&mut self) -> Option<Self::Item> {
        let row = self.rows.next_back()?;
        Some(self.decoded(row))
    }

    /// Decodes none of the rows that it passes by.
    fn nth_back(&mut self, rows: usize) -> Option<Self::Item> {
        let row = self.rows.nth_back(rows)?;
        Some(self.decoded(row))
    }
}

impl<K: DecodeKey, V: DecodeValue, I: FusedIterator<Item = Result<Row>>> FusedIterator for Rows<K, V, I> {}

impl<K, V, I> fmt::Debug for Rows<K, V, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("table", &self.table).finish_non_exhaustive()
    }
}
