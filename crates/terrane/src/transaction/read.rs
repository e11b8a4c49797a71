//! Reads of a transaction: noted for its checks or locked, then of its batch over what it sees.

use terrane_base::Result;
use terrane_engine::{Bounds, LockMode, Origin, ReaderKind, Transaction as Core};

use super::{BatchIter, Transaction, TransactionIter};
use crate::snapshot;
use crate::table::slices;
use crate::{KeyBounds, Table, Value};

impl Transaction {
    /// The value of `key`: the transaction's own, or the one that it sees.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut transaction = db.transaction(&terrane::TransactionOptions::default())?;
    /// transaction.put(table, "k", "v")?;
    /// assert_eq!(transaction.get(table, "k")?.expect("its own"), "v");
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Table::get`]; `Full` beyond the limits of the transaction. Where it locks, as
    /// [`Transaction::put`].
    pub fn get(&self, table: &Table, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.get_bytes(table, key.as_ref())
    }

    fn get_bytes(&self, table: &Table, key: &[u8]) -> Result<Option<Value>> {
        self.read(table, key, |core, key| core.before_read(table.id(), key))
    }

    /// The value of `key`, which no other writer changes until this transaction has ended; `exclusive`: no
    /// other transaction gets it for update either. An optimistic transaction takes no lock, and its commit
    /// fails if another writer changed the key.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// table.put("stock", "3")?;
    /// let mut transaction = db.transaction(&terrane::TransactionOptions::default())?;
    /// let stock = transaction.get_for_update(table, "stock", true)?;
    /// assert_eq!(stock.expect("it was put"), "3");
    /// transaction.put(table, "stock", "2")?;
    /// transaction.commit(terrane::Durability::Buffered)?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn get_for_update(
        &self,
        table: &Table,
        key: impl AsRef<[u8]>,
        exclusive: bool,
    ) -> Result<Option<Value>> {
        self.get_bytes_for_update(table, key.as_ref(), exclusive)
    }

    fn get_bytes_for_update(&self, table: &Table, key: &[u8], exclusive: bool) -> Result<Option<Value>> {
        let mode = if exclusive { LockMode::Exclusive } else { LockMode::Shared };
        terrane_base::key::check_key(key)?;
        {
            // Also for a key that it has changed itself, because the caller may want the lock.
            let mut core = self.checked(table)?;
            table.encoding(key, |key| core.before_read_for_update(table.id(), key, mode))?;
        }
        self.read(table, key, |_, _| Ok(()))
    }

    fn read(
        &self,
        table: &Table,
        key: &[u8],
        before: impl FnOnce(&mut Core, &[u8]) -> Result<()>,
    ) -> Result<Option<Value>> {
        terrane_base::key::check_key(key)?;
        let at = {
            let mut core = self.checked(table)?;
            if self.batch.is_open(table, key)? {
                table.encoding(key, |key| before(&mut core, key))?;
                self.check_limits(&core, 0)?;
            }
            core.snapshot().map(|snapshot| snapshot.seq())
        };
        let value = self.batch.get_over(table, key, at)?;
        self.check_age().map(|()| value)
    }

    /// Refuses a read if the versions that it sees may not be kept any more.
    fn check_age(&self) -> Result<()> {
        self.core().snapshot().map_or(Ok(()), |snapshot| snapshot.check())
    }

    /// The values of several keys, in their order; of one moment, but for the transaction's own.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// table.put("a", "1")?;
    /// let mut transaction = db.transaction(&terrane::TransactionOptions::default())?;
    /// let values = transaction.multi_get(table, &["a", "b"])?;
    /// assert!(values[0].is_some() && values[1].is_none());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn multi_get(&self, table: &Table, keys: &[impl AsRef<[u8]>]) -> Result<Vec<Option<Value>>> {
        self.multi_get_slices(table, &slices(keys))
    }

    fn multi_get_slices(&self, table: &Table, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        let mut others = Vec::with_capacity(keys.len());
        for key in keys {
            if self.batch.is_open(table, key)? {
                others.push(*key);
            }
        }
        let at = {
            let mut core = self.checked(table)?;
            for key in &others {
                terrane_base::key::check_key(key)?;
                table.encoding(key, |key| core.before_read(table.id(), key))?;
                self.check_limits(&core, 0)?;
            }
            core.snapshot().map(|snapshot| snapshot.seq())
        };
        let mut read = table.multi_get_at(&others, at)?.into_iter();
        self.check_age()?;
        let values = keys.iter().map(|key| {
            table.encoding(key, |key| {
                let own = self.batch.own(table, key);
                let below = if self.batch.reach_down(&own) { read.next().flatten() } else { None };
                Ok(self.batch.resolve(table, key, own, below.map(Value::into_vec))?.map(Value::new))
            })
        });
        values.collect()
    }

    /// The rows of a range: its own changes over those that it sees. A serializable transaction records the
    /// part that was read, when the iterator is dropped. To change rows that are read, collect them first:
    /// the iterator borrows the transaction.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// table.put("a", "1")?;
    /// let mut transaction = db.transaction(&terrane::TransactionOptions::default())?;
    /// transaction.put(table, "b", "2")?;
    /// assert_eq!(transaction.range(table, "a"..)?.count(), 2);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for a table of another database, `NotFound` if it was dropped, `Full` beyond the limits.
    pub fn range(&self, table: &Table, range: impl KeyBounds) -> Result<TransactionIter<'_>> {
        self.scan(table, table.bounds(range.lower(), range.upper())?)
    }

    /// The rows whose keys begin with `prefix`.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut transaction = db.transaction(&terrane::TransactionOptions::default())?;
    /// transaction.put(table, "user/ada", "1815")?;
    /// assert_eq!(transaction.prefix(table, "user/")?.count(), 1);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::range`].
    pub fn prefix(&self, table: &Table, prefix: impl AsRef<[u8]>) -> Result<TransactionIter<'_>> {
        self.scan(table, table.prefix_bounds(prefix.as_ref())?)
    }

    fn scan(&self, table: &Table, bounds: Bounds) -> Result<TransactionIter<'_>> {
        let (scan, pin) = {
            let mut core = self.checked(table)?;
            let scan = core.before_scan(table.id(), &bounds);
            self.check_limits(&core, 0)?;
            let pin = core.snapshot().cloned();
            (scan, pin.unwrap_or_else(|| snapshot::pin(&table.handle, Origin::here(ReaderKind::Transaction))))
        };
        let rows = BatchIter::new(&self.batch, table, Ok(bounds.clone()), pin);
        Ok(TransactionIter { rows, transaction: self, scan, bounds, seen: [None, None], is_whole: false })
    }
}
