//! Following a database that another process writes.
//!
//! `source.rs`: how a view is made, of a directory or of parts that lie elsewhere. `wait.rs`: how far one is
//! behind, and waiting for a commit.

mod source;
mod wait;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::sync::Mutex;
use terrane_base::{Error, Functions, Result, SeqNo};
use terrane_device::{Disk, PosixDisk};
use terrane_engine::{Followed, Moment};

use crate::Db;
use crate::functions::with_own;
use source::{Source, Viewing};

/// Follows a database that another process, or this one, has open for writing: provides views of it, each a
/// read-only [`Db`] of one moment, and newer ones on request. Writes nothing into the directory, and keeps no
/// lock: for an instant it looks whether a process has the lock, which one that opens the database outwaits.
///
/// A view never changes, so reads are consistent without a snapshot: batches are complete in it, over all
/// tables. It keeps its part of the journal in memory, but not the extents: of extents that the primary has
/// merged since, a view can read only what its cache holds. Other reads of them are refused with
/// [`crate::Kind::Gone`], never answered wrongly; catch up and read again.
///
/// Views share a cache of at most [`Options::memory_bytes`]; besides, each holds the primary's unflushed
/// journal and an index of it. Catching up reads manifest and journal again, so it costs about as much as
/// opening, however little changed. Of a database in a bucket (`terrane_remote::Deployment::open_follower`)
/// only new objects are read from the bucket, and if nothing is, the view stays.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().expect("temporary directory");
/// # let path = dir.path().join("data");
/// let primary = terrane::Db::open(&path)?;
/// let follower = terrane::Db::open_follower(&path)?;
/// primary.put("k", "v")?;
/// assert_eq!(follower.lag()?, 1);
/// follower.catch_up()?;
/// assert_eq!(follower.view().get("k")?.as_deref(), Some(&b"v"[..]));
/// assert!(follower.view().put("k", "x").is_err());
/// # Ok(())
/// # }
/// ```
pub struct Follower {
    viewing: Viewing,
    /// The present view, and the last commit that it has.
    view: Mutex<(Db, SeqNo)>,
    /// Held while a view is made, so that none is replaced by an older one.
    turn: Mutex<Turn>,
    /// Counts attempts to make a view, each when it begins. Changed under `turn`; a caller that waits for
    /// `turn` reads it to learn whether another one began after its own call.
    looks: AtomicU64,
}

/// State of the present view.
#[derive(Clone, Debug, Default)]
struct Turn {
    stats: FollowerStats,
    /// The error of the lock, if a process had the database open for writing when the view was made, or if it
    /// could not be seen.
    writer: Option<Error>,
    /// The moment that it shows, if the parts lie elsewhere.
    moment: Option<Moment>,
}

/// Counters and position of a follower.
///
/// ```
/// # let dir = tempfile::tempdir().expect("temporary directory");
/// # let path = dir.path().join("data");
/// # let primary = terrane::Db::open(&path)?;
/// # let follower = terrane::Db::open_follower(&path)?;
/// let stats = follower.stats();
/// println!("at commit {}; the last catch-up took {} us", stats.seq, stats.last_micros);
/// # Ok::<(), terrane::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FollowerStats {
    /// The last commit that the present view has.
    pub seq: SeqNo,
    /// Number of the last edit of the primary's manifest that it has.
    pub edit: u64,
    /// Times it caught up, the opening included.
    pub catch_ups: u64,
    /// Attempts that took: more than the times where the primary moved on under them.
    pub attempts: u64,
    /// Commits by which the view before the present one was behind.
    pub commits_behind: u64,
    /// Microseconds that the last catching up took.
    pub last_micros: u64,
    /// When the present view was seen to be the newest: milliseconds since the beginning of 1970.
    pub caught_up_millis: u64,
}

impl Db {
    /// Follows the database in directory `path`, which another process may have open for writing.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// let path = dir.path().join("data");
    /// let primary = terrane::Db::open(&path)?;
    /// primary.put("k", "v")?;
    /// let follower = terrane::Db::open_follower(&path)?;
    /// assert!(follower.view().contains("k")?);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` or `Invalid` if there is no database; `Busy` if it changes faster than it can be read;
    /// `Corrupt`, `Io`.
    pub fn open_follower(path: impl AsRef<Path>) -> Result<Follower> {
        Follower::open(
            Arc::new(PosixDisk::new()),
            path,
            &Options::default(),
            Functions::default(),
            Env::real(),
        )
    }
}

impl Db {
    /// Opens the database in directory `path` for reading, as it is now. Keeps no lock: a process that writes
    /// the database may have it open, or open it later. It is the first view of a [`Follower`], and has the
    /// properties that are described there. Of a database without a writer it has every commit, with those
    /// that only the journal has. With [`Options::read_only`] instead, no writer can open the database
    /// meanwhile, and so every read of it succeeds.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// let path = dir.path().join("data");
    /// let writer = terrane::Db::open(&path)?;
    /// writer.put("k", "v")?;
    /// let view = terrane::Db::open_view(&path)?;
    /// writer.put("k", "later")?;
    /// assert_eq!(view.get("k")?.expect("it was put"), "v");
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::open_follower`].
    pub fn open_view(path: impl AsRef<Path>) -> Result<Db> {
        Ok(Db::open_follower(path)?.view())
    }
}

impl Db {
    /// [`Db::open_follower`] with options, and functions of the program that tables name.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// use terrane::{Db, Functions, Options};
    /// let path = dir.path().join("data");
    /// let primary = Db::open(&path)?;
    /// let options = Options { memory_bytes: 64 << 20, ..Options::default() };
    /// let follower = Db::open_follower_with(&path, &options, Functions::default())?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Follower::open`].
    pub fn open_follower_with(
        path: impl AsRef<Path>,
        options: &Options,
        functions: impl Into<Functions>,
    ) -> Result<Follower> {
        Follower::open(Arc::new(PosixDisk::new()), path, options, functions, Env::real())
    }
}

impl Follower {
    /// Follows the database in directory `path` of `disk`. Of the options those count that matter for
    /// reading; `row_cache` is off.
    ///
    /// ```
    /// use terrane::{Env, Follower, Functions, MemoryDevice, Options};
    /// let (device, options) = (MemoryDevice::new(64 << 20), Options::in_memory());
    /// let primary = device.open("/data", &options)?;
    /// let follower = Follower::open(device.disk(), "/data", &options, Functions::default(), Env::real())?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::open_follower`]; `Invalid` for options out of range, or a table whose merge operator or key
    /// order is not registered.
    pub fn open(
        disk: Arc<dyn Disk>,
        path: impl AsRef<Path>,
        options: &Options,
        functions: impl Into<Functions>,
        env: Env,
    ) -> Result<Follower> {
        let path = path.as_ref().to_owned();
        let viewing = Viewing {
            source: Source::Directory { disk, path },
            options: options.clone(),
            functions: with_own(functions),
            env,
        };
        Follower::of(viewing)
    }

    /// Follows a database whose parts lie elsewhere. `terrane-remote` calls this, for databases on buckets:
    /// follow these there.
    ///
    /// # Errors
    /// As [`Follower::open`].
    #[doc(hidden)]
    pub fn open_elsewhere(
        source: Arc<dyn Followed>,
        options: &Options,
        functions: impl Into<Functions>,
        env: Env,
    ) -> Result<Follower> {
        let (source, functions) = (Source::Elsewhere(source), with_own(functions));
        Follower::of(Viewing { source, options: options.clone(), functions, env })
    }

    fn of(viewing: Viewing) -> Result<Follower> {
        let clock = viewing.env.clock.clone();
        let start = clock.now();
        let made = viewing.view(None)?.expect("without a view before all is new");
        let stats = FollowerStats {
            seq: made.has,
            edit: made.engine.edit_number(),
            catch_ups: 1,
            attempts: made.attempts.into(),
            commits_behind: 0,
            last_micros: (clock.now() - start).as_micros() as u64,
            caught_up_millis: clock.wall().as_millis() as u64,
        };
        let turn = Turn { stats, writer: made.writer, moment: made.moment };
        let view = Db::from_engine(made.engine);
        let (view, turn) = (Mutex::new((view, stats.seq)), Mutex::new(turn));
        Ok(Follower { viewing, view, turn, looks: AtomicU64::new(0) })
    }

    /// The present view. It does not change; a caller that wants a newer one calls this again.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// let path = dir.path().join("data");
    /// let primary = terrane::Db::open(&path)?;
    /// primary.put("k", "v")?;
    /// let follower = terrane::Db::open_follower(&path)?;
    /// let view = follower.view();
    /// assert_eq!(view.get("k")?.expect("it was put"), "v");
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn view(&self) -> Db {
        self.view.lock().0.clone()
    }

    /// Makes a view of the primary's present state, and returns how many commits the previous view was
    /// behind. Earlier views stay valid; commits that the primary makes meanwhile may be in it or not.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// let path = dir.path().join("data");
    /// let primary = terrane::Db::open(&path)?;
    /// primary.put("k", "v")?;
    /// let follower = terrane::Db::open_follower(&path)?;
    /// primary.put("k", "new")?;
    /// assert_eq!(follower.catch_up()?, 1);
    /// assert_eq!(follower.view().get("k")?.expect("it was put"), "new");
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::open_follower`]; the present view stays then. `Poisoned` once a comparator panicked under any
    /// view of this follower: open another one.
    pub fn catch_up(&self) -> Result<u64> {
        self.catch_up_in(&mut self.turn.lock())
    }

    fn catch_up_in(&self, turn: &mut Turn) -> Result<u64> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        let clock = &self.viewing.env.clock;
        let start = clock.now();
        let before = self.view();
        let made = self.viewing.view(Some((before.engine(), turn.moment.as_ref())))?;
        let Turn { stats, writer, moment } = turn;
        stats.catch_ups += 1;
        stats.attempts += made.as_ref().map_or(1, |made| u64::from(made.attempts));
        stats.commits_behind = 0;
        if let Some(made) = made {
            stats.commits_behind = made.has.0.saturating_sub(stats.seq.0);
            stats.seq = made.has;
            stats.edit = made.engine.edit_number();
            (*writer, *moment) = (made.writer, made.moment);
            *self.view.lock() = (Db::from_engine(made.engine), made.has);
        }
        stats.last_micros = (clock.now() - start).as_micros() as u64;
        stats.caught_up_millis = clock.wall().as_millis() as u64;
        Ok(stats.commits_behind)
    }

    /// Number of the primary's commits that the present view lacks. Reads the journal, without keeping any of
    /// it.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// let path = dir.path().join("data");
    /// let primary = terrane::Db::open(&path)?;
    /// primary.put("k", "v")?;
    /// let follower = terrane::Db::open_follower(&path)?;
    /// primary.put("k", "new")?;
    /// assert_eq!(follower.lag()?, 1);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::open_follower`].
    pub fn lag(&self) -> Result<u64> {
        self.measure_lag().map(|lag| lag.commits)
    }

    /// The words of the directory's lock about the process that had the database open for writing when the
    /// present view was made; `None` if no process had, or its parts lie elsewhere. If the lock could not be
    /// seen (its file is missing or may not be read, or the file system has no locks), the reason: the view
    /// was then made as beside a writer, and leaves out what a writer might not have decided yet.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// let path = dir.path().join("data");
    /// let primary = terrane::Db::open(&path)?;
    /// let follower = terrane::Db::open_follower(&path)?;
    /// assert!(follower.writer().is_some_and(|text| text.contains("is locked by process")));
    /// primary.close()?;
    /// follower.catch_up()?;
    /// assert!(follower.writer().is_none());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn writer(&self) -> Option<String> {
        // The remedy of the error is for writers.
        let text = |error: &Error| error.message().trim_end_matches(": close it there first").to_owned();
        self.turn.lock().writer.as_ref().map(text)
    }

    /// Its counters and position.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// let path = dir.path().join("data");
    /// let primary = terrane::Db::open(&path)?;
    /// primary.put("k", "v")?;
    /// let follower = terrane::Db::open_follower(&path)?;
    /// assert_eq!(follower.stats().catch_ups, 1);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> FollowerStats {
        self.turn.lock().stats
    }
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follower").field("of", &self.viewing.source.place()).finish_non_exhaustive()
    }
}
