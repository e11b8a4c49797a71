//! A database: its tables, options and close.

// In the order of the documentation page.
mod open;

mod rows;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use terrane_base::options::Options;
use terrane_base::{Result, callback};
use terrane_engine::Engine;

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
/// The clones of a `Db` keep the database open. [`Db::close`], or the drop of the last clone, closes it,
/// whatever else is still there; where the last clone is dropped in a callback, a thread of its own closes it
/// a little later. From then on
///
/// * writes, transactions and changes of tables fail with [`Kind::Cancelled`](crate::Kind::Cancelled),
///   whatever handle they go through;
/// * a [`Table`], [`Snapshot`](crate::Snapshot), [`Iter`](crate::Iter) or [`Cursor`](crate::Cursor) that is
///   still there keeps reading what it saw, from the files that the database had. Drop it before the database
///   is opened again: that opening knows nothing of it and may use the space of the extents that it reads.
///   Such a read fails, with [`Kind::Corrupt`](crate::Kind::Corrupt) as a rule; it never gives what the later
///   opening has written.
///
/// Store the `Db` beside the tables, then, and not the tables alone.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().expect("temporary directory");
/// # let path = dir.path().join("data");
/// let table = terrane::Db::open(&path)?.table_or_create("users")?; // the only `Db` is dropped here
/// assert_eq!(table.put("ada", "1815").unwrap_err().kind(), terrane::Kind::Cancelled);
/// assert_eq!(table.get("ada")?, None); // reads still work
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Db {
    handle: Arc<Handle>,
}

/// Closes the engine when the last `Db` goes. Tables, snapshots and iterators keep the engine's memory alive.
struct Handle {
    engine: Arc<Engine>,
    default_table: Table,
}

impl Drop for Handle {
    fn drop(&mut self) {
        // No caller is left for the error; a caller that needs it calls `close`.
        if !callback::is_inside() {
            let _ = self.engine.close();
            return;
        }
        // A callback must not wait for work of which it may be a part, and no other handle is left to close
        // the engine.
        let engine = self.engine.clone();
        let close = Box::new(move || drop(engine.close()));
        let _ = self.engine.env().spawn.spawn("terrane-close", close);
    }
}

impl Db {
    pub(crate) fn from_engine(engine: Arc<Engine>) -> Db {
        let inner = engine.catalog().require("default").expect("every database has the default table");
        let default_table = Table::new(engine.clone(), inner);
        Db { handle: Arc::new(Handle { engine, default_table }) }
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.handle.engine
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
        &self.handle.default_table
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
        let inner = self.engine().catalog().require(name)?;
        Ok(Table::new(self.engine().clone(), inner))
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
        let inner = self.engine().create_table(name, &options.overrides)?;
        Ok(Table::new(self.engine().clone(), inner))
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
            Some(inner) => Ok(Table::new(self.engine().clone(), inner)),
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

    /// Makes every write durable, stops the background and releases the lock. Other handles get errors from
    /// then on. Dropping the last handle does the same but cannot report an error.
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
