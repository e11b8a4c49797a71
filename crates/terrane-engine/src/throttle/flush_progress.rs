//! Flush progress: how much of the memory of running flushes is written, and at which rate.
//!
//! A flush frees its memory at its end, a third or half of the write memory, and writers fill the rest
//! meanwhile. If the throttle looked at used memory only, writers would be free, then slowed hard just before
//! a flush ends, and then free again. So there is a rate, too: the rate at which the free memory lasts until
//! the memory that waits for flushes is written, at the speed of the running flush. Writers that keep to this
//! rate see a constant rate: free memory and remaining work shrink in proportion.

use std::sync::Arc;
use std::time::Duration;

use terrane_base::sync::Mutex;
use terrane_compaction::JobControl;
use terrane_memtable::GlobalIndex;

use crate::throttle::Throttle;
use crate::throttle::control::WriteControl;

/// Part of the rate that would just do.
const MARGIN: f64 = 0.9;
/// Part of a flush that says how fast it is; before that the flushes before it do.
const TELLING: f64 = 0.1;
/// The least that counts as left, as a part of writers' memory.
const LEFT_MIN: f64 = 0.001;

/// Flushes under way.
#[derive(Debug, Default)]
pub(crate) struct FlushProgress(Mutex<Vec<Flush>>);

#[derive(Debug)]
struct Flush {
    control: Arc<JobControl>,
    /// Entries that it reads.
    entries: u64,
    /// Bytes of the records, and with their index.
    record_bytes: u64,
    memory_bytes: u64,
    started: Duration,
}

impl Flush {
    fn share_done(&self) -> f64 {
        (self.control.work().entries_in as f64 / self.entries.max(1) as f64).min(1.0)
    }
}

/// A flush that counts for the rate of writers as long as this lives.
pub(crate) struct FlushUnderWay<'p> {
    progress: &'p FlushProgress,
    control: Arc<JobControl>,
}

impl Drop for FlushUnderWay<'_> {
    fn drop(&mut self) {
        let mut flushes = self.progress.0.lock();
        let before = flushes.len();
        flushes.retain(|one| !Arc::ptr_eq(&one.control, &self.control));
        debug_assert!(flushes.len() + 1 == before, "{} flushes end at once", before - flushes.len());
    }
}

/// The sum of the running flushes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Progress {
    /// Bytes of memory of which the records are still to be written.
    left_bytes: f64,
    /// Records written in a second; 0 where no flush is far enough to measure it.
    rate: f64,
}

impl Progress {
    /// Adds a flush of which a share is done after so much time.
    fn add(&mut self, flush: &Flush, share: f64, took: Duration) {
        debug_assert!((0.0..=1.0).contains(&share), "a share of {share} is flushed");
        self.left_bytes += (1.0 - share) * flush.memory_bytes as f64;
        if share >= TELLING {
            self.rate += share * flush.record_bytes as f64 / took.as_secs_f64().max(1e-3);
        }
    }
}

impl FlushProgress {
    /// `None` where there is no flush.
    fn progress(&self, now: Duration) -> Option<Progress> {
        let flushes = self.0.lock();
        let mut all = Progress::default();
        for flush in &*flushes {
            all.add(flush, flush.share_done(), now.saturating_sub(flush.started));
        }
        debug_assert!(all.left_bytes >= 0.0 && all.rate >= 0.0, "flushes leave less than nothing: {all:?}");
        (!flushes.is_empty()).then_some(all)
    }
}

impl Throttle {
    /// The flush of `generation` is under way while the guard lives.
    pub(crate) fn begin_flush(
        &self,
        control: &Arc<JobControl>,
        generation: &GlobalIndex,
        started: Duration,
    ) -> FlushUnderWay<'_> {
        let (entries, record_bytes) = (generation.entry_count(), generation.record_bytes());
        let memory_bytes = record_bytes + generation.index_bytes();
        let control = control.clone();
        let flush = Flush { control: control.clone(), entries, record_bytes, memory_bytes, started };
        let mut flushes = self.flush_progress.0.lock();
        debug_assert!(
            flushes.iter().all(|one| !Arc::ptr_eq(&one.control, &control)),
            "a flush that counts twice makes writers twice as fast"
        );
        flushes.push(flush);
        drop(flushes);
        FlushUnderWay { progress: &self.flush_progress, control }
    }
}

impl WriteControl<'_> {
    /// The rate at which writers fill the `room` that there is, a part of their memory, until what waits to
    /// be flushed is gone, in bytes per second; `None` where nothing is being flushed.
    pub(super) fn rate_until_flushed(&self, room: f64) -> Option<f64> {
        debug_assert!(room <= 1.0, "{room} of the memory of writers is free");
        let progress = self.throttle.flush_progress.progress(self.env.clock.now())?;
        let behind = self.catalog.sums().now().behind_bytes;
        let rate = if progress.rate > 0.0 { progress.rate } else { self.throttle.pressure.drain_rate() };
        let left = self.memory.debt_of(progress.left_bytes as u64 + behind);
        Some(rate_that_lasts(rate, room, left))
    }
}

/// The rate at which `room` lasts until `left` is flushed at `flush_rate`.
fn rate_that_lasts(flush_rate: f64, room: f64, left: f64) -> f64 {
    MARGIN * flush_rate * room.max(0.0) / left.max(LEFT_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushes_report_their_speed_once_they_have_begun() {
        assert_eq!(FlushProgress::default().progress(Duration::ZERO), None);
        let control = Arc::new(JobControl::new(terrane_base::env::Env::real().clock, None));
        let started = Duration::from_secs(10);
        let flush = Flush { control, entries: 1000, record_bytes: 30_000, memory_bytes: 48_000, started };
        let mut all = Progress::default();
        all.add(&flush, 0.05, Duration::from_secs(1));
        assert_eq!(all, Progress { left_bytes: 0.95 * 48_000.0, rate: 0.0 });
        all.add(&flush, 0.5, Duration::from_secs(2));
        assert_eq!(all, Progress { left_bytes: 0.95 * 48_000.0 + 24_000.0, rate: 7_500.0 }, "both together");
    }

    /// Writers that keep to the rate during a flush of half of the memory: the rate at each step, and the
    /// room at its end.
    fn beside_a_flush(flush_rate: impl Fn(usize) -> f64) -> (Vec<f64>, f64) {
        let (mut room, mut left, mut rates) = (0.5, 0.5, Vec::new());
        while left > 0.0 {
            let speed = flush_rate(rates.len());
            let rate = rate_that_lasts(speed, room, left);
            (room, left) = (room - rate * 0.01, left - speed * 0.01);
            rates.push(rate);
        }
        (rates, room)
    }

    #[test]
    fn the_room_lasts_and_the_rate_stays_as_it_is() {
        let (rates, room) = beside_a_flush(|_| 1.0);
        assert!(room > 0.0, "{room}");
        let (first, last) = (rates[0], rates[rates.len() - 2]);
        assert!((first - MARGIN).abs() < 1e-9 && last > first && last < 1.5 * first, "{rates:?}");
    }

    #[test]
    fn a_flush_that_becomes_slower_slows_writers_in_time() {
        let (rates, room) = beside_a_flush(|step| if step < 10 { 1.0 } else { 0.25 });
        assert!(room > 0.0, "{room}");
        let slowest = rates.iter().copied().fold(f64::MAX, f64::min);
        assert!(slowest > 0.2, "{rates:?}");
    }
}
