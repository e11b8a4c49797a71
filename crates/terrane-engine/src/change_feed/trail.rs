//! The position of a reader of changes: finds the segment of the next number, and reads segments one after
//! the other.
//!
//! 1. find the segment with the next number: among the live ones, newest first, then in history
//! 2. read its groups, up to the last number that the reader may get
//! 3. at its end, find the segment with the following number.
//!
//! A reader keeps no segment alive: a live segment may become history, and history may be removed, at any
//! time. So if a segment is not found and the manifest has changed meanwhile, the search is repeated; only
//! then the number is gone.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use terrane_base::{Error, Result, SeqNo};
use terrane_device::Disk;
use terrane_format::manifest;
use terrane_journal::{ReadBatch, SegmentReader, SegmentSpec};
use terrane_levels::State;

/// How often a search is repeated because the state has changed.
const LOOKS_MAX: usize = 100;

/// A position in the order of commits.
#[derive(Debug)]
pub(super) struct Trail {
    disk: Arc<dyn Disk>,
    /// Directory of the segments.
    dir: PathBuf,
    /// The number after the last batch that the reader got.
    next: SeqNo,
    reader: Option<SegmentReader>,
    /// Batches of the present group that the reader has not got yet.
    group: VecDeque<ReadBatch>,
}

/// The place of a sequence number.
enum Found {
    In(SegmentReader),
    /// The number is not kept any more: this is the oldest one that is.
    Gone(SeqNo),
    /// The number is not written yet.
    ToCome,
}

impl Trail {
    pub(super) fn new(disk: Arc<dyn Disk>, dir: PathBuf, from: SeqNo) -> Trail {
        Trail { disk, dir, next: SeqNo(from.0.max(1)), reader: None, group: VecDeque::new() }
    }

    /// The number after the last batch that the reader got.
    pub(super) fn next(&self) -> SeqNo {
        self.next
    }

    /// Looks for the next number, if it is not above `last`.
    ///
    /// # Errors
    /// `Gone` if it is not kept any more; `Corrupt`, `Io`.
    pub(super) fn check(&mut self, last: SeqNo, state: &dyn Fn() -> Result<Arc<State>>) -> Result<()> {
        if self.next <= last { self.move_on(true, state).map(drop) } else { Ok(()) }
    }

    /// The next batch that ends at `limit` or before. `is_sure` says that all numbers up to there are in
    /// segments: a batch that cannot be read is then damage, not a batch that is still being written. `state`
    /// is the present state of the manifest.
    ///
    /// # Errors
    /// `Gone` if the next number is not kept any more; `Corrupt`, `Io`.
    pub(super) fn next_batch(
        &mut self,
        limit: SeqNo,
        is_sure: bool,
        state: &dyn Fn() -> Result<Arc<State>>,
    ) -> Result<Option<ReadBatch>> {
        loop {
            if let Some(front) = self.group.front() {
                if front.last_seq() > limit {
                    return Ok(None);
                }
                debug_assert!(front.last_seq() >= self.next, "a batch is delivered once");
                self.next = SeqNo(front.last_seq().0 + 1);
                return Ok(self.group.pop_front());
            }
            if self.next > limit {
                return Ok(None);
            }
            let group = self.reader.as_mut().map(SegmentReader::next_group).transpose()?.flatten();
            match group {
                Some(batches) => {
                    let wanted = batches.into_iter().filter(|batch| batch.last_seq() >= self.next);
                    self.group.extend(wanted);
                }
                None if self.move_on(is_sure, state)? => {}
                None => return Ok(None),
            }
        }
    }

    /// Returns true if the segment of the last batch is still listed in `state`: what became of the marks in
    /// it is known only then.
    pub(super) fn is_listed(&self, state: &State) -> bool {
        let listed = |id| state.segments.contains_key(&id) || state.history.contains_key(&id);
        self.reader.as_ref().is_some_and(|reader| listed(reader.id()))
    }

    /// Puts a batch back that the reader did not get.
    pub(super) fn put_back(&mut self, batch: ReadBatch) {
        debug_assert!(batch.last_seq().0 + 1 == self.next.0, "the batch that was taken last is put back");
        self.next = batch.first_seq();
        self.group.push_front(batch);
    }

    /// Goes to the segment that has the next number; says whether that is another one than the present.
    fn move_on(&mut self, is_sure: bool, state: &dyn Fn() -> Result<Arc<State>>) -> Result<bool> {
        debug_assert!(self.group.is_empty(), "a reader gets all of a group before it leaves the segment");
        let mut seen = state()?;
        let mut looks = 0;
        loop {
            let outcome = match self.locate(&seen) {
                Ok(Found::In(reader)) => {
                    let is_same = self.reader.as_ref().is_some_and(|before| before.id() == reader.id());
                    if !is_same {
                        self.reader = Some(reader);
                        return Ok(true);
                    }
                    let reader = self.reader.as_ref().expect("compared above");
                    if is_sure { Err(reader.damaged()) } else { Ok(false) }
                }
                Ok(Found::Gone(oldest)) => {
                    Err(Error::gone(format!("changes from {} on", self.next), Some(oldest)))
                }
                Ok(Found::ToCome) => Ok(false),
                Err(error) => Err(error),
            };
            let now = state()?;
            looks += 1;
            if outcome.is_ok() || Arc::ptr_eq(&now, &seen) || looks >= LOOKS_MAX {
                return outcome;
            }
            seen = now;
        }
    }

    fn locate(&self, state: &State) -> Result<Found> {
        let salt = state.database.segment_salt();
        let open = |spec: &manifest::SegmentSpec, end, is_whole| {
            let spec = SegmentSpec { id: spec.id, file: spec.file, bytes: spec.bytes };
            SegmentReader::open(&*self.disk, &self.dir, &spec, salt, end, is_whole)
        };
        let mut oldest = None;
        for segment in state.segments.values().rev() {
            let end = segment.seal.map(|seal| seal.end_offset);
            // A segment that another one follows takes no further records.
            let is_whole = end.is_some() || oldest.is_some();
            let Some(reader) = open(&segment.spec, end, is_whole)? else { continue };
            oldest = Some(reader.first_seq());
            if reader.first_seq() <= self.next {
                return Ok(Found::In(reader));
            }
        }
        let is_behind = |first: SeqNo| oldest.is_none_or(|oldest| first < oldest);
        let kept = state.history.values().rev().find(|kept| kept.kept.first_seq <= self.next);
        let Some(kept) = kept.filter(|kept| kept.kept.last_seq >= self.next) else {
            let last = state.last_seq();
            if oldest.is_none() && last < self.next {
                // Of all segments that have records none is live: the next one has not begun.
                return Ok(Found::ToCome);
            }
            let first = state.history.values().next().map(|kept| kept.kept.first_seq);
            let oldest = first.filter(|first| is_behind(*first)).or(oldest);
            return Ok(Found::Gone(oldest.unwrap_or(SeqNo(last.0 + 1))));
        };
        match open(&kept.spec, Some(kept.kept.end_offset), true)? {
            Some(reader) => Ok(Found::In(reader)),
            None => {
                let file = self.dir.join(terrane_journal::file_name(kept.spec.file));
                let message = format!("segment {} of history is missing or has no header", kept.spec.id);
                Err(Error::corrupt(message).at(file.display().to_string(), 0))
            }
        }
    }
}
