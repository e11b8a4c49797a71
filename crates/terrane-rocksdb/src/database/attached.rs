//! What an opening attaches to a database: whom it follows, listeners, statistics, whether its checkpoints keep its identity.

use std::sync::{Arc, OnceLock};

use terrane::Follower;

use super::Database;
use crate::callbacks::Telling;
use crate::failure::Result;
use crate::files;
use crate::objects::{Options, Statistics};

/// What is attached; nothing by default.
#[derive(Default)]
pub(crate) struct Attached {
    /// The primary, if this is a secondary.
    pub(super) follower: Option<Follower>,
    pub(super) statistics: Option<Arc<Statistics>>,
    pub(super) is_in_memory: bool,
    pub(super) keeps_identity: bool,
    /// Set when the handle has its place in memory, by which listeners name the database.
    telling: OnceLock<Vec<Arc<Telling>>>,
}

impl Attached {
    pub(super) fn of(options: &Options, follower: Option<Follower>) -> Attached {
        Attached {
            follower,
            statistics: options.statistics.clone(),
            is_in_memory: options
                .environment
                .as_ref()
                .is_some_and(|environment| environment.memory.is_some()),
            keeps_identity: options.knobs.write_dbid_to_manifest != 0,
            telling: OnceLock::new(),
        }
    }
}

impl Database {
    /// Its directory.
    pub(crate) fn directory(&self) -> String {
        self.db.path().display().to_string()
    }

    /// Whether it touches no file.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.attached.is_in_memory
    }

    /// Where calls are counted, if they are.
    #[inline]
    pub(crate) fn statistics(&self) -> Option<&Arc<Statistics>> {
        self.attached.statistics.as_ref()
    }

    /// Who is told what happens.
    pub(crate) fn telling(&self) -> &[Arc<Telling>] {
        self.attached.telling.get().map_or(&[], Vec::as_slice)
    }

    /// Has listeners told, and statistics counted, from now on: to be called when the handle has its place.
    pub(super) fn attach(&self, options: &Options) -> Result<()> {
        if let Some(statistics) = &self.attached.statistics {
            statistics.add(self.address(), &self.db);
        }
        let telling = options.listeners.iter().map(|listener| Arc::new(Telling::new(listener.clone(), self)));
        let telling: Vec<Arc<Telling>> = telling.collect();
        for listener in &telling {
            self.db.add_listener(listener.clone())?;
        }
        let _ = self.attached.telling.set(telling);
        Ok(())
    }

    /// By which statistics know the handle.
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Keeps what was counted of a database that is about to be closed.
    pub(super) fn settle_statistics(&self) {
        if let Some(statistics) = self.statistics() {
            statistics.settle(self.address());
        }
    }

    /// Waits until listeners were told what has happened.
    pub(crate) fn wait_for_listeners(&self) -> Result<()> {
        if !self.telling().is_empty() {
            self.db.wait_for_listeners()?;
        }
        Ok(())
    }

    /// The identity: what a file beside the database says, or else the id that it drew, as RocksDB writes such.
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
