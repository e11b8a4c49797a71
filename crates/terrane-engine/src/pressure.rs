//! Pacing: writers are slowed in proportion to what the background owes, so that the rate bends and never stops
//! while space is left.
//!
//! Debt is a number: 0 is none, 1 is the limit. It is the largest of three: write memory in use, overflow runs,
//! bytes that compaction owes. Below [`FREE_DEBT`] writers are not slowed. Above it there is a rate at which they go:
//!
//! * steered ([`crate::steering`]): a rate that is remembered and changed slowly, until debt stays where it should be;
//! * by the debt alone: it falls linearly from twice the measured drain rate to zero at the limit, so debt settles near
//!   the middle, where writers bring as much as the background removes. Debt moves by whole generations, though, and the
//!   rate with it.
//!
//! At the limit of memory a writer waits for memory to come back: that ceiling is hard.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use terrane_base::env::{Clock, Env};

use crate::steering::Steering;

/// Debt below which writers run free.
pub(crate) const FREE_DEBT: f64 = 0.75;
/// Least rate at which writers go on while memory is left, in bytes per second.
pub(crate) const RATE_FLOOR: f64 = 256.0 * 1024.0;
/// The drain rate assumed before anything was measured, in bytes per second.
const RATE_START: f64 = 64.0 * 1024.0 * 1024.0;
/// Longest single pause, so that a changed debt is noticed.
const PAUSE_MAX: Duration = Duration::from_millis(50);
/// Writers pay for this many bytes at once: a pause per record would cost more than it holds back.
const QUANTUM_BYTES: u64 = 64 * 1024;

/// How far writers are held back, and why.
#[derive(Debug)]
pub(crate) struct Pressure {
    /// Debt, scaled by 2^16; written by the background, read by every writer.
    debt: AtomicU64,
    /// Bytes that writers may still bring before they look at the debt again.
    credit: AtomicU64,
    /// Drain rate in bytes per second.
    drain_rate: AtomicU64,
    /// The remembered rate, if writers are steered.
    steering: Option<Steering>,
    /// Total time writers were held back, in microseconds.
    paused_micros: AtomicU64,
    /// Signalled when memory comes back.
    gate: Mutex<()>,
    freed: Condvar,
}

impl Default for Pressure {
    fn default() -> Self {
        Pressure {
            debt: AtomicU64::new(0),
            credit: AtomicU64::new(0),
            drain_rate: AtomicU64::new(RATE_START as u64),
            steering: None,
            paused_micros: AtomicU64::new(0),
            gate: Mutex::new(()),
            freed: Condvar::new(),
        }
    }
}

impl Pressure {
    /// No debt. `steers` chooses how the rate follows the debt.
    pub(crate) fn new(steers: bool) -> Self {
        Pressure { steering: steers.then(Steering::default), ..Pressure::default() }
    }

    /// Debt now; above 1 the limit is passed.
    pub(crate) fn debt(&self) -> f64 {
        self.debt.load(Ordering::Relaxed) as f64 / 65536.0
    }

    /// Sets the debt and wakes writers that wait for memory.
    pub(crate) fn set_debt(&self, debt: f64) {
        self.debt.store((debt.max(0.0) * 65536.0) as u64, Ordering::Relaxed);
        if debt < 1.0 {
            self.wake();
        }
    }

    /// Wakes writers that wait at the gate.
    pub(crate) fn wake(&self) {
        let _gate = self.gate.lock();
        self.freed.notify_all();
    }

    /// Notes that the background removed `bytes` of debt in `took`.
    pub(crate) fn drained(&self, bytes: u64, took: Duration) {
        let rate = bytes as f64 / took.as_secs_f64().max(1e-3);
        let old = self.drain_rate.load(Ordering::Relaxed) as f64;
        self.drain_rate.store((old * 0.75 + rate * 0.25).max(RATE_FLOOR) as u64, Ordering::Relaxed);
    }

    /// Total time writers were held back.
    pub(crate) fn paused(&self) -> Duration {
        Duration::from_micros(self.paused_micros.load(Ordering::Relaxed))
    }

    /// Pays for `bytes` that a writer is about to bring; pauses in proportion to the debt.
    #[inline]
    pub(crate) fn pay(&self, bytes: u64, clock: &dyn Clock) {
        let debt = self.debt();
        if debt > FREE_DEBT || self.steering.as_ref().is_some_and(Steering::is_on) {
            self.pay_slowly(bytes, debt, clock);
        }
    }

    #[cold]
    fn pay_slowly(&self, bytes: u64, debt: f64, clock: &dyn Clock) {
        let took = self
            .credit
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |credit| credit.checked_sub(bytes));
        if took.is_ok() {
            return;
        }
        let bought = bytes.max(QUANTUM_BYTES);
        let start = clock.now();
        let drain_rate = self.drain_rate.load(Ordering::Relaxed) as f64;
        let rate = match &self.steering {
            Some(steering) => steering.rate(start, debt, drain_rate),
            None => rate_by_debt(debt, drain_rate),
        };
        let pause = pause_for(bought, rate);
        self.credit.fetch_add(bought - bytes, Ordering::Relaxed);
        clock.sleep(pause);
        self.paused_micros.fetch_add((clock.now() - start).as_micros() as u64, Ordering::Relaxed);
    }

    /// Waits until `fits` says there is memory, or `give_up` says that there will be none.
    pub(crate) fn wait_for_memory(&self, env: &Env, fits: &dyn Fn() -> bool, give_up: &dyn Fn() -> bool) {
        let start = env.clock.now();
        let mut gate = self.gate.lock();
        while !fits() && !give_up() {
            match env.spawn.stepper() {
                Some(stepper) => MutexGuard::unlocked(&mut gate, || stepper.pass(PAUSE_MAX)),
                None => drop(self.freed.wait_for(&mut gate, PAUSE_MAX)),
            }
        }
        self.paused_micros.fetch_add((env.clock.now() - start).as_micros() as u64, Ordering::Relaxed);
    }
}

/// The rate that `debt` allows, in bytes per second.
fn rate_by_debt(debt: f64, drain_rate: f64) -> f64 {
    let room = ((1.0 - debt) / (1.0 - FREE_DEBT)).clamp(0.0, 1.0);
    2.0 * drain_rate * room
}

/// How long bringing `bytes` takes at `rate`.
fn pause_for(bytes: u64, rate: f64) -> Duration {
    Duration::from_secs_f64(bytes as f64 / rate.max(RATE_FLOOR)).min(PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_grows_with_the_debt_without_a_cliff() {
        let pause = |debt| pause_for(QUANTUM_BYTES, rate_by_debt(debt, 100e6)).as_secs_f64();
        let middle = f64::midpoint(FREE_DEBT, 1.0);
        assert!((pause(middle) - QUANTUM_BYTES as f64 / 100e6).abs() < 1e-6, "drain rate in the middle");
        let mut last = 0.0;
        for step in 0..100 {
            let now = pause(FREE_DEBT + (1.0 - FREE_DEBT) * f64::from(step) / 100.0);
            assert!(now >= last && now < last * 2.0 + 1e-3, "step {step}: {last} -> {now}");
            last = now;
        }
    }
}
