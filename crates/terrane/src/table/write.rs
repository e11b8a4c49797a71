//! Writes of one key or one range, in all their forms.

use std::time::Duration;

use terrane_base::{Error, Kind, MergeOperator, Moment, Result};

use std::sync::Arc;

use crate::{Batch, Durability, Table};

impl Table {
    /// Sets `key` to `value`; with [`Durability::Synced`] it is on disk when this returns.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let orders = db.default_table();
    /// orders.put_with("7", "paid", terrane::Durability::Synced)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Table::put`].
    pub fn put_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        durability: Durability,
    ) -> Result<()> {
        self.put_bytes(key.as_ref(), value.as_ref(), durability)
    }

    pub(crate) fn put_bytes(&self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        self.refuse_if_dropped()?;
        // Before the thread's batch is borrowed: the operator is code of the program.
        self.check_value(value)?;
        self.encoding(key, |key| {
            self.engine.write_point(durability.is_synced(), |batch| self.add_checked_put(batch, key, value))
        })
    }

    /// Removes every key from `start` to before `end`. It costs one small record, whatever the number of
    /// keys; reads and scans skip the deleted keys at once, and their space is freed in the background.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let db = terrane::Db::open_in_memory()?;
    /// let table = db.default_table();
    /// for day in ["2024-01-30", "2024-01-31", "2024-02-01"] {
    ///     table.put(day, "..")?;
    /// }
    /// table.delete_range("2024-01", "2024-02")?;
    /// assert_eq!(table.iter().count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Table::put`], and `Invalid` if `start` is not less than `end`.
    pub fn delete_range(&self, start: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        self.delete_range_bytes(start.as_ref(), end.as_ref(), Durability::Buffered)
    }

    /// [`Table::delete_range`]; with [`Durability::Synced`] it is on disk when this returns.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// table.put("2024-01-30", "..")?;
    /// table.delete_range_with("2024-01", "2024-02", terrane::Durability::Synced)?;
    /// assert!(!table.contains("2024-01-30")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Table::delete_range`].
    pub fn delete_range_with(
        &self,
        start: impl AsRef<[u8]>,
        end: impl AsRef<[u8]>,
        durability: Durability,
    ) -> Result<()> {
        self.delete_range_bytes(start.as_ref(), end.as_ref(), durability)
    }

    fn delete_range_bytes(&self, start: &[u8], end: &[u8], durability: Durability) -> Result<()> {
        self.refuse_if_dropped()?;
        self.encoding(start, |start| {
            self.encoding(end, |end| self.engine.delete_range(self.id(), start, end, durability.is_synced()))
        })
    }

    pub(crate) fn delete_bytes(&self, key: &[u8]) -> Result<()> {
        self.refuse_if_dropped()?;
        self.encoding(key, |key| self.engine.delete(self.id(), key, false))
    }

    /// Removes `key` like [`Table::delete`], but leaves less behind: it is removed together with the put that
    /// it deletes, as soon as a merge meets both.
    ///
    /// Only for keys that are put once and removed by a single delete, in turns; range deletes may come
    /// between. For any other key an older value may become visible again.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let queue = db.default_table();
    /// queue.put("job 1", "resize a picture")?;
    /// queue.single_delete("job 1")?;
    /// assert!(!queue.contains("job 1")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Table::put`].
    pub fn single_delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.single_delete_bytes(key.as_ref())
    }

    fn single_delete_bytes(&self, key: &[u8]) -> Result<()> {
        self.refuse_if_dropped()?;
        self.encoding(key, |key| self.engine.write_point(false, |batch| batch.single_delete(self.id(), key)))
    }

    /// Has the table's merge operator fold `operand` with what `key` has, whenever a reader reads it: a
    /// read-modify-write that reads nothing. The operator is the table's option `merge_operator`.
    ///
    /// In a table with a time to live each operand expires on its own, up to a sixteenth later than a put.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let db = terrane::Db::open_in_memory()?;
    /// use terrane::{TableOptions, counter};
    /// let visits = db.create_table("visits", &TableOptions::new().merge_operator("counter"))?;
    /// visits.merge("page", counter::encode(2))?;
    /// visits.merge("page", counter::encode(1))?;
    /// assert_eq!(counter::decode(&visits.get("page")?.expect("it was visited"))?, 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Table::put`], and `Invalid` if the table has no merge operator, or its operator refuses the
    /// operand.
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.merge_bytes(key.as_ref(), operand.as_ref())
    }

    fn merge_bytes(&self, key: &[u8], operand: &[u8]) -> Result<()> {
        self.refuse_if_dropped()?;
        self.encoding(key, |key| self.engine.write_point(false, |batch| self.add_merge(batch, key, operand)))
    }

    /// Sets `key` to `value` for `ttl` from now on, by the wall clock: from then on the key is as if deleted,
    /// for every read, also for those of older snapshots. It takes the place of the table's own time to live.
    ///
    /// The time of the read decides, and what a compaction has dropped stays gone: setting the clock back
    /// makes visible only what still exists.
    ///
    /// A put with its own expiry has two forms, by a duration from now on and by a moment
    /// ([`Table::put_until`]). [`Batch`], [`IndexedBatch`](crate::IndexedBatch) and
    /// [`Transaction`](crate::Transaction) have both: there the duration begins with the call, not with the
    /// commit. [`ExtentFileWriter`](crate::ExtentFileWriter) has the second one: a file has no clock.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let db = terrane::Db::open_in_memory()?;
    /// let table = db.default_table();
    /// table.put_with_ttl("session", "ada", std::time::Duration::from_secs(3600))?;
    /// assert!(table.contains("session")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Table::put`], and `Invalid` for less than a millisecond.
    pub fn put_with_ttl(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, ttl: Duration) -> Result<()> {
        self.put_until_moment(key.as_ref(), value.as_ref(), self.moment_in(ttl)?)
    }

    /// As [`Table::put_with_ttl`], until a moment, counted from the beginning of 1970; of a fraction of a
    /// millisecond nothing counts. A moment that has passed is one: the key is as if deleted at once.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let db = terrane::Db::open_in_memory()?;
    /// let table = db.default_table();
    /// table.put_until("session", "ada", std::time::Duration::from_secs(1))?; // a second into 1970
    /// assert!(!table.contains("session")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Table::put`].
    pub fn put_until(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, until: Duration) -> Result<()> {
        self.put_until_moment(key.as_ref(), value.as_ref(), moment_at(until))
    }

    fn put_until_moment(&self, key: &[u8], value: &[u8], until: Moment) -> Result<()> {
        self.refuse_if_dropped()?;
        self.check_value(value)?;
        self.encoding(key, |key| {
            self.engine.write_point(false, |batch| batch.put_until(self.id(), key, value, until))
        })
    }

    /// Adds a put to `batch`; the same as [`Batch::put`].
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let db = terrane::Db::open_in_memory()?;
    /// let mut batch = terrane::Batch::new();
    /// db.default_table().put_in(&mut batch, "k", "v")?;
    /// assert_eq!(batch.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Batch::put`].
    pub fn put_in(&self, batch: &mut Batch, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        batch.put(self, key, value)
    }

    /// Adds a put of an encoded key that expires by the table's time to live.
    #[inline]
    pub(crate) fn add_put(&self, records: &mut terrane_base::Batch, key: &[u8], value: &[u8]) -> Result<()> {
        self.check_value(value)?;
        self.add_checked_put(records, key, value)
    }

    /// [`Table::add_put`] of a value that [`Table::check_value`] has accepted.
    #[inline]
    fn add_checked_put(&self, records: &mut terrane_base::Batch, key: &[u8], value: &[u8]) -> Result<()> {
        match self.inner.semantics.expiry_of_put() {
            Moment::NEVER => records.put(self.id(), key, value),
            until => records.put_until(self.id(), key, value, until),
        }
    }

    /// Refuses a value that the table's merge operator could fold nothing onto.
    ///
    /// # Errors
    /// `Invalid`.
    #[inline]
    pub(crate) fn check_value(&self, value: &[u8]) -> Result<()> {
        match self.inner.semantics.value_checker() {
            None => Ok(()),
            Some(operator) => self.check_value_by(operator.as_ref(), value),
        }
    }

    /// Apart from its callers, which most tables do not need it for.
    #[inline(never)]
    fn check_value_by(&self, operator: &dyn MergeOperator, value: &[u8]) -> Result<()> {
        self.checked(|| operator.check_value(value)).map_err(|error| self.wrong("value", value, error))
    }

    /// The answer of an operator; a panic becomes an error.
    fn checked(&self, check: impl FnOnce() -> Result<()>) -> Result<()> {
        let panicked = |_| Err(Error::invalid("the merge operator panicked: fix the operator"));
        terrane_base::callback::call(check).unwrap_or_else(panicked)
    }

    /// The error of an operator about bytes that are to be written.
    #[cold]
    fn wrong(&self, what: &str, bytes: &[u8], error: Error) -> Error {
        let error = if error.kind() == Kind::Invalid { error } else { Error::invalid(error.message()) };
        error.context(format!("{what} of {} bytes for table {:?}", bytes.len(), self.name()))
    }

    /// Adds an operand of an encoded key that expires by the table's time to live.
    pub(crate) fn add_merge(
        &self,
        records: &mut terrane_base::Batch,
        key: &[u8],
        operand: &[u8],
    ) -> Result<()> {
        let wrong = |error: Error| self.wrong("operand", operand, error);
        let operator = self.require_operator()?;
        self.checked(|| operator.check_operand(operand)).map_err(wrong)?;
        records.merge(self.id(), key, operand, self.inner.semantics.expiry_of_operand())
    }

    /// The merge operator.
    pub(crate) fn require_operator(&self) -> Result<&Arc<dyn MergeOperator>> {
        self.inner.semantics.operator().ok_or_else(|| {
            Error::invalid(format!(
                "table {:?} has no merge operator: create one with the option merge_operator",
                self.name()
            ))
        })
    }

    /// The moment that lies so far ahead.
    pub(crate) fn moment_in(&self, ttl: Duration) -> Result<Moment> {
        match ttl.as_millis() {
            0 => Err(Error::invalid("a time to live of less than a millisecond: delete the key instead")),
            millis => Ok(self.inner.semantics.ahead(u64::try_from(millis).unwrap_or(u64::MAX))),
        }
    }
}

/// A moment counted from the beginning of 1970.
pub(crate) fn moment_at(since_1970: Duration) -> Moment {
    Moment(u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX).min(Moment::NEVER.0 - 1))
}
