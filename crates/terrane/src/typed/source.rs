//! Sources and targets of a typed table beside the present state.

use std::iter::FusedIterator;

use crate::{
    Batch, BatchIter, IndexedBatch, Iter, KeyBounds, Result, Row, Snapshot, Table, Transaction,
    TransactionIter, Value,
};

mod sealed {
    pub trait Sealed {}

    impl Sealed for crate::Batch {}
    impl Sealed for crate::IndexedBatch {}
    impl Sealed for crate::Snapshot {}
    impl Sealed for crate::Transaction {}
}

/// Sources of reads of a [`TypedTable`](super::TypedTable): a [`Snapshot`], a [`Transaction`] or an
/// [`IndexedBatch`] over the present state.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// use terrane::typed::{ReadSource, TypedTable};
/// /// The same query over a snapshot, and within a transaction.
/// fn adults(ages: &TypedTable<String, u32>, source: &impl ReadSource) -> terrane::Result<usize> {
///     let rows = ages.range_in(source, ..)?;
///     Ok(rows.filter(|row| row.as_ref().is_ok_and(|(_, age)| *age >= 18)).count())
/// }
///
/// let db = terrane::Db::open_in_memory()?;
/// let ages: TypedTable<String, u32> = TypedTable::new(db.table_or_create("ages")?)?;
/// ages.put("ada", 36)?;
/// let mut transaction = db.transaction(&terrane::TransactionOptions::default())?;
/// ages.put_in(&mut transaction, "grace", 85)?;
/// assert_eq!((adults(&ages, &db.snapshot())?, adults(&ages, &transaction)?), (1, 2));
/// # Ok(())
/// # }
/// ```
pub trait ReadSource: sealed::Sealed {
    /// Rows of a range.
    type Rows<'s>: DoubleEndedIterator<Item = Result<Row>> + FusedIterator
    where
        Self: 's;

    #[doc(hidden)]
    fn get_row(&self, table: &Table, key: &[u8]) -> Result<Option<Value>>;

    #[doc(hidden)]
    fn rows(&self, table: &Table, range: impl KeyBounds) -> Result<Self::Rows<'_>>;
}

impl ReadSource for Snapshot {
    type Rows<'s> = Iter;

    fn get_row(&self, table: &Table, key: &[u8]) -> Result<Option<Value>> {
        self.get(table, key)
    }

    fn rows(&self, table: &Table, range: impl KeyBounds) -> Result<Iter> {
        Ok(self.range(table, range))
    }
}

impl ReadSource for Transaction {
    type Rows<'s> = TransactionIter<'s>;

    fn get_row(&self, table: &Table, key: &[u8]) -> Result<Option<Value>> {
        self.get(table, key)
    }

    fn rows(&self, table: &Table, range: impl KeyBounds) -> Result<TransactionIter<'_>> {
        self.range(table, range)
    }
}

impl ReadSource for IndexedBatch {
    type Rows<'s> = BatchIter<'s>;

    fn get_row(&self, table: &Table, key: &[u8]) -> Result<Option<Value>> {
        self.get(table, key)
    }

    fn rows(&self, table: &Table, range: impl KeyBounds) -> Result<BatchIter<'_>> {
        Ok(self.range(table, range))
    }
}

/// Targets of changes of a [`TypedTable`](super::TypedTable): a [`Batch`], an [`IndexedBatch`] or a
/// [`Transaction`].
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// use terrane::typed::{TypedTable, WriteTarget};
/// /// A user with the index over names: in a batch, or a transaction.
/// struct Users {
///     names: TypedTable<u64, String>,
///     ids: TypedTable<String, u64>,
/// }
///
/// impl Users {
///     fn add(&self, target: &mut impl WriteTarget, id: u64, name: &str) -> terrane::Result<()> {
///         self.names.put_in(target, id, name)?;
///         self.ids.put_in(target, name, id)
///     }
/// }
///
/// let db = terrane::Db::open_in_memory()?;
/// let names = TypedTable::new(db.table_or_create("names")?)?;
/// let users = Users { names, ids: TypedTable::new(db.table_or_create("ids")?)? };
/// let mut batch = terrane::Batch::new();
/// users.add(&mut batch, 7, "ada")?;
/// db.write(&batch, terrane::Durability::Buffered)?;
/// assert_eq!(users.ids.get("ada")?, Some(7));
/// # Ok(())
/// # }
/// ```
pub trait WriteTarget: sealed::Sealed {
    #[doc(hidden)]
    fn put_row(&mut self, table: &Table, key: &[u8], value: &[u8]) -> Result<()>;

    #[doc(hidden)]
    fn delete_row(&mut self, table: &Table, key: &[u8]) -> Result<()>;
}

/// Types with calls of the same names.
macro_rules! targets {
    ($($target:ty),*) => {
        $(impl WriteTarget for $target {
            fn put_row(&mut self, table: &Table, key: &[u8], value: &[u8]) -> Result<()> {
                self.put(table, key, value)
            }

            fn delete_row(&mut self, table: &Table, key: &[u8]) -> Result<()> {
                self.delete(table, key)
            }
        })*
    };
}

targets!(Batch, IndexedBatch, Transaction);
