//! A table: one ordered map of keys to values, with options of its own.

// In the order of the documentation page, which begins with the rows.
mod rows;

mod write;

mod read;

use std::fmt;
use std::sync::Arc;

use terrane_base::key_order::{BYTEWISE, Order};
use terrane_base::{Error, Kind, Result, TableId};
use terrane_engine::Engine;

use crate::TableOptions;
use crate::db::handle::Handle;

pub(crate) use read::slices;
pub(crate) use write::moment_at;

/// A table of an open database: one ordered map of keys to values. Cheap to clone; usable from any thread.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// let db = terrane::Db::open_in_memory()?;
/// let users = db.table_or_create("users")?;
/// users.put("ada", "1815")?;
/// users.put("grace", "1906")?;
/// assert_eq!(users.get("ada")?.expect("it was put"), "1815");
/// assert_eq!(users.range("b"..).count(), 1);
/// users.delete("ada")?;
/// # Ok(())
/// # }
/// ```
///
/// A table keeps its database open, as a `Db` does: see [`Db`](crate::Db#handles).
#[derive(Clone)]
pub struct Table {
    /// Beside the handle, so that a read of a row needs no step more.
    pub(crate) engine: Arc<Engine>,
    /// Keeps the database open.
    pub(crate) handle: Arc<Handle>,
    pub(crate) inner: Arc<terrane_engine::Table>,
    /// Key order; `None` if keys are ordered bytewise. Stored here, so that bytewise order costs no load.
    pub(crate) order: Option<Arc<Order>>,
    /// True if point reads through this handle ask the filters.
    pub(crate) filters: bool,
}

impl Table {
    pub(crate) fn new(handle: Arc<Handle>, inner: Arc<terrane_engine::Table>) -> Table {
        let order = inner.semantics.order().cloned();
        Table { engine: handle.engine().clone(), handle, inner, order, filters: true }
    }

    /// Its name.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let db = terrane::Db::open_in_memory()?;
    /// assert_eq!(db.default_table().name(), "default");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The name of the order of its keys: the option `key_order` that it was made with.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let db = terrane::Db::open_in_memory()?;
    /// assert_eq!(db.default_table().key_order(), "bytewise");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn key_order(&self) -> &str {
        self.order.as_ref().map_or(BYTEWISE, |order| order.name())
    }

    /// Changes options of the open table, one after the other; each is durable when this returns. The time to
    /// live applies to later writes, options of blocks and filters to extents that are written later, and
    /// options of levels and runs at once.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let db = terrane::Db::open_in_memory()?;
    /// use terrane::{Compression, TableOptions};
    /// let logs = db.table_or_create("logs")?;
    /// logs.set_options(&TableOptions::new().compression_last(Compression::None).filter_bits_per_key(0))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Table::set_option`]; those before the one that is refused are changed.
    pub fn set_options(&self, options: &TableOptions) -> Result<()> {
        options.overrides.iter().try_for_each(|(name, value)| self.set_option(name, value))
    }

    /// Changes one option of the open table, by its name and as text, as [`TableOptions::set`] takes them:
    /// see [`Table::set_options`].
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.default_table().set_option("time_to_live", "30d")?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Invalid` for `merge_operator` and `key_order`, which a table keeps, and for a bad value, `NotFound`
    /// if the table was dropped, `Poisoned`, `Io`.
    pub fn set_option(&self, name: &str, value: &str) -> Result<()> {
        self.refuse_if_dropped()?;
        self.engine.set_table_option(&self.inner, name, value)
    }

    /// The same table through a handle whose point reads do not ask the filters of extents: they search the
    /// blocks of every level that may hold the key. The answers are the same; for measuring what filters are
    /// worth on one and the same tree. Applies to snapshots' reads of the handle too.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("k", "v")?;
    /// let plain = db.default_table().without_filters();
    /// assert_eq!(plain.get("k")?, db.get("k")?);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn without_filters(&self) -> Table {
        Table { filters: false, ..self.clone() }
    }

    pub(crate) fn id(&self) -> TableId {
        self.inner.id
    }

    pub(crate) fn engine_table(&self) -> &Arc<terrane_engine::Table> {
        &self.inner
    }

    #[inline]
    pub(crate) fn refuse_if_dropped(&self) -> Result<()> {
        if self.inner.is_dropped() { Err(self.was_dropped()) } else { Ok(()) }
    }

    #[cold]
    fn was_dropped(&self) -> Error {
        Error::new(Kind::NotFound, format!("table {:?} was dropped", self.name()))
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("name", &self.name()).finish_non_exhaustive()
    }
}
