//! Pieces of background work as others see them: a span of `tracing`, events for listeners, time, failures.
//!
//! A job runs on one thread from beginning to end, and all that it makes part of a tree goes through one
//! function ([`installed`]). So its changes of extents are noted on its thread, only while a listener or a
//! span is registered, for the event of its end.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use terrane_base::{ExtentId, Kind, Result};
use terrane_compaction::{CancelCause, JobControl, JobResult, JobSpec};
use terrane_memtable::GlobalIndex;
use tracing::span::EnteredSpan;

use crate::background::job::Job;
use crate::observe::events::{Event, Flushed, JobBegan, JobEnded, WorkFailed};
use crate::observe::extent_summary::{ExtentSummary, level_number};
use crate::observe::slow_log::micros;
use crate::shared::Shared;

/// A piece of work that is being watched.
pub(crate) struct Watched {
    started: Duration,
    job: u64,
    _span: EnteredSpan,
}

/// The work of a job so far.
#[derive(Debug, Default)]
struct Notes {
    removed: Vec<ExtentId>,
    written: Vec<ExtentSummary>,
    moved: Vec<ExtentSummary>,
    flushed: Option<Flushed>,
}

thread_local! {
    /// Of the job that this thread runs, if there is a listener.
    static NOTES: RefCell<Option<Notes>> = const { RefCell::new(None) };
}

impl Watched {
    /// To be called before a piece of work runs, on its thread.
    pub(crate) fn begin(engine: &Shared, work: &Job, control: &Arc<JobControl>) -> Watched {
        let (kind, table) = (work.kind(), work.on().map(|table| &*table.name));
        let span = tracing::info_span!(target: "terrane::job", "job", work = kind.name(), table);
        let job = if is_job(work) { engine.events.next_job() } else { 0 };
        if is_job(work) && engine.events.are_heard() {
            NOTES.set(Some(Notes::default()));
            if matches!(work, Job::Flush(_)) {
                engine.events.begin_flush(job, control);
            }
            let (table, levels, inputs) = (table.unwrap_or_default().to_owned(), levels(work), inputs(work));
            engine
                .events
                .enqueue(|| Event::JobBegan(JobBegan { table, work: kind, id: job, levels, inputs }));
        }
        Watched { started: engine.env.clock.now(), job, _span: span.entered() }
    }

    /// Called when the job has ended, before a caller that waits for the job can see its end.
    pub(crate) fn end(
        self,
        engine: &Shared,
        work: &Job,
        control: &JobControl,
        result: &Result<()>,
        now: Duration,
    ) {
        let took = now.saturating_sub(self.started);
        let (kind, table) = (work.kind(), work.on().map(|table| &*table.name));
        debug_assert!((self.job > 0) == is_job(work), "listeners hear the end of what they saw begin");
        if is_job(work) {
            let histogram = match work {
                Job::Flush(_) => &engine.histograms.flush_micros,
                _ => &engine.histograms.compaction_micros,
            };
            histogram.observe(micros(took));
            let (done, notes) = (control.work(), NOTES.take().unwrap_or_default());
            engine.events.enqueue(|| {
                Event::JobEnded(JobEnded {
                    table: table.unwrap_or_default().to_owned(),
                    work: kind,
                    id: self.job,
                    levels: levels(work),
                    took,
                    bytes_read: done.bytes_read,
                    bytes_written: done.bytes_written,
                    entries_in: done.entries_in,
                    entries_out: done.entries_out,
                    inputs: inputs(work),
                    removed: notes.removed,
                    written: notes.written,
                    moved: notes.moved,
                    flushed: notes.flushed,
                    error: result.as_ref().err().cloned(),
                    cancelled: cancelled(work, control, result),
                })
            });
            engine.events.end_flush(self.job);
        }
        if engine.slow_log.is_slow(took, engine.options.diagnostics.slow_job_micros) {
            tracing::warn!(
                target: "terrane::slow",
                operation = kind.name(),
                table,
                micros = micros(took),
                bytes_read = control.work().bytes_read,
                bytes_written = control.work().bytes_written,
                "slow background work"
            );
        }
        if let Err(error) = result
            && error.kind() != Kind::Cancelled
        {
            tracing::error!(target: "terrane::job", work = kind.name(), table, %error, "background work failed");
            engine.events.enqueue(|| {
                Event::WorkFailed(WorkFailed {
                    table: table.map(str::to_owned),
                    work: kind,
                    error: error.clone(),
                })
            });
        }
    }
}

/// The reason of its cancellation, if it was cancelled. A job may find its table dropped before its control
/// has the reason.
fn cancelled(work: &Job, control: &JobControl, result: &Result<()>) -> Option<CancelCause> {
    result.as_ref().err().filter(|error| error.kind() == Kind::Cancelled)?;
    let is_dropped = || work.on().is_some_and(|table| table.is_dropped());
    control.cancelled().or_else(|| is_dropped().then_some(CancelCause::Dropped))
}

/// The job of a merge, if it is known at the beginning.
fn spec(work: &Job) -> Option<&JobSpec> {
    match work {
        Job::Compact(_, spec) | Job::Adapt(_, spec) => Some(spec),
        _ => None,
    }
}

/// The extents that are to be merged, as far as they are known at the beginning.
fn inputs(work: &Job) -> Vec<ExtentSummary> {
    let inputs = spec(work).into_iter().flat_map(|spec| &spec.inputs);
    let extents =
        inputs.flat_map(|input| input.extents.iter().map(|meta| ExtentSummary::of(meta, input.place)));
    extents.collect()
}

/// The uppermost level that a compaction merges, and the one that its result goes to.
fn levels(work: &Job) -> Option<(u8, u8)> {
    let spec = spec(work)?;
    let from = spec.inputs.iter().map(|input| level_number(input.place)).min()?;
    Some((from, level_number(spec.target)))
}

/// Returns true if it is a flush or a compaction.
fn is_job(work: &Job) -> bool {
    matches!(work, Job::Flush(_) | Job::Compact(..) | Job::Adapt(..))
}

/// A result became part of a tree.
pub(crate) fn installed(result: &JobResult) {
    NOTES.with_borrow_mut(|notes| {
        let Some(notes) = notes else { return };
        notes.removed.extend(result.freed().map(|removed| removed.id));
        for meta in &result.added {
            let is_moved = result.relinked.contains(&meta.id);
            let list = if is_moved { &mut notes.moved } else { &mut notes.written };
            list.push(ExtentSummary::of(meta, result.target));
        }
    });
}

/// A generation is in the levels.
pub(crate) fn flushed(generation: &GlobalIndex) {
    NOTES.with_borrow_mut(|notes| {
        let Some(notes) = notes else { return };
        notes.flushed = Some(Flushed {
            entries: generation.entry_count(),
            bytes: generation.record_bytes(),
            seq_min: generation.first_seq(),
            seq_max: generation.last_seq(),
        });
    });
}
