//! Waiting for nanoseconds, by spinning on a clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use terrane_base::env::Clock;

/// Calls of the clock that say what one takes.
const CALIBRATION_CALLS: u64 = 256;

#[derive(Debug)]
pub(super) struct Pace {
    clock: Arc<dyn Clock>,
    /// The time of a call of the clock: the step in which a wait begins takes it, too.
    clock_ns: u64,
    /// Until when the device is busy with lines that were sent to it, in nanoseconds of the clock.
    busy_until: AtomicU64,
}

impl Pace {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let begin = clock.now();
        let end = (0..CALIBRATION_CALLS).fold(begin, |_, _| clock.now());
        let clock_ns = (end - begin).as_nanos() as u64 / CALIBRATION_CALLS;
        Pace { clock, clock_ns, busy_until: AtomicU64::new(0) }
    }

    /// Waits for `latency` nanoseconds from now, and until the device has been busy for `busy` nanoseconds
    /// after what it was busy with before.
    pub(super) fn wait(&self, latency: u64, busy: u64) {
        if latency == 0 && busy == 0 {
            return;
        }
        let now = self.now();
        let free = if busy == 0 { now } else { self.occupy(now, busy) };
        let end = free.max(now + latency.saturating_sub(self.clock_ns));
        while self.now() < end {
            std::hint::spin_loop();
        }
    }

    /// Takes the device for `busy` nanoseconds; returns when it is free again.
    fn occupy(&self, now: u64, busy: u64) -> u64 {
        let mut until = self.busy_until.load(Ordering::Relaxed);
        loop {
            let end = until.max(now) + busy;
            // Relaxed: the number orders nothing but itself.
            match self.busy_until.compare_exchange_weak(until, end, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return end,
                Err(found) => until = found,
            }
        }
    }

    fn now(&self) -> u64 {
        self.clock.now().as_nanos() as u64
    }
}
