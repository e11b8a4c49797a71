//! Opens a database of a bucket as it was at an earlier moment, for reading.
//!
//! 1. list what is there of the manifest, then read what is there of the journal: it has all that this
//!    manifest says is flushed 2. choose the object of the manifest: the last one before the first that is
//!    later than the moment 3. choose the last commit that is shown, and replay the journal up to it 4. list
//!    the data objects: each file that the state names must be there.
//!
//! Nothing is written, and nothing is kept from being deleted. What a moment needs is there as long as it is
//! not older than the age of garbage; `docs/design/0040-elastic.md` says why. What is gone is the error
//! `Gone`, here or at a later read.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrane::Db;
use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::sync::Mutex;
use terrane_base::{Error, Functions, Kind, Result, SeqNo, TableId};
use terrane_device::{Disk, MemDisk, OpenMode};
use terrane_engine::ReadParts;
use terrane_levels::directory::{JOURNAL, LOCK};
use terrane_levels::{Manifest, State};

use super::Deployment;
use super::at::At;
use super::follow::{flushed, not_here};
use super::journal::{bucket_of, journal_in_bucket};
use super::read::{JournalRead, needs_journal};
use crate::bucket::names;
use crate::journal::{PastJournal, Until, is_in_objects};
use crate::manifest::{Found, PastManifest, without_history, without_journal};
use crate::store::{FollowedStore, PastObjects};
use crate::{Bucket, JournalFolder, ManifestFolder};

/// Readings until what is missing counts as deleted for good.
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
    /// What is shown of the journal: [`JournalRead::Bucket`], [`JournalRead::Elsewhere`] or
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
    /// opened, and be read for as long as it is not; an older one as far as nothing was deleted yet.
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
    /// let first = db.put("k", "v")?;
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
        let bucket = crate::bucket::open(&self.url, &env)?;
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
        let mut reading = 1;
        let (moment, parts) = loop {
            match self.look_back(&bucket, at, &env) {
                // An object was deleted while this was read.
                Err(error) if error.kind() == Kind::NotFound && reading < READINGS => reading += 1,
                Err(error) if error.kind() == Kind::NotFound => {
                    let message = "an object is listed, and is not there: restore the bucket";
                    return Err(error.context(message).with_kind(Kind::Corrupt));
                }
                looked => break looked?.ok_or_else(|| self.no_database())?,
            }
        };
        let db = Db::read_elsewhere((moment.disk, &self.journal), &options, env, functions, &parts)?;
        // It ends before extents that were announced and not decided then.
        let is_replayed = moment.journal == JournalRead::Bucket;
        let commit = if is_replayed { db.snapshot().seq() } else { moment.commit };
        Ok(Earlier { db, commit, time: moment.time, journal: moment.journal })
    }

    fn look_back(&self, bucket: &Arc<dyn Bucket>, at: At, env: &Env) -> Result<Option<(Chosen, ReadParts)>> {
        let manifest = ManifestFolder::new(bucket.clone(), &self.prefix)?.past()?;
        let Some(manifest) = manifest else { return Ok(None) };
        let journals = match &self.bucket_journal {
            Some(journal) => Some(JournalFolder::new(bucket_of(journal, bucket, env)?, &self.prefix)?),
            None => None,
        };
        let journal = journals.as_ref().map(JournalFolder::past).transpose()?.flatten();
        let past = Past { deployment: self, bucket, manifest, journals, journal };
        past.check_journal()?;
        let chosen = past.choose(at)?;
        if chosen.half.is_some() && matches!(at, At::Commit(_)) {
            return Err(Error::corrupt("the journal has a commit of which an older manifest has a part"));
        }
        let objects = past.objects(&chosen.found)?;
        let found = &chosen.found;
        past.check_objects(at, &chosen.state, &objects)?;
        let tier = self.open_tier(env)?;
        let store = FollowedStore::open_past(bucket.clone(), &self.prefix, self.settings, tier, env.clone())?;
        store.take_past(&chosen.state, found.last.number, &objects)?;
        let is_replayed = chosen.journal == JournalRead::Bucket;
        assert!(is_replayed || chosen.state.segments.is_empty(), "what is not replayed is not looked for");
        let lock = chosen.disk.lock_shared(&self.journal.join(LOCK));
        let parts = ReadParts {
            address: names::place(bucket.url(), &self.prefix),
            manifest: Arc::new(Manifest::of_reader(found.last.number, &chosen.state, found.size())),
            store: Arc::new(store),
            lock: Mutex::new(if is_replayed { lock? } else { None }),
            until: is_replayed.then_some(chosen.commit),
        };
        Ok(Some((chosen, parts)))
    }
}

/// What is there of a database.
pub(super) struct Past<'a> {
    pub(super) deployment: &'a Deployment,
    pub(super) bucket: &'a Arc<dyn Bucket>,
    pub(super) manifest: PastManifest,
    journals: Option<JournalFolder>,
    pub(super) journal: Option<PastJournal>,
}

/// What is shown.
struct Chosen {
    found: Found,
    /// Its state, without what is not replayed.
    state: State,
    /// Where the segments lie that are replayed.
    disk: Arc<dyn Disk>,
    commit: SeqNo,
    /// The commit before the one that is shown, if extents have a part of this one, and it is not asked for:
    /// the flush of a table ends with the last record of the table.
    half: Option<SeqNo>,
    time: Duration,
    journal: JournalRead,
}

/// The tables that are not dropped.
fn live_tables(state: &State) -> BTreeSet<TableId> {
    state.tables.values().filter(|table| !table.dropped).map(|table| table.id).collect()
}

impl Past<'_> {
    /// What is shown of this moment.
    fn choose(&self, at: At) -> Result<Chosen> {
        let number = match at {
            At::Commit(commit) => self.manifest.at_commit(commit)?,
            At::Time(time) => self.manifest.at_time(time),
        };
        let Some(number) = number else { return Err(self.too_early(at)) };
        let chosen = self.show(at, self.manifest.read_to(number)?)?;
        match (at, chosen.half) {
            (At::Time(_), _) => Ok(chosen),
            (At::Commit(_), None) => self.before_drops(number, chosen),
            (At::Commit(_), Some(before)) => {
                let number = self.manifest.at_commit(before)?.ok_or_else(|| self.too_early(at))?;
                let chosen = self.show(At::Commit(before), self.manifest.read_to(number)?)?;
                self.before_drops(number, chosen)
            }
        }
    }

    /// What is shown, of the last manifest before a drop of a table that came behind its last commit. A drop
    /// has no number of its own, and would be shown with all commits before it that are not flushed, so the
    /// times of the objects decide.
    fn before_drops(&self, number: u64, chosen: Chosen) -> Result<Chosen> {
        let at = At::Commit(chosen.commit);
        let journal = self.journal.as_ref().filter(|_| chosen.journal == JournalRead::Bucket);
        let Some(journal) = journal else { return Ok(chosen) };
        let segments = (&*chosen.disk, &*self.deployment.journal.join(JOURNAL));
        let Some(next) = journal.object_behind(&chosen.state, segments, chosen.commit)? else {
            return Ok(chosen);
        };
        let first = self.manifest.at_time(next).ok_or_else(|| self.too_early(at))?;
        let (mut tables, mut last) = (None, number);
        self.manifest.walk(&mut |found, _| {
            let seen = found.last.number;
            let now = found.state.as_ref().map(live_tables).filter(|_| seen >= first && seen <= number);
            let is_same = now.is_some() && now == *tables.get_or_insert_with(|| now.clone());
            last = if is_same { seen } else { last };
            Ok(seen < first || is_same)
        })?;
        debug_assert!(first <= last || last == number, "nothing before the commit is chosen");
        if last >= number {
            return Ok(chosen);
        }
        let before = self.show(at, self.manifest.read_to(last)?)?;
        // Else it does not list the segment of the commit: the times do not fit to what is in the objects.
        Ok(if before.commit == chosen.commit { before } else { chosen })
    }

    /// Refuses a journal that is not the one of the manifest.
    fn check_journal(&self) -> Result<()> {
        let last = self.manifest.last();
        let Some(folder) = self.journals.as_ref().filter(|_| is_in_objects(last.journal)) else {
            return Ok(());
        };
        let has_fence = self.journal.as_ref().is_some_and(|journal| journal.last.epoch >= last.epoch);
        if has_fence || last.tag.is_take_over() { Ok(()) } else { Err(not_here(folder)) }
    }

    /// What of the journal is shown with it.
    fn show(&self, at: At, found: Found) -> Result<Chosen> {
        let state = found.state.clone().ok_or_else(|| self.deployment.no_database())?;
        let time = self.manifest.time(found.last.number);
        let without = |journal, commit, state| Chosen {
            found: found.clone(),
            state,
            disk: Arc::new(MemDisk::new()),
            commit,
            half: None,
            time,
            journal,
        };
        if !needs_journal(&state) {
            self.check_reached(at, &found, state.last_seq())?;
            return Ok(without(JournalRead::Whole, state.last_seq(), state));
        }
        if is_in_objects(found.last.journal) && self.journals.is_none() {
            return Err(journal_in_bucket(&names::place(self.bucket.url(), &self.deployment.prefix)));
        }
        let journal = self.journal.as_ref().filter(|_| is_in_objects(found.last.journal));
        let Some(journal) = journal.filter(|journal| journal.last.is_whole) else {
            let shown = state.apply(&without_journal(&state))?;
            return Ok(without(JournalRead::Elsewhere, flushed(&state), shown));
        };
        if let Some(folder) = &self.journals {
            folder.check_database(&journal.last, state.database)?;
        }
        let is_newest = found.last.number == self.manifest.newest();
        let has_all = is_newest || journal.has_all_of(&state, flushed(&state));
        if !has_all && !terrane_base::planted!(OpenCutJournal) {
            return Err(self.too_early(at));
        }
        let state = state.apply(&without_history(&state))?;
        let disk = MemDisk::new();
        let segments: &Path = &self.deployment.journal.join(JOURNAL);
        disk.create_dir(segments)?;
        disk.open(&self.deployment.journal.join(LOCK), OpenMode::Create, false)?;
        journal.write_segments(&state, &disk, segments)?;
        let (commit, half) = self.last_commit(at, &found, (journal, &state), (&disk, segments))?;
        let journal = JournalRead::Bucket;
        Ok(Chosen { found, state, disk: Arc::new(disk), commit, half, time, journal })
    }

    /// The last commit of the moment, and the one before it if this one is not asked for. What the manifest
    /// says is flushed was committed before: it belongs to the moment, whatever the times of the journal's
    /// objects are, and so does all of a commit of which a part is flushed.
    fn last_commit(
        &self,
        at: At,
        found: &Found,
        (journal, state): (&PastJournal, &State),
        segments: (&dyn Disk, &Path),
    ) -> Result<(SeqNo, Option<SeqNo>)> {
        let flushed = state.last_seq();
        let whole = journal.commit_of(state, segments, flushed)?.unwrap_or(flushed..=flushed);
        let until = match at {
            At::Commit(commit) => {
                let last = journal.last_commit(state, segments, Until::END)?;
                self.check_reached(at, found, last.max(flushed))?;
                Until { commit, ..Until::END }
            }
            At::Time(time) => Until { object: journal.at_time(time), ..Until::END },
        };
        assert!(whole.contains(&flushed), "a commit has the record by which it was found");
        let half = (*whole.end() > until.commit).then(|| SeqNo(whole.start().0.saturating_sub(1)));
        Ok((journal.last_commit(state, segments, until)?.max(*whole.end()), half))
    }

    /// Refuses a commit that is not there yet.
    fn check_reached(&self, at: At, found: &Found, last: SeqNo) -> Result<()> {
        match at {
            At::Commit(commit) if commit > last && found.last.number == self.manifest.newest() => {
                let place = names::place(self.bucket.url(), &self.deployment.prefix);
                let message =
                    format!("{place} has no {at} yet: the last one that the bucket shows is {last}");
                // Not `NotFound`: nothing was deleted meanwhile.
                Err(Error::invalid(message))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn objects(&self, found: &Found) -> Result<PastObjects> {
        let take_overs = self.manifest.take_overs();
        PastObjects::list(&**self.bucket, &self.deployment.prefix, found.last.epoch, &take_overs)
    }

    /// Refuses a state of which a data object was deleted. One that the newest state names as well was lost:
    /// that is damage, as which the store reports it.
    fn check_objects(&self, at: At, state: &State, objects: &PastObjects) -> Result<()> {
        let missing = objects.missing(state);
        if missing.is_empty() {
            return Ok(());
        }
        // Read now: what was missing in the list was deleted before.
        let newest = ManifestFolder::new(self.bucket.clone(), &self.deployment.prefix)?.read()?;
        let newest = newest.and_then(|newest| newest.state);
        let is_named = |file: &u32| newest.iter().flat_map(State::extents).any(|(id, _)| id.file == *file);
        if missing.iter().any(is_named) { Ok(()) } else { Err(self.too_early(at)) }
    }
}
