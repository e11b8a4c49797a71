//! What operators of a database need: checkpoints.

use std::path::Path;

use terrane_base::Result;
use terrane_engine::Checkpoint;

use crate::Db;

impl Db {
    /// Makes a second database in the directory `path`, which must not exist: writable, of its own, with every commit up to
    /// now, durable on return. Data files are linked and not copied where the file system allows it, so it takes the time
    /// to write what is in memory only; until one of the two has rewritten what they share, neither reuses space in those
    /// files. Commits go on meanwhile. What a crash leaves of an unfinished one, `NAME.unfinished`, the next attempt to
    /// the same place removes.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let (path, copy) = (dir.path().join("data"), dir.path().join("copy"));
    /// let db = terrane::Db::open(&path)?;
    /// db.put(b"k", b"before")?;
    /// let checkpoint = db.checkpoint(&copy)?;
    /// db.put(b"k", b"after")?;
    /// let second = terrane::Db::open(&checkpoint.path)?;
    /// assert_eq!(second.get(b"k")?.as_deref(), Some(&b"before"[..]));
    /// second.put(b"k", b"elsewhere")?;
    /// assert_eq!(db.get(b"k")?.as_deref(), Some(&b"after"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Invalid` if something is at `path`, `path` is inside the database, or it was opened read-only; `Busy` if another
    /// checkpoint is being made there; `Full`, `Poisoned`, `Io`. Nothing is at `path` then, unless only the last sync
    /// failed.
    pub fn checkpoint(&self, path: impl AsRef<Path>) -> Result<Checkpoint> {
        self.engine().checkpoint(path.as_ref())
    }
}
