//! The journal of `journal = off`: the same ring, with segments on the heap that are not kept.

use std::collections::VecDeque;
use std::sync::Arc;

use terrane_base::sync::Mutex;
use terrane_base::{Batch, Result, SegmentId, SeqNo};
use terrane_device::{Region, SegmentMemory};

use crate::delegate::delegate_journal;
use crate::medium::{Medium, NewSegment, SealedEnd, seal_last};
use crate::{
    Journal, JournalSettings, JournalStart, LiveMemory, Placed, Poison, RingJournal, SegmentInfo,
    SegmentState,
};

/// Segments on the heap. Persisting costs nothing, because nothing survives the process.
#[derive(Debug)]
pub struct HeapMedium {
    segment_bytes: usize,
    state: Mutex<HeapState>,
    /// Segments that a reader replayed, for copies of the journal.
    replayed: Vec<LiveMemory>,
}

#[derive(Debug)]
struct HeapState {
    next_segment: u64,
    live: VecDeque<HeapSegment>,
}

#[derive(Debug)]
struct HeapSegment {
    info: SegmentInfo,
    /// Kept until the segment is trimmed, as a file would be, for copies of the journal.
    memory: Arc<SegmentMemory>,
}

impl AsMut<SegmentInfo> for HeapSegment {
    fn as_mut(&mut self) -> &mut SegmentInfo {
        &mut self.info
    }
}

impl HeapMedium {
    /// Segments of `segment_bytes`; the first has id `next_segment`.
    #[must_use]
    pub fn new(segment_bytes: u64, next_segment: SegmentId) -> Self {
        let state = HeapState { next_segment: next_segment.0, live: VecDeque::new() };
        HeapMedium { segment_bytes: segment_bytes as usize, state: Mutex::new(state), replayed: Vec::new() }
    }
}

impl Medium for HeapMedium {
    fn rotate(&self, bytes: usize, sealed: Option<&SealedEnd>) -> Result<NewSegment> {
        let bytes = bytes.max(self.segment_bytes);
        let region = Region::heap(bytes);
        let mut state = self.state.lock();
        seal_last(&mut state.live, sealed, SegmentState::Sealed);
        let id = SegmentId(state.next_segment);
        assert!(state.live.back().is_none_or(|last| last.info.id < id), "ids grow, and none comes twice");
        state.next_segment += 1;
        let last_seq = sealed.map_or(SeqNo(0), |sealed| sealed.link.last_seq);
        let info =
            SegmentInfo { id, file: 0, state: SegmentState::Active, bytes: bytes as u64, used: 0, last_seq };
        let memory = Arc::new(SegmentMemory { id, region });
        state.live.push_back(HeapSegment { info, memory: Arc::clone(&memory) });
        Ok(NewSegment { memory, file: 0 })
    }

    fn seal(&self, sealed: &SealedEnd) -> bool {
        let mut state = self.state.lock();
        debug_assert!(!state.live.is_empty(), "a segment that is sealed is listed");
        seal_last(&mut state.live, Some(sealed), SegmentState::Sealed);
        true
    }

    fn write(&self, _segment: &SegmentMemory, _offset: usize, _len: usize) -> Result<()> {
        Ok(())
    }

    fn persist(&self) -> Result<()> {
        Ok(())
    }

    fn durable(&self) -> SeqNo {
        SeqNo(0)
    }

    fn segments(&self) -> Vec<SegmentInfo> {
        self.state.lock().live.iter().map(|live| live.info.clone()).collect()
    }

    fn live_memory(&self) -> Vec<LiveMemory> {
        let state = self.state.lock();
        let live = state.live.iter().map(|live| (live.info.id, live.info.used, Arc::clone(&live.memory)));
        self.replayed.iter().cloned().chain(live).collect()
    }

    fn trim(&self, upto: SegmentId) -> Result<Vec<SegmentId>> {
        let mut state = self.state.lock();
        let mut gone = Vec::new();
        while let Some(first) = state.live.front()
            && first.info.id <= upto
            && first.info.state != SegmentState::Active
        {
            gone.push(first.info.id);
            state.live.pop_front();
        }
        debug_assert!(gone.is_sorted(), "the oldest segments go first");
        Ok(gone)
    }

    fn stop(&self) {}
}

/// A journal that keeps nothing: no commit survives the death of the process or the loss of power, with or
/// without `sync`. Everything else is as in every [`Journal`].
#[derive(Debug)]
pub struct NullJournal(RingJournal<HeapMedium>);

impl NullJournal {
    /// Starts at `start`.
    ///
    /// # Errors
    /// `Invalid` if a setting is out of range.
    pub fn new(settings: &JournalSettings, start: &JournalStart) -> Result<Self> {
        let medium = HeapMedium::new(settings.segment_bytes, start.next_segment);
        RingJournal::new(medium, Arc::new(Poison::new()), settings, start).map(NullJournal)
    }

    /// Starts at `start` as the journal of a database that is only read: an excerpt has what was replayed,
    /// and no record comes after it.
    ///
    /// # Errors
    /// As [`NullJournal::new`].
    pub fn of_reader(settings: &JournalSettings, start: &JournalStart) -> Result<Self> {
        let mut medium = HeapMedium::new(settings.segment_bytes, start.next_segment);
        let replayed = start.replayed.iter();
        medium.replayed =
            replayed.map(|sealed| (sealed.spec.id, sealed.end, Arc::clone(&sealed.memory))).collect();
        RingJournal::new(medium, Arc::new(Poison::new()), settings, start).map(NullJournal)
    }
}

delegate_journal!(NullJournal);
