//! The trait that runs jobs, and the compactor of this process.

use std::sync::Arc;

use terrane_base::{Cursor, Entry, Error, Result, SeqNo};
use terrane_format::extent::ExtentMeta;
use terrane_format::range_deletes::Fragment;
use terrane_storage::Store;
use terrane_table::Extent;

use crate::control::JobControl;
use crate::job::{JobKind, JobResult, JobSpec};
use crate::merge::{self, Memory};
use crate::pick::STEP_BYTES;

/// Runs jobs, here or elsewhere.
///
/// An implementer guarantees:
/// 1. The inputs stay unchanged: only the engine removes them, after the result is durable.
/// 2. The extents that a result lists as written are durable when it is returned.
/// 3. After an error nothing that was written stays in the store, except published parts.
pub trait Compactor: Send + Sync {
    /// Runs a job to its end.
    ///
    /// # Errors
    /// `Cancelled` through `control`; `Full` if the store has no space for the output; `Corrupt`, naming file
    /// and offset, if an input is damaged; `Poisoned`, `Io`.
    fn run(&self, spec: &JobSpec, control: &JobControl) -> Result<JobResult>;

    /// Runs a job to its end, and publishes finished parts meanwhile if it [is in
    /// parts](JobSpec::is_in_parts). A part replaces extents of the target, and removes those of other inputs
    /// that are merged as a whole; the final result has the rest, and the work of all parts.
    ///
    /// # Errors
    /// As [`Compactor::run`], and errors of `publish`, which owns the part's extents even then.
    fn run_in_parts(
        &self,
        spec: &JobSpec,
        control: &JobControl,
        publish: &mut dyn FnMut(JobResult) -> Result<()>,
    ) -> Result<JobResult>;
}

/// Opens the extents that a job reads.
pub trait ExtentSource: Send + Sync {
    /// The extent that `meta` describes.
    ///
    /// # Errors
    /// `NotFound` if there is no such extent any more.
    fn extent(&self, meta: &ExtentMeta) -> Result<Arc<Extent>>;
}

/// Opens extents directly from a store, without the cache: a job reads each block once.
#[derive(Clone, Debug)]
struct StoreSource(Arc<dyn Store>);

impl ExtentSource for StoreSource {
    fn extent(&self, meta: &ExtentMeta) -> Result<Arc<Extent>> {
        Ok(Extent::new(meta.clone(), Arc::clone(&self.0)))
    }
}

/// Runs jobs on the calling thread.
#[derive(Clone)]
pub struct LocalCompactor {
    store: Arc<dyn Store>,
    extents: Arc<dyn ExtentSource>,
}

impl LocalCompactor {
    /// A compactor that reads from and writes to `store`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        LocalCompactor { extents: Arc::new(StoreSource(Arc::clone(&store))), store }
    }

    /// A compactor that writes to `store` and opens its inputs through `extents`.
    #[must_use]
    pub fn with_extents(store: Arc<dyn Store>, extents: Arc<dyn ExtentSource>) -> Self {
        LocalCompactor { store, extents }
    }

    /// Merges a range of a global index generation into L1, as planned by [`plan_flush`](crate::plan_flush).
    ///
    /// `cursor` walks the generation, `from` is the first key of the plan. The step ends at the end of the
    /// plan's range, or earlier between two extents after [`STEP_BYTES`] were written; [`JobResult::next`] is
    /// the first key of the next step. Requires: every entry of the cursor is newer than L1's version of its
    /// key, and visible, so that no later snapshot is older.
    ///
    /// # Errors
    /// As [`Compactor::run`].
    pub fn flush_step<C: Cursor>(
        &self,
        spec: &JobSpec,
        cursor: &mut C,
        from: &[u8],
        control: &JobControl,
    ) -> Result<JobResult> {
        assert_eq!(spec.kind, JobKind::Flush, "only a planned flush merges memory into L1");
        let memory = Memory { cursor, from, step_bytes: STEP_BYTES, ranges: Vec::new() };
        merge::run(spec, self.place(control), Some(memory), None)
    }

    /// Writes a whole global index generation as an overflow run, as planned by
    /// [`plan_dump`](crate::plan_dump). `ranges` are its range deletes, in any order; they may overlap and
    /// repeat.
    ///
    /// # Errors
    /// As [`Compactor::run`].
    pub fn dump_run<C: Cursor>(
        &self,
        spec: &JobSpec,
        cursor: &mut C,
        ranges: Vec<Fragment>,
        control: &JobControl,
    ) -> Result<JobResult> {
        assert_eq!(spec.kind, JobKind::Dump, "only a planned dump makes a run");
        let memory = Memory { cursor, from: &[], step_bytes: u64::MAX, ranges };
        merge::run(spec, self.place(control), Some(memory), None)
    }

    fn place<'a>(&'a self, control: &'a JobControl) -> merge::MergeEnv<'a> {
        let (extents, store) = (&*self.extents, &*self.store);
        merge::MergeEnv { extents, store, control }
    }
}

impl Compactor for LocalCompactor {
    fn run(&self, spec: &JobSpec, control: &JobControl) -> Result<JobResult> {
        refuse_memory(spec)?;
        let result = merge::run::<NoEntries>(spec, self.place(control), None, None)?;
        debug_assert!(result.next.is_none(), "only a flush has a next step");
        Ok(result)
    }

    fn run_in_parts(
        &self,
        spec: &JobSpec,
        control: &JobControl,
        publish: &mut dyn FnMut(JobResult) -> Result<()>,
    ) -> Result<JobResult> {
        refuse_memory(spec)?;
        let result = merge::run::<NoEntries>(spec, self.place(control), None, Some(publish))?;
        debug_assert!(result.next.is_none(), "only a flush has a next step");
        Ok(result)
    }
}

fn refuse_memory(spec: &JobSpec) -> Result<()> {
    if matches!(spec.kind, JobKind::Flush | JobKind::Dump) {
        return Err(Error::invalid(format!("a {} job needs its entries from memory", spec.kind)));
    }
    Ok(())
}

/// The cursor of a job without entries in memory.
struct NoEntries;

impl Cursor for NoEntries {
    fn entry(&self) -> Option<Entry<'_>> {
        None
    }

    fn seek(&mut self, _key: &[u8], _seq: SeqNo) -> Result<()> {
        Ok(())
    }

    fn seek_before(&mut self, _key: &[u8]) -> Result<()> {
        Ok(())
    }

    fn seek_first(&mut self) -> Result<()> {
        Ok(())
    }

    fn seek_last(&mut self) -> Result<()> {
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        Ok(())
    }
}
