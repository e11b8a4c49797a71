//! Following: views of a database that another process has open and goes on writing.
//!
//! A view is an engine that was opened for reading without a lock. It never changes: catching up makes the
//! next one, which shares with the one before the cache and every extent that both have. Why a view is right
//! although files change under it:
//!
//! 1. The manifest is a chain of checksums; any part of it that reads well is a state that the primary had.
//! 2. Journal segments are copied, and the copies are checked, groups, batches and chain: nothing in them
//!    changes any more.
//! 3. A segment leaves the manifest, durably, before its file is used again. The manifest is read once more
//!    after the copying: if every segment is still listed, each was whole then. If not, all begins again.
//! 4. It ends in front of extents that come in just now ([`crate::ingest_mark`]): what was committed
//!    behind them has no reader yet, not even in the primary.
//! 5. Where no process writes, the view is what an opening that locks the database would show: the whole
//!    journal, with all that such an opening checks. The lock says so, between two readings of the manifest:
//!    it was free, and no edit came between them. A writer that was there at the first reading and has left
//!    before the look changes nothing after it; one that came after the look begins with an edit. The lock is
//!    free meanwhile. Where the lock cannot be seen, a view is made as beside a writer.
//! 6. Extents are read when they are needed. The primary may have used their slots again: every index block
//!    and filter is held against the checksum that the manifest gave this view, every data block against the
//!    one in that index block. A read returns what the view means, or an error; the present manifest says
//!    whether the primary gave the extent up (`Gone`) or it is damaged (`Corrupt`).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::{Error, ExtentId, Functions, KeyOrders, Kind, Result, SeqNo};
use terrane_device::{Disk, FollowingDisk, PendingRead};
use terrane_format::extent::ExtentMeta;
use terrane_format::manifest::DatabaseId;
use terrane_journal::{ReplaySettings, replay};
use terrane_levels::directory::{JOURNAL, LOCK};
use terrane_levels::{Manifest, State};
use terrane_storage::{ReadRequest, Store, delegate_store};
use terrane_table::{Cache, Extent};

use crate::engine::Engine;
use crate::lifecycle::open::{OpenRequest, Way};
use crate::segment_files::listed;
use crate::segment_files::refuse_unfinished;
use crate::shared::Shared;

/// How often a view is tried while the primary moves on under it.
const ATTEMPTS_MAX: u32 = 40;
/// The time between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// Extents that a view before has.
pub(crate) type KnownExtents = HashMap<ExtentId, Arc<Extent>>;

/// The inputs of opening a view, beside those of every opening.
pub(crate) struct Following<'a> {
    disk: &'a Arc<dyn Disk>,
    dir: &'a Path,
    previous: Option<&'a Shared>,
    /// True if no process has it open for writing, as far as the lock says.
    is_idle: bool,
}

impl<'a> Following<'a> {
    /// A view after `previous`, whose journal is in the directory `dir` of `disk`.
    pub(super) fn behind(
        disk: &'a Arc<dyn Disk>,
        dir: &'a Path,
        previous: Option<&'a Arc<Engine>>,
    ) -> Following<'a> {
        Following { disk, dir, previous: previous.map(|engine| -> &Shared { engine }), is_idle: false }
    }

    /// Returns true if no process had the database open for writing when the view began; false if the lock
    /// could not be seen.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_idle
    }

    /// The cache of the view before.
    pub(crate) fn cache(&self) -> Option<Arc<Cache>> {
        self.previous.map(|engine| engine.cache.clone())
    }

    /// The orders of the view before.
    pub(crate) fn orders(&self) -> Option<KeyOrders> {
        self.previous.map(|engine| engine.functions.orders.clone())
    }

    /// The extents of the view before.
    pub(crate) fn known_extents(&self) -> KnownExtents {
        let tables = self.previous.map(|engine| engine.catalog.all()).unwrap_or_default();
        let mut known = KnownExtents::new();
        for tree in tables.iter().map(|table| table.pinned().tree) {
            let extents = tree.extents().map(|(_, extent)| extent);
            known.extend(extents.map(|extent| (extent.meta.id, extent.clone())));
        }
        known
    }

    /// The store of a view of `state`.
    pub(crate) fn store(&self, inner: &Arc<dyn Store>, state: &State) -> Arc<dyn Store> {
        Arc::new(FollowingStore {
            inner: inner.clone(),
            primary: Arc::new(Primary {
                disk: self.disk.clone(),
                dir: self.dir.to_owned(),
                state: state.clone(),
            }),
        })
    }
}

/// A view that was made.
pub struct Viewed {
    /// The view.
    pub engine: Arc<Engine>,
    /// How many attempts it took.
    pub attempts: u32,
    /// The error of the lock if a process had the database open for writing: it names the process. If the
    /// lock could not be seen, the error that says why.
    pub writer: Option<Error>,
}

impl Viewed {
    /// Makes a view, for reading, of the database in `dir` of `disk`, which another process may have open for
    /// writing; `previous` is an older view of it.
    ///
    /// # Errors
    /// `NotFound` or `Invalid` if there is no database; `Busy` if the primary moves on faster than it can be
    /// read, or is being opened with a replay filter; `Invalid` if it died in such an opening; `Corrupt`,
    /// `Io`.
    pub fn of(
        disk: &Arc<dyn Disk>,
        dir: &Path,
        options: &Options,
        env: &Env,
        functions: &Functions,
        previous: Option<&Arc<Engine>>,
    ) -> Result<Viewed> {
        let own = disk;
        let disk: Arc<dyn Disk> = Arc::new(FollowingDisk::new(own.clone()));
        // A cache of rows belongs to one view; the next would begin with an empty one.
        let options = Options { read_only: true, create_if_missing: false, row_cache: 0, ..options.clone() };
        let (mut attempt, mut was_alone) = (1, false);
        loop {
            let manifest = Manifest::open_read_only(disk.clone(), dir).map(|(manifest, _)| manifest);
            // Behind the reading: a writer that has left by then left nothing behind it.
            let writer = writer_of(&**own, dir);
            let moment = manifest.as_ref().ok().map(moment_of);
            let following =
                Following { is_idle: writer.is_none(), ..Following::behind(&disk, dir, previous) };
            let made = manifest.and_then(|manifest| {
                let (doors, functions) = (env.clone(), functions.clone());
                let request =
                    OpenRequest { disk: disk.clone(), dir, options: &options, env: doors, functions };
                let engine = Engine::open_as(request, Way::Following(&Arc::new(manifest), &following))?;
                still_listed(&disk, dir, &engine, following.is_idle)?;
                Ok(engine)
            });
            match made {
                Ok(engine) => {
                    debug_assert!(engine.options.read_only, "a view writes nothing");
                    return Ok(Viewed { engine, attempts: attempt, writer });
                }
                Err(error) => {
                    debug_assert!(attempt <= ATTEMPTS_MAX, "attempt {attempt} was not to be made");
                    // No writer is at it, and none came and went: the manifest is the same.
                    let may_be_alone = following.is_idle && error.kind() != Kind::Busy;
                    let is_alone = may_be_alone && moment == present_moment(&disk, dir);
                    let is_final = is_alone && was_alone;
                    // One came after the look: what the attempt met is the middle of its opening.
                    let has_come = may_be_alone && !is_alone;
                    let may_pass = has_come || may_pass(&disk, dir, &error);
                    if is_final || attempt >= ATTEMPTS_MAX || !may_pass {
                        return Err(error);
                    }
                    env.clock.sleep(PAUSE);
                    (attempt, was_alone) = (attempt + 1, is_alone);
                }
            }
        }
    }
}

impl Engine {
    /// Number of the last edit of the manifest that it knows.
    #[must_use]
    pub fn edit_number(&self) -> u64 {
        self.manifest.edit_number()
    }
}

/// The database of the manifest, and the number of its last edit: as long as both are the same, no process
/// has opened the database for writing.
fn moment_of(manifest: &Manifest) -> (DatabaseId, u64) {
    (manifest.state().database, manifest.edit_number())
}

/// [`moment_of`] the present manifest; `None` if it cannot be read.
fn present_moment(disk: &Arc<dyn Disk>, dir: &Path) -> Option<(DatabaseId, u64)> {
    Manifest::open_read_only(disk.clone(), dir).ok().map(|(manifest, _)| moment_of(&manifest))
}

/// The error of the lock, if a process has it for writing, or if it cannot be seen whether one has. Takes a
/// share of the lock for an instant, which a process that opens the database for writing outwaits.
fn writer_of(disk: &dyn Disk, dir: &Path) -> Option<Error> {
    let path = dir.join(LOCK);
    let unseen = |kind, why: std::fmt::Arguments<'_>| {
        Error::new(kind, format!("{why}: a lock that cannot be seen rules no writer out"))
    };
    match disk.lock_shared(&path) {
        Ok(Some(_)) => None,
        Err(error) if error.kind() == Kind::Busy => Some(error),
        _ if terrane_base::planted!(TakeUnseenLockForFree) => None,
        // Its writer holds a file that was removed since, or that this process may not open.
        Ok(None) => {
            let why = format_args!("{} is missing, or may not be read", path.display());
            Some(unseen(Kind::Io, why))
        }
        Err(error) => Some(unseen(error.kind(), format_args!("{error}"))),
    }
}

/// Returns true if the error may come of what the primary did meanwhile.
fn may_pass(disk: &Arc<dyn Disk>, dir: &Path, error: &Error) -> bool {
    let is_possible = matches!(error.kind(), Kind::Corrupt | Kind::Gone | Kind::Busy | Kind::NotFound);
    is_possible && disk.exists(&dir.join(terrane_levels::directory::CURRENT)).unwrap_or(true)
}

/// Checks that no segment that was copied has left the manifest: its file could have been another one's by
/// then. Where no process wrote when the view began, none may have opened the database for writing since: the
/// manifest is the same.
fn still_listed(disk: &Arc<dyn Disk>, dir: &Path, engine: &Engine, is_idle: bool) -> Result<()> {
    let (manifest, now) = Manifest::open_read_only(disk.clone(), dir)?;
    let before = engine.manifest.state();
    let is_idle = is_idle && !terrane_base::planted!(TrustIdleLook);
    let is_same =
        now.database == before.database && (!is_idle || manifest.edit_number() == engine.edit_number());
    if is_same && before.segments.keys().all(|id| now.segments.contains_key(id)) {
        return Ok(());
    }
    let message = format!(
        "the journal of {} moved on while it was read: catch up again, less often if the primary writes much",
        dir.display()
    );
    Err(Error::new(Kind::Busy, message))
}

/// Number of the last commit that the database in `dir` of `disk` has now, as far as another process can see.
///
/// # Errors
/// As [`Viewed::of`]; `Busy` also if the primary died when it was opened with a replay filter.
pub fn last_commit(disk: &Arc<dyn Disk>, dir: &Path, env: &Env) -> Result<SeqNo> {
    let disk: Arc<dyn Disk> = Arc::new(FollowingDisk::new(disk.clone()));
    let mut attempt = 1;
    loop {
        match look(&disk, dir, env) {
            Err(error) if attempt < ATTEMPTS_MAX && may_pass(&disk, dir, &error) => {
                env.clock.sleep(PAUSE);
                attempt += 1;
            }
            result => return result,
        }
    }
}

fn look(disk: &Arc<dyn Disk>, dir: &Path, env: &Env) -> Result<SeqNo> {
    let state = Manifest::open_read_only(disk.clone(), dir)?.1;
    last_commit_in(disk, &dir.join(JOURNAL), &state, env)
}

/// Number of the last commit of the database whose manifest has `state`, and whose segments lie in the
/// directory `journal` of `disk`.
///
/// # Errors
/// `Busy` if an opening with a replay filter is not at its end; `Corrupt`, `Io`.
pub fn last_commit_in(disk: &Arc<dyn Disk>, journal: &Path, state: &State, env: &Env) -> Result<SeqNo> {
    refuse_unfinished(&**disk, journal, state, Kind::Busy)?;
    let segments: Vec<_> = state.segments.values().map(listed).collect();
    let flushed =
        state.tables.values().filter(|table| !table.dropped).map(|table| state.flushed(table)).min();
    let settings = ReplaySettings {
        threads: 1,
        durable_floor: state.durable.max(state.clean_close.unwrap_or_default()),
        flushed: flushed.unwrap_or_default(),
        make_durable: false,
        salt: state.database.segment_salt(),
    };
    let replayed = replay(&**disk, journal, &segments, &settings, &*env.spawn, &|_, _, _, _| Ok(()))?;
    Ok(replayed.last_seq.max(state.last_seq()))
}

/// The database that is followed, and what a view took it for.
#[derive(Debug)]
struct Primary {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    state: State,
}

impl Primary {
    /// The error, or that the primary has given the extent up, if it did.
    fn explain(&self, id: ExtentId, error: Error) -> Error {
        let is_final = !matches!(error.kind(), Kind::Corrupt | Kind::NotFound | Kind::Io);
        if is_final || terrane_base::planted!(BelieveGoneExtent) {
            return error;
        }
        let Ok((_, now)) = Manifest::open_read_only(self.disk.clone(), &self.dir) else { return error };
        let find = |state: &State| state.metas().find(|meta| meta.id == id).cloned();
        let (then, now): (Option<Arc<ExtentMeta>>, _) = (find(&self.state), find(&now));
        if then == now {
            return error;
        }
        let dir = self.dir.display();
        Error::gone(format!("extent {id} of {dir}, which its primary gave up since this view was made"), None)
    }
}

/// The extents of a view.
#[derive(Debug)]
struct FollowingStore {
    inner: Arc<dyn Store>,
    primary: Arc<Primary>,
}

impl Store for FollowingStore {
    delegate_store!(inner: allocate, allocate_for, write, sync, prefetch, free, hold);
    delegate_store!(inner: release, restore, reclaim, reclaim_all, usage, remote_reads, place);

    fn read(&self, id: ExtentId, offset: u32, buf: &mut [u8]) -> Result<()> {
        self.inner.read(id, offset, buf).map_err(|error| self.explain(id, error))
    }

    fn read_batch(&self, reads: &mut [ReadRequest<'_>]) {
        self.inner.read_batch(reads);
        for ReadRequest { id, result, .. } in reads {
            *result = std::mem::replace(result, Ok(())).map_err(|error| self.explain(*id, error));
        }
    }

    fn begin_read(
        &self,
        id: ExtentId,
        offset: u32,
        len: usize,
        memory: Vec<u8>,
    ) -> Result<Box<dyn PendingRead>> {
        self.inner.begin_read(id, offset, len, memory)
    }

    fn explain(&self, id: ExtentId, error: Error) -> Error {
        self.primary.explain(id, error)
    }
}
