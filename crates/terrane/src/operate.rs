//! Operation of a database: checkpoints, blocked manual compactions, and writes that do not wait.

use std::path::Path;
use std::time::Duration;

use terrane_base::{Result, SeqNo};
use terrane_engine::Checkpoint;

use crate::{Batch, Db, Durability};

impl Db {
    /// Blocks [`Db::compact_range`] on all tables: waiting calls end with an error of kind `Cancelled`, their
    /// running jobs are cancelled and free what they wrote, and later calls are refused in the same way.
    /// Automatic compactions and [`Db::compact_level`] continue. Holds count: each is ended by one
    /// [`Db::allow_range_compactions`].
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// db.hold_range_compactions();
    /// let error = db.compact_range(db.default_table(), ..).expect_err("held back");
    /// assert_eq!(error.kind(), terrane::Kind::Cancelled);
    /// db.allow_range_compactions();
    /// db.compact_range(db.default_table(), ..)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn hold_range_compactions(&self) {
        self.engine().hold_range_compactions();
    }

    /// Ends one hold of [`Db::hold_range_compactions`]; does nothing without a hold.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.hold_range_compactions();
    /// db.allow_range_compactions();
    /// db.compact_range(db.default_table(), ..)?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    pub fn allow_range_compactions(&self) {
        self.engine().allow_range_compactions();
    }

    /// Returns true if [`Db::compact_range`] is held back.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// assert!(!db.holds_range_compactions());
    /// db.hold_range_compactions();
    /// assert!(db.holds_range_compactions());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn holds_range_compactions(&self) -> bool {
        self.engine().holds_range_compactions()
    }

    /// Creates a second database in the directory `path`, which must not exist: writable and independent,
    /// with every commit up to now, durable on return. Data files are linked instead of copied if the file
    /// system allows it; then it only takes the time to write the content of memory, and until one of the two
    /// has rewritten the shared files, neither reuses space in them. Commits continue meanwhile. If a crash
    /// leaves an unfinished one, `NAME.unfinished`, the next attempt to the same path removes it.
    ///
    /// Of a database that is only read, also of a view of what another process writes
    /// ([`Follower`](crate::Follower)), the checkpoint has the commits that this one sees, and all data is
    /// copied: a writer must know of a file that it shares.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let (path, copy) = (dir.path().join("data"), dir.path().join("copy"));
    /// let db = terrane::Db::open(&path)?;
    /// db.put("k", "before")?;
    /// let checkpoint = db.checkpoint(&copy)?;
    /// db.put("k", "after")?;
    /// let second = terrane::Db::open(&checkpoint.path)?;
    /// assert_eq!(second.get("k")?.as_deref(), Some(&b"before"[..]));
    /// second.put("k", "elsewhere")?;
    /// assert_eq!(db.get("k")?.as_deref(), Some(&b"after"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Invalid` if something is at `path`, or `path` is within this or another database; `Busy` if another
    /// checkpoint is being made there, or an ingest into a database that is open for reading is not decided;
    /// `Gone` if the database is a view and the writer has used space of it again: catch up and try again;
    /// `Full`, `Poisoned`, `Corrupt`, `Io`. Nothing is at `path` then, unless only the last sync failed.
    pub fn checkpoint(&self, path: impl AsRef<Path>) -> Result<Checkpoint> {
        self.engine().checkpoint(path.as_ref())
    }

    /// [`Db::checkpoint`], unless `is_cancelled` says so before it is whole.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let (path, copy) = (dir.path().join("data"), dir.path().join("copy"));
    /// let db = terrane::Db::open(&path)?;
    /// let cancelled = db.checkpoint_until(&copy, || true).expect_err("it was cancelled");
    /// assert_eq!(cancelled.kind(), terrane::Kind::Cancelled);
    /// assert!(!copy.exists());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Db::checkpoint`]; `Cancelled` if `is_cancelled` said so, and nothing is at `path`.
    pub fn checkpoint_until(
        &self,
        path: impl AsRef<Path>,
        is_cancelled: impl Fn() -> bool,
    ) -> Result<Checkpoint> {
        self.engine().checkpoint_until(path.as_ref(), &is_cancelled)
    }

    /// As [`Db::write`], but never delayed: refused if a write would have to wait for the background now. See
    /// [`Db::pressure`] for how near that is.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// let mut batch = terrane::Batch::new();
    /// batch.put(db.default_table(), "k", "v")?;
    /// match db.try_write(&batch, terrane::Durability::Buffered) {
    ///     Ok(_) => {}
    ///     Err(error) if error.kind() == terrane::Kind::Busy => println!("tell the client to slow down"),
    ///     Err(error) => return Err(error),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Busy` if it would be held back, `TimedOut` if a transaction or another write has a lock of one of its
    /// keys, or an ingest holds them: nothing is written. Otherwise as [`Db::write`].
    pub fn try_write(&self, batch: &Batch, durability: Durability) -> Result<SeqNo> {
        self.write_with_deadline(batch, durability, Duration::ZERO)
    }

    /// As [`Db::write`], but delayed for at most `wait_max`. Refuses at once a write that cannot be admitted
    /// by then. It bounds how long the engine delays the writer; a durable write also takes as long as the
    /// device.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// let mut batch = terrane::Batch::new();
    /// batch.put(db.default_table(), "k", "v")?;
    /// let wait_max = std::time::Duration::from_millis(100);
    /// db.write_with_deadline(&batch, terrane::Durability::Synced, wait_max)?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Busy` if that is not enough, `TimedOut` if a transaction or another write keeps a lock of one of its
    /// keys, or an ingest holds them for longer: nothing is written. Otherwise as [`Db::write`].
    pub fn write_with_deadline(
        &self,
        batch: &Batch,
        durability: Durability,
        wait_max: Duration,
    ) -> Result<SeqNo> {
        batch.check(self.engine())?;
        self.engine().write_within(&batch.records, durability.is_synced(), wait_max)
    }
}
