//! The end of an output, or of a part of it: everything is written and durable.

use terrane_base::Result;

use super::{Behind, Committed, Output};
use crate::job::Work;

impl Output<'_> {
    /// Makes everything durable and returns it.
    pub(in crate::merge) fn commit(mut self, behind: Behind<'_>, work: &mut Work) -> Result<Committed> {
        let committed = self.commit_part(behind, work)?;
        debug_assert!(self.added.is_empty() && self.relinked.is_empty(), "the result has all extents");
        self.is_committed = true;
        Ok(committed)
    }

    /// Makes the output so far durable and returns it. Requires: later additions come behind it.
    pub(in crate::merge) fn commit_part(&mut self, behind: Behind<'_>, work: &mut Work) -> Result<Committed> {
        self.divide_taken(None, work)?;
        while self.next_range < self.ranges.len() {
            self.take_range(None, work)?;
        }
        self.close_before(behind, work)?;
        assert!(
            self.next_range >= self.ranges.len() && self.writer.is_empty(),
            "the result is not all of the output"
        );
        let is_late = terrane_base::planted!(SkipValueTableSync);
        if !is_late {
            self.values.close(work)?;
        }
        self.control.check()?;
        if self.added.len() > self.relinked.len() {
            self.store.sync()?;
        }
        if is_late {
            self.values.close(work)?;
        }
        let (added, relinked) = (std::mem::take(&mut self.added), std::mem::take(&mut self.relinked));
        Ok(Committed { added, relinked, values: self.values.take() })
    }
}
