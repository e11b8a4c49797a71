//! Readers of changes: every committed batch from a number on, in the order of commits, whole, each once.
//!
//! 1. the limit: the last visible number, or the last one that is known to survive a loss of power
//! 2. the next batch from the segments (`trail.rs`), through their files: a reader takes no lock that a
//!    commit takes, and keeps no segment
//! 3. its records, without those of the engine's own tables (`change.rs`): changes of a prepared transaction
//!    show at its commit, and announced extents show if they were ingested (`ingest_mark.rs`)
//! 4. if there is no next batch: wait until a commit wakes the reader.
//!
//! A reader needs no open database: while another process writes, it reads the segments of that
//! process.

mod change;
mod trail;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrane_base::env::Env;
use terrane_base::key_order::BYTEWISE;
use terrane_base::options::JournalMode;
use terrane_base::{Error, KeyOrders, Kind, Result, SeqNo, TableId, epoch};
use terrane_device::Disk;
use terrane_journal::ReadBatch;
use terrane_levels::directory::JOURNAL;
use terrane_levels::{Manifest, State};

use crate::ingest_mark::{self, Fate};
use crate::observe::stats::add;
use crate::segment_files::refuse_unfinished;
use crate::shared::{Shared, SharedRef};
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

/// The changes that a reader gets.
///
/// ```
/// # use terrane_engine::FeedOptions;
/// // A replica that must never be ahead of its database.
/// let options = FeedOptions::new().durable_only(true);
/// assert!(options.durable_only);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedOptions {
    /// Returns only commits that are known to survive the loss of power: those before a sync of any writer.
    /// Otherwise returns all visible commits; a loss of power may take away the last of them, and a reader
    /// that got them is then ahead of the database.
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
    Open(SharedRef, FeedOptions),
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

impl Shared {
    /// The name of a table by the open database.
    fn table_named(&self, id: TableId) -> TableName {
        match self.catalog.get(id, &epoch::pin()) {
            None => TableName::Dropped,
            Some(table) if table.name.starts_with(HIDDEN_PREFIX) => TableName::Hidden,
            Some(table) => TableName::Known(table.name.as_str().into(), table.semantics.order().cloned()),
        }
    }
}

impl Shared {
    fn readable_up_to(&self, options: FeedOptions) -> SeqNo {
        match options.durable_only {
            true => self.journal.durable().min(self.journal.visible()),
            false => self.journal.visible(),
        }
    }

    fn refuse_if_closing(&self) -> Result<()> {
        match self.is_closing() {
            true => Err(Error::new(Kind::Cancelled, "the database is closing")),
            false => Ok(()),
        }
    }
}

impl Feed {
    /// Every batch committed from number `from` on; begins with the one that has it.
    ///
    /// # Errors
    /// `Gone` if that is no longer kept; `Invalid` if nothing up to there was committed, or without a
    /// journal.
    pub fn open(shared: SharedRef, from: SeqNo, options: FeedOptions) -> Result<Feed> {
        let visible = shared.visible();
        if from.0 > visible.0 + 1 {
            return Err(Error::invalid(format!(
                "changes from {from} on were asked for, but the last commit is {visible}: the position is one of another \
                 database, or of commits that a loss of power took away; begin again from a copy"
            )));
        }
        if shared.options.journal == JournalMode::Off {
            return Err(Error::invalid(
                "changes are read from the journal, which is off: open with journal=file",
            ));
        }
        if options.durable_only && shared.options.read_only {
            return Err(Error::invalid(
                "durable_only and read_only contradict each other: only an opening for writing makes durable what it finds",
            ));
        }
        let mut trail = Trail::new(shared.disk().clone(), shared.dir().join(JOURNAL), from);
        // The error comes at once, not with the first batch.
        trail.check(visible, &|| Ok(shared.manifest.state()))?;
        let env = shared.env.clone();
        Ok(Feed { trail, source: Source::Open(shared, options), env })
    }

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
    /// `Gone` if the reader fell behind the oldest kept segment; `Poisoned` in front of an ingest whose
    /// outcome only the next opening decides; `Cancelled` once the database closes; `Busy` as
    /// [`Feed::beside`]; `Corrupt`, `Io`.
    pub fn try_next(&mut self) -> Result<Option<ChangeBatch>> {
        loop {
            let Some(batch) = self.next_batch()? else { return Ok(None) };
            let changes = match self.fate_of(&batch) {
                Ok(Fate::CameIn) => self.change_batch(batch.clone()),
                Ok(Fate::Void) => Ok(None),
                Ok(Fate::Open) => {
                    self.trail.put_back(batch);
                    return Ok(None);
                }
                Err(error) => Err(error),
            };
            if let Some(changes) = changes.inspect_err(|_| self.trail.put_back(batch))? {
                if let Source::Open(shared, _) = &self.source {
                    add(&shared.counters.batches_read_as_changes, 1);
                }
                debug_assert!(
                    changes.last_seq().0 + 1 == self.trail.next().0,
                    "the reader goes on behind the batch that it has got"
                );
                return Ok(Some(changes));
            }
        }
    }

    /// The next batch of the journal, also one without changes for the user.
    fn next_batch(&mut self) -> Result<Option<ReadBatch>> {
        match &self.source {
            Source::Open(shared, options) => {
                shared.refuse_if_closing()?;
                let state = || Ok(shared.manifest.state());
                self.trail.next_batch(shared.readable_up_to(*options), true, &state)
            }
            Source::Files(files) => self.trail.next_batch(SeqNo::MAX, false, &|| files.state()),
        }
    }

    /// Says if the changes of a batch took place: the extents of an ingest mark may not have come in.
    fn fate_of(&self, batch: &ReadBatch) -> Result<Fate> {
        if !ingest_mark::is_mark(batch.records()) {
            return Ok(Fate::CameIn);
        }
        let seq = batch.first_seq();
        let mut seen = None;
        let fate = match &self.source {
            Source::Open(shared, _) => {
                let mut look = || seen.insert(shared.manifest.state()).clone();
                shared.trims.marks().fate(seq, &mut look)?
            }
            Source::Files(files) => ingest_mark::fate_in(seen.insert(files.state()?), seq),
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
            Source::Open(shared, _) => ChangeBatch::new(batch, &mut |id| Ok(shared.table_named(id))),
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
                Source::Open(shared, options) => {
                    let is_there = || shared.readable_up_to(*options) >= next || shared.is_closing();
                    shared.readers.of_changes().wait(&self.env, left.min(SLEEP_MAX), is_there);
                }
                Source::Files(_) => self.env.clock.sleep(left.min(POLL)),
            }
        }
    }
}

impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feed").field("position", &self.position()).finish_non_exhaustive()
    }
}
