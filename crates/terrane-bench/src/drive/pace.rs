//! When an operation may start: at once (closed loop) or at its arrival (open loop).
//!
//! In open loop the latency counts from the arrival on the schedule, not from the start, so that a stall is
//! charged to every operation that it delays ("coordinated omission": Tene, 2013).

use std::time::Duration;

use terrane::Env;

/// Below this, waiting spins: a sleep may overshoot by a timer slack of 50 us.
const SPIN: Duration = Duration::from_micros(80);

/// The schedule of one worker.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    /// Time between two arrivals; none for the closed loop.
    interval: Option<Duration>,
    next: Duration,
}

impl Pace {
    /// `rate` operations per second over `threads` workers, beginning at `start`; their arrivals interleave
    /// evenly.
    pub(super) fn new(rate: Option<f64>, thread: u32, threads: u32, start: Duration) -> Self {
        let interval = rate.map(|rate| Duration::from_secs_f64(f64::from(threads) / rate));
        let offset = interval.map_or(Duration::ZERO, |interval| interval * thread / threads);
        Pace { interval, next: start + offset }
    }

    /// Waits for the next arrival if there is a schedule; returns the time from which the operation counts,
    /// or `None` if `stop` was set while waiting.
    #[inline]
    pub(super) fn arrival(&mut self, env: &Env, last: Duration, stop: &dyn Fn() -> bool) -> Option<Duration> {
        let Some(interval) = self.interval else { return Some(last) };
        let arrival = self.next;
        self.next += interval;
        self.wait(env, arrival, stop)
    }

    /// Waits for an arrival `offset` after the start, as a trace has it.
    pub(super) fn wait(&self, env: &Env, arrival: Duration, stop: &dyn Fn() -> bool) -> Option<Duration> {
        loop {
            let now = env.clock.now();
            if now >= arrival {
                return Some(arrival);
            }
            if stop() {
                return None;
            }
            let left = arrival - now;
            if left > SPIN {
                env.clock.sleep((left - SPIN).min(Duration::from_millis(50)));
            } else {
                std::hint::spin_loop();
            }
        }
    }
}
