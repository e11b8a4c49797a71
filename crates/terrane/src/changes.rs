//! Committed batches from a number on, for replicas, indexes and caches.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrane_base::env::Env;
use terrane_base::{Result, SeqNo};
use terrane_device::PosixDisk;
use terrane_engine::{ChangeBatch, Feed, FeedOptions};

use crate::Db;

/// Every committed batch from a number on: in commit order, complete, each once; a transaction when it is
/// committed. As an iterator it returns the existing batches and ends, and continues when there are more;
/// [`Changes::next_within`] waits for more.
///
/// Changes are read from the segments of the journal. A segment is removed once its records are in the
/// levels, unless the option `history_bytes` keeps it: a reader that asks for changes which are no longer
/// kept gets an error of the kind [`Gone`](crate::Kind::Gone) that names the oldest kept one
/// ([`Error::oldest`](crate::Error::oldest)). A reader does not keep segments from being removed.
/// Nor does it keep the database open: once the last [handle](crate::Db#handles) is gone it ends with
/// [`Cancelled`](crate::Kind::Cancelled).
///
/// The creation and the drop of a table are not changes, nor are its options: a replica makes a table when it
/// meets its name first. A put that expires comes with the time at which it expires; the expiry itself is not
/// a change.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().expect("temporary directory");
/// # let db = terrane::Db::open(dir.path().join("data"))?;
/// db.put("k", "v")?;
/// let mut changes = db.changes(terrane::SeqNo(1))?;
/// for batch in changes.by_ref() {
///     for change in batch?.changes() {
///         println!("{} {:?} {:?}", change.seq, change.table, change.kind);
///     }
/// }
/// db.delete("k")?;
/// let batch = changes.next_within(std::time::Duration::from_secs(1))?.expect("it is visible");
/// let kind = batch.changes().next().map(|change| change.kind);
/// assert_eq!(kind, Some(terrane::ChangeKind::Delete { key: b"k" }));
/// // Where to go on, after a crash, too: kept with what was made of the changes.
/// assert_eq!(changes.position().0, batch.last_seq().0 + 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Changes(Feed);

impl Changes {
    /// The number after everything that was returned: reading from there continues with the next change, in
    /// another process, too.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("k", "v")?;
    /// let mut changes = db.changes(terrane::SeqNo(1))?;
    /// changes.by_ref().for_each(drop);
    /// assert_eq!(changes.position(), terrane::SeqNo(2)); // where to go on
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn position(&self) -> SeqNo {
        self.0.position()
    }

    /// The next batch; waits `timeout` at most. A commit wakes a reader that waits, and so does the close of
    /// the database.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// use std::time::Duration;
    /// let mut changes = db.changes(terrane::SeqNo(1))?;
    /// assert!(changes.next_within(Duration::from_millis(1))?.is_none());
    /// db.put("k", "v")?;
    /// assert!(changes.next_within(Duration::from_secs(10))?.is_some());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Gone` if the next change is no longer kept; `Poisoned` if a sync of the manifest failed during an
    /// ingest, and only the next opening shows whether it happened; `Cancelled` once the database is closed;
    /// `Corrupt`, `Io`. The position stays.
    pub fn next_within(&mut self, timeout: Duration) -> Result<Option<ChangeBatch>> {
        self.0.next_within(timeout)
    }

    /// Changes of the database in directory `path`, which another process may have open for writing: the
    /// content of its journal, from number `from` on. Takes no lock. The other process wakes no reader:
    /// [`Changes::next_within`] checks every few milliseconds.
    ///
    /// A commit may show before its writer has it acknowledged, and what shows may be lost with the power.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// let path = dir.path().join("data");
    /// let db = terrane::Db::open(&path)?; // or another process has it open
    /// db.put("k", "v")?;
    /// let changes = terrane::Changes::beside(&path, terrane::SeqNo(1))?;
    /// assert_eq!(changes.count(), 1);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` if there is no database; `Busy`, here and for each batch, while the database is opened with
    /// a replay filter, or if that died (open it for writing once); as [`Db::changes`] besides.
    pub fn beside(path: impl AsRef<Path>, from: SeqNo) -> Result<Changes> {
        Feed::beside(Arc::new(PosixDisk::new()), path.as_ref(), Env::real(), from).map(Changes)
    }
}

impl Iterator for Changes {
    type Item = Result<ChangeBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.try_next().transpose()
    }
}

impl Db {
    /// Every batch committed from number `from` on, as soon as it is visible; see [`Changes`]. Begins with
    /// the batch that contains the number; 1 is the first number of a database.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("k", "v")?;
    /// for batch in db.changes(terrane::SeqNo(1))? {
    ///     for change in batch?.changes() {
    ///         println!("{} {:?}", change.seq, change.kind);
    ///     }
    /// }
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Gone` if that batch is no longer kept; `Invalid` with the option `journal=off`, and for a number that
    /// is more than one above the last; `Corrupt`, `Io`.
    pub fn changes(&self, from: SeqNo) -> Result<Changes> {
        self.changes_with(from, FeedOptions::default())
    }

    /// As [`Db::changes`], with options, for example only changes that are durable.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// use terrane::{FeedOptions, SeqNo};
    /// db.put("k", "v")?;
    /// db.sync()?;
    /// assert_eq!(db.changes_with(SeqNo(1), FeedOptions::new().durable_only(true))?.count(), 1);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::changes`]; `Invalid` for `durable_only` of a database that was opened read-only.
    pub fn changes_with(&self, from: SeqNo, options: FeedOptions) -> Result<Changes> {
        Feed::open(self.engine().clone(), from, options).map(Changes)
    }
}
