//! The space that an engine takes while a run goes on, looked at each second by the sampler.
//!
//! A look walks the directory of the database, which takes a microsecond or two for each file. A look that
//! comes late stands for all seconds that are over.

use std::path::Path;
use std::time::Duration;

use crate::engine::Engine;
use crate::files;
use crate::report::model::SpaceTimeline;

/// Length of an interval.
const INTERVAL: Duration = Duration::from_secs(1);

/// The timeline while it grows.
pub(super) struct SpaceSeries<'r> {
    engine: &'r dyn Engine,
    /// Where the files lie; none if nothing is looked at.
    directory: Option<&'r Path>,
    /// End of the interval under way.
    tick: Duration,
    seen: SpaceTimeline,
}

impl<'r> SpaceSeries<'r> {
    pub(super) fn new(engine: &'r dyn Engine, directory: Option<&'r Path>, start: Duration) -> Self {
        let seen = SpaceTimeline { interval: INTERVAL.as_secs_f64(), ..SpaceTimeline::default() };
        SpaceSeries { engine, directory, tick: start + INTERVAL, seen }
    }

    /// Looks if an interval is over at `now`.
    pub(super) fn look(&mut self, now: Duration) {
        let Some(directory) = self.directory.filter(|_| now >= self.tick) else { return };
        let over = 1 + (now - self.tick).as_secs();
        self.tick += INTERVAL * u32::try_from(over).unwrap_or(u32::MAX);
        let intervals = usize::try_from(over).unwrap_or(usize::MAX);
        debug_assert!(now < self.tick, "a look stands for all intervals that are over");
        // The run goes on if the directory goes away while it is walked.
        if let Ok(bytes) = files::directory_bytes(directory) {
            self.seen.disk_bytes.resize(self.seen.disk_bytes.len() + intervals, bytes);
        }
        if let Some(permille) = self.engine.values_permille() {
            self.seen.values_permille.resize(self.seen.values_permille.len() + intervals, permille);
        }
    }

    /// The whole timeline.
    pub(super) fn end(self) -> SpaceTimeline {
        self.seen
    }
}
