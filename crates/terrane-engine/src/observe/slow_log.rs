//! The log of slow operations: what took longer than an option says, and where its time went, as an event of
//! `tracing` with the target `terrane::slow`. Where the option of a class is 0, an operation of it costs one
//! branch.

use std::sync::Arc;
use std::time::Duration;

use terrane_base::Batch;
use terrane_base::env::Clock;
use terrane_base::options::Options;
use terrane_base::sync::atomic::{AtomicU64, Ordering};
use terrane_base::timing::{self, Timing, Watched};

use crate::observe::stats::add;

/// See the head of the file.
pub(crate) struct SlowLog {
    clock: Arc<dyn Clock>,
    /// From which time on an operation is slow; 0 where operations of the class are not watched.
    read_micros: u64,
    write_micros: u64,
    scan_micros: u64,
    operations: AtomicU64,
}

/// Watches one write and logs it at its end if it was slow. Where slow writes are not logged it does nothing.
pub(crate) struct WriteProbe<'e>(Option<Box<WatchedWrite<'e>>>);

struct WatchedWrite<'e> {
    log: &'e SlowLog,
    records: u32,
    bytes: usize,
    began: Duration,
    /// When the write was admitted, and when it was committed.
    admitted: Option<Duration>,
    committed: Option<Duration>,
    watched: Watched,
}

impl WriteProbe<'_> {
    /// Notes that pacing is over and the commit begins.
    #[inline]
    pub(crate) fn note_admitted(&mut self) {
        if let Some(write) = &mut self.0 {
            debug_assert!(write.committed.is_none(), "a write is admitted before it is committed");
            write.admitted = Some(write.log.clock.now());
        }
    }

    /// Notes that the batch is committed.
    #[inline]
    pub(crate) fn note_committed(&mut self) {
        if let Some(write) = &mut self.0 {
            debug_assert!(write.admitted.is_some(), "a write is admitted before it is committed");
            write.committed = Some(write.log.clock.now());
        }
    }
}

impl Drop for WatchedWrite<'_> {
    fn drop(&mut self) {
        debug_assert!(self.log.write_micros > 0, "a write is watched though none is logged");
        let now = self.log.clock.now();
        let took = now.saturating_sub(self.began);
        if !self.log.is_slow(took, self.log.write_micros) {
            return;
        }
        let timing = self.watched.timing();
        let committing = self.admitted.map(|from| self.committed.unwrap_or(now).saturating_sub(from));
        let (total, held_back, persist) = (micros(took), micros(timing.held_back), micros(timing.persist));
        let ring = micros(committing.unwrap_or_default()).saturating_sub(persist);
        tracing::warn!(
            target: "terrane::slow",
            operation = "write",
            records = self.records,
            bytes = self.bytes,
            micros = total,
            held_back_micros = held_back,
            persist_micros = persist,
            ring_micros = ring,
            other_micros = total.saturating_sub(held_back + persist + ring),
            "slow write"
        );
    }
}

impl SlowLog {
    /// The log that `options` ask for.
    pub(crate) fn new(clock: Arc<dyn Clock>, options: &Options) -> SlowLog {
        SlowLog {
            clock,
            read_micros: options.diagnostics.slow_read_micros,
            write_micros: options.diagnostics.slow_write_micros,
            scan_micros: options.diagnostics.slow_scan_micros,
            operations: AtomicU64::new(0),
        }
    }

    /// Operations that were slow.
    pub(crate) fn operations(&self) -> u64 {
        self.operations.load(Ordering::Relaxed)
    }

    /// Returns true if steps of scans are watched.
    #[inline]
    pub(crate) fn watches_scans(&self) -> bool {
        self.scan_micros > 0
    }

    /// Returns true if point reads are watched.
    #[inline]
    pub(crate) fn watches_reads(&self) -> bool {
        self.read_micros > 0
    }

    /// Runs a point read of so many keys, and logs it if it is slow.
    #[inline]
    pub(crate) fn read<R>(&self, table: &str, keys: usize, read: impl FnOnce() -> R) -> R {
        if self.read_micros > 0 {
            return self.watched_read(table, keys, read);
        }
        read()
    }

    #[cold]
    fn watched_read<R>(&self, table: &str, keys: usize, read: impl FnOnce() -> R) -> R {
        debug_assert!(self.read_micros > 0, "a read is watched though none is logged");
        let (done, took, timing) = self.timed(read);
        if self.is_slow(took, self.read_micros) {
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

    /// Runs a step or a placement of a scan, and logs it if it is slow.
    #[cold]
    pub(crate) fn watched_scan<R>(&self, table: &str, step: impl FnOnce() -> R) -> R {
        debug_assert!(self.scan_micros > 0, "a scan is watched though none is logged");
        let before = terrane_base::counters::read_counters().versions_skipped;
        let (done, took, timing) = self.timed(step);
        if self.is_slow(took, self.scan_micros) {
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

    /// Begins to watch the write of `batch`, if slow writes are logged.
    #[inline]
    pub(crate) fn probe_write(&self, batch: &Batch) -> WriteProbe<'_> {
        WriteProbe((self.write_micros > 0).then(|| self.watch_write(batch)))
    }

    #[cold]
    fn watch_write(&self, batch: &Batch) -> Box<WatchedWrite<'_>> {
        Box::new(WatchedWrite {
            log: self,
            records: batch.record_count(),
            bytes: batch.bytes().len(),
            began: self.clock.now(),
            admitted: None,
            committed: None,
            watched: Watched::begin(),
        })
    }

    fn timed<R>(&self, operation: impl FnOnce() -> R) -> (R, Duration, Timing) {
        let start = self.clock.now();
        let (done, timing) = timing::watch(operation);
        (done, self.clock.now().saturating_sub(start), timing)
    }

    /// Returns true if an operation that took so long is slow; counts it.
    pub(crate) fn is_slow(&self, took: Duration, threshold_micros: u64) -> bool {
        let is_slow = threshold_micros > 0 && micros(took) >= threshold_micros;
        if is_slow {
            add(&self.operations, 1);
        }
        is_slow
    }
}

pub(crate) fn micros(time: Duration) -> u64 {
    time.as_micros() as u64
}
