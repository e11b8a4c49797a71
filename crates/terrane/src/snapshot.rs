//! A fixed view of the whole database.

use std::sync::Arc;

use terrane_base::{Error, Result, SeqNo};
use terrane_engine::{Bounds, Origin};

use crate::db::handle::Handle;
use crate::table::slices;
use crate::{Cursor, Iter, KeyBounds, Table, Value, Values};

/// Keeps the versions that a reader sees; shared by a snapshot and the iterators made from it.
pub(crate) type Pin = Arc<terrane_engine::Snapshot>;

/// Pins the present state, for a reader of this origin.
pub(crate) fn pin(handle: &Arc<Handle>, origin: Origin) -> Pin {
    Arc::new(terrane_engine::Snapshot::from(handle.clone(), origin))
}

/// The database as it was at one moment, over all tables. Cheap to make and to clone; keeps the versions that
/// it sees from being dropped while it lives. It keeps the database open, and reads on after a
/// [`Db::close`](crate::Db::close): see [`Db`](crate::Db#handles).
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().expect("temporary directory");
/// # let db = terrane::Db::open(dir.path().join("data"))?;
/// db.put("k", "old")?;
/// let before = db.snapshot();
/// db.put("k", "new")?;
/// assert_eq!(before.get(db.default_table(), "k")?.as_deref(), Some(&b"old"[..]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Snapshot {
    pub(crate) pin: Pin,
}

impl Snapshot {
    /// Position in the order of commits: this record and all before it are seen.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// let before = db.snapshot().seq();
    /// db.put("k", "v")?;
    /// assert_eq!(db.snapshot().seq().0, before.0 + 1);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn seq(&self) -> SeqNo {
        self.pin.seq()
    }

    /// The value of `key`.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// table.put("k", "v")?;
    /// assert_eq!(db.snapshot().get(table, "k")?.expect("it was put"), "v");
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for a key beyond the limit or a table of another database, `NotFound` if it was dropped,
    /// `Io` or `Corrupt` from the store; `TooOld` if the snapshot is older than the option
    /// `reader_age_max_ms` allows.
    pub fn get(&self, table: &Table, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.get_bytes(table, key.as_ref())
    }

    fn get_bytes(&self, table: &Table, key: &[u8]) -> Result<Option<Value>> {
        table.refuse_pin(&self.pin)?;
        let value = table.get_at(key, Some(self.seq()))?;
        self.pin.check().map(|()| value)
    }

    /// Returns true if `key` has a value: [`Table::contains`].
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let before = db.snapshot();
    /// table.put("k", "v")?;
    /// assert!(!before.contains(table, "k")?);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn contains(&self, table: &Table, key: impl AsRef<[u8]>) -> Result<bool> {
        self.contains_bytes(table, key.as_ref())
    }

    fn contains_bytes(&self, table: &Table, key: &[u8]) -> Result<bool> {
        table.refuse_pin(&self.pin)?;
        let is_there = table.contains_at(key, Some(self.seq()))?;
        self.pin.check().map(|()| is_there)
    }

    /// The values of several keys, in their order.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// table.put("k", "v")?;
    /// assert_eq!(db.snapshot().multi_get(table, &["k", "none"])?.iter().flatten().count(), 1);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn multi_get(&self, table: &Table, keys: &[impl AsRef<[u8]>]) -> Result<Vec<Option<Value>>> {
        self.multi_get_slices(table, &slices(keys))
    }

    fn multi_get_slices(&self, table: &Table, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        table.refuse_pin(&self.pin)?;
        let values = table.multi_get_at(keys, Some(self.seq()))?;
        self.pin.check().map(|()| values)
    }

    /// As [`Table::multi_get_into`].
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// table.put("k", "v")?;
    /// let mut values = terrane::Values::new();
    /// db.snapshot().multi_get_into(table, &[b"k"], &mut values)?;
    /// assert_eq!(values.get(0), Some(&b"v"[..]));
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn multi_get_into(&self, table: &Table, keys: &[&[u8]], values: &mut Values) -> Result<()> {
        table.refuse_pin(&self.pin)?;
        table.multi_get_into_at(keys, Some(self.seq()), values)?;
        self.pin.check()
    }

    /// The rows of a range; but an error as [`Snapshot::get`] has it.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// table.put("a", "1")?;
    /// let before = db.snapshot();
    /// table.put("b", "2")?;
    /// assert_eq!(before.range(table, "a"..).count(), 1);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    pub fn range(&self, table: &Table, range: impl KeyBounds) -> Iter {
        table.iter_at(table.bounds(range.lower(), range.upper()), self.pin.clone())
    }

    /// The rows whose keys begin with `prefix`.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// table.put("user/ada", "1815")?;
    /// assert_eq!(db.snapshot().prefix(table, "user/").count(), 1);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    pub fn prefix(&self, table: &Table, prefix: impl AsRef<[u8]>) -> Iter {
        table.iter_at(table.prefix_bounds(prefix.as_ref()), self.pin.clone())
    }

    /// All rows.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// table.put("k", "v")?;
    /// assert_eq!(db.snapshot().iter(table).count(), 1);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    pub fn iter(&self, table: &Table) -> Iter {
        table.iter_at(Ok(Bounds::all()), self.pin.clone())
    }

    /// A cursor over the table. Where [`Snapshot::get`] fails its seeks do.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// table.put("k", "v")?;
    /// let mut cursor = db.snapshot().cursor(table);
    /// cursor.seek_last()?;
    /// assert!(cursor.row().is_some());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    pub fn cursor(&self, table: &Table) -> Cursor {
        table.cursor_at(Bounds::all(), self.pin.clone())
    }
}

impl Table {
    /// Refuses a read at a snapshot of another database, in which the number means something else.
    #[inline]
    pub(crate) fn refuse_pin(&self, pin: &Pin) -> Result<()> {
        self.refuse_if_dropped()?;
        if pin.shared().instance() == self.engine.instance() { Ok(()) } else { Err(self.is_of_another()) }
    }

    /// That it was given to another database than its own.
    #[cold]
    pub(crate) fn is_of_another(&self) -> Error {
        Error::invalid(format!("table {:?} is of another opened database", self.name()))
    }
}
