//! Which earlier state of a database is the first that can be opened, for the error of one before.

use std::time::Duration;

use terrane_base::{Error, Kind, Result, SeqNo};
use terrane_levels::State;

use super::at::{At, shown};
use super::choice::Past;
use super::read::JournalRead;
use crate::bucket::names;

impl Past<'_> {
    /// The error for a moment of which something was deleted.
    ///
    /// # Errors
    /// As [`Past::find`].
    #[cold]
    pub(super) fn too_early(&self, at: At) -> Result<Error> {
        let place = names::place(self.bucket.url(), &self.deployment.prefix);
        let earliest = match self.earliest()? {
            Some((commit, time)) => {
                format!("the earliest state that can be opened is of commit {commit}, of {}", shown(time))
            }
            None => "no earlier state can be opened".to_owned(),
        };
        Ok(Error::new(
            Kind::Gone,
            format!(
                "no longer kept: {at} of {place}; {earliest}. What its writer replaced is kept for \
                 garbage_age_s ({} s here): raise it to go further back from then on, and copy what is to be \
                 kept for longer",
                self.deployment.settings.garbage_age.as_secs()
            ),
        ))
    }

    /// The first state that can be opened: its commit, and its time. Objects are deleted from the front on,
    /// so it is looked for by halves, first among the states of the manifest, then among the commits between
    /// two of them. A state that is returned was opened.
    fn earliest(&self) -> Result<Option<(SeqNo, Duration)>> {
        let Some(mut earliest) = self.opened(At::Time(Duration::MAX))? else { return Ok(None) };
        let mut states = Vec::new();
        self.manifest.walk(&mut |found, _| {
            states.extend(found.state.as_ref().map(State::last_seq));
            Ok(true)
        })?;
        states.retain(|commit| *commit < earliest.0);
        states.dedup();
        // All up to `below` cannot be opened, `to` can.
        let (mut below, mut to) = (None, earliest.0);
        let mut left = &states[..];
        while let Some(middle) = left.get(left.len() / 2) {
            match self.opened(At::Commit(*middle))? {
                Some(found) => (earliest, to, left) = (found, *middle, &left[..left.len() / 2]),
                None => (below, left) = (Some(*middle), &left[left.len() / 2 + 1..]),
            }
        }
        let Some(mut below) = below else { return Ok(Some(earliest)) };
        while to.0 - below.0 > 1 {
            let middle = SeqNo(below.0.midpoint(to.0));
            match self.opened(At::Commit(middle))? {
                Some(found) => (earliest, to) = (found, middle),
                None => below = middle,
            }
        }
        debug_assert!(below < to, "the search ends between two commits");
        Ok(Some(earliest))
    }

    /// The commit by which the state of a moment is opened, and its time; `None` if it cannot be opened.
    fn opened(&self, at: At) -> Result<Option<(SeqNo, Duration)>> {
        let (chosen, _) = match self.find(at) {
            Err(error) if matches!(error.kind(), Kind::Gone | Kind::Corrupt) => return Ok(None),
            found => found?,
        };
        let commit = match at {
            // A commit of which another table has a part is not shown.
            _ if chosen.journal == JournalRead::Bucket => chosen.commit,
            At::Commit(commit) => commit,
            At::Time(_) => chosen.state.last_seq(),
        };
        Ok(Some((commit, chosen.time)))
    }
}
