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
