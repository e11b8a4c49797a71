//! A job in parts publishes its output from time to time, between two extents of its target: the extents
//! before that point are replaced, and their slots are freed while the job continues. Its other inputs stay
//! until its end, so their entries exist twice meanwhile, under the same numbers, and reads give the same
//! results: a job whose filter may change rows has no parts, unless its target is its only input. If the job
//! ends early, nothing is lost and nothing has to be undone.

use terrane_base::{Cursor, Result, verify};

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
        if !self.sink.ranges.is_empty() {
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
            && self.sources[winner].key().is_some_and(|key| !self.sink.is_at(key))
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

    /// The output since the last part, and the extents of the target that it replaces.
    pub(super) fn take_part(&mut self) -> Result<JobResult> {
        self.sink.emit_waiting()?;
        let next = self.next_key();
        let behind = next.as_deref().map_or(Behind::Nothing, Behind::Key);
        let Committed { mut added, relinked, values } =
            self.sink.output.commit_part(behind, &mut self.sink.work)?;
        self.part_end = self.sink.work.bytes_written.saturating_add(self.spec.part_bytes);
        let consumed = self.target_run().map_or(0, RunSource::consumed);
        assert!(consumed >= self.replaced, "{consumed} extents are consumed, {} replaced", self.replaced);
        let metas = self.target_run().map_or(&[][..], |run| &run.input().extents[self.replaced..consumed]);
        let target = self.spec.target;
        added.retain(|meta| !relinked.contains(&meta.id));
        let removed = metas.iter().filter(|meta| !relinked.contains(&meta.id));
        let removed = removed.map(|meta| Removed::of(target, meta)).collect();
        self.replaced = consumed;
        let (work, table) = (Work::default(), self.spec.table);
        let part =
            JobResult { table, target, removed, added, values, relinked: Vec::new(), work, next: None };
        verify!(part.check());
        Ok(part)
    }
}
