//! A job in parts publishes its output from time to time, between two extents of its target: the extents
//! before that point are replaced, and their slots are freed while the job continues.
//!
//! 1. An extent of another input goes with the part behind which all of its entries are in the output. If the
//!    job ends early, a later one begins there.
//! 2. An extent that the end of a part divides stays. Its entries in front of that exist twice meanwhile,
//!    under the same numbers, and reads give the same results. So do newer extents over its keys stay, which
//!    go on hiding what it has. A job that is ended behind its first part each time may write the same part
//!    each time. A job whose filter may change rows has no parts, unless its target is its only input
//!    ([`JobSpec::filtered_by`](crate::JobSpec::filtered_by)).
//!
//! If the job ends early, nothing is lost and nothing has to be undone.

use terrane_base::{Cursor, Result, verify};
use terrane_format::extent::ExtentMeta;
use terrane_format::manifest::Place;

use super::output::{Behind, Committed};
use super::source::{RunSource, Source, SourceState};
use super::{Merge, reuse};
use crate::job::{JobResult, Removed, Work};

/// Publishes a finished part of a job.
pub(crate) type Publish<'p> = dyn FnMut(JobResult) -> Result<()> + 'p;

impl<'a, C: Cursor> Merge<'a, '_, C> {
    /// Returns true if a part ends here: enough was written and the current extent is worth a slot, or far
    /// more than enough was written, and no extent of the target is half merged.
    pub(super) fn ends_part(&self, winner: usize) -> bool {
        if !self.sink.ranges.is_empty() && !terrane_base::planted!(PartOfRangeDeletes) {
            // A part would have to contain the rest of the extents that it replaces.
            return false;
        }
        debug_assert!(self.sources[winner].key().is_some(), "a source at its end does not go first");
        let open_bytes = self.sink.output.open_bytes() as u64;
        let open_values = self.sink.output.values.open_bytes() as u64;
        let written = self.sink.work.bytes_written + open_bytes + open_values;
        if written < self.part_end {
            return false;
        }
        let is_late = written >= self.part_end.saturating_add(self.spec.part_bytes);
        let is_inside = self
            .target_run()
            .is_some_and(|run| matches!(run.state(), SourceState::Block | SourceState::Entry));
        (open_bytes == 0 || reuse::is_nearly_a_slot(self.spec, open_bytes) || is_late)
            && (!is_inside || terrane_base::planted!(PartWithinExtent))
            && self.sources[winner]
                .key()
                .is_some_and(|key| !self.sink.is_at(key) || terrane_base::planted!(PartBetweenVersions))
    }

    /// The least key that was not merged yet.
    pub(super) fn next_key(&self) -> Option<Vec<u8>> {
        let collation = self.spec.collation();
        debug_assert!(!self.sink.waits(), "a key that waits was not merged, and comes before all others");
        let keys = self.sources.iter().filter_map(Source::key);
        keys.reduce(|least, key| if collation.lt(key, least) { key } else { least }).map(<[u8]>::to_vec)
    }

    /// The input that belongs to the target.
    fn target_run(&self) -> Option<&RunSource<'a>> {
        let mut runs = self.sources.iter().filter_map(Source::as_run);
        runs.find(|run| run.input().place == self.spec.target)
    }

    /// The extents of each input that are in the output as a whole since the last part: all of the target's,
    /// and those of the others behind which no older input has versions left that they hide.
    fn take_passed(&mut self) -> Vec<(Place, &'a [ExtentMeta])> {
        let (collation, target) = (self.spec.collation(), self.spec.target);
        debug_assert!(self.removed.len() == self.sources.len(), "each source is counted");
        let (mut passed, mut stays_from) = (Vec::new(), None::<&'a [u8]>);
        for (source, removed) in self.sources.iter().zip(&mut self.removed).rev() {
            let Some(run) = source.as_run() else { continue };
            let extents = &run.input().extents;
            assert!(run.consumed() >= *removed, "{} extents are consumed, {removed} removed", run.consumed());
            let is_passed = |meta: &&ExtentMeta| {
                stays_from.is_none_or(|first| collation.lt(&meta.largest, first))
                    || terrane_base::planted!(PartUnhidesOlder)
            };
            let mine = &extents[*removed..run.consumed()];
            let mine = &mine[..mine.iter().take_while(is_passed).count()];
            *removed += mine.len();
            passed.push((run.input().place, mine));
            let first_left = extents.get(*removed).map(|meta| &*meta.smallest);
            if let Some(first) = first_left.filter(|_| run.input().place != target) {
                stays_from = Some(stays_from.map_or(first, |other| collation.min(other, first)));
            }
        }
        passed
    }

    /// The output since the last part, and the extents that it replaces.
    pub(super) fn take_part(&mut self) -> Result<JobResult> {
        self.sink.emit_waiting()?;
        let next = self.next_key();
        let behind = next.as_deref().map_or(Behind::Nothing, Behind::Key);
        let Committed { mut added, relinked, values } =
            self.sink.output.commit_part(behind, &mut self.sink.work)?;
        self.part_end = self.sink.work.bytes_written.saturating_add(self.spec.part_bytes);
        let target = self.spec.target;
        added.retain(|meta| !relinked.contains(&meta.id));
        let passed = self.take_passed();
        let each = passed.into_iter().flat_map(|(place, metas)| metas.iter().map(move |meta| (place, meta)));
        let replaced = each.filter(|(_, meta)| !relinked.contains(&meta.id));
        let removed = replaced.map(|(place, meta)| Removed::of(place, meta)).collect();
        let (work, table) = (Work::default(), self.spec.table);
        let part =
            JobResult { table, target, removed, added, values, relinked: Vec::new(), work, next: None };
        verify!(part.check());
        Ok(part)
    }
}
