//! A database: its tables, options and close.

// In the order of the documentation page.
mod open;

mod rows;

pub(crate) mod handle;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use terrane_base::Result;
use terrane_base::options::Options;
use terrane_engine::Engine;

use crate::db::handle::{Handle, WeakDb};
use crate::{Table, TableOptions};

/// An open database. Cheap to clone; usable from any thread.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().expect("temporary directory");
/// # let path = dir.path().join("data");
/// let db = terrane::Db::open(&path)?; // creates it, if it does not exist
/// db.put("k", "v")?;
/// assert_eq!(db.get("k")?.expect("it was put"), "v");
/// db.close()?;
/// # Ok(())
/// # }
/// ```
///
/// # Handles
///
/// Every handle keeps the database open: the clones of a `Db`, each [`Table`],
/// [`Snapshot`](crate::Snapshot), [`Iter`](crate::Iter), [`Cursor`](crate::Cursor) and
/// [`Transaction`](crate::Transaction). So a program may keep a table alone. The drop of the last one closes
/// the database, and cannot report an error; where it is dropped in a callback, or on a thread of the
/// database's background, a thread of its own closes the database a little later. [`Changes`](crate::Changes)
/// and [`Ticket`](crate::Ticket) do not keep it open.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().expect("temporary directory");
/// # let path = dir.path().join("data");
/// let table = terrane::Db::open(&path)?.table_or_create("users")?; // the table is the only handle
/// table.put("ada", "1815")?;
/// assert_eq!(terrane::Db::open(&path).unwrap_err().kind(), terrane::Kind::Busy); // it is open
/// drop(table); // closes the database
/// assert!(terrane::Db::open(&path)?.table("users")?.contains("ada")?);
/// # Ok(())
/// # }
/// ```
///
/// [`Db::close`] closes it at once, for all handles. From then on
///
/// * writes, transactions and changes of tables fail with [`Kind::Cancelled`](crate::Kind::Cancelled),
///   whatever handle they go through;
/// * tables, snapshots, iterators and cursors that are still there keep reading what they saw, from the files
///   that the database had. Drop them before the database is opened again: that opening knows nothing of them
///   and may use the space of the extents that they read. Such a read fails, with
///   [`Kind::Corrupt`](crate::Kind::Corrupt) as a rule; it never gives what the later opening has written.
///
/// An object that the database keeps itself, a listener, a merge operator or a compaction filter, must not
/// hold any of these handles, or the database stays open until [`Db::close`] is called: let it hold a
/// [`WeakDb`](crate::WeakDb), which [`Db::downgrade`] returns.
#[derive(Clone)]
pub struct Db {
    /// Also what keeps the database open. By one count, not by those of its parts: programs clone a database
    /// for each task.
    default_table: Arc<Table>,
}

impl Db {
    pub(crate) fn from_engine(engine: Arc<Engine>) -> Db {
        Db::of(Handle::new(engine))
    }

    fn of(handle: Arc<Handle>) -> Db {
        let inner =
            handle.engine().catalog().require("default").expect("every database has the default table");
        Db { default_table: Arc::new(Table::new(handle, inner)) }
    }

    #[inline]
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.default_table.engine
    }

    #[inline]
    pub(crate) fn handle(&self) -> &Arc<Handle> {
        &self.default_table.handle
    }

    fn own_table(&self, inner: Arc<terrane_engine::Table>) -> Table {
        Table::new(self.handle().clone(), inner)
    }

    /// A handle that does not keep the database open, for what the database itself keeps.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let db = terrane::Db::open_in_memory()?;
    /// use terrane::{JobEnded, Listener, WeakDb};
    /// struct Sizes(WeakDb); // with a `Db` or a `Table` the database would never close by itself
    /// impl Listener for Sizes {
    ///     fn compaction_ended(&self, _job: &JobEnded) {
    ///         if let Some(db) = self.0.upgrade() {
    ///             println!("{}", db.shape());
    ///         }
    ///     }
    /// }
    /// db.add_listener(std::sync::Arc::new(Sizes(db.downgrade())))?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn downgrade(&self) -> WeakDb {
        WeakDb::of(self.handle())
    }

    /// The table that exists in every database.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("k", "v")?;
    /// assert!(db.default_table().contains("k")?);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn default_table(&self) -> &Table {
        &self.default_table
    }

    /// Opens the table `name`.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.table_or_create("users")?;
    /// assert_eq!(db.table("users")?.name(), "users");
    /// assert_eq!(db.table("user").unwrap_err().kind(), terrane::Kind::NotFound);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound`, naming the tables that exist.
    pub fn table(&self, name: &str) -> Result<Table> {
        Ok(self.own_table(self.engine().catalog().require(name)?))
    }

    /// Creates the table `name`; durable on return.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// use terrane::TableOptions;
    /// let visits = db.create_table("visits", &TableOptions::new().merge_operator("counter"))?;
    /// assert!(db.create_table("visits", &TableOptions::new()).is_err());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for a bad or used name, `Full`, `Poisoned`, `Io`.
    pub fn create_table(&self, name: &str, options: &TableOptions) -> Result<Table> {
        Ok(self.own_table(self.engine().create_table(name, &options.overrides)?))
    }

    /// Opens the table `name`, or creates it with the database's options.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.table_or_create("users")?.put("ada", "1815")?;
    /// assert!(db.table_or_create("users")?.contains("ada")?);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::create_table`].
    pub fn table_or_create(&self, name: &str) -> Result<Table> {
        match self.engine().catalog().find(name) {
            Some(inner) => Ok(self.own_table(inner)),
            None => self.create_table(name, &TableOptions::new()),
        }
    }

    /// The names of all tables.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.table_or_create("users")?;
    /// assert_eq!(db.tables(), ["default", "users"]);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn tables(&self) -> Vec<String> {
        self.engine().catalog().listed().iter().map(|table| table.name.clone()).collect()
    }

    /// Removes the table `name` and everything in it; durable on return. Its space comes back when the last
    /// reader has left.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// let users = db.table_or_create("users")?;
    /// db.drop_table("users")?;
    /// assert_eq!(users.put("ada", "1815").unwrap_err().kind(), terrane::Kind::NotFound);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound`, `Invalid` for the default table, `Poisoned`, `Io`. One on which background work has
    /// stopped can be dropped, and its space comes back with the next opening.
    pub fn drop_table(&self, name: &str) -> Result<()> {
        self.engine().drop_table(name)
    }

    /// The options in force, with derived sizes filled in.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// println!("memory for writes: {} bytes", db.options().write_memory_bytes);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn options(&self) -> &Options {
        self.engine().options()
    }

    /// Directory of the database.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// println!("the database is in {}", db.path().display());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn path(&self) -> &Path {
        self.engine().dir()
    }

    /// Makes every write durable, stops the background and releases the lock, also while there are other
    /// handles: writes through them fail from then on ([`Db`](Db#handles)). Dropping the last handle does the
    /// same but cannot report an error.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("k", "v")?;
    /// db.close()?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Poisoned`, `Io`.
    pub fn close(self) -> Result<()> {
        self.engine().close()
    }
}

impl fmt::Debug for Db {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Db").field("path", &self.path()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_of_a_database_changes_one_count() {
        let db = Db::open_in_memory().expect("opens");
        let counts = |db: &Db| (Arc::strong_count(db.handle()), Arc::strong_count(&db.default_table));
        assert_eq!(counts(&db), (1, 1));
        let clone = db.clone();
        assert_eq!(counts(&db), (1, 2), "of the handle and of what a database holds");
        drop(db);
        assert_eq!(counts(&clone), (1, 1));
    }
}
