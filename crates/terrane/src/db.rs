//! A database: open, tables, writes, maintenance, close.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::{Functions, Result, SeqNo, callback};
use terrane_device::Disk;
use terrane_engine::{CheckReport, Engine, Finding, Origin, Progress, ReaderKind, Shape, Stats};

use crate::functions::with_own;
use crate::snapshot::pin;
use crate::{Batch, Snapshot, Table, TableOptions, Value};

/// True if a write waits until it is on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sync {
    /// Survives the death of the process; after a loss of power a prefix of such writes is there.
    #[default]
    No,
    /// Survives the loss of power.
    Yes,
}

impl Sync {
    pub(crate) fn is_yes(self) -> bool {
        self == Sync::Yes
    }
}

/// An open database. Cheap to clone; usable from any thread. The last handle closes it; where that goes in a
/// callback, a thread of its own does, a little later.
#[derive(Clone)]
pub struct Db {
    handle: Arc<Handle>,
}

/// Closes the engine when the last `Db` goes. Tables, snapshots and iterators keep the engine's memory alive,
/// but do not keep it open.
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
    /// Opens the database in directory `path`, and creates it if the directory is missing or empty.
    ///
    /// # Errors
    /// `Busy` if another process has it open, `Invalid` if the directory belongs to another program,
    /// `Corrupt`, `Io`.
    pub fn open(path: impl AsRef<Path>) -> Result<Db> {
        Db::open_with(path, &Options::default())
    }

    /// Opens a database with options.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let path = dir.path().join("data");
    /// let options = terrane::Options { memory_bytes: 256 << 20, ..Default::default() };
    /// let db = terrane::Db::open_with(&path, &options)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Db::open`], and `Invalid` for options that are out of range or contradict each other.
    pub fn open_with(path: impl AsRef<Path>, options: &Options) -> Result<Db> {
        Db::open_in(path, options, Env::real())
    }

    /// Opens a database with other doors to clock, randomness and threads.
    ///
    /// # Errors
    /// As [`Db::open_with`].
    pub fn open_in(path: impl AsRef<Path>, options: &Options, env: Env) -> Result<Db> {
        let functions = with_own(Functions::default());
        Ok(Db::from_engine(Engine::open_with(path.as_ref(), options, env, functions)?))
    }

    /// Opens a database on another device than the files of the operating system: for simulators and tests.
    ///
    /// # Errors
    /// As [`Db::open_with`].
    pub fn open_on(disk: Arc<dyn Disk>, path: impl AsRef<Path>, options: &Options, env: Env) -> Result<Db> {
        Db::open_with_functions_on(disk, path, options, env, Functions::default())
    }

    pub(crate) fn from_engine(engine: Arc<Engine>) -> Db {
        let inner = engine.catalog().require("default").expect("every database has the default table");
        let default_table = Table::new(engine.clone(), inner);
        Db { handle: Arc::new(Handle { engine, default_table }) }
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.handle.engine
    }

    /// The table that exists in every database.
    #[must_use]
    pub fn default_table(&self) -> &Table {
        &self.handle.default_table
    }

    /// Opens the table `name`.
    ///
    /// # Errors
    /// `NotFound`, naming the tables that exist.
    pub fn table(&self, name: &str) -> Result<Table> {
        let inner = self.engine().catalog().require(name)?;
        Ok(Table::new(self.engine().clone(), inner))
    }

    /// Creates the table `name`; durable on return.
    ///
    /// # Errors
    /// `Invalid` for a bad or used name, `Full`, `Poisoned`, `Io`.
    pub fn create_table(&self, name: &str, options: &TableOptions) -> Result<Table> {
        let inner = self.engine().create_table(name, &options.overrides)?;
        Ok(Table::new(self.engine().clone(), inner))
    }

    /// Opens the table `name`, or creates it with the database's options.
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
    #[must_use]
    pub fn tables(&self) -> Vec<String> {
        self.engine().catalog().listed().iter().map(|table| table.name.clone()).collect()
    }

    /// Removes the table `name` and everything in it; durable on return. Its space comes back when the last
    /// reader has left.
    ///
    /// # Errors
    /// `NotFound`, `Invalid` for the default table, `Poisoned`, `Io`. One on which background work has
    /// stopped can be dropped, and its space comes back with the next opening.
    pub fn drop_table(&self, name: &str) -> Result<()> {
        self.engine().drop_table(name)
    }

    /// Applies a batch, all or nothing, over any number of tables. Returns its position in the order of
    /// commits.
    ///
    /// # Errors
    /// `NotFound` if a table of the batch was dropped, `Invalid` beyond the limits or for a batch of another
    /// database, `Full`, `Poisoned`, `Io`.
    pub fn write(&self, batch: &Batch, sync: Sync) -> Result<SeqNo> {
        batch.check(self.engine())?;
        self.engine().write(&batch.records, sync.is_yes())
    }

    /// Sets `key` to `value` in the default table. See [`Table::put`].
    ///
    /// # Errors
    /// As [`Table::put`].
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.default_table().put(key, value)
    }

    /// Removes `key` from the default table.
    ///
    /// # Errors
    /// As [`Table::put`].
    pub fn delete(&self, key: &[u8]) -> Result<()> {
        self.default_table().delete(key)
    }

    /// The value of `key` in the default table.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.default_table().get(key)
    }

    /// Returns true if `key` has a value in the default table.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        self.default_table().contains(key)
    }

    /// The values of several keys of the default table.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn multi_get(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        self.default_table().multi_get(keys)
    }

    /// A view of the present state of the database.
    #[must_use]
    #[track_caller]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { pin: pin(self.engine(), Origin::here(ReaderKind::Snapshot)) }
    }

    /// Makes every write so far durable.
    ///
    /// # Errors
    /// `Poisoned`, `Io`.
    pub fn sync(&self) -> Result<()> {
        self.engine().sync()
    }

    /// Cancels the running compactions and frees what they wrote. The picker may select them again.
    pub fn cancel_compactions(&self) {
        self.engine().cancel_compactions();
    }

    /// The running background work and its progress.
    #[must_use]
    pub fn progress(&self) -> Vec<Progress> {
        self.engine().progress()
    }

    /// The counters since the open.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.engine().stats()
    }

    /// The state of the tree of every table.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.engine().shape()
    }

    /// Verifies every checksum and every invariant of stored data; `progress` is called with the bytes done
    /// and the total.
    ///
    /// # Errors
    /// `Io` if the device refuses; damage is not an error but a finding of the report.
    pub fn check(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<CheckReport> {
        self.engine().check(progress)
    }

    /// Problems of the background: damage that it found, tables whose background work has stopped until the
    /// database is opened again, and work that keeps failing and is retried. Empty if there are none.
    #[must_use]
    pub fn background_errors(&self) -> Vec<Finding> {
        self.engine().background_errors()
    }

    /// Damage that scrubbing found since the open, each damaged part once. Off unless
    /// [`Options::scrub_bytes_per_second`] is set.
    #[must_use]
    pub fn scrub_findings(&self) -> Vec<Finding> {
        self.engine().scrub_findings()
    }

    /// The options in force, with derived sizes filled in.
    #[must_use]
    pub fn options(&self) -> &Options {
        self.engine().options()
    }

    /// Directory of the database.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.engine().dir()
    }

    /// Makes every write durable, stops the background and releases the lock. Other handles get errors from
    /// then on. Dropping the last handle does the same but cannot report an error.
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
