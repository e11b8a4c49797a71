//! Objects that an opening attaches to a database: its primary, listeners, statistics, caches, a logger, and
//! its options.

use std::ops::Bound;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use terrane::{Follower, Kind, Table};

use crate::callbacks::logger::Logger;
use crate::db::listener::DatabaseListener;
use crate::db::notices::Notices;
use crate::db::{Database, Family};
use crate::ffi::failure::{Failure, Result};
use crate::files;
use crate::options::database::Options;
use crate::options::objects::cache::{Cache, User};
use crate::options::objects::inert::FileManager;
use crate::options::objects::statistics::{Statistics, moment};

/// The attached objects; none by default.
#[derive(Default)]
pub(crate) struct Attached {
    /// The primary, if this is a secondary.
    pub(crate) follower: Option<Follower>,
    /// How often manual compactions were disabled beyond how often they were enabled.
    manual_disabled: Mutex<i64>,
    pub(crate) statistics: Option<Arc<Statistics>>,
    pub(crate) is_in_memory: bool,
    pub(crate) keeps_identity: bool,
    /// The options of the whole database, with changes since.
    options: Mutex<Options>,
    /// When it was opened, by [`moment`].
    pub(crate) opened: Duration,
    /// How many iterators there are of families with a handle of a cache.
    pub(crate) iterators: Arc<AtomicUsize>,
    /// Handles of caches that it was opened with.
    caches: Mutex<Vec<Cache>>,
    /// The log lines about options without an effect, and the log for lines about the whole database.
    pub(crate) notices: Arc<Notices>,
    /// Held while options are changed: read, given to the engine, kept and stored.
    changing: Mutex<()>,
    /// Set when the handle has its place in memory, by which listeners name the database.
    listeners: OnceLock<Vec<Arc<DatabaseListener>>>,
}

impl Attached {
    pub(crate) fn of(options: &Options, follower: Option<Follower>) -> Attached {
        Attached {
            follower,
            statistics: options.statistics.clone(),
            is_in_memory: options
                .environment
                .as_ref()
                .is_some_and(|environment| environment.memory.is_some()),
            keeps_identity: options.fields.write_dbid_to_manifest != 0,
            options: Mutex::new(options.clone()),
            opened: moment(),
            notices: Arc::new(Notices::new()),
            ..Attached::default()
        }
    }
}

impl Database {
    /// Its directory.
    pub(crate) fn directory(&self) -> String {
        self.db.path().display().to_string()
    }

    /// Returns true if it touches no file.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.attached.is_in_memory
    }

    /// Where calls are counted, if they are.
    #[inline]
    pub(crate) fn statistics(&self) -> Option<&Arc<Statistics>> {
        self.attached.statistics.as_ref()
    }

    /// The event listeners.
    pub(crate) fn listeners(&self) -> &[Arc<DatabaseListener>] {
        self.attached.listeners.get().map_or(&[], Vec::as_slice)
    }

    /// Calls listeners and counts statistics from now on: to be called when the handle has its place.
    pub(crate) fn attach(&self, options: &Options) -> Result<()> {
        if let Some(statistics) = &self.attached.statistics {
            statistics.add(self.address(), &self.db);
        }
        for family in self.families() {
            self.use_cache(&family);
        }
        if let Some(manager) = self.file_manager() {
            manager.add_user(self.place_number(), &self.db);
        }
        let listeners =
            options.listeners.iter().map(|listener| Arc::new(DatabaseListener::new(listener.clone(), self)));
        let listeners: Vec<Arc<DatabaseListener>> = listeners.collect();
        for listener in &listeners {
            self.db.add_listener(listener.clone())?;
        }
        let _ = self.attached.listeners.set(listeners);
        Ok(())
    }

    /// By which statistics know the handle.
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Has the cache of a family's options know of the database.
    pub(crate) fn use_cache(&self, family: &Family) {
        if let Some(cache) = family.options().table.cache {
            let user = User { db: self.db.clone(), iterators: self.attached.iterators.clone() };
            cache.add_user(self.place_number(), &user);
            self.attached.caches.lock().unwrap_or_else(PoisonError::into_inner).push(cache);
        }
    }

    fn file_manager(&self) -> Option<FileManager> {
        self.lock_options().objects.file_manager.clone()
    }

    /// Removes it from its caches and its manager of files.
    pub(crate) fn detach(&self) {
        if let Some(manager) = self.file_manager() {
            manager.remove_user(self.place_number());
        }
        for cache in self.attached.caches.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            cache.remove_user(self.place_number());
        }
    }

    /// Number of the database: it differs from those of all that are open.
    fn place_number(&self) -> usize {
        Arc::as_ptr(&self.attached).addr()
    }

    /// Logs lines about the whole database there from now on.
    pub(crate) fn log_to(&self, logger: Arc<Logger>) {
        let _ = self.attached.notices.logger.set(logger);
    }

    /// Logs a failure that stops no operation, if there is a logger.
    pub(crate) fn warn(&self, line: &str) {
        self.attached.notices.warn(line);
    }

    /// The log lines about options without an effect.
    pub(crate) fn notices(&self) -> &Notices {
        &self.attached.notices
    }

    /// Excludes other changes of options, of the database or of a column family.
    pub(crate) fn lock_changes(&self) -> MutexGuard<'_, ()> {
        self.attached.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The options of the whole database, locked: no other thread changes or stores them.
    pub(crate) fn lock_options(&self) -> MutexGuard<'_, Options> {
        self.attached.options.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Disables manual compactions, or enables them again. As in RocksDB each undoes one of the other,
    /// whichever comes first.
    pub(crate) fn switch_manual(&self, disable: bool) {
        let mut disabled = self.attached.manual_disabled.lock().unwrap_or_else(PoisonError::into_inner);
        let was_held = *disabled > 0;
        *disabled += if disable { 1 } else { -1 };
        match (was_held, *disabled > 0) {
            (false, true) => self.db.hold_range_compactions(),
            (true, false) => self.db.allow_range_compactions(),
            _ => {}
        }
    }

    /// Refuses the options that are held back, in RocksDB's words.
    pub(crate) fn refuse_if_manual_disabled(&self) -> Result<()> {
        if self.db.holds_range_compactions() { Err(paused()) } else { Ok(()) }
    }

    /// Compacts a range of a table for a caller.
    pub(crate) fn compact_range(&self, table: &Table, range: (Bound<&[u8]>, Bound<&[u8]>)) -> Result<()> {
        self.db.compact_range(table, range).map_err(|error| match error.kind() {
            // Compactions were paused meanwhile. It is not a close: callers do not close a database in use.
            Kind::Cancelled => paused(),
            _ => error.into(),
        })
    }

    /// Keeps what was counted of a database that is about to be closed.
    pub(crate) fn keep_statistics(&self) {
        if let Some(statistics) = self.statistics() {
            statistics.keep_counts(self.address());
        }
    }

    /// Waits until listeners were called for all events so far.
    pub(crate) fn wait_for_listeners(&self) -> Result<()> {
        if !self.listeners().is_empty() {
            self.db.wait_for_listeners()?;
        }
        Ok(())
    }

    /// The identity: what a file beside the database says, or else the id that it drew, as RocksDB writes
    /// such.
    pub(crate) fn identity(&self) -> Result<String> {
        if !self.is_in_memory()
            && let Some(identity) = files::identity(self.db.path())?
        {
            return Ok(identity);
        }
        let id = self.db.id();
        let part = |from: usize, to: usize| id.get(from..to).unwrap_or_default();
        Ok(format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)))
    }

    /// The identity, where a checkpoint is to keep it.
    pub(crate) fn kept_identity(&self) -> Result<Option<String>> {
        let is_kept = self.attached.keeps_identity && !self.is_in_memory();
        is_kept.then(|| self.identity()).transpose()
    }
}

pub(crate) fn paused() -> Failure {
    Failure::new("Result incomplete", "Manual compaction paused")
}
