//! State that all parts of an open database share: its doors, options, files, tables, and its observation.
//!
//! * Devices and files: the doors, the device, the store of extents, the cache and the row cache, the
//!   manifest, the journal.
//! * Tables, the moments that readers pin, the functions of users.
//! * Observation: counters, histograms, events, the slow log.
//!
//! State of several parts has owners: which opening this is ([`Opening`]), device and directory
//! ([`Files`]), what excludes a trim ([`Trims`]), what jobs have in common ([`ExtentJobs`]). Each lies inline
//! as well.
//!
//! Reads need nothing else. Memory, the throttle, transactions and the background own their state and stand
//! above ([`crate::engine`]). `Shared` lies inline in the engine, so that a get or a put reaches it without
//! one more pointer; a reader that outlives the call keeps it by a [`SharedRef`].

mod extent_jobs;
mod files;
mod opening;
mod trims;

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::sync::atomic::Ordering;
use terrane_base::{Collation, Error, Functions, Result, SeqNo, TableId};
use terrane_compaction::{JobControl, Work};
use terrane_device::Disk;
use terrane_format::extent::Origin;
use terrane_format::manifest::{Edit, EditOp};
use terrane_journal::Journal;
use terrane_levels::{Manifest, Pins};
use terrane_storage::Store;
use terrane_table::{Cache, FreshExtents, RowCache};

use crate::observe::events::{Events, Listener};
use crate::observe::slow_log::SlowLog;
use crate::observe::stats::written::Written;
use crate::observe::stats::{Counters, Histograms, add};
use crate::readers::Readers;
use crate::table::Table;
use crate::table::catalog::Catalog;
use crate::table::settings::TABLE_NOTE;

pub(crate) use extent_jobs::ExtentJobs;
pub use files::CountRequests;
pub(crate) use files::Files;
pub(crate) use opening::Opening;
pub(crate) use trims::{Trimming, Trims};

/// Looks until a recount must agree.
const RECOUNTS: u32 = 100_000;

/// See the head of the file. Everything is reached through shared references.
pub struct Shared {
    /// Which opening this is.
    pub(crate) opening: Opening,
    /// The doors.
    pub(crate) env: Env,
    /// Device and directory.
    pub(crate) files: Files,
    /// Options in force, resolved.
    pub(crate) options: Options,
    /// Where extents live; reads through it are those of users.
    pub(crate) store: Arc<dyn Store>,
    /// Blocks in memory.
    pub(crate) cache: Arc<Cache>,
    /// Values of single keys in memory.
    pub(crate) rows: Option<RowCache>,
    /// The durable log of the changes of the tree.
    pub(crate) manifest: Arc<Manifest>,
    /// Segments and the order of commits.
    pub(crate) journal: Arc<dyn Journal>,
    /// State that a trim of the journal shares with copies and ingests.
    pub(crate) trims: Trims,
    /// The moments that live snapshots see.
    pub(crate) pins: Pins,
    /// The live readers, which see these moments, and those that wait for a commit.
    pub(crate) readers: Readers,
    /// The tables.
    pub(crate) catalog: Catalog,
    /// Functions that the program registered at opening, for tables to name.
    pub(crate) functions: Functions,
    /// The queue of events, and the listeners.
    pub(crate) events: Arc<Events>,
    /// Counters of the statistics.
    pub(crate) counters: Counters,
    /// Counts of committed batches and bytes.
    pub(crate) written: Written,
    /// Histograms of the statistics.
    pub(crate) histograms: Histograms,
    /// The log of slow operations.
    pub(crate) slow_log: SlowLog,
    /// State that jobs that write extents have in common.
    pub(crate) extent_jobs: ExtentJobs,
}

/// An owner of the part `P` of an open database: the engine, which parts below it cannot name.
pub trait Holds<P>: Send + Sync {
    /// The part.
    fn part(&self) -> &P;
}

impl<P> Deref for dyn Holds<P> {
    type Target = P;

    fn deref(&self) -> &P {
        self.part()
    }
}

/// Keeps an open database in memory and gives its shared parts. An `Arc` of the engine is such a reference.
pub type SharedRef = Arc<dyn Holds<Shared>>;

impl Shared {
    /// Counts the running sums over the tables again, table by table, and compares tables and manifest.
    /// Requires: no work runs in the background.
    ///
    /// # Panics
    /// If a sum differs from the count, or a table from the manifest.
    pub(crate) fn recount(&self, finds_all_levels: impl Fn() -> bool) {
        let _change = self.catalog.change();
        // A writer that is refused by now may still be in the middle of a memtable.
        let agree = (0..RECOUNTS).any(|turn| {
            let agree = self.catalog.recount().is_ok() && finds_all_levels();
            if !agree {
                terrane_base::sync::spin(turn);
            }
            agree
        });
        assert!(agree, "{:?}; a look finds all levels: {}", self.catalog.recount(), finds_all_levels());
        // A follower is behind the manifest.
        if !self.options.read_only {
            let difference = self.catalog.difference(&self.manifest.state());
            assert!(difference.is_none(), "{difference:?}");
        }
    }

    /// The options in force, with derived sizes filled in.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Its doors to clock, randomness and threads.
    #[must_use]
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// Directory of the database.
    #[must_use]
    pub fn dir(&self) -> &PathBuf {
        self.files.dir()
    }

    /// The device under everything.
    pub(crate) fn disk(&self) -> &Arc<dyn Disk> {
        self.files.disk()
    }

    /// A number from 1 that no other engine of this process has or had: what belongs to one open database can
    /// say so.
    #[inline]
    #[must_use]
    pub fn instance(&self) -> u64 {
        self.opening.instance()
    }

    /// The tables.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Every record with this number or below is visible to reads.
    #[must_use]
    pub fn visible(&self) -> SeqNo {
        self.journal.visible()
    }

    /// Adds `listener`, which gets all events from now on.
    ///
    /// # Errors
    /// `Cancelled` after a close, `Io` if no thread can be started.
    pub fn add_listener(&self, listener: Arc<dyn Listener>) -> Result<()> {
        self.events.add_listener((&self.env, self.instance()), || self.is_closing(), listener)
    }

    /// Waits until listeners got all events so far, including the ends of running flushes. It does not wait
    /// for events that were dropped because the queue was full, nor for a flush that
    /// [`Maintenance::set_background_paused`](crate::Maintenance::set_background_paused) holds.
    ///
    /// # Errors
    /// `Invalid` on a thread of the background, such as that of the listeners.
    pub fn wait_for_listeners(&self) -> Result<()> {
        crate::reentrancy::refuse(self.instance())?;
        self.events.wait_for_listeners((&self.env, self.instance()));
        Ok(())
    }

    /// Makes every commit so far durable.
    ///
    /// # Errors
    /// `Poisoned` or `Io` from the journal.
    pub fn sync(&self) -> Result<()> {
        self.refuse_if_read_only()?;
        self.sync_journal()
    }

    /// Makes every commit so far durable, and wakes readers that wait for durable changes.
    pub(crate) fn sync_journal(&self) -> Result<()> {
        self.journal.sync()?;
        self.readers.of_changes().wake_if_waiting();
        Ok(())
    }

    /// As [`Shared::sync_journal`], up to `seq`, which is visible.
    pub(crate) fn sync_journal_through(&self, seq: SeqNo) -> Result<()> {
        debug_assert!(seq <= self.visible(), "no record {seq} is placed that a sync could make durable");
        self.journal.sync_through(seq)?;
        self.readers.of_changes().wake_if_waiting();
        Ok(())
    }

    pub(crate) fn refuse_if_read_only(&self) -> Result<()> {
        crate::reentrancy::refuse(self.instance())?;
        if self.options.read_only {
            return Err(Error::invalid(
                "the database was opened read_only: open it for writing to change it",
            ));
        }
        Ok(())
    }

    /// Refuses `what` for a database whose manifest and extents do not lie in its directory.
    pub(crate) fn refuse_elsewhere(&self, what: &str, remedy: &str) -> Result<()> {
        self.opening.refuse_elsewhere(what, remedy)
    }

    /// Returns true if the close has begun.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.opening.is_closing()
    }

    /// Returns true on a thread of the background of this database, where a close would wait for itself.
    #[must_use]
    pub fn is_on_own_thread(&self) -> bool {
        crate::reentrancy::works_for(self.instance())
    }

    /// Appends an edit, with the void marks of ingests whose edit failed.
    ///
    /// # Errors
    /// Those of the manifest.
    pub(crate) fn append_edit(&self, mut ops: Vec<EditOp>) -> Result<()> {
        debug_assert!(!self.options.read_only, "a database opened read_only writes no manifest");
        let void = self.trims.marks().void();
        ops.extend(void.iter().map(|seq| EditOp::VoidMark { seq: *seq }));
        self.manifest.append(&Edit { ops })?;
        self.trims.marks().forget(&void);
        Ok(())
    }

    /// How the keys of a table are ordered; as bytes, if there is no such table.
    pub(crate) fn collation_of(&self, id: TableId) -> Collation {
        let table = self.catalog.get(id, &terrane_base::epoch::pin()).cloned();
        table.map_or(Collation::BYTES, |table| table.semantics.collation().clone())
    }

    /// Control for one piece of background work.
    pub(crate) fn new_control(&self) -> JobControl {
        self.extent_jobs.new_control(&self.env)
    }

    /// Gives a job the functions of its table (the merge operator and the prefix extractor) and the cache in
    /// which readers will look for its results.
    pub(crate) fn give_functions(&self, table: &Table, control: &JobControl) {
        debug_assert!(table.is_of(&self.catalog), "a job would write the extents of another database");
        if let Some(extractor) = table.semantics.extractor() {
            control.filter_prefixes(extractor);
        }
        if let Some(operator) =
            table.semantics.operator().filter(|_| self.options.experiments.operand_folding)
        {
            control.fold_with(operator.clone());
        }
        control.write_as(self.origin_of(table));
        if self.options.experiments.warm_outputs {
            control.keep_in(FreshExtents::new(self.store.clone(), self.cache.clone()));
        }
    }

    /// The origin of extents of a table, for a job that begins now.
    pub(crate) fn origin_of(&self, table: &Table) -> Origin {
        let (edit, state) = (self.manifest.edit_number(), self.manifest.state());
        let options = state
            .tables
            .get(&table.id)
            .map(|stored| stored.options.iter().filter(|(name, _)| name != TABLE_NOTE).cloned().collect());
        Origin {
            database: state.database,
            before: self.extent_jobs.copied_from(&self.files),
            edit,
            job: self.extent_jobs.next_number(),
            level: 0,
            table: table.name.clone(),
            options: options.unwrap_or_default(),
            replaced: Vec::new(),
        }
    }

    /// Counts what a flush of `table` wrote.
    pub(crate) fn count_flushed(&self, table: &Table, bytes: u64) {
        debug_assert!(table.is_of(&self.catalog), "the tables of a database sum up to its own counters");
        add(&self.counters.flush_bytes_written, bytes);
        add(&table.counters.table_flush_bytes_written, bytes);
    }

    /// Counts what a job did with operands, with what had expired, and with separated values.
    pub(crate) fn count_work(&self, work: &Work) {
        add(&self.counters.operands_folded, work.operands_folded);
        add(&self.counters.folds_failed, work.folds_failed);
        add(&self.counters.values_separated, work.values_separated);
        add(&self.counters.values_moved, work.values_moved);
        add(&self.counters.value_bytes_written, work.value_bytes_written);
        add(&self.counters.entries_expired, work.entries_expired);
    }

    /// Notes how much memory is in use; returns the most that ever was.
    pub(crate) fn note_memory(&self, bytes: u64) -> u64 {
        // Relaxed: a measure.
        self.counters.memory_bytes_max.fetch_max(bytes, Ordering::Relaxed).max(bytes)
    }
}
