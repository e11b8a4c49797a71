//! The rate of writers as a thing that is remembered: it is turned down a little at a time while debt is above
//! [`TARGET`], and up while it is below.
//!
//! Debt moves in steps, by a generation that is freed or a run that is merged. A rate that follows it moves as much;
//! the remembered rate averages the steps and comes to rest where writers bring what the background removes. A small
//! part follows the debt at once, and close to the limit writers are held whatever was remembered.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::pressure::RATE_FLOOR;

/// Debt at which the rate stays as it is.
const TARGET: f64 = 0.85;
/// Debt below which writers run free again.
const CALM: f64 = 0.5;
/// Debt above which the rate falls to nothing at 1.
const NEARLY_FULL: f64 = 0.96;
/// Change of the rate's logarithm per second and unit of debt off the target.
const GAIN: f64 = 3.0;
/// Part of the rate that follows the debt at once, per unit of debt off the target.
const DIRECT: f64 = 1.5;
/// Bounds of that part.
const DIRECT_MAX: f64 = 0.3;
/// Longest time that one turn counts for: nobody wrote in between, so nothing was learned.
const TURN_MAX: Duration = Duration::from_millis(100);
/// The rate does not grow beyond this many times what the background was seen to remove: a writer that does not use its
/// rate must not earn a burst.
const DRAINS_MAX: f64 = 4.0;

/// See the head of the file.
#[derive(Debug, Default)]
pub(crate) struct Steering {
    is_on: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    at: Duration,
    rate: f64,
}

impl Steering {
    /// Whether writers are held to the rate.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        // Relaxed: a writer that sees it late is late by one batch.
        self.is_on.load(Ordering::Relaxed)
    }

    /// The rate now, in bytes per second. Begins at `drain_rate` when writers ran free before; ends where debt is low.
    pub(crate) fn rate(&self, now: Duration, debt: f64, drain_rate: f64) -> f64 {
        let mut state = self.state.lock();
        if !self.is_on.swap(debt >= CALM, Ordering::Relaxed) {
            *state = State { at: now, rate: drain_rate };
        }
        let took = now.saturating_sub(state.at).min(TURN_MAX).as_secs_f64();
        let off = TARGET - debt;
        state.at = now;
        state.rate = (state.rate * (GAIN * off * took).exp())
            .clamp(RATE_FLOOR, (DRAINS_MAX * drain_rate).max(RATE_FLOOR));
        let direct = 1.0 + (DIRECT * off).clamp(-DIRECT_MAX, DIRECT_MAX);
        let room = ((1.0 - debt) / (1.0 - NEARLY_FULL)).clamp(0.0, 1.0);
        state.rate * direct * room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A background that gives memory back by whole generations, and writers that always want more: the rate in windows
    /// of 100 ms, after a while.
    fn settle(drain_rate: f64) -> Vec<f64> {
        const MEMORY: f64 = 128e6;
        const GENERATION: f64 = MEMORY / 4.0;
        let steering = Steering::default();
        let (mut now, mut used, mut drained) = (0.0, MEMORY * 0.8, 0.0);
        let mut windows = Vec::new();
        for _ in 0..600 {
            let mut brought = 0.0;
            for _ in 0..100 {
                let rate = steering.rate(Duration::from_secs_f64(now), used / MEMORY, 200e6);
                let bytes = (rate * 0.001).min(MEMORY - used);
                (used, brought) = (used + bytes, brought + bytes);
                drained += drain_rate * 0.001;
                if drained >= GENERATION && used >= GENERATION {
                    (used, drained) = (used - GENERATION, drained - GENERATION);
                }
                now += 0.001;
            }
            windows.push(brought / 0.1);
        }
        windows.split_off(300)
    }

    #[test]
    fn the_rate_settles_where_the_background_follows() {
        for drain_rate in [20e6, 60e6, 150e6] {
            let windows = settle(drain_rate);
            let mean = windows.iter().sum::<f64>() / windows.len() as f64;
            assert!((mean / drain_rate - 1.0).abs() < 0.05, "drains {drain_rate}: {mean}");
            let mut sorted = windows.clone();
            sorted.sort_by(f64::total_cmp);
            let (lowest, median) = (sorted[0], sorted[sorted.len() / 2]);
            assert!(lowest >= median / 2.0, "drains {drain_rate}: lowest {lowest}, median {median}");
        }
    }

    #[test]
    fn low_debt_ends_it_and_the_limit_stops_it() {
        let steering = Steering::default();
        assert!(!steering.is_on());
        assert!(steering.rate(Duration::ZERO, 0.8, 100e6) > 50e6);
        assert!(steering.is_on());
        assert!(steering.rate(Duration::from_millis(1), 1.0, 100e6) < 1.0);
        steering.rate(Duration::from_millis(2), 0.4, 100e6);
        assert!(!steering.is_on());
    }
}
