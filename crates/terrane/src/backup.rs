//! Backups of open databases: incremental, verified, in a location of their own.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use terrane_base::Result;
use terrane_base::env::Env;
use terrane_device::{Disk, PosixDisk};
use terrane_engine::backup::{
    BackupInfo, BackupList, BackupOptions, BackupPlace, BackupProgress, DirectoryPlace, Removed,
    RestoreOptions, Restored, VerifyReport, Watcher,
};

use crate::Db;

/// The backups in a directory, or in another [`BackupPlace`].
///
/// A backup copies the extents that no earlier backup in the location has, and the content of the journal; it
/// contains every commit up to its start. Every object has a checksum of 128 bits, which each restore and
/// each verification checks; copied bytes are verified first. A crash at any time leaves the older backups
/// complete, and no incomplete one; the next backup removes leftover files. Restoring creates a new database
/// with an id of its own, and overwrites nothing.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().expect("temporary directory");
/// # let [path, place, copy] = ["data", "backups", "copy"].map(|name| dir.path().join(name));
/// let db = terrane::Db::open(&path)?;
/// db.put("k", "v")?;
/// let backups = terrane::Backups::open(&place);
/// let made = backups.create(&db)?;
/// assert!(backups.verify(made.id)?.findings.is_empty());
/// backups.restore(made.id, &copy)?;
/// assert_eq!(terrane::Db::open(&copy)?.get("k")?.as_deref(), Some(&b"v"[..]));
/// backups.purge(7)?; // the newest seven stay
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Backups {
    inner: terrane_engine::backup::Backups,
    /// The disk to which databases are restored.
    disk: Arc<dyn Disk>,
}

/// Goes on to the end.
fn go_on(_: &BackupProgress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

impl Backups {
    /// The backups in the directory `path`, which is made with the first one. Looks at nothing yet.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// let db = terrane::Db::open(dir.path().join("data"))?;
    /// db.put("k", "v")?;
    /// let backups = terrane::Backups::open(dir.path().join("backups"));
    /// let made = backups.create(&db)?;
    /// println!("backup {}: {} bytes copied", made.id, made.copied_bytes);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn open(path: impl AsRef<Path>) -> Backups {
        Backups::in_directory(path.as_ref(), false)
    }

    /// The backups in the directory `path`, which may lie below the directory of a database, but for the
    /// names that this uses, as programs of RocksDB have it. [`Backups::open`] refuses to make such a place:
    /// the removal of the database would remove its backups.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// let db = terrane::Db::open(dir.path().join("data"))?;
    /// let below = dir.path().join("data/backups");
    /// assert!(terrane::Backups::open(&below).create(&db).is_err());
    /// terrane::Backups::open_beside_others(&below).create(&db)?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn open_beside_others(path: impl AsRef<Path>) -> Backups {
        Backups::in_directory(path.as_ref(), true)
    }

    fn in_directory(path: &Path, beside_others: bool) -> Backups {
        let disk: Arc<dyn Disk> = Arc::new(PosixDisk::new());
        let place = DirectoryPlace::new(disk.clone(), path);
        let place = if beside_others { place.beside_others() } else { place };
        Backups::open_on(Arc::new(place), disk, Env::real())
    }

    /// The backups in another place, restored to `disk`.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use terrane::{Backups, DirectoryPlace, Env, MemoryDevice, Options};
    /// let device = MemoryDevice::new(64 << 20);
    /// let db = device.open("/data", &Options::in_memory())?;
    /// let place = Arc::new(DirectoryPlace::new(device.disk(), "/backups".as_ref()));
    /// let backups = Backups::open_on(place, device.disk(), Env::real());
    /// backups.create(&db)?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn open_on(place: Arc<dyn BackupPlace>, disk: Arc<dyn Disk>, env: Env) -> Backups {
        Backups { inner: terrane_engine::backup::Backups::new(place, env), disk }
    }

    /// Makes a backup of an open database: every commit up to now, durable on return. Commits continue
    /// meanwhile; the space of removed extents is kept until the backup is done. Of a view of a database that
    /// another process writes ([`crate::Follower::view`]) the backup has what the view has.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// let db = terrane::Db::open(dir.path().join("data"))?;
    /// db.put("k", "v")?;
    /// let backups = terrane::Backups::open(dir.path().join("backups"));
    /// let first = backups.create(&db)?;
    /// let second = backups.create(&db)?; // copies only new objects
    /// assert!(second.id > first.id);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Busy` if another process or thread makes or removes a backup in the place, or if an ingest into a
    /// database that is open for reading is under way; `Gone` if the writer has merged extents of a view that
    /// are not copied yet: catch up and try again; `Invalid` if the place holds something else; `Corrupt`,
    /// naming file and offset, if the database is damaged; `Cancelled` if it closes; `Full`, `Io`,
    /// `Poisoned`. No backup was made then, but where only the last sync failed.
    pub fn create(&self, db: &Db) -> Result<BackupInfo> {
        self.create_with(db, &BackupOptions::default(), &mut go_on)
    }

    /// [`Backups::create`] with options; `watcher` is called with the progress, and may end it.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// let db = terrane::Db::open(dir.path().join("data"))?;
    /// db.put("k", "v")?;
    /// let backups = terrane::Backups::open(dir.path().join("backups"));
    /// use std::ops::ControlFlow;
    /// let options = terrane::BackupOptions::default();
    /// backups.create_with(&db, &options, &mut |progress| {
    ///     println!("{} of {} bytes", progress.bytes_done, progress.bytes);
    ///     ControlFlow::Continue(())
    /// })?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Backups::create`], and `Cancelled` if the watcher ends it.
    pub fn create_with(
        &self,
        db: &Db,
        options: &BackupOptions,
        watcher: &mut Watcher<'_>,
    ) -> Result<BackupInfo> {
        self.inner.create(db.engine(), options, watcher)
    }

    /// Which backups there are, oldest first, and those whose manifest is damaged.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// let db = terrane::Db::open(dir.path().join("data"))?;
    /// db.put("k", "v")?;
    /// let backups = terrane::Backups::open(dir.path().join("backups"));
    /// backups.create(&db)?;
    /// assert_eq!(backups.list()?.backups.len(), 1);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` if there is no such place; `Invalid` if it holds something else; `Io`.
    pub fn list(&self) -> Result<BackupList> {
        self.inner.list()
    }

    /// The number of the newest backup.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// let db = terrane::Db::open(dir.path().join("data"))?;
    /// db.put("k", "v")?;
    /// let backups = terrane::Backups::open(dir.path().join("backups"));
    /// let made = backups.create(&db)?;
    /// assert_eq!(backups.newest()?, made.id);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` if the place has no backup; `Io`.
    pub fn newest(&self) -> Result<u64> {
        self.inner.newest()
    }

    /// Reads everything that backup `id` needs and checks all of it. Damage is a finding.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// let db = terrane::Db::open(dir.path().join("data"))?;
    /// db.put("k", "v")?;
    /// let backups = terrane::Backups::open(dir.path().join("backups"));
    /// let made = backups.create(&db)?;
    /// assert!(backups.verify(made.id)?.findings.is_empty());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` if there is no such backup; `Io`.
    pub fn verify(&self, id: u64) -> Result<VerifyReport> {
        self.inner.verify(id, 0, &mut go_on)
    }

    /// [`Backups::verify`] at a rate, 0 for none; `watcher` is called with the progress, and may end it.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// let db = terrane::Db::open(dir.path().join("data"))?;
    /// db.put("k", "v")?;
    /// let backups = terrane::Backups::open(dir.path().join("backups"));
    /// let made = backups.create(&db)?;
    /// let rate = 100 << 20; // bytes per second
    /// backups.verify_with(made.id, rate, &mut |_| std::ops::ControlFlow::Continue(()))?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Backups::verify`], and `Cancelled` if the watcher ends it.
    pub fn verify_with(
        &self,
        id: u64,
        bytes_per_second: u64,
        watcher: &mut Watcher<'_>,
    ) -> Result<VerifyReport> {
        self.inner.verify(id, bytes_per_second, watcher)
    }

    /// Makes a database of backup `id` in the directory `path`, which must not exist; durable on return. It
    /// has an id of its own. What a crash leaves of an unfinished one, `NAME.unfinished`, the next attempt to
    /// the same place removes.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// let db = terrane::Db::open(dir.path().join("data"))?;
    /// db.put("k", "v")?;
    /// let backups = terrane::Backups::open(dir.path().join("backups"));
    /// let made = backups.create(&db)?;
    /// let copy = dir.path().join("copy");
    /// backups.restore(made.id, &copy)?;
    /// assert!(terrane::Db::open(&copy)?.contains("k")?);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` if there is no such backup; `Invalid` if something is at `path` or `path` is within a
    /// database; `Busy` if another restore to it is under way; `Corrupt`, naming the object, if the backup is
    /// damaged; `Full`, `Io`. Nothing is at `path` then, unless only the last sync failed.
    pub fn restore(&self, id: u64, path: impl AsRef<Path>) -> Result<Restored> {
        self.restore_with(id, path, &RestoreOptions::default(), &mut go_on)
    }

    /// [`Backups::restore`] with options; `watcher` is called with the progress, and may end it.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// let db = terrane::Db::open(dir.path().join("data"))?;
    /// db.put("k", "v")?;
    /// let backups = terrane::Backups::open(dir.path().join("backups"));
    /// let made = backups.create(&db)?;
    /// let options = terrane::RestoreOptions::default().bytes_per_second(100 << 20);
    /// let go_on = &mut |_: &terrane::BackupProgress| std::ops::ControlFlow::Continue(());
    /// backups.restore_with(made.id, dir.path().join("copy"), &options, go_on)?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Backups::restore`], and `Cancelled` if the watcher ends it.
    pub fn restore_with(
        &self,
        id: u64,
        path: impl AsRef<Path>,
        options: &RestoreOptions,
        watcher: &mut Watcher<'_>,
    ) -> Result<Restored> {
        self.inner.restore_on(&self.disk, id, path.as_ref(), options, watcher)
    }

    /// Removes all backups but the newest `keep`, and what only they needed.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// let db = terrane::Db::open(dir.path().join("data"))?;
    /// db.put("k", "v")?;
    /// let backups = terrane::Backups::open(dir.path().join("backups"));
    /// backups.create(&db)?;
    /// let newest = backups.create(&db)?;
    /// backups.purge(1)?;
    /// assert_eq!(backups.list()?.backups[0].id, newest.id);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` if there is no such place; `Busy` if another process or thread makes or removes a backup;
    /// `Io`.
    pub fn purge(&self, keep: usize) -> Result<Removed> {
        self.inner.purge(keep)
    }

    /// Removes backup `id`, and what only it needed.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// let db = terrane::Db::open(dir.path().join("data"))?;
    /// db.put("k", "v")?;
    /// let backups = terrane::Backups::open(dir.path().join("backups"));
    /// let made = backups.create(&db)?;
    /// backups.delete(made.id)?;
    /// assert!(backups.list()?.backups.is_empty());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Backups::purge`], and `NotFound` if there is no such backup.
    pub fn delete(&self, id: u64) -> Result<Removed> {
        self.inner.delete(id)
    }
}
