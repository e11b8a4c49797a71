//! A job in parts hands over what it has written every now and then, where it stands between two extents of its target:
//! these are replaced so far, and their slots come free while the job goes on. Its other inputs stay until its end, so what
//! they hold is there twice meanwhile, under the same numbers, and whoever reads sees it as before. If the job ends
//! early, nothing is lost and nothing has to be undone.

use terrane_base::{Cursor, Result};

use super::output::Committed;
use super::source::{RunSource, Source, Stand};
use super::{Merge, reuse};
use crate::job::{JobResult, Removed, Work};

/// Who takes in the parts of a job that are done.
pub(crate) type Publish<'p> = dyn FnMut(JobResult) -> Result<()> + 'p;

impl<'a, C: Cursor> Merge<'a, '_, C> {
    /// Whether a part ends here: enough was written, what is open is worth a slot, or far more than enough was written, and
    /// no extent of the target is half done.
    pub(super) fn ends_part(&self, winner: usize) -> bool {
        if !self.sink.ranges.is_empty() {
            // A part would have to have all that is left of those of the extents that it replaces.
            return false;
        }
        let open_bytes = self.sink.output.open_bytes() as u64;
        let written = self.sink.work.bytes_written + open_bytes;
        if written < self.part_end {
            return false;
        }
        let is_late = written >= self.part_end.saturating_add(self.spec.part_bytes);
        let is_inside =
            self.target_run().is_some_and(|run| matches!(run.stand(), Stand::Block | Stand::Entry));
        (open_bytes == 0 || reuse::is_nearly_a_slot(open_bytes) || is_late)
            && (!is_inside || terrane_base::planted!(PartWithinExtent))
            && self.sources[winner].key().is_some_and(|key| !self.sink.is_at(key))
    }

    /// The input that is in the target already.
    fn target_run(&self) -> Option<&RunSource<'a>> {
        let mut runs = self.sources.iter().filter_map(Source::as_run);
        runs.find(|run| run.input().place == self.spec.target)
    }

    /// What was written since the last part, and what it replaces in the target.
    pub(super) fn take_part(&mut self) -> Result<JobResult> {
        self.sink.settle()?;
        let Committed { mut added, relinked } = self.sink.output.commit_part(&mut self.sink.work)?;
        self.part_end = self.sink.work.bytes_written.saturating_add(self.spec.part_bytes);
        let consumed = self.target_run().map_or(0, RunSource::consumed);
        let metas = self.target_run().map_or(&[][..], |run| &run.input().extents[self.replaced..consumed]);
        let target = self.spec.target;
        added.retain(|meta| !relinked.contains(&meta.id));
        let removed = metas.iter().filter(|meta| !relinked.contains(&meta.id));
        let removed = removed.map(|meta| Removed::of(target, meta)).collect();
        self.replaced = consumed;
        let (work, table) = (Work::default(), self.spec.table);
        Ok(JobResult { table, target, removed, added, relinked: Vec::new(), work, next: None })
    }
}
