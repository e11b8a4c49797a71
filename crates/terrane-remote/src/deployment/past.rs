//! Opens a database of a bucket as it was at an earlier moment, for reading.
//!
//! 1. list the objects of the manifest, then read those of the journal: it has all records that this manifest
//!    records as flushed 2. choose the object of the manifest: the last one before the first that is later
//!    than the moment 3. choose the last commit that is shown, and replay the journal up to it 4. list the
//!    data objects: each file that the state names must be there.
//!
//! Nothing is written, and nothing is kept from being deleted. The objects of a moment are there as long as
//! it is not older than the age of garbage; `docs/design/0040-elastic.md` says why. A deleted object is the
//! error `Gone`, here or at a later read.

use std::sync::Arc;
use std::time::Duration;

use terrane::Db;
use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::sync::Mutex;
use terrane_base::{Error, Functions, Kind, Result, SeqNo};
use terrane_engine::ReadParts;
use terrane_levels::Manifest;
use terrane_levels::directory::LOCK;

use super::Deployment;
use super::at::At;
use super::choice::{Chosen, Past};
use super::journal::bucket_of;
use super::read::JournalRead;
use crate::bucket::names;
use crate::clones::Originals;
use crate::store::FollowedStore;
use crate::{Bucket, BucketStore, JournalFolder, ManifestFolder};

/// Readings until a missing object counts as deleted for good.
const READINGS: u32 = 4;

/// A database as it was.
#[derive(Clone, Debug)]
pub struct Earlier {
    /// The database, which refuses writes.
    pub db: Db,
    /// The last commit that is shown. Where the journal is not shown, up to this one all tables have
    /// everything, and some may have more.
    pub commit: SeqNo,
    /// When the object of the manifest was created that it shows, since the Unix epoch.
    pub time: Duration,
    /// The part of the journal that is shown: [`JournalRead::Bucket`], [`JournalRead::Elsewhere`] or
    /// [`JournalRead::Whole`].
    pub journal: JournalRead,
}

impl Deployment {
    /// Opens the database as it was at an earlier moment, for reading. It takes nothing over and writes
    /// nothing.
    ///
    /// With the journal in a bucket it shows what was committed up to that moment. Otherwise it shows the
    /// newest state that the bucket has up to that moment: what was flushed. A time is compared with those of
    /// objects by the clock of the object store. A moment that is not older than `garbage_age_s` can be
    /// opened, and be read for as long as it is not (unless the journal is too long to be kept so long, see
    /// `garbage_objects_max` of [`ObjectJournalSettings`](crate::ObjectJournalSettings)); an older one as far
    /// as nothing was deleted yet.
    ///
    /// ```
    /// use terrane_remote::{At, BucketJournal, Deployment, ObjectJournalSettings};
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// let bucket = dir.path().join("bucket");
    /// let journal = BucketJournal { url: None, settings: ObjectJournalSettings::default() };
    /// let deployment = Deployment {
    ///     bucket_journal: Some(journal),
    ///     ..Deployment::new(dir.path().join("journal"), format!("file://{}", bucket.display()))
    /// };
    /// let db = deployment.open()?;
    /// db.put("k", "v")?;
    /// let first = db.snapshot().seq();
    /// db.delete("k")?;
    /// db.sync()?;
    /// let earlier = deployment.open_at(At::Commit(first))?;
    /// assert_eq!(earlier.db.get("k")?.expect("it was there"), "v");
    /// # Ok::<(), terrane_base::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Deployment::open_at_with`].
    pub fn open_at(&self, at: At) -> Result<Earlier> {
        self.open_at_with(at, &Options::default(), Functions::default())
    }

    /// [`Deployment::open_at`] with options, over which those of the file count, and functions that tables
    /// name.
    ///
    /// # Errors
    /// `Gone`, with the earliest moment that can be opened, if what the moment needs was deleted; `NotFound`
    /// if there is no database; `Invalid` for options that such a database does not take, and for a commit
    /// that the journal in the bucket does not have yet; `Corrupt`, `Io`.
    pub fn open_at_with(
        &self,
        at: At,
        options: &Options,
        functions: impl Into<Functions>,
    ) -> Result<Earlier> {
        if crate::bucket::is_absent(&self.url) {
            return Err(self.no_database());
        }
        let env = Env::real();
        let bucket = self.open_bucket(&env)?;
        self.at_in(bucket, at, options, functions, env)
    }

    /// [`Deployment::open_at_with`] in a bucket that is open.
    ///
    /// # Errors
    /// As there.
    pub fn at_in(
        &self,
        bucket: Arc<dyn Bucket>,
        at: At,
        options: &Options,
        functions: impl Into<Functions>,
        env: Env,
    ) -> Result<Earlier> {
        let options = self.options_over(options)?;
        let functions = functions.into();
        let (moment, parts) = self.looked((&bucket, at), &env, || self.look_back(&bucket, at, &env))?;
        let db = Db::read_elsewhere((moment.disk, &self.journal), &options, env, functions, &parts)?;
        // It ends before extents that were announced and not decided then.
        let is_replayed = moment.journal == JournalRead::Bucket;
        let commit = if is_replayed { db.snapshot().seq() } else { moment.commit };
        Ok(Earlier { db, commit, time: moment.time, journal: moment.journal })
    }

    /// The result of `look` for a moment; it looks again if an object was deleted meanwhile.
    ///
    /// # Errors
    /// As [`Deployment::open_at_with`].
    pub(super) fn looked<T>(
        &self,
        (bucket, at): (&Arc<dyn Bucket>, At),
        env: &Env,
        look: impl Fn() -> Result<Option<T>>,
    ) -> Result<T> {
        let mut reading = 1;
        loop {
            match look() {
                // An object was deleted while this was read.
                Err(error) if error.kind() == Kind::NotFound && reading < READINGS => reading += 1,
                // The earliest moment is looked for in the present objects.
                Err(error) if error.kind() == Kind::Gone => match self.refusal(bucket, at, env) {
                    Err(error) if error.kind() == Kind::NotFound && reading < READINGS => reading += 1,
                    refusal => return Err(refusal.unwrap_or_else(|error| error)),
                },
                Err(error) if error.kind() == Kind::NotFound => {
                    let message = "the bucket lists an object that is missing: restore the bucket";
                    return Err(error.context(message).with_kind(Kind::Corrupt));
                }
                looked => return looked?.ok_or_else(|| self.no_database()),
            }
        }
    }

    /// The error for a moment of which something was deleted.
    ///
    /// # Errors
    /// `NotFound` if an object was deleted while this was read; `Corrupt`, `Io`.
    #[cold]
    fn refusal(&self, bucket: &Arc<dyn Bucket>, at: At, env: &Env) -> Result<Error> {
        self.past(bucket, env)?.ok_or_else(|| self.no_database())?.too_early(at)
    }

    /// The stored objects of the database; `None` if there is no database.
    pub(super) fn past<'a>(&'a self, bucket: &'a Arc<dyn Bucket>, env: &Env) -> Result<Option<Past<'a>>> {
        let manifest = ManifestFolder::new(bucket.clone(), &self.prefix)?.past()?;
        let Some(manifest) = manifest else { return Ok(None) };
        let journals = match &self.bucket_journal {
            Some(journal) => Some(JournalFolder::new(bucket_of(journal, bucket, env)?, &self.prefix)?),
            None => None,
        };
        let journal = journals.as_ref().map(JournalFolder::past).transpose()?.flatten();
        let newest = manifest.read_to(manifest.newest())?;
        let listed = newest.state.iter().flat_map(|state| state.segments.keys().copied()).collect();
        let originals = Originals::read(bucket, &self.prefix, env)?;
        let past = Past { deployment: self, bucket, originals, manifest, listed, journals, journal };
        past.check_journal()?;
        Ok(Some(past))
    }

    fn look_back(&self, bucket: &Arc<dyn Bucket>, at: At, env: &Env) -> Result<Option<(Chosen, ReadParts)>> {
        let Some(past) = self.past(bucket, env)? else { return Ok(None) };
        let (chosen, objects) = past.find(at)?;
        let found = &chosen.found;
        let tier = self.open_tier(env)?;
        let store = FollowedStore::open_past(bucket.clone(), &self.prefix, self.settings, tier, env.clone())?;
        let store = Arc::new(store);
        store.take_past(&chosen.state, found.last.number, &objects)?;
        let is_replayed = chosen.journal == JournalRead::Bucket;
        assert!(
            is_replayed || chosen.state.segments.is_empty(),
            "segments that are not replayed are not looked for"
        );
        let lock = chosen.disk.lock_shared(&self.journal.join(LOCK));
        let parts = ReadParts {
            address: names::place(bucket.url(), &self.prefix),
            manifest: Arc::new(Manifest::of_reader(found.last.number, &chosen.state, found.size())),
            requests: Some(BucketStore::count_requests(&store, None)),
            store,
            lock: Mutex::new(if is_replayed { lock? } else { None }),
            until: is_replayed.then_some(chosen.commit),
        };
        Ok(Some((chosen, parts)))
    }
}
