//! Notes of what a job does to extents, kept on its thread for the listeners that are called at its end.
//!
//! A job runs on one thread from beginning to end ([`crate::background::job_trace`]), and all that it makes
//! part of a tree goes through one function; so what it did is collected there, and only while a
//! listener or a span is registered.

use std::cell::RefCell;

use terrane_base::ExtentId;
use terrane_compaction::JobResult;
use terrane_memtable::GlobalIndex;

use crate::observe::events::Flushed;
use crate::observe::extent_summary::ExtentSummary;

/// What a job did so far.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) removed: Vec<ExtentId>,
    pub(crate) written: Vec<ExtentSummary>,
    pub(crate) moved: Vec<ExtentSummary>,
    pub(crate) flushed: Option<Flushed>,
}

thread_local! {
    /// The notes of the job that this thread runs, if there is a listener.
    static NOTES: RefCell<Option<Notes>> = const { RefCell::new(None) };
}

/// Begins the notes of a job.
pub(crate) fn begin() {
    NOTES.set(Some(Notes::default()));
}

/// Ends the notes of the job; nothing where none were begun.
pub(crate) fn end() -> Notes {
    NOTES.take().unwrap_or_default()
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
