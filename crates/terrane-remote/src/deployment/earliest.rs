//! Which earlier state of a database is the first that can be opened, for the error of one before.

use std::time::Duration;

use terrane_base::{Error, Kind, Result, SeqNo};

use super::at::{At, shown};
use super::follow::flushed;
use super::past::Past;
use super::read::needs_journal;
use crate::bucket::names;
use crate::journal::{PastJournal, is_in_objects};
use crate::store::PastObjects;

impl Past<'_> {
    /// The error for a moment of which something was deleted.
    #[cold]
    pub(super) fn too_early(&self, at: At) -> Error {
        let place = names::place(self.bucket.url(), &self.deployment.prefix);
        let earliest = match self.earliest() {
            Ok(Some((commit, time))) => {
                format!("the earliest state that can be opened is of commit {commit}, of {}", shown(time))
            }
            Ok(None) => "no earlier state can be opened".to_owned(),
            Err(error) => return error,
        };
        Error::new(
            Kind::Gone,
            format!(
                "no longer kept: {at} of {place}; {earliest}. What its writer replaced is kept for \
                 garbage_age_s ({} s here): raise it to go further back from then on, and copy what is to be \
                 kept for longer",
                self.deployment.settings.garbage_age.as_secs()
            ),
        )
    }

    /// The first state from which on nothing was deleted: its last commit in the extents, and its time.
    fn earliest(&self) -> Result<Option<(SeqNo, Duration)>> {
        let mut earliest = None;
        let newest = self.manifest.read_to(self.manifest.newest())?;
        let mut listed: Option<(u64, PastObjects)> = None;
        self.manifest.walk(&mut |found, time| {
            let Some(state) = &found.state else { return Ok(true) };
            let objects = match listed.take().filter(|(epoch, _)| *epoch == found.last.epoch) {
                Some((_, objects)) => objects,
                None => self.objects(found)?,
            };
            let is_whole = objects.missing(state).is_empty();
            listed = Some((found.last.epoch, objects));
            let journal = self.journal.as_ref().filter(|_| is_in_objects(found.last.journal));
            let is_newest = found.last.number == newest.last.number;
            let is_shown = needs_journal(state) && journal.is_some_and(|journal| journal.last.is_whole);
            let has_all = |journal: &PastJournal| journal.has_all_of(state, flushed(state));
            let can_be_opened = is_whole && (!is_shown || is_newest || journal.is_some_and(has_all));
            let commit = if needs_journal(state) && !is_shown { flushed(state) } else { state.last_seq() };
            debug_assert!(commit <= state.last_seq(), "what is flushed has a number of the state");
            earliest = if can_be_opened { earliest.or(Some((commit, time))) } else { None };
            Ok(true)
        })?;
        Ok(earliest)
    }
}
