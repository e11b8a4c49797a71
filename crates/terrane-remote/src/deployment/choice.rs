//! Which state of a database is shown for an earlier moment: which manifest object, and how much of the
//! journal (`past.rs` says in which order).

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrane_base::{Error, Kind, Result, SegmentId, SeqNo, TableId};
use terrane_device::{Disk, MemDisk, OpenMode};
use terrane_format::manifest::{Edit, EditOp};
use terrane_levels::State;
use terrane_levels::directory::{JOURNAL, LOCK};

use super::Deployment;
use super::at::At;
use super::follow::{flushed, not_here};
use super::journal::journal_in_bucket;
use super::read::{JournalRead, needs_journal};
use crate::bucket::names;
use crate::clones::Originals;
use crate::journal::{PastJournal, Until, is_in_objects};
use crate::manifest::{Found, PastManifest, without_history, without_journal};
use crate::store::PastObjects;
use crate::{Bucket, JournalFolder, ManifestFolder};

/// The stored objects of a database.
pub(super) struct Past<'a> {
    pub(super) deployment: &'a Deployment,
    pub(super) bucket: &'a Arc<dyn Bucket>,
    pub(super) originals: Originals,
    pub(super) manifest: PastManifest,
    /// The segments that the newest manifest lists.
    pub(super) listed: BTreeSet<SegmentId>,
    pub(super) journals: Option<JournalFolder>,
    pub(super) journal: Option<PastJournal>,
}

/// The choice of what to show.
pub(super) struct Chosen {
    pub(super) found: Found,
    /// Its state, without the segments that are not replayed.
    pub(super) state: State,
    /// Where the segments lie that are replayed.
    pub(super) disk: Arc<dyn Disk>,
    pub(super) commit: SeqNo,
    /// The commit before the one that is shown, if extents have a part of this one, and it is not asked for:
    /// the flush of a table ends with the last record of the table.
    half: Option<SeqNo>,
    pub(super) time: Duration,
    pub(super) journal: JournalRead,
}

/// The error of a moment of which something was deleted. The opening says how far back one can go.
#[cold]
fn gone() -> Error {
    Error::new(Kind::Gone, "something of this moment was deleted")
}

/// The tables that are not dropped.
fn live_tables(state: &State) -> BTreeSet<TableId> {
    state.tables.values().filter(|table| !table.dropped).map(|table| table.id).collect()
}

impl Past<'_> {
    /// The choice for this moment, and the data objects for it.
    ///
    /// # Errors
    /// `Gone` if something of it was deleted; others as [`Deployment::open_at_with`].
    pub(super) fn find(&self, at: At) -> Result<(Chosen, PastObjects)> {
        let chosen = self.choose(at)?;
        if chosen.half.is_some() && matches!(at, At::Commit(_)) {
            return Err(Error::corrupt("the journal has a commit of which an older manifest has a part"));
        }
        let objects = self.objects_of(chosen.found.last.epoch)?;
        self.check_objects(&chosen.state, &objects)?;
        Ok((chosen, objects))
    }

    /// The data objects for states of this epoch.
    ///
    /// # Errors
    /// `Io`, `Busy`.
    pub(super) fn objects_of(&self, epoch: u64) -> Result<PastObjects> {
        let take_overs = self.manifest.take_overs();
        let place = (self.deployment.prefix.as_str(), &self.originals);
        PastObjects::list(&**self.bucket, place, epoch, &take_overs)
    }

    /// Where the database lies, for messages.
    pub(super) fn manifest_place(&self) -> String {
        names::place(self.bucket.url(), &self.deployment.prefix)
    }

    /// The choice for this moment.
    fn choose(&self, at: At) -> Result<Chosen> {
        let number = match at {
            At::Commit(commit) => self.manifest.at_commit(commit)?,
            At::Time(time) => self.manifest.at_time(time),
        };
        let number = number.ok_or_else(gone)?;
        let chosen = self.show(at, self.manifest.read_to(number)?)?;
        match (at, chosen.half) {
            (At::Time(_), _) => Ok(chosen),
            (At::Commit(_), None) => self.before_drops(number, chosen),
            (At::Commit(_), Some(before)) => {
                let number = self.manifest.at_commit(before)?.ok_or_else(gone)?;
                let chosen = self.show(At::Commit(before), self.manifest.read_to(number)?)?;
                self.before_drops(number, chosen)
            }
        }
    }

    /// The choice, or the last manifest before a drop that came behind its last commit. A drop of a table has
    /// no commit number, so the times of the objects decide whether `--at` shows the table; otherwise commits
    /// that are not flushed would hide it.
    fn before_drops(&self, number: u64, chosen: Chosen) -> Result<Chosen> {
        let at = At::Commit(chosen.commit);
        let journal = self.journal.as_ref().filter(|_| chosen.journal == JournalRead::Bucket);
        let Some(journal) = journal else { return Ok(chosen) };
        let segments = (&*chosen.disk, &*self.deployment.journal.join(JOURNAL));
        let Some(next) = journal.object_behind(&chosen.state, segments, chosen.commit)? else {
            return Ok(chosen);
        };
        let first = self.manifest.at_time(next).ok_or_else(gone)?;
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
        // Else it does not have all of the commits: extents that were announced came with a later one, or the
        // times do not fit to those of the objects.
        Ok(if before.commit == chosen.commit { before } else { chosen })
    }

    /// Refuses a journal that is not the one of the manifest.
    pub(super) fn check_journal(&self) -> Result<()> {
        let last = self.manifest.last();
        let Some(folder) = self.journals.as_ref().filter(|_| is_in_objects(last.journal)) else {
            return Ok(());
        };
        let has_fence = self.journal.as_ref().is_some_and(|journal| journal.last.epoch >= last.epoch);
        if has_fence || last.tag.is_take_over() { Ok(()) } else { Err(not_here(folder)) }
    }

    /// Chooses the part of the journal that is shown with it.
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
        if !self.has_journal(journal, &found, &state) && !terrane_base::planted!(OpenCutJournal) {
            return Err(gone());
        }
        let state = state.apply(&without_history(&state))?;
        let disk = MemDisk::new();
        let segments: &Path = &self.deployment.journal.join(JOURNAL);
        disk.create_dir(segments)?;
        disk.open(&self.deployment.journal.join(LOCK), OpenMode::Create, false)?;
        journal.write_segments(&state, &disk, segments)?;
        let state = self.with_void_marks(&found, state, (journal, &disk, segments))?;
        let (commit, half) = self.last_commit(at, &found, (journal, &state), (&disk, segments))?;
        let journal = JournalRead::Bucket;
        Ok(Chosen { found, state, disk: Arc::new(disk), commit, half, time, journal })
    }

    /// Returns true if all is there of the journal that a manifest of this state needs.
    fn has_journal(&self, journal: &PastJournal, found: &Found, state: &State) -> bool {
        // Segments go from the front on: behind one that the newest manifest lists nothing was deleted.
        let is_listed = is_in_objects(self.manifest.last().journal)
            && state.segments.keys().next().is_some_and(|first| self.listed.contains(first));
        let is_newest = found.last.number == self.manifest.newest();
        is_newest || is_listed || journal.has_all_of(state, flushed(state))
    }

    /// The state with what a later manifest says of extents that were announced and did not come: commits
    /// behind the announcement were acknowledged before that. Of extents that came, the manifest that has
    /// them is the one of the first commit with them.
    fn with_void_marks(
        &self,
        found: &Found,
        state: State,
        (journal, disk, segments): (&PastJournal, &dyn Disk, &Path),
    ) -> Result<State> {
        let Some(mark) = journal.open_mark(&state, (disk, segments))? else { return Ok(state) };
        let mut void = BTreeSet::new();
        self.manifest.walk(&mut |later, _| {
            let marks = later.state.iter().filter(|_| later.last.number > found.last.number);
            void.extend(marks.flat_map(|state| state.void_marks.iter().copied()));
            Ok(true)
        })?;
        debug_assert!(mark > state.last_seq(), "what the extents have is decided");
        let ops = void.range(mark..).map(|seq| EditOp::VoidMark { seq: *seq }).collect();
        state.apply(&Edit { ops })
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

    /// Refuses a state of which a data object was deleted. One that the newest state names as well was lost:
    /// that is damage, as which the store reports it.
    fn check_objects(&self, state: &State, objects: &PastObjects) -> Result<()> {
        let missing = objects.missing(state);
        if missing.is_empty() {
            return Ok(());
        }
        // Read now: what was missing in the list was deleted before.
        let newest = ManifestFolder::new(self.bucket.clone(), &self.deployment.prefix)?.read()?;
        let newest = newest.and_then(|newest| newest.state);
        let is_named = |file: &u32| newest.iter().flat_map(State::extents).any(|(id, _)| id.file == *file);
        if missing.iter().any(is_named) { Ok(()) } else { Err(gone()) }
    }
}
