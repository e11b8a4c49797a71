//! Background work on request: flush, compact, wait, pause.

use std::ops::ControlFlow;
use std::sync::Arc;

use terrane_base::Result;
use terrane_engine::{CheckProgress, CheckReport};

use crate::{Db, KeyBounds, Table};

impl Db {
    /// Moves every record in memory into the levels and waits for it.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("k", "v")?;
    /// db.flush()?;
    /// assert_eq!(db.shape().tables[0].memtable_entries, 0);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Full`, `Io`, `Cancelled` when the database closes; `Poisoned`, naming the table, if background work
    /// on one has stopped until the database is opened again: all others are flushed.
    pub fn flush(&self) -> Result<()> {
        self.engine().flush()
    }

    /// As [`Db::flush`], for these tables only; [`Table::flush`] is for one. The tables are flushed
    /// concurrently.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// let (users, visits) = (db.table_or_create("users")?, db.table_or_create("visits")?);
    /// users.put("ada", "1815")?;
    /// db.flush_tables(&[&users, &visits])?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::flush`]; `Invalid` for a table of another database, `NotFound` for one that was dropped:
    /// nothing is flushed then.
    pub fn flush_tables(&self, tables: &[&Table]) -> Result<()> {
        self.engine().flush_tables(&self.own_tables(tables)?)
    }

    /// Asks the background to flush these tables, without waiting: their memory is flushed into the levels
    /// soon, or when [`Db::resume_background`] ends a pause.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("k", "v")?;
    /// db.begin_flush(&[db.default_table()])?; // does not wait
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for a table of another database, or if the database was opened read-only; `NotFound` for a
    /// table that was dropped.
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
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// db.put("k", "v")?;
    /// db.delete("k")?;
    /// db.compact_range(table, ..)?;
    /// assert_eq!(table.approximate_count(..)?.value, 0); // neither version is left
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::flush`], `Invalid` for a table of another database, `NotFound` if it was dropped, `Cancelled`
    /// where such calls are held back ([`Db::hold_range_compactions`]).
    pub fn compact_range(&self, table: &Table, range: impl KeyBounds) -> Result<()> {
        self.refuse_other(table)?;
        table.refuse_if_dropped()?;
        self.engine().compact_range(&table.inner, &table.bounds(range.lower(), range.upper())?)
    }

    /// Merges one whole level of `table` into the next one and waits for it: 0 means the overflow runs, which
    /// go into level 1; level `n` goes into `n + 1`, which is created if the tree ends at `n`. Returns at
    /// once if the level is empty. Flushes nothing; concurrent writes may reach the level meanwhile.
    ///
    /// For measuring a tree of a given shape. It works while the background is paused, and then nothing else
    /// is done, so the shape stays; otherwise the background may merge further, or move levels up if the tree
    /// is too deep. Pause when it is quiescent, because jobs that a pause has stopped keep their claims. The
    /// work is listed in [`Db::progress`], and [`Db::cancel_compactions`] restarts its running jobs.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// # let table = db.default_table();
    /// db.wait_until_quiescent()?;
    /// db.pause_background();
    /// for round in 0..3u8 {
    ///     db.put("k", &[round])?;
    ///     db.flush_to_run(table)?; // one more overflow run
    /// }
    /// assert_eq!(db.shape().tables[0].runs.len(), 3);
    /// db.compact_level(table, 0)?; // all of them into level 1
    /// assert_eq!(db.shape().tables[0].runs.len(), 0);
    /// db.compact_level(table, 1)?; // and on into level 2
    /// assert_eq!(db.shape().tables[0].levels[0].extents, 0);
    /// assert_eq!(db.get("k")?.as_deref(), Some(&[2][..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Invalid` for level 63, the deepest, or if a pause holds other work on the way; otherwise as
    /// [`Db::flush`].
    pub fn compact_level(&self, table: &Table, level: u8) -> Result<()> {
        self.refuse_other(table)?;
        table.refuse_if_dropped()?;
        self.engine().compact_level(&table.inner, level)
    }

    /// Writes what `table` has in memory as an overflow run, without merging it into level 1, and waits for
    /// it. Does nothing if nothing is in memory. What the background is flushing already goes where it goes;
    /// memory that makes several generations of the global index makes as many runs.
    ///
    /// Works while the background is paused, and then the run stays: see [`Db::compact_level`]. Otherwise the
    /// background merges it into level 1 soon. All runs count as compaction debt: to load many without being
    /// slowed, raise the option `overflow_runs_max`.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// db.pause_background();
    /// db.put("k", "v")?;
    /// db.flush_to_run(table)?;
    /// assert_eq!(db.shape().tables[0].runs.len(), 1);
    /// # Ok::<(), terrane::Error>(())
    /// ```
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
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("k", "v")?;
    /// db.flush()?;
    /// db.wait_until_quiescent()?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error of a background job that keeps failing, or that of a table on which background work has
    /// stopped (`Poisoned`), `Invalid` while the background is paused, `Cancelled` when the database closes.
    pub fn wait_until_quiescent(&self) -> Result<()> {
        self.engine().wait_until_quiescent()
    }

    /// Pauses flush and compaction. Writers continue until the write memory is full. Only
    /// [`Db::compact_level`] and [`Db::flush_to_run`] run meanwhile.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.pause_background();
    /// db.put("k", "v")?; // stays in memory
    /// db.resume_background();
    /// # Ok::<(), terrane::Error>(())
    /// ```
    pub fn pause_background(&self) {
        self.engine().set_background_paused(true);
    }

    /// Resumes flush and compaction.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.pause_background();
    /// db.resume_background();
    /// db.wait_until_quiescent()?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    pub fn resume_background(&self) {
        self.engine().set_background_paused(false);
    }

    /// Cancels the running compactions and frees what they wrote. The picker may select them again.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.cancel_compactions();
    /// # Ok::<(), terrane::Error>(())
    /// ```
    pub fn cancel_compactions(&self) {
        self.engine().cancel_compactions();
    }

    /// Verifies every checksum and every invariant of stored data; `progress` is called with the bytes done
    /// and the total.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("k", "v")?;
    /// let report = db.check(&mut |done, total| println!("{done} of {total} bytes"))?;
    /// assert!(report.findings.is_empty());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Io` if the device refuses; damage is not an error but a finding of the report.
    pub fn check(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<CheckReport> {
        self.engine().check(progress)
    }

    /// [`Db::check`], until `progress` breaks: the report then has what was found so far, and says so.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("k", "v")?;
    /// db.flush()?;
    /// let report = db.check_until(&mut |now| {
    ///     println!("{} of {} bytes, {} versions", now.bytes_done, now.bytes, now.entries_done);
    ///     ControlFlow::Break(())
    /// })?;
    /// assert!(report.is_cancelled);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::check`].
    pub fn check_until(
        &self,
        progress: &mut dyn FnMut(&CheckProgress) -> ControlFlow<()>,
    ) -> Result<CheckReport> {
        self.engine().check_until(progress)
    }
}

impl Table {
    /// Moves every record of the table that is in memory into the levels, and waits for it. Other tables keep
    /// theirs, and the segments of the journal stay until all tables that have records in them are flushed.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// let cities = db.create_table("cities", &terrane::TableOptions::new())?;
    /// cities.put("oslo", "717710")?;
    /// db.put("k", "v")?;
    /// cities.flush()?;
    /// let shape = db.shape();
    /// let table = |name: &str| shape.tables.iter().find(|table| table.name == name);
    /// let in_memory = |name: &str| table(name).map(|table| table.memtable_entries);
    /// assert_eq!((in_memory("cities"), in_memory("default")), (Some(0), Some(1)));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Db::flush`](crate::Db::flush); `NotFound` if the table was dropped.
    pub fn flush(&self) -> Result<()> {
        self.refuse_if_dropped()?;
        self.engine.flush_tables(std::slice::from_ref(&self.inner))
    }
}
