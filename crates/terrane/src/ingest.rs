//! Data that does not pass through memory: files written elsewhere, and sorted loads.

use std::path::Path;
use std::sync::Arc;

use terrane_base::Result;
use terrane_engine::{Engine, IngestFile, IngestOptions, Ingested};

use crate::{Db, Table};

impl Db {
    /// Takes files of [`ExtentFileWriter`](crate::ExtentFileWriter) in, any number into any number of tables,
    /// as one commit: all or nothing, durable on return. What they hold is newer than every commit before and
    /// older than every one after; snapshots that are older do not see it, and transactions that have read
    /// any of their ranges conflict with it.
    ///
    /// A file becomes a data file of the database by another name, without a copy, if it lies on the same
    /// file system; no process may write to it any more. Its own name may be removed at any time
    /// ([`IngestOptions::remove`] does); until then its space is not used again. Where it cannot be linked,
    /// its extents are copied.
    ///
    /// A writer into the ranges of the files waits until memory was flushed there and one edit was written,
    /// which the device decides. As for pacing, no lock timeout bounds this wait, but the deadline of
    /// [`Db::write_with_deadline`] does. A transaction waits as for any lock. Other writers continue.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// use terrane::{Db, ExtentFileWriter, IngestOptions, Options};
    /// let path = dir.path().join("rows.extents");
    /// let mut file = ExtentFileWriter::create(&path, &Options::default())?;
    /// file.put("a", "1")?;
    /// file.finish()?;
    /// let db = Db::open(dir.path().join("data"))?;
    /// db.ingest(&[(db.default_table(), &path)], IngestOptions::default())?;
    /// assert!(db.contains("a")?);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for a file that was written for another order of keys or another merge operator than its
    /// table has, for two files of one table that overlap, for a table of another database, or no file at
    /// all; `Corrupt`, naming file and offset; `TimedOut` if a transaction keeps locks in the ranges for
    /// longer than [`IngestOptions::lock_timeout`]; `Busy` while a flush of a table is paused; `NotFound`,
    /// `Full`, `Poisoned`, also if background work on a table has stopped, `Io`. Nothing was ingested then,
    /// unless it was `Poisoned`.
    pub fn ingest<P: AsRef<Path>>(&self, files: &[(&Table, P)], options: IngestOptions) -> Result<Ingested> {
        let engine: &Arc<Engine> = self.engine();
        let files = files.iter().map(|(table, path)| {
            self.refuse_other(table)?;
            table.refuse_if_dropped()?;
            Ok(IngestFile { table: table.inner.clone(), path: path.as_ref().to_owned() })
        });
        let files: Vec<IngestFile> = files.collect::<Result<_>>()?;
        engine.ingest(&files, options)
    }

    /// Loads sorted rows into `table` as one commit, without journal and memory: atomic, and durable on
    /// return. They are written once, as extents, to the level that an ingested file would get. Keys come in
    /// order, each once; use [`Db::write`] for unsorted rows, or sort them first.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// let squares = (0..1000u64).map(|n| (n.to_be_bytes(), (n * n).to_string()));
    /// let loaded = db.bulk_load(db.default_table(), squares)?;
    /// assert_eq!(loaded.entries, 1000);
    /// assert_eq!(db.get(12u64.to_be_bytes())?.as_deref(), Some(&b"144"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Invalid` for a key that does not come after the one before it, or beyond the limits, or a table of
    /// another database. Otherwise as [`Db::ingest`].
    pub fn bulk_load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        table: &Table,
        rows: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Ingested> {
        self.refuse_other(table)?;
        table.refuse_if_dropped()?;
        let mut loader = self.engine().begin_load(&table.inner)?;
        rows.into_iter().try_for_each(|(key, value)| {
            table.encoding(key.as_ref(), |key| loader.put(key, value.as_ref()))
        })?;
        loader.finish()
    }

    /// Refuses a table of another database.
    pub(crate) fn refuse_other(&self, table: &Table) -> Result<()> {
        if table.engine.instance() == self.engine().instance() { Ok(()) } else { Err(table.is_of_another()) }
    }
}
