//! Opens a database of a bucket for reading, beside any writer.
//!
//! 1. hold the journal's directory against a writer, if it is on this machine and no writer has it open 2.
//!    read the manifest 3. if the journal is that of the manifest's last writer, it is replayed into memory;
//!    otherwise records that only the journal has are not shown 4. open the store for reading.
//!
//! A journal in a bucket is read from there, whatever the directory has (`read_objects.rs`).
//!
//! Nothing is written, to the bucket or to the directory (but to the cache, if no other process has it): no
//! probe, no take-over, no epoch, so a writer that is at work anywhere goes on. The reader stays at the
//! moment at which it opened. Its objects are there for the age of garbage (`garbage_age_s`) at least; a
//! later read of a deleted one is the error `Gone`.

use std::sync::Arc;

use terrane::Db;
use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::{Error, Functions, Kind, Result};
use terrane_device::{Disk, DiskLock, PosixDisk};
use terrane_engine::ReadParts;
use terrane_levels::{Manifest, State, directory, journal_place};

use super::Deployment;
use crate::bucket::names;
use crate::journal::is_in_objects;
use crate::manifest::{Found, without_journal};
use crate::{Bucket, BucketStore, ManifestFolder};

/// The part of the journal that a reader shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalRead {
    /// Every commit: the journal was replayed, or the manifest needs none.
    Whole,
    /// Nothing of it: a writer on this machine has it open.
    HasWriter,
    /// Nothing of it: the directory of the journal is not here, or is not that of the last writer.
    Elsewhere,
    /// The objects in the bucket of the journal: every synced commit, and unsynced ones up to some moment.
    Bucket,
    /// Nothing of it: it lies in a bucket, and its writer changed the manifest in every attempt to read it.
    Overtaken,
}

/// A database that is open for reading.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The database, which refuses writes.
    pub db: Db,
    /// Says if commits that are only in the journal are shown.
    pub journal: JournalRead,
}

impl Deployment {
    /// Opens the database for reading. The head of the module says what it shows.
    ///
    /// # Errors
    /// `NotFound` if there is no database; `Invalid` for options that such a database does not take;
    /// `Corrupt`, `Io`.
    pub fn open_to_read(&self, options: &Options, functions: impl Into<Functions>) -> Result<Reading> {
        if crate::bucket::is_absent(&self.url) {
            return Err(self.no_database());
        }
        let env = Env::real();
        let bucket = self.open_bucket(&env)?;
        self.read_in(bucket, options, functions, env)
    }

    /// [`Deployment::open_to_read`] in a bucket that is open.
    ///
    /// # Errors
    /// As there.
    pub fn read_in(
        &self,
        bucket: Arc<dyn Bucket>,
        options: &Options,
        functions: impl Into<Functions>,
        env: Env,
    ) -> Result<Reading> {
        let options = self.options_over(options)?;
        let disk = PosixDisk::new();
        let held = hold(&disk, &self.journal)?;
        let since = env.clock.now();
        let folder = ManifestFolder::new(bucket.clone(), &self.prefix)?;
        let found = folder.read()?.ok_or_else(|| self.no_database())?;
        let state = found.state.as_ref().ok_or_else(|| self.no_database())?;
        let shown = if is_in_objects(found.last.journal) && needs_journal(state) {
            drop(held);
            self.show_objects((&bucket, &env), &folder, found)?
        } else {
            self.show_directory(disk, held, found)?
        };
        let Shown { journal, disk, lock, found, state } = shown;
        debug_assert!(
            lock.is_some() || !needs_journal(&state),
            "a journal that is not here is not looked for"
        );
        let epoch = found.last.epoch;
        let (settings, doors) = (self.settings, env.clone());
        let store = BucketStore::open_to_read(bucket.clone(), &self.prefix, (epoch, since), settings, doors)?;
        let store = Arc::new(store.with_tier(self.open_tier(&env)?));
        let parts = ReadParts {
            address: names::place(bucket.url(), &self.prefix),
            manifest: Arc::new(Manifest::of_reader(found.last.number, &state, found.size())),
            requests: Some(BucketStore::count_requests(&store, None)),
            store,
            lock: terrane_base::sync::Mutex::new(lock),
            until: None,
        };
        let db = Db::read_elsewhere((disk, &self.journal), &options, env, functions, &parts)?;
        Ok(Reading { db, journal })
    }

    /// Shows a journal in a directory.
    fn show_directory(&self, disk: PosixDisk, held: Held, found: Found) -> Result<Shown> {
        let state = found.state.clone().ok_or_else(|| self.no_database())?;
        let (journal, lock) = match held {
            Held::ByWriter => (JournalRead::HasWriter, None),
            Held::Here(lock) if self.is_of(&disk, &found)? => (JournalRead::Whole, Some(lock)),
            _ if !needs_journal(&state) => (JournalRead::Whole, None),
            _ => (JournalRead::Elsewhere, None),
        };
        assert!(lock.is_none() || journal == JournalRead::Whole, "a journal that is replayed is shown");
        let state = match &lock {
            Some(_) => state,
            None => state.apply(&without_journal(&state))?,
        };
        Ok(Shown { journal, disk: Arc::new(disk), lock, found, state })
    }

    /// Returns true if the directory of the journal is that of the manifest's last writer.
    pub(super) fn is_of(&self, disk: &dyn Disk, found: &Found) -> Result<bool> {
        let mark = journal_place::read(disk, &self.journal)?;
        Ok(mark.is_some_and(|mark| [mark.journal, mark.before].contains(&found.last.journal)))
    }

    #[cold]
    pub(super) fn no_database(&self) -> Error {
        let place = names::place(&self.url, &self.prefix);
        let message = format!("there is no database in {place}: correct the address, or write to make one");
        Error::new(Kind::NotFound, message)
    }
}

/// The view of a reader.
pub(super) struct Shown {
    pub(super) journal: JournalRead,
    /// Where the segments lie that are replayed.
    pub(super) disk: Arc<dyn Disk>,
    /// Held against a writer of these segments; `None` if none is replayed.
    pub(super) lock: Option<Box<dyn DiskLock>>,
    /// The manifest.
    pub(super) found: Found,
    /// Its state, without the segments that are not replayed.
    pub(super) state: State,
}

/// Returns true if commits may be in the journal only.
pub(super) fn needs_journal(state: &State) -> bool {
    !(state.segments.is_empty() && state.history.is_empty())
}

/// The directory of the journal, as a reader finds it.
pub(super) enum Held {
    /// A writer has it open.
    ByWriter,
    /// It is here, and no writer opens it as long as this lock is held.
    Here(Box<dyn DiskLock>),
    /// It is not here.
    Missing,
}

pub(super) fn hold(disk: &dyn Disk, dir: &std::path::Path) -> Result<Held> {
    if !disk.exists(dir)? {
        return Ok(Held::Missing);
    }
    match disk.lock_shared(&dir.join(directory::LOCK)) {
        Err(error) if error.kind() == Kind::Busy => Ok(Held::ByWriter),
        held => Ok(held?.map_or(Held::Missing, Held::Here)),
    }
}
