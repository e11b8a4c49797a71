//! A table: one ordered map of keys to values, with options of its own.

use std::fmt;
use std::ops::RangeBounds;
use std::sync::Arc;
use std::time::Duration;

use terrane_base::key_order::{BYTEWISE, Order};
use terrane_base::{Error, Kind, MergeOperator, Moment, Result, SeqNo, TableId};
use terrane_engine::{Bounds, Engine, Origin, ReadMode, ReaderKind};

use crate::{Batch, Cursor, Iter, Sync, Value, Values};

/// A table of an open database. Cheap to clone; usable from any thread.
#[derive(Clone)]
pub struct Table {
    pub(crate) engine: Arc<Engine>,
    pub(crate) inner: Arc<terrane_engine::Table>,
    /// Key order; `None` if keys are ordered bytewise. Stored here, so that bytewise order costs no load.
    pub(crate) order: Option<Arc<Order>>,
    /// True if point reads through this handle ask the filters.
    pub(crate) filters: bool,
}

impl Table {
    pub(crate) fn new(engine: Arc<Engine>, inner: Arc<terrane_engine::Table>) -> Table {
        let order = inner.sense.order().cloned();
        Table { engine, inner, order, filters: true }
    }

    /// The same table through a handle whose point reads do not ask the filters of extents: they search the
    /// blocks of every level that may hold the key. The answers are the same; for measuring what filters are
    /// worth on one and the same tree. Applies to snapshots' reads of the handle too.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// db.put(b"k", b"v")?;
    /// let plain = db.default_table().without_filters();
    /// assert_eq!(plain.get(b"k")?, db.get(b"k")?);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn without_filters(&self) -> Table {
        Table { filters: false, ..self.clone() }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The name of the order of its keys: the option `key_order` that it was made with.
    #[must_use]
    pub fn key_order(&self) -> &str {
        self.order.as_ref().map_or(BYTEWISE, |order| order.name())
    }

    pub(crate) fn id(&self) -> TableId {
        self.inner.id
    }

    /// Sets `key` to `value`. Survives the death of the process, not a loss of power: [`Table::put_with`].
    ///
    /// # Errors
    /// `Invalid` beyond the limits, `NotFound` if the table was dropped, `Full`, `Poisoned`, `Io`.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_with(key, value, Sync::No)
    }

    /// Sets `key` to `value`; with [`Sync::Yes`] it is on disk when this returns.
    ///
    /// # Errors
    /// As [`Table::put`].
    pub fn put_with(&self, key: &[u8], value: &[u8], sync: Sync) -> Result<()> {
        self.refuse_if_dropped()?;
        self.encoding(key, |key| {
            self.engine.write_point(sync.is_yes(), |batch| self.add_put(batch, key, value))
        })
    }

    /// Sets `key` to `value` for `ttl` from now on, by the wall clock: from then on the key is as if deleted,
    /// for every read, also for those of older snapshots. It takes the place of the table's own time to live.
    ///
    /// The time of the read decides, and what a compaction has dropped stays gone: setting the clock back
    /// makes visible only what still exists.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// let table = db.default_table();
    /// table.put_with_ttl(b"session", b"ada", std::time::Duration::from_secs(3600))?;
    /// assert!(table.contains(b"session")?);
    /// table.put_until(b"session", b"ada", std::time::Duration::from_secs(1))?; // a second into 1970
    /// assert!(!table.contains(b"session")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Table::put`], and `Invalid` for less than a millisecond.
    pub fn put_with_ttl(&self, key: &[u8], value: &[u8], ttl: Duration) -> Result<()> {
        let until = self.moment_in(ttl)?;
        self.put_until_moment(key, value, until)
    }

    /// As [`Table::put_with_ttl`], with an expiry time in milliseconds since the beginning of 1970.
    ///
    /// # Errors
    /// As [`Table::put`].
    pub fn put_until(&self, key: &[u8], value: &[u8], until: Duration) -> Result<()> {
        self.put_until_moment(key, value, moment_at(until))
    }

    fn put_until_moment(&self, key: &[u8], value: &[u8], until: Moment) -> Result<()> {
        self.refuse_if_dropped()?;
        self.encoding(key, |key| {
            self.engine.write_point(false, |batch| batch.put_until(self.id(), key, value, until))
        })
    }

    /// Has the table's merge operator fold `operand` with what `key` has, whenever a reader reads it: a
    /// read-modify-write that reads nothing. The operator is the table's option `merge_operator`.
    ///
    /// In a table with a time to live each operand expires on its own, up to a sixteenth later than a put.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// use terrane::counter;
    /// let visits = db.create_table("visits", &terrane::TableOptions::new().set("merge_operator", "counter")?)?;
    /// visits.merge(b"page", &counter::encode(2))?;
    /// visits.merge(b"page", &counter::encode(1))?;
    /// assert_eq!(counter::decode(&visits.get(b"page")?.expect("it was visited"))?, 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Table::put`], and `Invalid` if the table has no merge operator, or its operator refuses the operand.
    pub fn merge(&self, key: &[u8], operand: &[u8]) -> Result<()> {
        self.refuse_if_dropped()?;
        self.encoding(key, |key| self.engine.write_point(false, |batch| self.add_merge(batch, key, operand)))
    }

    /// Removes `key` like [`Table::delete`], but leaves less behind: it is removed together with the put that
    /// it deletes, as soon as a merge meets both.
    ///
    /// Only for keys that are put once and removed by a single delete, in turns; range deletes may come
    /// between. For any other key an older value may become visible again.
    ///
    /// # Errors
    /// As [`Table::put`].
    pub fn single_delete(&self, key: &[u8]) -> Result<()> {
        self.refuse_if_dropped()?;
        self.encoding(key, |key| self.engine.write_point(false, |batch| batch.single_delete(self.id(), key)))
    }

    /// Changes an option of the open table, with the names of [`crate::TableOptions::set`]; durable on
    /// return. `time_to_live` applies to later writes, options of blocks and filters to extents that are
    /// written later, and options of levels and runs at once.
    ///
    /// # Errors
    /// `Invalid` for `merge_operator` and `key_order`, which a table keeps, and for a bad value, `NotFound`
    /// if the table was dropped, `Poisoned`, `Io`.
    pub fn set_option(&self, name: &str, value: &str) -> Result<()> {
        self.refuse_if_dropped()?;
        self.engine.set_table_option(&self.inner, name, value)
    }

    /// Adds a put of an encoded key that expires by the table's time to live.
    #[inline]
    pub(crate) fn add_put(&self, records: &mut terrane_base::Batch, key: &[u8], value: &[u8]) -> Result<()> {
        match self.inner.sense.expiry_of_put() {
            Moment::NEVER => records.put(self.id(), key, value),
            until => records.put_until(self.id(), key, value, until),
        }
    }

    /// Adds an operand of an encoded key that expires by the table's time to live.
    pub(crate) fn add_merge(
        &self,
        records: &mut terrane_base::Batch,
        key: &[u8],
        operand: &[u8],
    ) -> Result<()> {
        let wrong = |error: Error| {
            let error = if error.kind() == Kind::Invalid { error } else { Error::invalid(error.message()) };
            error.context(format!("operand of {} bytes for table {:?}", operand.len(), self.name()))
        };
        self.require_operator()?.check_operand(operand).map_err(wrong)?;
        records.merge(self.id(), key, operand, self.inner.sense.expiry_of_operand())
    }

    /// The merge operator.
    pub(crate) fn require_operator(&self) -> Result<&Arc<dyn MergeOperator>> {
        self.inner.sense.operator().ok_or_else(|| {
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
            millis => Ok(self.inner.sense.ahead(u64::try_from(millis).unwrap_or(u64::MAX))),
        }
    }

    /// Removes `key`; fine if it is not there.
    ///
    /// # Errors
    /// As [`Table::put`].
    pub fn delete(&self, key: &[u8]) -> Result<()> {
        self.refuse_if_dropped()?;
        self.encoding(key, |key| self.engine.delete(self.id(), key, false))
    }

    /// Removes every key from `start` to before `end`. It costs one small record, whatever the number of
    /// keys; reads and scans skip the deleted keys at once, and their space is freed in the background.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// let table = db.default_table();
    /// for day in [b"2024-01-30", b"2024-01-31", b"2024-02-01"] {
    ///     table.put(day, b"..")?;
    /// }
    /// table.delete_range(b"2024-01", b"2024-02")?;
    /// assert_eq!(table.iter().count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Table::put`], and `Invalid` if `start` is not less than `end`.
    pub fn delete_range(&self, start: &[u8], end: &[u8]) -> Result<()> {
        self.delete_range_with(start, end, Sync::No)
    }

    /// [`Table::delete_range`]; with [`Sync::Yes`] it is on disk when this returns.
    ///
    /// # Errors
    /// As [`Table::delete_range`].
    pub fn delete_range_with(&self, start: &[u8], end: &[u8], sync: Sync) -> Result<()> {
        self.refuse_if_dropped()?;
        self.encoding(start, |start| {
            self.encoding(end, |end| self.engine.delete_range(self.id(), start, end, sync.is_yes()))
        })
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// `Invalid` for a key beyond the limit, `NotFound` if the table was dropped, `Io` or `Corrupt`.
    pub fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.get_at(key, None)
    }

    /// Appends the value of `key` to `value` and returns whether there is one: a read without an allocation.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.refuse_if_dropped()?;
        self.encoding(key, |key| self.engine.get(&self.inner, key, self.mode(None), value))
    }

    /// Returns true if `key` has a value.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// The values of several keys of one moment, in their order.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn multi_get(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        self.multi_get_at(keys, None)
    }

    /// [`Table::multi_get`] into a buffer that can be used again: no allocation for each value.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// db.put(b"b", b"1")?;
    /// let mut values = terrane::Values::new();
    /// db.default_table().multi_get_into(&[b"a", b"b"], &mut values)?;
    /// assert_eq!((values.get(0), values.get(1)), (None, Some(&b"1"[..])));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Table::get`]. The content of `values` is undefined then.
    pub fn multi_get_into(&self, keys: &[&[u8]], values: &mut Values) -> Result<()> {
        self.multi_get_into_at(keys, None, values)
    }

    /// The rows of a range.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// db.put(b"b", b"1")?;
    /// let table = db.default_table();
    /// assert_eq!(table.range(b"a".as_slice()..b"c".as_slice()).count(), 1);
    /// assert_eq!(table.range(..).rev().count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn range<'k>(&self, range: impl RangeBounds<&'k [u8]>) -> Iter {
        self.iter_now(self.bounds(&range), Origin::here(ReaderKind::Scan))
    }

    /// The rows whose keys begin with `prefix`. With a `prefix_extractor` for it, extents without such keys
    /// are skipped after a check of their filters, as for every range within one prefix.
    #[must_use]
    #[track_caller]
    pub fn prefix(&self, prefix: &[u8]) -> Iter {
        self.iter_now(self.prefix_bounds(prefix), Origin::here(ReaderKind::Scan))
    }

    /// All rows.
    #[must_use]
    #[track_caller]
    pub fn iter(&self) -> Iter {
        self.iter_now(Ok(Bounds::all()), Origin::here(ReaderKind::Scan))
    }

    /// A cursor over the present state of the table.
    #[must_use]
    #[track_caller]
    pub fn cursor(&self) -> Cursor {
        self.cursor_at(Bounds::all(), self.pin())
    }

    /// A cursor over the rows whose keys begin with `prefix`, as the table is now: it goes no further. It
    /// passes by extents as [`Table::prefix`] does, wherever it seeks.
    ///
    /// # Errors
    /// `Invalid` if the table has an order in which such keys do not lie together.
    #[track_caller]
    pub fn prefix_cursor(&self, prefix: &[u8]) -> Result<Cursor> {
        Ok(self.cursor_at(self.prefix_bounds(prefix)?, self.pin()))
    }

    /// Adds a put to `batch`; the same as [`Batch::put`].
    ///
    /// # Errors
    /// As [`Batch::put`].
    pub fn put_in(&self, batch: &mut Batch, key: &[u8], value: &[u8]) -> Result<()> {
        batch.put(self, key, value)
    }

    pub(crate) fn mode(&self, at: Option<SeqNo>) -> ReadMode {
        ReadMode { at, filters: self.filters }
    }

    pub(crate) fn get_at(&self, key: &[u8], at: Option<SeqNo>) -> Result<Option<Value>> {
        self.refuse_if_dropped()?;
        let mut value = Vec::new();
        let found = self.encoding(key, |key| self.engine.get(&self.inner, key, self.mode(at), &mut value))?;
        Ok(found.then(|| Value::new(value)))
    }

    pub(crate) fn engine_table(&self) -> &Arc<terrane_engine::Table> {
        &self.inner
    }

    pub(crate) fn refuse_if_dropped(&self) -> Result<()> {
        if self.inner.is_dropped() {
            return Err(Error::new(Kind::NotFound, format!("table {:?} was dropped", self.name())));
        }
        Ok(())
    }
}

/// A moment counted from the beginning of 1970.
pub(crate) fn moment_at(since_1970: Duration) -> Moment {
    Moment(u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX).min(Moment::NEVER.0 - 1))
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("name", &self.name()).finish_non_exhaustive()
    }
}
