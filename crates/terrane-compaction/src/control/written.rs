//! The extents that a job writes: their origin, and their handles until they are installed.

use std::sync::Arc;

use terrane_base::Result;
use terrane_format::extent::{ExtentMeta, Origin};
use terrane_format::manifest::Place;
use terrane_storage::Store;
use terrane_table::{Extent, ExtentWriter, FreshExtents};

use super::JobControl;

impl JobControl {
    /// Makes the extents that the job writes say where they come from. The job sets level and what they
    /// replace.
    pub fn write_as(&self, origin: Origin) {
        debug_assert!(origin.replaced.is_empty(), "a job that begins has replaced nothing");
        // A control belongs to one job: a second call passes the same origin.
        let _ = self.origin.set(origin);
    }

    /// The origin that the extents of the job carry, if they are written to this place.
    pub(crate) fn origin(&self, target: Place) -> Option<Origin> {
        let level = match target {
            Place::Level(level) => level,
            Place::Run(_) | Place::Values => 0,
        };
        self.origin.get().map(|origin| Origin { level, ..origin.clone() })
    }

    /// Makes the job keep filters and index blocks of what it writes in a cache. No effect where another
    /// machine does the job: there is no reader.
    pub fn keep_in(&self, fresh: FreshExtents) {
        debug_assert!(self.work().bytes_written == 0, "what the job has written is not kept");
        // As above.
        let _ = self.fresh.set(fresh);
    }

    /// The handles of what the job has written since the last call and kept.
    #[must_use]
    pub fn take_fresh(&self) -> Vec<Arc<Extent>> {
        let fresh = self.fresh.get().map(FreshExtents::take).unwrap_or_default();
        debug_assert!(
            fresh.iter().all(|extent| !extent.is_obsolete()),
            "an extent leaves the tree before it came"
        );
        fresh
    }

    /// Finishes the extent of `writer`, as [`ExtentWriter::finish`], and keeps it. `is_last`: no deeper level
    /// has any of its keys.
    pub(crate) fn finish(
        &self,
        writer: &mut ExtentWriter,
        store: &dyn Store,
        is_last: bool,
    ) -> Result<ExtentMeta> {
        debug_assert!(!writer.is_empty(), "an extent has an entry");
        self.spend(writer.estimated_bytes() as u64)?;
        let meta = writer.finish_showing(store, |meta, bytes| {
            if let Some(fresh) = self.fresh.get() {
                fresh.keep(meta, bytes, is_last);
            }
        })?;
        debug_assert!(writer.is_empty(), "the next extent begins empty");
        Ok(meta)
    }
}
