//! The syncer: makes sealed segments durable in the background, oldest first.

use std::sync::Arc;
use terrane_base::sync::atomic::Ordering;

use terrane_base::env::Step;
use terrane_base::{Result, SegmentId, SeqNo};
use terrane_device::File;

use super::{Shared, State};
use crate::SegmentState;

impl Shared {
    /// The syncer: makes sealed segments durable, oldest first, until the journal stops.
    pub(super) fn sync_sealed_segments(&self) {
        debug_assert!(self.has_threads, "no thread waits where steps sync segments");
        loop {
            let mut state = self.state.lock();
            while !(state.is_stopping || next_due(&state).is_some()) {
                self.changed.wait(&mut state);
            }
            if state.is_stopping {
                return;
            }
            drop(state);
            if self.sync_step() == Step::Ended {
                return;
            }
        }
    }

    /// Makes the oldest segment durable that is due.
    pub(super) fn sync_step(&self) -> Step {
        if self.state.lock().is_stopping {
            return Step::Ended;
        }
        let _syncing = self.syncing.lock();
        let due = next_due(&self.state.lock());
        match due {
            None => Step::Idle,
            Some(sealed) => match self.poison.check().and_then(|()| self.sync_segment(&sealed)) {
                Ok(()) => Step::Worked,
                Err(_) => Step::Ended,
            },
        }
    }

    /// Makes a sealed segment durable. Requires: `syncing` is held and every older segment is durable.
    pub(super) fn sync_segment(&self, (file, id, last_seq): &Sealed) -> Result<()> {
        // Poisoned while `syncing` is held: the system reports a failure once; the next sync must not look
        // successful.
        file.sync().inspect_err(|error| self.poison.set(error.clone()))?;
        // Relaxed: the number is only written into marks, and no other memory depends on it.
        self.durable.fetch_max(last_seq.0, Ordering::Relaxed);
        let mut state = self.state.lock();
        let mut older = state.live.iter().take_while(|live| live.info.id < *id);
        debug_assert!(older.all(|live| live.info.state != SegmentState::Sealed), "oldest first: {id} is not");
        if let Some(live) = state.live.iter_mut().find(|live| live.info.id == *id) {
            live.info.state = SegmentState::Durable;
        }
        Ok(())
    }
}

/// File, id and last number of a sealed segment.
pub(super) type Sealed = (Arc<dyn File>, SegmentId, SeqNo);

/// The oldest sealed segment that is not yet durable.
pub(super) fn next_sealed(state: &State) -> Option<Sealed> {
    let live = state.live.iter().find(|live| live.info.state == SegmentState::Sealed)?;
    live.file.clone().map(|file| (file, live.info.id, live.info.last_seq))
}

/// The oldest sealed segment, if the syncer is to make it durable.
fn next_due(state: &State) -> Option<Sealed> {
    next_sealed(state).filter(|&(_, id, _)| id <= state.sync_due)
}
