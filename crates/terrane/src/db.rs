//! A database: open, tables, writes, maintenance, close.

use std::fmt;
use std::ops::RangeBounds;
use std::path::Path;
use std::sync::Arc;

use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::{Result, SeqNo, callback};
use terrane_device::Disk;
use terrane_engine::{CheckReport, Engine, Finding, Origin, Progress, ReaderKind, Shape, Stats};

use crate::snapshot::pin;
use crate::{Batch, Snapshot, Table, TableOptions, Value};

/// Whether a write waits until it is on disk.
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

/// An open database. Cheap to clone; usable from any thread. The last handle closes it; where that goes in a callback,
/// a thread of its own does, a little later.
#[derive(Clone)]
pub struct Db {
    handle: Arc<Handle>,
}

/// Closes the engine when the last `Db` goes. Tables, snapshots and iterators keep the engine's memory alive, but
/// do not keep it open.
struct Handle {
    engine: Arc<Engine>,
    default_table: Table,
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Nobody is left to tell; whoever wants to know calls `close`.
        if !callback::is_inside() {
            let _ = self.engine.close();
            return;
        }
        // A callback must not wait for work that it may be a part of, and nobody else will ever close.
        let engine = self.engine.clone();
        let close = Box::new(move || drop(engine.close()));
        let _ = self.engine.env().spawn.spawn("terrane-close", close);
    }
}

impl Db {
    /// Opens the database in directory `path`, and creates it if the directory is missing or empty.
    ///
    /// # Errors
    /// `Busy` if another process has it open, `Invalid` if the directory belongs to another program, `Corrupt`,
    /// `Io`.
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
    /// As [`Db::open`], and `Invalid` for options out of range or in contradiction.
    pub fn open_with(path: impl AsRef<Path>, options: &Options) -> Result<Db> {
        Db::open_in(path, options, Env::real())
    }

    /// Opens a database with other doors to clock, randomness and threads.
    ///
    /// # Errors
    /// As [`Db::open_with`].
    pub fn open_in(path: impl AsRef<Path>, options: &Options, env: Env) -> Result<Db> {
        Ok(Db::from_engine(Engine::open(path.as_ref(), options, env)?))
    }

    /// Opens a database on another device than the files of the operating system: for simulators and tests.
    ///
    /// # Errors
    /// As [`Db::open_with`].
    pub fn open_on(disk: Arc<dyn Disk>, path: impl AsRef<Path>, options: &Options, env: Env) -> Result<Db> {
        Ok(Db::from_engine(Engine::open_on(disk, path.as_ref(), options, env)?))
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
    /// `NotFound`, `Invalid` for the default table, `Poisoned`, `Io`. One on which background work has stopped can be dropped, and its
    /// space comes back with the next opening.
    pub fn drop_table(&self, name: &str) -> Result<()> {
        self.engine().drop_table(name)
    }

    /// Applies a batch, all or nothing, over any number of tables. Returns its position in the order of commits.
    ///
    /// # Errors
    /// `NotFound` if a table of the batch was dropped, `Invalid` beyond the limits or for a batch of another database, `Full`,
    /// `Poisoned`, `Io`.
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

    /// Whether `key` has a value in the default table.
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

    /// A view of the database as it is now.
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

    /// Moves every record in memory into the levels and waits for it.
    ///
    /// # Errors
    /// `Full`, `Io`, `Cancelled` when the database closes; `Poisoned`, naming the table, if background work on one has stopped until
    /// the database is opened again: all others are flushed.
    pub fn flush(&self) -> Result<()> {
        self.engine().flush()
    }

    /// As [`Db::flush`], of these tables only; [`Table::flush`] is for one. The tables are flushed beside each other.
    ///
    /// # Errors
    /// As [`Db::flush`]; `Invalid` for a table of another database, `NotFound` for one that was dropped: nothing is flushed then.
    pub fn flush_tables(&self, tables: &[&Table]) -> Result<()> {
        self.engine().flush_tables(&self.own_tables(tables)?)
    }

    /// Asks the background to flush these tables, and does not wait: what is in memory now comes into the levels soon, or when
    /// [`Db::resume_background`] ends a pause.
    ///
    /// # Errors
    /// `Invalid` for a table of another database, or if the database was opened read-only; `NotFound` for a table that was dropped.
    pub fn begin_flush(&self, tables: &[&Table]) -> Result<()> {
        self.engine().begin_flush(&self.own_tables(tables)?)
    }

    fn own_tables(&self, tables: &[&Table]) -> Result<Vec<Arc<terrane_engine::Table>>> {
        let own = |table: &&Table| {
            self.refuse_other(table)?;
            table.refuse_if_dropped()?;
            Ok(table.inner.clone())
        };
        tables.iter().map(own).collect()
    }

    /// Merges a key range of `table` into the deepest level that has data, and waits for it.
    ///
    /// # Errors
    /// As [`Db::flush`], `Invalid` for a table of another database, `NotFound` if it was dropped, `Cancelled` where such calls are
    /// held back ([`Db::hold_range_compactions`]).
    pub fn compact_range<'k>(&self, table: &Table, range: impl RangeBounds<&'k [u8]>) -> Result<()> {
        self.refuse_other(table)?;
        table.refuse_if_dropped()?;
        self.engine().compact_range(&table.inner, &table.bounds(&range)?)
    }

    /// Merges one level of `table` whole into the next one and waits for it: 0 stands for the overflow runs, which
    /// go into level 1; level `n` goes into `n + 1`, which is made if the tree ends at `n`. Returns at once if the
    /// level is empty. Flushes nothing; what others write meanwhile may come to the level again.
    ///
    /// For measuring a tree of a given shape. It works while the background is paused, and then nothing else is
    /// done, so the shape stays; otherwise the background may merge on, or move up what it finds too deep. Pause
    /// when it is quiescent: work that a pause has caught on the way is in the way. It shows in [`Db::progress`],
    /// and [`Db::cancel_compactions`] has it begin its present jobs again.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// # let table = db.default_table();
    /// db.wait_until_quiescent()?;
    /// db.pause_background();
    /// for round in 0..3u8 {
    ///     db.put(b"k", &[round])?;
    ///     db.flush_to_run(table)?; // one more overflow run
    /// }
    /// assert_eq!(db.shape().tables[0].runs.len(), 3);
    /// db.compact_level(table, 0)?; // all of them into level 1
    /// assert_eq!(db.shape().tables[0].runs.len(), 0);
    /// db.compact_level(table, 1)?; // and on into level 2
    /// assert_eq!(db.shape().tables[0].levels[0].extents, 0);
    /// assert_eq!(db.get(b"k")?.as_deref(), Some(&[2][..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Invalid` for level 63, the deepest, or if a pause holds other work on the way; otherwise as [`Db::flush`].
    pub fn compact_level(&self, table: &Table, level: u8) -> Result<()> {
        self.refuse_other(table)?;
        table.refuse_if_dropped()?;
        self.engine().compact_level(&table.inner, level)
    }

    /// Writes what `table` has in memory as an overflow run, without merging it into level 1, and waits for it. Does
    /// nothing if nothing is in memory. What the background is flushing already goes where it goes; memory that
    /// makes several generations of the global index makes as many runs.
    ///
    /// Works while the background is paused, and then the run stays as it is: see [`Db::compact_level`]. Otherwise
    /// the background merges it into level 1 soon. Runs count as debt wherever they come from: to load many without
    /// being slowed, raise the option `overflow_runs_max`.
    ///
    /// # Errors
    /// As [`Db::compact_level`].
    pub fn flush_to_run(&self, table: &Table) -> Result<()> {
        self.refuse_other(table)?;
        table.refuse_if_dropped()?;
        self.engine().flush_to_run(&table.inner)
    }

    /// Waits until the background has nothing left to do: no full memtable, no generation to flush, no level
    /// over its size. Does not flush a memtable that is not full.
    ///
    /// # Errors
    /// The error of a background job that keeps failing, or that of a table on which background work has stopped (`Poisoned`), `Invalid` while the background is paused, `Cancelled`
    /// when the database closes.
    pub fn wait_until_quiescent(&self) -> Result<()> {
        self.engine().wait_until_quiescent()
    }

    /// Pauses flush and compaction. Writers go on until the write memory is full. Only [`Db::compact_level`] and
    /// [`Db::flush_to_run`] are done meanwhile.
    pub fn pause_background(&self) {
        self.engine().set_background_paused(true);
    }

    /// Lets flush and compaction go on.
    pub fn resume_background(&self) {
        self.engine().set_background_paused(false);
    }

    /// Cancels the compactions that run now; what they wrote is given back. The picker may choose them again.
    pub fn cancel_compactions(&self) {
        self.engine().cancel_compactions();
    }

    /// What runs in the background now, and how far it is.
    #[must_use]
    pub fn progress(&self) -> Vec<Progress> {
        self.engine().progress()
    }

    /// What was counted since the open.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.engine().stats()
    }

    /// The state of the tree of every table.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.engine().shape()
    }

    /// Verifies every checksum and every invariant of what is stored; `progress` is told bytes done and in all.
    ///
    /// # Errors
    /// `Io` if the device refuses; damage is not an error but a finding of the report.
    pub fn check(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<CheckReport> {
        self.engine().check(progress)
    }

    /// What the background cannot do: damage that it met, and tables on which its work has stopped, which it leaves alone until
    /// the database is opened again, and work that keeps failing and is tried again. Empty when all is well.
    #[must_use]
    pub fn background_errors(&self) -> Vec<Finding> {
        self.engine().background_errors()
    }

    /// What scrubbing found since the open, each damaged part once. Off unless [`Options::scrub_bytes_per_second`] is
    /// set.
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

    /// Makes every write durable, stops the background and releases the lock. Other handles get errors from then
    /// on. Dropping the last handle does the same but cannot report an error.
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
