//! The timeline of a run while it grows.

use std::time::Duration;

use super::SAMPLE;
use crate::report::model::Timeline;

/// The timeline while it grows.
pub(super) struct Series {
    operations: Vec<u64>,
    /// Operations in the intervals so far.
    seen: u64,
    /// End of the interval under way.
    pub(super) tick: Duration,
}

impl Series {
    pub(super) fn new(start: Duration) -> Self {
        Series { operations: Vec::new(), seen: 0, tick: start + SAMPLE }
    }

    /// Ends the intervals that are over at `now`. A sampler that woke late does not know in which of them the
    /// operations were done and spreads them: a stall is the engine's, not the sampler's.
    pub(super) fn sample(&mut self, now: Duration, operations: u64) {
        if now < self.tick {
            return;
        }
        let over = 1 + ((now - self.tick).as_nanos() / SAMPLE.as_nanos()) as u64;
        let done = operations - self.seen;
        for interval in 0..over {
            self.operations.push(done / over + u64::from(interval < done % over));
        }
        self.seen = operations;
        self.tick += SAMPLE * over as u32;
    }

    /// The whole timeline; what was done after the last full interval is in a last, shorter one.
    pub(super) fn end(mut self, operations: u64) -> Timeline {
        if operations > self.seen {
            self.operations.push(operations - self.seen);
        }
        Timeline { interval: SAMPLE.as_secs_f64(), operations: self.operations }
    }
}

/// Lengthens a timeline by intervals in which nothing was done.
pub(super) fn pad(timeline: &mut Timeline, seconds: f64) {
    let wanted = (seconds / timeline.interval) as usize;
    if wanted > timeline.operations.len() {
        timeline.operations.resize(wanted, 0);
    }
}
