//! Readers of changes: every committed batch from a number on, in the order of commits, whole, each once.
//!
//! 1. the limit: the last visible number, or the last one that is known to survive a loss of power
//! 2. the next batch from the segments (`trail.rs`), through their files: a reader takes no lock that a
//!    commit takes, and keeps no segment
//! 3. its records, without those of the engine's own tables (`change.rs`): changes of a prepared transaction
//!    show at its commit, and announced extents show if they were ingested (`ingest/mark.rs`)
//! 4. if there is no next batch: wait until a commit wakes the reader.
//!
//! A reader needs no open database: beside another process that writes, it reads the segments of that
//! process.

mod change;
mod trail;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use terrane_base::sync::atomic::{AtomicUsize, Ordering, fence};

use terrane_base::env::Env;
use terrane_base::key_order::BYTEWISE;
use terrane_base::options::JournalMode;
use terrane_base::sync::{Condvar, Mutex};
use terrane_base::{Error, KeyOrders, Kind, Result, SeqNo, TableId, epoch};
use terrane_device::Disk;
use terrane_journal::ReadBatch;
use terrane_levels::directory::JOURNAL;
use terrane_levels::{Manifest, State};

use crate::bulk::ingest::mark::{self, Fate};
use crate::engine::Engine;
use crate::observe::stats::add;
use crate::segment_files::refuse_unfinished;
use crate::table::catalog::HIDDEN_PREFIX;
use crate::table::settings::{KEY_ORDER, known_as};
use change::TableName;
pub(crate) use change::change_of;
pub use change::{Change, ChangeBatch, ChangeKind};
use trail::Trail;

/// How long a reader of an open database sleeps before it looks without being woken.
const SLEEP_MAX: Duration = Duration::from_millis(100);
/// How long a reader of another process's database sleeps: no commit wakes it.
const POLL: Duration = Duration::from_millis(20);

/// Readers that wait for a commit.
#[derive(Debug, Default)]
pub(crate) struct Feeds {
    waiting: AtomicUsize,
    turn: Mutex<()>,
    changed: Condvar,
}

impl Feeds {
    /// Wakes the readers that wait, if there are any. Called after each commit, once it is visible.
    #[inline]
    pub(crate) fn wake_if_waiting(&self) {
        // Pairs with the fence in `wait`: either the reader sees what became visible before, or this thread
        // sees that the reader waits.
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.wake();
        }
    }

    /// Wakes all readers that wait.
    #[cold]
    pub(crate) fn wake(&self) {
        // A reader that has found nothing but does not sleep yet holds the lock.
        drop(self.turn.lock());
        self.changed.notify_all();
    }

    /// Sleeps for `sleep` at most, unless `is_there`.
    fn wait(&self, env: &Env, sleep: Duration, is_there: impl Fn() -> bool) {
        let mut turn = self.turn.lock();
        self.waiting.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !is_there() {
            match env.spawn.stepper() {
                Some(stepper) => terrane_base::sync::unlocked(&mut turn, || stepper.pass(sleep)),
                None => drop(self.changed.wait_for(&mut turn, sleep)),
            }
        }
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The changes that a reader gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedOptions {
    /// Only what is known to survive the loss of power: behind a sync of any writer. Otherwise all that is
    /// visible. A loss of power may take away the end of that; a reader that got it is then ahead of the
    /// database.
    pub durable_only: bool,
}

impl FeedOptions {
    /// All that is visible.
    #[must_use]
    pub fn new() -> FeedOptions {
        FeedOptions::default()
    }

    /// Sets [`FeedOptions::durable_only`].
    #[must_use]
    pub fn durable_only(mut self, durable_only: bool) -> FeedOptions {
        self.durable_only = durable_only;
        self
    }
}

/// A reader of changes; see the head of the file.
pub struct Feed {
    trail: Trail,
    source: Source,
    env: Env,
}

enum Source {
    Engine(Arc<Engine>, FeedOptions),
    /// The files of a database that another process may have open.
    Files(Files),
}

struct Files {
    disk: Arc<dyn Disk>,
    dir: std::path::PathBuf,
    names: HashMap<TableId, TableName>,
}

impl Files {
    fn state(&self) -> Result<Arc<State>> {
        let (_, state) = Manifest::open_read_only(self.disk.clone(), &self.dir)?;
        refuse_unfinished(&*self.disk, &self.dir.join(JOURNAL), &state, Kind::Busy)?;
        Ok(Arc::new(state))
    }

    /// The name of a table by the manifest, which is read again if it does not have the table.
    fn name_of(&mut self, id: TableId) -> Result<TableName> {
        if !self.names.contains_key(&id) {
            // A table that was dropped since may have gone by its name before.
            self.names.clear();
            let state = self.state()?;
            let name = state.tables.get(&id).map_or(Ok(TableName::Dropped), |table| Files::named(table))?;
            self.names.insert(id, name);
        }
        Ok(self.names[&id].clone())
    }
}

impl Files {
    /// The name of a table by the manifest. Functions of the program are not registered here.
    fn named(table: &terrane_levels::Table) -> Result<TableName> {
        match table.name.as_str() {
            name if name.starts_with(HIDDEN_PREFIX) => Ok(TableName::Hidden),
            _ if table.dropped => Ok(TableName::Dropped),
            name => {
                let order = table.options.iter().find(|(option, _)| known_as(option) == KEY_ORDER);
                let order = order.map(|(_, order)| order.as_str()).filter(|order| *order != BYTEWISE);
                let order = order.map(|order| KeyOrders::new().find(order)).transpose();
                let order = order.map_err(|error| error.context(format!("table {name:?}")))?;
                Ok(TableName::Known(name.into(), order))
            }
        }
    }
}

impl Engine {
    /// The name of a table by the open database.
    fn table_named(&self, id: TableId) -> TableName {
        match self.catalog.get(id, &epoch::pin()) {
            None => TableName::Dropped,
            Some(table) if table.name.starts_with(HIDDEN_PREFIX) => TableName::Hidden,
            Some(table) => TableName::Known(table.name.as_str().into(), table.sense.order().cloned()),
        }
    }
}

impl Engine {
    /// Every batch committed from number `from` on; begins with the one that has it.
    ///
    /// # Errors
    /// `Gone` if that is no longer kept; `Invalid` if nothing up to there was committed, or without a
    /// journal.
    pub fn changes(self: &Arc<Self>, from: SeqNo, options: FeedOptions) -> Result<Feed> {
        let visible = self.visible();
        if from.0 > visible.0 + 1 {
            return Err(Error::invalid(format!(
                "changes from {from} on were asked for, but the last commit is {visible}: the position is one of another \
                 database, or of commits that a loss of power took away; begin anew from a copy"
            )));
        }
        if self.options.journal == JournalMode::Off {
            return Err(Error::invalid(
                "changes are read from the journal, which is off: open with journal=file",
            ));
        }
        if options.durable_only && self.options.read_only {
            return Err(Error::invalid(
                "durable_only and read_only contradict each other: only an opening for writing makes durable what it finds",
            ));
        }
        let trail = Trail::new(self.disk.clone(), self.dir.join(JOURNAL), from);
        let mut feed = Feed { trail, source: Source::Engine(self.clone(), options), env: self.env.clone() };
        // The error comes at once, not with the first batch.
        feed.trail.check(visible, &|| Ok(self.manifest.state()))?;
        Ok(feed)
    }

    fn may_tell(&self, options: FeedOptions) -> SeqNo {
        match options.durable_only {
            true => self.journal.durable().min(self.journal.visible()),
            false => self.journal.visible(),
        }
    }
}

impl Feed {
    /// Every batch from number `from` on of the database in `dir`, which another process may have open for
    /// writing: what that has brought into its segments, as a rule within milliseconds of the commit.
    ///
    /// # Errors
    /// `NotFound` if there is no database; `Gone` if `from` is no longer kept; `Busy` while the database is
    /// opened with a replay filter, or if that died: try again; `Corrupt`, `Io`.
    pub fn beside(disk: Arc<dyn Disk>, dir: &Path, env: Env, from: SeqNo) -> Result<Feed> {
        let files = Files { disk: disk.clone(), dir: dir.to_owned(), names: HashMap::new() };
        let mut trail = Trail::new(disk, dir.join(JOURNAL), from);
        let state = files.state()?;
        trail.check(state.last_seq(), &|| files.state())?;
        Ok(Feed { trail, source: Source::Files(files), env })
    }

    /// The number after the last batch that the reader got: where to go on.
    #[must_use]
    pub fn position(&self) -> SeqNo {
        self.trail.next()
    }

    /// The next batch that is there now.
    ///
    /// # Errors
    /// `Gone` if the reader fell behind what is kept; `Poisoned` in front of extents of which only the next
    /// opening shows whether they came in; `Cancelled` once the database closes; `Busy` as [`Feed::beside`];
    /// `Corrupt`, `Io`.
    pub fn try_next(&mut self) -> Result<Option<ChangeBatch>> {
        loop {
            let Some(batch) = self.next_batch()? else { return Ok(None) };
            let told = match self.fate_of(&batch) {
                Ok(Fate::CameIn) => self.change_batch(batch.clone()),
                Ok(Fate::Void) => Ok(None),
                Ok(Fate::Open) => {
                    self.trail.put_back(batch);
                    return Ok(None);
                }
                Err(error) => Err(error),
            };
            if let Some(told) = told.inspect_err(|_| self.trail.put_back(batch))? {
                if let Source::Engine(engine, _) = &self.source {
                    add(&engine.counters.batches_told, 1);
                }
                return Ok(Some(told));
            }
        }
    }

    /// The next batch of the journal, also one without changes for the user.
    fn next_batch(&mut self) -> Result<Option<ReadBatch>> {
        match &self.source {
            Source::Engine(engine, options) => {
                engine.refuse_if_closing()?;
                let state = || Ok(engine.manifest.state());
                self.trail.next_batch(engine.may_tell(*options), true, &state)
            }
            Source::Files(files) => self.trail.next_batch(SeqNo::MAX, false, &|| files.state()),
        }
    }

    /// Whether a batch changed what it says: the mark of extents may not have.
    fn fate_of(&self, batch: &ReadBatch) -> Result<Fate> {
        if !mark::is_mark(batch.records()) {
            return Ok(Fate::CameIn);
        }
        let seq = batch.first_seq();
        let mut seen = None;
        let fate = match &self.source {
            Source::Engine(engine, _) => {
                let mut look = || seen.insert(engine.manifest.state()).clone();
                engine.marks.fate(seq, &mut look)?
            }
            Source::Files(files) => mark::fate_in(seen.insert(files.state()?), seq),
        };
        // A state without the segment no longer lists the void marks of that segment.
        let is_known = fate != Fate::CameIn || seen.is_none_or(|state| self.trail.is_listed(&state));
        if is_known || terrane_base::planted!(BelieveForgotten) {
            return Ok(fate);
        }
        Err(Error::gone(format!("changes from {seq} on"), None))
    }

    fn change_batch(&mut self, batch: ReadBatch) -> Result<Option<ChangeBatch>> {
        match &mut self.source {
            Source::Engine(engine, _) => ChangeBatch::new(batch, &mut |id| Ok(engine.table_named(id))),
            Source::Files(files) => ChangeBatch::new(batch, &mut |id| files.name_of(id)),
        }
    }

    /// The next batch; waits for it, `timeout` at most.
    ///
    /// # Errors
    /// As [`Feed::try_next`].
    pub fn next_within(&mut self, timeout: Duration) -> Result<Option<ChangeBatch>> {
        let until = self.env.clock.now().saturating_add(timeout);
        loop {
            if let Some(batch) = self.try_next()? {
                return Ok(Some(batch));
            }
            let left = until.saturating_sub(self.env.clock.now());
            if left.is_zero() {
                return Ok(None);
            }
            let next = self.trail.next();
            match &self.source {
                Source::Engine(engine, options) => {
                    let is_there = || engine.may_tell(*options) >= next || engine.is_closing();
                    engine.feeds.wait(&self.env, left.min(SLEEP_MAX), is_there);
                }
                Source::Files(_) => self.env.clock.sleep(left.min(POLL)),
            }
        }
    }
}

impl Engine {
    fn refuse_if_closing(&self) -> Result<()> {
        match self.is_closing() {
            true => Err(Error::new(Kind::Cancelled, "the database is closing")),
            false => Ok(()),
        }
    }
}

impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feed").field("position", &self.position()).finish_non_exhaustive()
    }
}
