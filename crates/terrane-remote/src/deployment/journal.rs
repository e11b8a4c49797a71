//! Opens the journal of a database whose journal lies in a bucket, with the manifest.
//!
//! 1. read the manifest, and check that the journal's objects are those of its last writer 2. empty the
//!    directory of the journal, if it is not the last writer's 3. take the manifest over 4. create the
//!    fence in the journal, after which no writer before acknowledges a commit 5. bring the directory up to
//!    date with the objects.
//!
//! The id of the journal in the manifest says where it lies: it is odd for a directory, even for objects.
//! An id of a directory belongs to one opening of it, so an even one says which directory has what its
//! writer had not given to the bucket yet.

use std::sync::Arc;

use terrane_base::env::Env;
use terrane_base::{Error, Kind, Result};
use terrane_engine::PartsRequest;
use terrane_format::journal_object::JournalObject;
use terrane_format::manifest::{JournalMark, ObjectTag};
use terrane_levels::State;

use super::Deployment;
use crate::journal::{TakeJournal, has_segments, in_objects, is_in_objects, remove_segments};
use crate::manifest::{Found, OpenedManifest, TakeOver, without_history};
use crate::{Bucket, JournalFolder, ManifestFolder, ObjectCommitLog, ObjectJournalSettings};

/// How often an opening begins again because another writer took the manifest over meanwhile.
const ATTEMPTS: u32 = 16;

/// A journal in a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketJournal {
    /// The address of its bucket; `None` if that is the one of manifest and extents.
    pub url: Option<String>,
    /// How it is written.
    pub settings: ObjectJournalSettings,
}

impl BucketJournal {
    /// How it is written in a deployment that keeps garbage for this age: earlier states need the journal as
    /// well.
    pub(super) fn settings_for(&self, garbage_age: std::time::Duration) -> ObjectJournalSettings {
        let replaced_age = self.settings.replaced_age.max(garbage_age);
        ObjectJournalSettings { replaced_age, ..self.settings }
    }

    /// This journal, with another age at which objects that are no longer needed are deleted.
    #[must_use]
    pub(super) fn replaced_after(self, replaced_age: std::time::Duration) -> BucketJournal {
        BucketJournal { settings: ObjectJournalSettings { replaced_age, ..self.settings }, ..self }
    }
}

/// The context of an opening of such a database.
pub(super) struct Opening<'a> {
    pub(super) manifests: &'a ManifestFolder,
    pub(super) journals: JournalFolder,
    /// Where the database lies, as the directory of its journal names it.
    pub(super) address: &'a str,
    pub(super) deployment: &'a Deployment,
    pub(super) settings: ObjectJournalSettings,
}

impl Opening<'_> {
    /// Steps 1 to 5 of the head.
    pub(super) fn run(&self, request: &PartsRequest<'_>) -> Result<(OpenedManifest, Arc<ObjectCommitLog>)> {
        self.settings.check()?;
        let (opened, was_in_objects) = self.take_manifest(request)?;
        let asked = TakeJournal {
            database: opened.state.database,
            epoch: opened.epoch,
            has_segments: !opened.state.segments.is_empty(),
            was_in_objects,
        };
        let fence = self.journals.take_over(&asked, &*request.env.random)?;
        let (disk, dir) = request.segments;
        assert!(opened.epoch == fence.epoch(), "the fence is of the writer that the manifest named");
        let restored = self.journals.restore(&fence.before, &opened.state, disk, dir)?;
        forget_lost_history(&opened, request)?;
        let log = ObjectCommitLog::open(self.journals.clone(), &fence, restored, self.settings, request.env)?;
        if log.is_crowded() {
            // What the directory has and no object has comes next, and a service that is full would refuse
            // it. Where nothing can go that says so.
            let _ = log.collect_garbage();
        }
        Ok((opened, Arc::new(log)))
    }

    /// Steps 1 to 3; also returns whether the journal lay in objects.
    fn take_manifest(&self, request: &PartsRequest<'_>) -> Result<(OpenedManifest, bool)> {
        for _ in 0..ATTEMPTS {
            let found = self.manifests.read()?;
            let found_id = found.as_ref().map(|found| found.last.journal);
            let mark = self.mark_for(found.as_ref(), request)?;
            let asked = PartsRequest { journal: &mark, new: request.new.clone(), ..*request };
            let taking = TakeOver { abandoned: self.deployment.abandon, ..TakeOver::new(&asked) }
                .kept_for(self.deployment.settings.garbage_age);
            match self.manifests.take_over(&taking) {
                // Not what was checked, if another writer was faster.
                Err(error) if error.kind() == Kind::Invalid => {
                    let again = self.manifests.read()?.map(|found| found.last.journal);
                    if again == found_id {
                        return Err(error);
                    }
                }
                taken => return taken.map(|taken| (taken, found_id.is_some_and(is_in_objects))),
            }
        }
        Err(Error::new(
            Kind::Busy,
            format!("other writers take over {} without end: stop them", self.address),
        ))
    }

    /// The mark with which the manifest is taken over: steps 1 and 2.
    fn mark_for(&self, found: Option<&Found>, request: &PartsRequest<'_>) -> Result<JournalMark> {
        let own = request.journal;
        let mark = |before| JournalMark { journal: in_objects(own.journal), before, address: String::new() };
        let Some((found, state)) = found.and_then(|found| Some((found, found.state.as_ref()?))) else {
            return Ok(mark(own.before));
        };
        let last = found.last.journal;
        let is_ours = is_of(own, last);
        if !is_in_objects(last) {
            // As for any journal in a directory: the opening needs it, or gives it up.
            return Ok(mark(if is_ours { last } else { own.before }));
        }
        if self.deployment.abandon == Some(last) {
            return Err(Error::invalid(
                "key \"abandon\" of [journal]: that journal lies in a bucket, and nothing of it is given up",
            ));
        }
        self.check_objects(found, state, is_ours)?;
        if !is_ours && !terrane_base::planted!(KeepOldSegments) {
            self.empty_directory(request)?;
        }
        Ok(mark(last))
    }

    /// Checks that the objects of the journal are those of the manifest's last writer.
    fn check_objects(&self, found: &Found, state: &State, is_ours: bool) -> Result<()> {
        let last = self.journals.chain()?.last.map(|(last, _)| last);
        if let Some(last) = &last {
            self.journals.check_database(last, state.database)?;
        }
        if state.segments.is_empty() {
            return Ok(());
        }
        let is_there = match last {
            Some(last) => has_fence(found, &last),
            None => !has_written(found) && is_ours,
        };
        if is_there && !is_ours && !last.is_some_and(|last| last.is_whole) {
            return Err(Error::invalid(format!(
                "the journal of the database in {} is being moved from a directory into the bucket: open the \
                 database with that directory",
                self.address
            )));
        }
        if is_there {
            return Ok(());
        }
        Err(Error::corrupt(format!(
            "the journal of the database in {} is not in {}: its last writer has epoch {}, and there is {}; \
             correct the address, or restore the bucket",
            self.address,
            self.journals.place(),
            found.last.epoch,
            last.map_or("no object".to_owned(), |last| format!("an object of epoch {}", last.epoch)),
        )))
    }

    /// Removes the segments of a directory that is not the last writer's.
    fn empty_directory(&self, request: &PartsRequest<'_>) -> Result<()> {
        let (disk, dir) = request.segments;
        if !has_segments(disk, dir)? {
            return Ok(());
        }
        if request.journal.address != self.address {
            return Err(Error::invalid(format!(
                "{} has the journal of the database in {}, not of the one in {}: give each a directory of its \
                 own",
                dir.display(),
                request.journal.address,
                self.address
            )));
        }
        remove_segments(disk, dir)
    }
}

/// Returns true if the last writer appended to the manifest, or took it over only. It creates its fence
/// before it appends to the manifest of a database that has a segment.
pub(super) fn has_written(found: &Found) -> bool {
    !matches!(found.last.tag, ObjectTag::TakeOver | ObjectTag::TakeOverWithoutJournal)
}

/// Returns true if the journal's last object may be that of the manifest's last writer.
pub(super) fn has_fence(found: &Found, last: &JournalObject) -> bool {
    !has_written(found) || last.epoch >= found.last.epoch
}

/// Returns true if the directory with this mark is that of the writer that named this id.
pub(super) fn is_of(mark: &JournalMark, journal: u128) -> bool {
    [mark.journal, mark.before].contains(&(journal | 1))
}

/// Forgets the history of a database whose directory does not have its files: objects have live segments
/// only.
fn forget_lost_history(opened: &OpenedManifest, request: &PartsRequest<'_>) -> Result<()> {
    let (disk, dir) = request.segments;
    let mut is_lost = false;
    for kept in opened.state.history.values() {
        is_lost |= !disk.exists(&dir.join(terrane_journal::file_name(kept.spec.file)))?;
    }
    if !is_lost {
        return Ok(());
    }
    opened.manifest.append(&without_history(&opened.state))
}

/// The error of a deployment without the bucket in which the journal of its last writer lies.
#[cold]
pub(super) fn journal_in_bucket(address: &str) -> Error {
    Error::invalid(format!(
        "the journal of the database in {address} lies in a bucket: set in_bucket = true or its url under \
         [journal]"
    ))
}

/// The journal's bucket: its own, or the one of manifest and extents.
pub(super) fn bucket_of(
    journal: &BucketJournal,
    storage: &Arc<dyn Bucket>,
    env: &Env,
) -> Result<Arc<dyn Bucket>> {
    match &journal.url {
        Some(url) => crate::bucket::open_with(url, env, storage.settings()),
        None => Ok(storage.clone()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn journal_objects_of_an_earlier_state_are_kept_as_long_as_its_extents() {
        let journal = BucketJournal { url: None, settings: ObjectJournalSettings::default() };
        let own = journal.settings.replaced_age;
        assert_eq!(journal.settings_for(3 * own).replaced_age, 3 * own);
        assert_eq!(journal.settings_for(Duration::ZERO), journal.settings, "a reader takes that long");
    }
}
