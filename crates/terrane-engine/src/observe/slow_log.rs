//! The log of slow operations: what took longer than an option says, and where its time went, as an event of `tracing` with
//! the target `terrane::slow`. Where the option of a class is 0, an operation of it costs one branch.

use std::time::Duration;

use terrane_base::timing::{self, Timing};

use crate::engine::Engine;
use crate::observe::stats::add;

/// The part of a write that is not spent waiting for the background: whatever commits it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommitTime(pub(crate) Duration);

impl Engine {
    /// Whether point reads are watched.
    #[inline]
    pub(crate) fn watches_reads(&self) -> bool {
        self.options.slow_read_micros > 0
    }

    /// Whether steps of scans are watched.
    #[inline]
    #[must_use]
    pub fn watches_scans(&self) -> bool {
        self.options.slow_scan_micros > 0
    }

    /// Runs a point read of so many keys, and tells if it is slow.
    #[cold]
    pub(crate) fn watched_read<R>(&self, table: &str, keys: usize, read: impl FnOnce() -> R) -> R {
        let (done, took, timing) = self.timed(read);
        if self.is_slow(took, self.options.slow_read_micros) {
            let (total, device) = (micros(took), micros(timing.device_reads));
            tracing::warn!(
                target: "terrane::slow",
                operation = "read",
                table,
                keys,
                micros = total,
                device_read_micros = device,
                other_micros = total.saturating_sub(device),
                "slow read"
            );
        }
        done
    }

    /// Runs a step or a placement of a scan, and tells if it is slow.
    #[cold]
    pub fn watched_scan<R>(&self, table: &str, step: impl FnOnce() -> R) -> R {
        let before = terrane_base::counters::read_counters().versions_skipped;
        let (done, took, timing) = self.timed(step);
        if self.is_slow(took, self.options.slow_scan_micros) {
            let (total, device) = (micros(took), micros(timing.device_reads));
            tracing::warn!(
                target: "terrane::slow",
                operation = "scan",
                table,
                versions_skipped =
                    terrane_base::counters::read_counters().versions_skipped.wrapping_sub(before),
                micros = total,
                device_read_micros = device,
                other_micros = total.saturating_sub(device),
                "slow step of a scan"
            );
        }
        done
    }

    /// Runs a write of so many records and bytes, and tells if it is slow. `write` says what its commit took.
    #[cold]
    pub(crate) fn watched_write<R>(
        &self,
        (records, bytes): (u32, usize),
        write: impl FnOnce(&mut CommitTime) -> R,
    ) -> R {
        let mut commit = CommitTime(Duration::ZERO);
        let (done, took, timing) = self.timed(|| write(&mut commit));
        if self.is_slow(took, self.options.slow_write_micros) {
            let (total, held_back, persist) =
                (micros(took), micros(timing.held_back), micros(timing.persist));
            let ring = micros(commit.0).saturating_sub(persist);
            tracing::warn!(
                target: "terrane::slow",
                operation = "write",
                records,
                bytes,
                micros = total,
                held_back_micros = held_back,
                persist_micros = persist,
                ring_micros = ring,
                other_micros = total.saturating_sub(held_back + persist + ring),
                "slow write"
            );
        }
        done
    }

    fn timed<R>(&self, operation: impl FnOnce() -> R) -> (R, Duration, Timing) {
        let start = self.env.clock.now();
        let (done, timing) = timing::watch(operation);
        (done, self.env.clock.now().saturating_sub(start), timing)
    }

    /// Whether an operation that took so long is slow; counts it.
    pub(crate) fn is_slow(&self, took: Duration, threshold_micros: u64) -> bool {
        let is_slow = threshold_micros > 0 && micros(took) >= threshold_micros;
        if is_slow {
            add(&self.counters.slow_operations, 1);
        }
        is_slow
    }
}

pub(crate) fn micros(time: Duration) -> u64 {
    time.as_micros() as u64
}
