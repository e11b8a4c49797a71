//! Ingest rate: detects heavy writing, during which optional merges are deferred.
//!
//! A generation of the global index is a fraction of level 1, and merging it at once rewrites all of level 1.
//! Several generations that wait as overflow runs until a merge is due rewrite it once. So while the next
//! memtable is about to be full, generations become runs, and the picker returns only jobs that are due. When
//! writers have paused for a second, or a caller waits until nothing is left to do, the optional jobs run,
//! too; a tree at rest has no runs. A shorter pause lies between two bursts: a merge in it would be repeated
//! after the next burst. During heavy writing one worker is kept free for the next flush
//! ([`crate::background::scheduler`]): a compaction takes a second, in which writers fill their memory.

use std::time::Duration;
use terrane_base::sync::atomic::{AtomicU64, Ordering};

use terrane_base::sync::Mutex;

use crate::throttle::control::WriteControl;

/// Time over which the rate is measured.
const WINDOW: Duration = Duration::from_millis(100);
/// A memtable that would be full within this time is about to come.
const SOON: Duration = Duration::from_secs(10);
/// Time for which the end of a strong inflow counts as a pause.
const PAUSE: Duration = Duration::from_secs(1);

/// The measured rate at which writers bring bytes.
#[derive(Debug, Default)]
pub(crate) struct IngestRate {
    seen: Mutex<Seen>,
    /// Number of callers that wait until nothing is left to do.
    waiters: AtomicU64,
}

#[derive(Debug, Default)]
struct Seen {
    at: Duration,
    bytes: u64,
    is_strong: bool,
    /// When it was strong last.
    strong_at: Option<Duration>,
}

impl IngestRate {
    /// Returns true if `memtable_bytes` will have come soon if writers go on as they do. `bytes` are all that
    /// ever came.
    fn is_strong(&self, now: Duration, bytes: u64, memtable_bytes: u64) -> bool {
        let mut seen = self.seen.lock();
        let took = now.saturating_sub(seen.at);
        if took >= WINDOW {
            let came = u128::from(bytes.saturating_sub(seen.bytes));
            let is_strong = came * SOON.as_millis() >= u128::from(memtable_bytes) * took.as_millis();
            let strong_at = if is_strong { Some(now) } else { seen.strong_at };
            *seen = Seen { at: now, bytes, is_strong, strong_at };
        }
        let has_moment = !seen.is_strong || seen.strong_at.is_some();
        debug_assert!(has_moment, "a pause is counted from when writing was heavy last");
        // Relaxed: a worker that looks too early looks again.
        seen.is_strong && self.waiters.load(Ordering::Relaxed) == 0
    }

    /// Returns true if writing was heavy a moment ago, and no caller waits until nothing is left to do.
    fn was_strong(&self, now: Duration) -> bool {
        let strong_at = self.seen.lock().strong_at;
        let is_recent = strong_at.is_some_and(|at| now.saturating_sub(at) < PAUSE);
        is_recent && self.waiters.load(Ordering::Relaxed) == 0
    }

    /// Runs `wait`, during which nothing is put off.
    pub(crate) fn without_delay<R>(&self, wait: impl FnOnce() -> R) -> R {
        struct Leave<'a>(&'a AtomicU64);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                let waiters = self.0.fetch_sub(1, Ordering::Relaxed);
                assert!(waiters > 0, "a waiter is counted until it leaves: merges would be put off for ever");
            }
        }
        self.waiters.fetch_add(1, Ordering::Relaxed);
        let _leave = Leave(&self.waiters);
        wait()
    }
}

impl WriteControl<'_> {
    /// Returns true if the next memtable will be full soon.
    pub(crate) fn is_filling(&self) -> bool {
        let bytes = self.written.bytes();
        self.throttle.ingest_rate.is_strong(
            self.env.clock.now(),
            bytes,
            self.memory.budget().memtable_bytes(),
        )
    }

    /// Returns true if optional merges are put off, because the next memtable will be full soon, or would if
    /// writers had not just paused.
    pub(crate) fn puts_off(&self) -> bool {
        self.options.experiments.defer_merges
            && (self.is_filling() || self.throttle.ingest_rate.was_strong(self.env.clock.now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_strong_inflow_is_seen_and_its_end_too() {
        let inflow = IngestRate::default();
        assert!(inflow.is_strong(at(1000), 10 * MIB, 16 * MIB), "10 MiB a second fill 16 MiB in two");
        assert!(inflow.is_strong(at(1050), 10 * MIB, 16 * MIB), "too early for another look");
        assert!(!inflow.is_strong(at(1100), 10 * MIB, 16 * MIB), "nothing came");
        assert!(!inflow.is_strong(at(2100), 11 * MIB, 16 * MIB), "16 s until it is full");
    }

    #[test]
    fn a_short_pause_is_not_an_end() {
        let inflow = IngestRate::default();
        assert!(!inflow.was_strong(at(1000)), "nothing ever came");
        assert!(inflow.is_strong(at(1000), 10 * MIB, 16 * MIB));
        assert!(!inflow.is_strong(at(1200), 10 * MIB, 16 * MIB));
        assert!(inflow.was_strong(at(1999)) && !inflow.was_strong(at(2000)));
        assert!(!inflow.without_delay(|| inflow.was_strong(at(1999))));
    }

    #[test]
    fn nothing_is_deferred_while_a_caller_waits() {
        let inflow = IngestRate::default();
        assert!(inflow.is_strong(at(1000), 10 * MIB, 16 * MIB));
        assert!(!inflow.without_delay(|| inflow.is_strong(at(1000), 10 * MIB, 16 * MIB)));
        assert!(inflow.is_strong(at(1000), 10 * MIB, 16 * MIB));
    }
}
