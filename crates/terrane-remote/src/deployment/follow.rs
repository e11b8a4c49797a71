//! Follows a database of a bucket: any number of processes, each with its own memory, beside any writer.
//!
//! To make a view: 1. read the new objects of the manifest 2. then the new ones of the journal, so it has all
//! records that the manifest records as flushed 3. if there are new extents, list their objects 4. replay the
//! journal's segments that the manifest lists (`terrane_engine::Followed`). Where nothing is new the view
//! stays: one list of the manifest's folder, and one of the journal's if it lies in a bucket.
//!
//! A writer that takes over is the next one in both chains; nothing else changes for a follower. Where the
//! journal is a directory on this machine, its segments are copied from there, as a follower of a directory
//! does; where it is one of another machine, a view has the state of the manifest.

use std::path::Path;
use std::sync::Arc;

use terrane::{Follower, Lag};
use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::sync::Mutex;
use terrane_base::{Error, Functions, Kind, Result, SeqNo};
use terrane_device::{Disk, FollowingDisk, MemDisk, OpenMode, PosixDisk};
use terrane_engine::{Followed, FollowedParts, Moment, ReadParts, last_commit_in};
use terrane_levels::directory::{JOURNAL, LOCK};
use terrane_levels::{Manifest, State, journal_place};

use super::Deployment;
use super::journal::{bucket_of, has_fence, has_written, journal_in_bucket};
use super::read::needs_journal;
use crate::bucket::names;
use crate::journal::{JournalTail, Looked, is_in_objects};
use crate::manifest::{Found, ManifestTail, without_history, without_journal};
use crate::store::FollowedStore;
use crate::{Bucket, BucketStore, JournalFolder, ManifestFolder, Tier};

/// How often a look begins again because objects were deleted under it.
const LOOKS_MAX: u32 = 8;

impl Deployment {
    /// Follows the database: provides views of it, each a read-only [`Db`](terrane::Db) of one moment, and
    /// newer ones on request. Takes nothing over and writes nothing. The head of the module says what a view
    /// shows, `docs/design/0040-elastic.md` how long it can be read.
    ///
    /// ```
    /// use terrane_remote::{BucketJournal, Deployment, ObjectJournalSettings};
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// let bucket = dir.path().join("bucket");
    /// std::fs::create_dir(&bucket).expect("a directory for the bucket");
    /// let journal = BucketJournal { url: None, settings: ObjectJournalSettings::default() };
    /// let writer = Deployment {
    ///     bucket_journal: Some(journal),
    ///     ..Deployment::new(dir.path().join("journal"), format!("file://{}", bucket.display()))
    /// };
    /// let db = writer.open()?;
    /// db.put("k", "v")?;
    /// db.sync()?;
    /// // On any machine.
    /// let replica = Deployment { journal: dir.path().join("elsewhere"), ..writer.clone() };
    /// let follower = replica.open_follower()?;
    /// assert_eq!(follower.view().get("k")?.expect("it was put"), "v");
    /// # Ok::<(), terrane_base::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Deployment::open_follower_with`].
    pub fn open_follower(&self) -> Result<Follower> {
        self.open_follower_with(&Options::default(), Functions::default())
    }

    /// [`Deployment::open_follower`] with options, over which those of the file count, and functions that
    /// tables name.
    ///
    /// # Errors
    /// `NotFound` if there is no database; `Invalid` for options that such a database does not take; `Busy`
    /// if its writer changes it faster than it can be read; `Corrupt`, `Io`.
    pub fn open_follower_with(&self, options: &Options, functions: impl Into<Functions>) -> Result<Follower> {
        if crate::bucket::is_absent(&self.url) {
            return Err(self.no_database());
        }
        let env = Env::real();
        let bucket = self.open_bucket(&env)?;
        self.follow_in(bucket, options, functions, env)
    }

    /// [`Deployment::open_follower_with`] in a bucket that is open.
    ///
    /// # Errors
    /// As there.
    pub fn follow_in(
        &self,
        bucket: Arc<dyn Bucket>,
        options: &Options,
        functions: impl Into<Functions>,
        env: Env,
    ) -> Result<Follower> {
        let options = self.options_over(options)?;
        let journal = self.bucket_journal.as_ref().map(|journal| bucket_of(journal, &bucket, &env));
        let buckets = Buckets { journal: journal.transpose()?, storage: bucket };
        let followed = FollowedDeployment::open(self, buckets, self.open_tier(&env)?, &env)?;
        Follower::open_elsewhere(Arc::new(followed), &options, functions, env)
    }
}

/// The open buckets of a database.
pub(super) struct Buckets {
    pub(super) storage: Arc<dyn Bucket>,
    /// That of the journal, if the deployment has it in a bucket.
    pub(super) journal: Option<Arc<dyn Bucket>>,
}

/// A database of a bucket that is followed.
#[derive(Debug)]
struct FollowedDeployment {
    deployment: Deployment,
    address: String,
    env: Env,
    /// The folder of the journal, if the deployment says that it lies in a bucket.
    journals: Option<JournalFolder>,
    store: Arc<FollowedStore>,
    /// Held while they go on.
    tails: Mutex<Tails>,
}

/// The objects that were read so far.
#[derive(Debug)]
struct Tails {
    manifest: ManifestTail,
    journal: Option<JournalTail>,
    /// Counts what was new.
    count: u64,
}

/// Where a view has the journal from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// Objects, all of which were read.
    Objects,
    /// The directory, which is on this machine.
    Directory,
    /// The manifest needs none.
    NoneNeeded,
    /// Nothing: it is on another machine, or on the way from there.
    Nothing,
}

impl FollowedDeployment {
    fn open(
        deployment: &Deployment,
        buckets: Buckets,
        tier: Option<Arc<Tier>>,
        env: &Env,
    ) -> Result<FollowedDeployment> {
        debug_assert_eq!(buckets.journal.is_some(), deployment.bucket_journal.is_some(), "as the file says");
        let Buckets { storage, journal } = buckets;
        let (prefix, settings) = (&deployment.prefix, deployment.settings);
        let address = names::place(storage.url(), prefix);
        let journals = journal.map(|bucket| JournalFolder::new(bucket, prefix)).transpose()?;
        let folder = ManifestFolder::new(storage.clone(), prefix)?;
        let manifest = ManifestTail::begin(folder)?.ok_or_else(|| deployment.no_database())?;
        let store = Arc::new(FollowedStore::open(storage, prefix, settings, tier, env.clone())?);
        let tails = Mutex::new(Tails { manifest, journal: None, count: 1 });
        let deployment = deployment.clone();
        Ok(FollowedDeployment { deployment, address, env: env.clone(), journals, store, tails })
    }

    /// The bucket of the journal, if it is not the one of manifest and extents.
    fn own_journal_bucket(&self) -> Option<&Arc<dyn Bucket>> {
        let is_own = self.deployment.bucket_journal.as_ref().is_some_and(|journal| journal.url.is_some());
        debug_assert!(!is_own || self.journals.is_some(), "the bucket of the journal is open");
        self.journals.as_ref().filter(|_| is_own).map(JournalFolder::bucket)
    }

    /// Reads the new objects. The journal is then as new as the manifest, or newer.
    fn look(&self, tails: &mut Tails) -> Result<Shown> {
        for _ in 0..LOOKS_MAX {
            let is_new = tails.manifest.go_on()?;
            tails.count += u64::from(is_new);
            let found = tails.manifest.found();
            let state = found.state.as_ref().ok_or_else(|| self.deployment.no_database())?;
            if !is_in_objects(found.last.journal) || !needs_journal(state) {
                tails.journal = None;
                return self.without_objects(found, state);
            }
            let Some(folder) = &self.journals else { return Err(journal_in_bucket(&self.address)) };
            let Some(journal) = &mut tails.journal else {
                tails.journal = match JournalTail::begin(folder.clone(), state) {
                    // A trim that this manifest does not know yet looks like damage.
                    Err(error) if error.kind() == Kind::Corrupt => {
                        if !tails.manifest.go_on()? {
                            return Err(error);
                        }
                        tails.count += 1;
                        continue;
                    }
                    begun => begun?,
                };
                tails.count += 1;
                if tails.journal.is_some() {
                    // The manifest again: it may have become more than these objects have.
                    continue;
                }
                return if has_written(found) { Err(not_here(folder)) } else { Ok(Shown::Nothing) };
            };
            let is_left = is_new && terrane_base::planted!(FollowManifestAlone);
            let looked = if is_left { Ok(Looked::Nothing) } else { journal.go_on() };
            // What was read before the error is new, too.
            let looked = looked.inspect_err(|_| tails.count += 1)?;
            tails.count += u64::from(looked != Looked::Nothing);
            if looked == Looked::Trimmed {
                tails.journal = None;
                continue;
            }
            journal.forget(state);
            if !has_fence(found, journal.last()) {
                return Err(not_here(folder));
            }
            folder.check_database(journal.last(), state.database)?;
            return Ok(if journal.last().is_whole { Shown::Objects } else { Shown::Nothing });
        }
        let message = format!("the journal in {} is deleted faster than it is read: try again", self.address);
        Err(Error::new(Kind::Busy, message))
    }

    /// Shows a journal in a directory, or none.
    fn without_objects(&self, found: &Found, state: &State) -> Result<Shown> {
        if !needs_journal(state) {
            return Ok(Shown::NoneNeeded);
        }
        let mark = journal_place::read(&PosixDisk::new(), &self.deployment.journal)?;
        let is_here = mark.is_some_and(|mark| [mark.journal, mark.before].contains(&found.last.journal));
        Ok(if is_here { Shown::Directory } else { Shown::Nothing })
    }

    /// The state of a view, and where the segments lie that it lists.
    fn journal_of(&self, tails: &Tails, shown: Shown) -> Result<(State, Arc<dyn Disk>)> {
        let state = tails.manifest.found().state.as_ref().ok_or_else(|| self.deployment.no_database())?;
        assert!(shown != Shown::Objects || tails.journal.is_some(), "objects that are shown were read");
        match (shown, &tails.journal) {
            (Shown::Objects, Some(journal)) => {
                let disk = MemDisk::new();
                let segments: &Path = &self.deployment.journal.join(JOURNAL);
                disk.create_dir(segments)?;
                disk.open(&self.deployment.journal.join(LOCK), OpenMode::Create, false)?;
                journal.write_segments(state, &disk, segments)?;
                Ok((state.apply(&without_history(state))?, Arc::new(disk)))
            }
            (Shown::Directory, _) => {
                Ok((state.clone(), Arc::new(FollowingDisk::new(Arc::new(PosixDisk::new())))))
            }
            _ => Ok((state.apply(&without_journal(state))?, Arc::new(MemDisk::new()))),
        }
    }

    /// Returns true if no segment of a view that was copied from the directory has left the manifest.
    fn is_listed(&self, tails: &mut Tails, state: &State) -> Result<bool> {
        tails.count += u64::from(tails.manifest.go_on()?);
        let now = tails.manifest.found().state.as_ref().ok_or_else(|| self.deployment.no_database())?;
        Ok(state.segments.keys().all(|id| now.segments.contains_key(id)))
    }
}

/// Describes the state that a follower would have if it began now; changes nothing.
pub(super) fn describe(deployment: &Deployment, buckets: Buckets, env: &Env) -> Result<String> {
    let folder = ManifestFolder::new(buckets.storage.clone(), &deployment.prefix)?;
    if folder.read()?.is_none_or(|found| found.state.is_none()) {
        return Ok("there is no database to follow yet".to_owned());
    }
    // Without the cache, whose opening would make its files.
    let followed = FollowedDeployment::open(deployment, buckets, None, env)?;
    let mut tails = followed.tails.lock();
    Ok(match followed.look(&mut tails)? {
        Shown::Objects => "has every synced commit, from the journal's objects".to_owned(),
        Shown::Directory => "has every commit: the directory of the journal is on this machine".to_owned(),
        Shown::NoneNeeded => "has every commit: the manifest needs no journal".to_owned(),
        Shown::Nothing => {
            let state = tails.manifest.found().state.as_ref().map(flushed).unwrap_or_default();
            format!(
                "has the flushed records, all up to commit {state}: the journal is in a directory of another machine; \
                 in_bucket = true under [journal] shows synced commits, too"
            )
        }
    })
}

impl Tails {
    fn moment(&self, shown: Shown) -> Moment {
        let of_journal = self.journal.as_ref().map(JournalTail::written).unwrap_or_default();
        Moment {
            count: self.count,
            written: self.manifest.written().max(of_journal),
            has_journal: matches!(shown, Shown::Objects | Shown::Directory),
        }
    }
}

impl Followed for FollowedDeployment {
    fn address(&self) -> &str {
        &self.address
    }

    fn parts(&self, seen: Option<&Moment>) -> Result<Option<FollowedParts>> {
        let mut tails = self.tails.lock();
        let shown = self.look(&mut tails)?;
        assert!(seen.is_none_or(|seen| seen.count <= tails.count), "new objects only add to the count");
        // Only the segments of a directory show whether it has new commits.
        if shown != Shown::Directory && seen.is_some_and(|seen| seen.count == tails.count) {
            return Ok(None);
        }
        if shown == Shown::Nothing && seen.is_some_and(|seen| seen.has_journal) {
            return Err(self.journal_left());
        }
        let (state, disk) = self.journal_of(&tails, shown)?;
        let found = tails.manifest.found();
        self.store.follow(&state, &found.last)?;
        let lock = disk.lock_shared(&self.deployment.journal.join(LOCK));
        let read = ReadParts {
            address: self.address.clone(),
            manifest: Arc::new(Manifest::of_reader(found.last.number, &state, found.size())),
            requests: Some(BucketStore::count_requests(&self.store, self.own_journal_bucket())),
            store: self.store.clone(),
            lock: Mutex::new(if shown == Shown::Objects { lock? } else { None }),
            until: None,
        };
        let has = (shown == Shown::Nothing).then(|| flushed(&state));
        Ok(Some(FollowedParts {
            moment: tails.moment(shown),
            disk,
            dir: self.deployment.journal.clone(),
            read,
            has,
        }))
    }

    fn confirm(&self, parts: &FollowedParts) -> Result<bool> {
        let state = parts.read.manifest.state();
        // A copy of objects does not change.
        let is_of_directory = parts.disk.beneath().is_some() && !state.segments.is_empty();
        if is_of_directory { self.is_listed(&mut self.tails.lock(), &state) } else { Ok(true) }
    }

    fn lag(&self, seen: &Moment, seq: SeqNo) -> Result<Lag> {
        let mut tails = self.tails.lock();
        let shown = self.look(&mut tails)?;
        let now = tails.moment(shown);
        debug_assert!(now.count >= seen.count, "new objects only add to the count");
        let time = now.written.saturating_sub(seen.written);
        if shown == Shown::Nothing {
            let state = tails.manifest.found().state.as_ref().ok_or_else(|| self.deployment.no_database())?;
            let last = state.last_seq();
            let lag = Lag::of(last.0.saturating_sub(seq.0)).with_time(time);
            // A database that was closed in good order says which commit was its last.
            return Ok(if state.clean_close.is_some() { lag } else { lag.at_least() });
        }
        if shown != Shown::Directory && now.count == seen.count {
            return Ok(Lag::of(0).with_time(time));
        }
        let last = self.last_commit(&mut tails, shown)?;
        let lag = Lag::of(last.0.saturating_sub(seq.0));
        // Files of a directory do not say when a commit was made.
        Ok(if shown == Shown::Directory { lag } else { lag.with_time(time) })
    }
}

impl FollowedDeployment {
    /// The error where a view would have less than the one before.
    #[cold]
    fn journal_left(&self) -> Error {
        let message = format!(
            "the journal of {} cannot be read from here any more, so a view would lack commits that were shown: \
             catch up again once its writer has moved it, or open the follower again",
            self.address
        );
        Error::new(Kind::Busy, message)
    }

    fn last_commit(&self, tails: &mut Tails, shown: Shown) -> Result<SeqNo> {
        let journal = &self.deployment.journal.join(JOURNAL);
        for _ in 1..LOOKS_MAX {
            let (state, disk) = self.journal_of(tails, shown)?;
            if state.segments.is_empty() {
                return Ok(state.last_seq());
            }
            let last = last_commit_in(&disk, journal, &state, &self.env);
            if shown != Shown::Directory || self.is_listed(tails, &state)? {
                return last;
            }
        }
        let message = format!("the journal of {} moves on faster than it is read: try again", self.address);
        Err(Error::new(Kind::Busy, message))
    }
}

/// The last commit up to which the extents have all.
pub(super) fn flushed(state: &State) -> SeqNo {
    let tables = state.tables.values().filter(|table| !table.dropped);
    tables.map(|table| state.flushed(table)).min().unwrap_or_default()
}

#[cold]
pub(super) fn not_here(folder: &JournalFolder) -> Error {
    Error::corrupt(format!("the journal is not in {}: correct the address", folder.place()))
}
