//! Pacing: writers are slowed in proportion to what the background owes, so that the rate bends and never stops
//! while space is left.
//!
//! Two things are owed, each 0 when none is and 1 at its limit ([`crate::debt`]):
//!
//! * *Memory* moves by whole generations and its limit is hard. Below [`FREE_DEBT`] writers run free; above it their rate
//!   falls linearly from twice the measured rate of flushes to zero at the limit, where they wait for memory.
//! * The *backlog* of the levels is soft. From its start on writers go at the rate at which overflow runs sink into level 1,
//!   averaged over seconds, a little faster at its start and a little slower at its end ([`follow`]): while it stays
//!   between the two, no moment is slower than half the average. Beyond its end the rate goes on falling.
//!
//! The rate is that of all writers together: they pay one after the other, and what is left of a payment is for all.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use terrane_base::env::{Clock, Env};

/// Memory debt below which writers run free.
const FREE_DEBT: f64 = 0.75;
/// Least rate at which writers go on while memory is left, in bytes per second.
const RATE_FLOOR: f64 = 256.0 * 1024.0;
/// What is shown of a backlog stays below this.
const SLOWEST: f64 = 0.98;
/// The rates assumed before anything was measured, in bytes per second.
const RATE_START: f64 = 64.0 * 1024.0 * 1024.0;
/// Shortest single pause: less is lost in the sleep.
const PAUSE_MIN: Duration = Duration::from_micros(10);
/// Longest single pause, so that a changed debt is noticed.
const PAUSE_MAX: Duration = Duration::from_millis(10);
/// Longest payment for one batch: who writes hears of a close or a failure soon.
const PAY_MAX: Duration = Duration::from_secs(1);
/// Longest wait for memory without a look whether there is some.
const GATE_MAX: Duration = Duration::from_millis(50);
/// Writers pay for this many bytes at once: a pause per record would cost more than it holds back.
const QUANTUM_BYTES: u64 = 64 * 1024;

/// Time over which the rate of sinking runs is averaged: several compactions, so that none of them shows.
const SINK_MEMORY: Duration = Duration::from_secs(5);
/// Shares of that rate at the start and the end of the backlog. A steeper slope follows single compactions.
const SHARE_START: f64 = 1.3;
const SHARE_END: f64 = 0.7;
/// Stands for a rate without a limit.
const FREE: u64 = u64::MAX;

/// How far writers are held back, and why.
#[derive(Debug)]
pub(crate) struct Pressure {
    /// The larger of memory debt and backlog, for whoever asks, scaled by 2^16.
    debt: AtomicU64,
    /// Memory debt, scaled by 2^16; written by the background, read by every writer.
    memory_debt: AtomicU64,
    /// The rate that the backlog allows, in bytes per second, or [`FREE`].
    backlog_rate: AtomicU64,
    /// Bytes that writers may still bring before they look at the debt again.
    credit: AtomicU64,
    /// Held by the writer that pays; no other work takes it.
    turn: Mutex<()>,
    /// Rate of flushes in bytes per second.
    drain_rate: AtomicU64,
    /// Rate at which overflow runs sink, in bytes per second.
    sink_rate: AtomicU64,
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
            memory_debt: AtomicU64::new(0),
            backlog_rate: AtomicU64::new(FREE),
            credit: AtomicU64::new(0),
            turn: Mutex::new(()),
            drain_rate: AtomicU64::new(RATE_START as u64),
            sink_rate: AtomicU64::new(RATE_START as u64),
            paused_micros: AtomicU64::new(0),
            gate: Mutex::new(()),
            freed: Condvar::new(),
        }
    }
}

impl Pressure {
    /// What is owed, of whatever there is most; from 1 on writers wait.
    pub(crate) fn debt(&self) -> f64 {
        unscaled(self.debt.load(Ordering::Relaxed))
    }

    /// Sets the memory debt and how far the backlog is from its start (0) to its end (1), both unbounded, and wakes
    /// writers that wait for memory.
    pub(crate) fn set_debt(&self, memory: f64, backlog: f64) {
        let rate = follow(backlog, self.sink_rate.load(Ordering::Relaxed) as f64);
        self.backlog_rate.store(rate.map_or(FREE, |rate| rate.max(RATE_FLOOR) as u64), Ordering::Relaxed);
        self.memory_debt.store(scaled(memory), Ordering::Relaxed);
        // Only memory stops writers.
        let shown = f64::midpoint(1.0, backlog).min(SLOWEST);
        self.debt.store(scaled(memory.max(shown)), Ordering::Relaxed);
        if memory < 1.0 {
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

    /// Notes that `bytes` of overflow runs sank, the first in `took`.
    pub(crate) fn sank(&self, bytes: u64, took: Duration) {
        let took = took.as_secs_f64().max(1e-3);
        let old = self.sink_rate.load(Ordering::Relaxed) as f64;
        // At most half of it is forgotten at once: the background may have been paused meanwhile.
        let keeps = (-took / SINK_MEMORY.as_secs_f64()).exp().max(0.5);
        let rate = old * keeps + bytes as f64 / took * (1.0 - keeps);
        self.sink_rate.store(rate.max(RATE_FLOOR) as u64, Ordering::Relaxed);
    }

    /// Total time writers were held back.
    pub(crate) fn paused(&self) -> Duration {
        Duration::from_micros(self.paused_micros.load(Ordering::Relaxed))
    }

    /// Pays for `bytes` that a writer is about to bring; pauses in proportion to the debt.
    #[inline]
    pub(crate) fn pay(&self, bytes: u64, clock: &dyn Clock) {
        if self.rate().is_some() {
            self.pay_slowly(bytes, clock);
        }
    }

    /// The rate that is allowed, in bytes per second; `None` is any.
    #[inline]
    pub(crate) fn rate(&self) -> Option<f64> {
        let debt = unscaled(self.memory_debt.load(Ordering::Relaxed));
        let backlog_rate = self.backlog_rate.load(Ordering::Relaxed);
        (debt > FREE_DEBT || backlog_rate != FREE).then(|| {
            let drain_rate = self.drain_rate.load(Ordering::Relaxed) as f64;
            rate_by_debt(debt, drain_rate).min(backlog_rate as f64).max(RATE_FLOOR)
        })
    }

    #[cold]
    fn pay_slowly(&self, bytes: u64, clock: &dyn Clock) {
        if self.takes_credit(bytes) {
            return;
        }
        let start = clock.now();
        let turn = self.turn.lock();
        // The writers before may have left enough.
        if !self.takes_credit(bytes) {
            let bought = bytes.max(QUANTUM_BYTES);
            self.credit.fetch_add(bought - bytes, Ordering::Relaxed);
            self.pause_for(bought, clock);
        }
        drop(turn);
        self.paused_micros.fetch_add((clock.now() - start).as_micros() as u64, Ordering::Relaxed);
    }

    fn takes_credit(&self, bytes: u64) -> bool {
        let take = |credit: u64| credit.checked_sub(bytes);
        self.credit.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Pauses as long as bringing `bytes` takes at the rate that is allowed, as it changes meanwhile, up to [`PAY_MAX`]; at
    /// the limit of memory only until the wait for it decides. What a sleep lasted longer than it was to is credit.
    fn pause_for(&self, bytes: u64, clock: &dyn Clock) {
        let (mut owed, mut now) = (bytes as f64, clock.now());
        let end = now + if self.debt() < 1.0 { PAY_MAX } else { GATE_MAX };
        while owed >= 1.0
            && now < end
            && let Some(rate) = self.rate()
        {
            clock.sleep(Duration::from_secs_f64(owed / rate).clamp(PAUSE_MIN, PAUSE_MAX));
            let before = std::mem::replace(&mut now, clock.now());
            owed -= rate * (now - before).as_secs_f64();
        }
        self.credit.fetch_add((-owed).clamp(0.0, QUANTUM_BYTES as f64) as u64, Ordering::Relaxed);
    }

    /// Waits until `fits` says there is memory, or `give_up` says that there will be none.
    pub(crate) fn wait_for_memory(&self, env: &Env, fits: &dyn Fn() -> bool, give_up: &dyn Fn() -> bool) {
        let start = env.clock.now();
        let mut gate = self.gate.lock();
        while !fits() && !give_up() {
            match env.spawn.stepper() {
                Some(stepper) => MutexGuard::unlocked(&mut gate, || stepper.pass(GATE_MAX)),
                None => drop(self.freed.wait_for(&mut gate, GATE_MAX)),
            }
        }
        self.paused_micros.fetch_add((env.clock.now() - start).as_micros() as u64, Ordering::Relaxed);
    }
}

fn scaled(debt: f64) -> u64 {
    (debt.max(0.0) * 65536.0) as u64
}

fn unscaled(debt: u64) -> f64 {
    debt as f64 / 65536.0
}

/// The rate that a backlog allows where runs sink at `sink_rate`; `None` is any rate.
fn follow(backlog: f64, sink_rate: f64) -> Option<f64> {
    let share =
        if backlog <= 1.0 { SHARE_START + (SHARE_END - SHARE_START) * backlog } else { SHARE_END / backlog };
    (backlog > 0.0).then_some(sink_rate * share)
}

/// The rate that memory debt allows, in bytes per second.
fn rate_by_debt(debt: f64, drain_rate: f64) -> f64 {
    if debt <= FREE_DEBT {
        return f64::INFINITY;
    }
    let room = ((1.0 - debt) / (1.0 - FREE_DEBT)).clamp(0.0, 1.0);
    2.0 * drain_rate * room
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_grows_with_the_debt_without_a_cliff() {
        let pause = |debt| QUANTUM_BYTES as f64 / rate_by_debt(debt, 100e6).max(RATE_FLOOR);
        let middle = f64::midpoint(FREE_DEBT, 1.0);
        assert!((pause(middle) - QUANTUM_BYTES as f64 / 100e6).abs() < 1e-6, "drain rate in the middle");
        let mut last = 0.0;
        for step in 0..100 {
            let now = pause(FREE_DEBT + (1.0 - FREE_DEBT) * f64::from(step) / 100.0);
            assert!(now >= last && now < last * 2.0 + 1e-3, "step {step}: {last} -> {now}");
            last = now;
        }
    }

    /// A clock that goes on while somebody sleeps, and counts who sleeps beside another.
    #[derive(Debug, Default)]
    struct Sleeps {
        micros: AtomicU64,
        sleepers: AtomicU64,
        beside: AtomicU64,
    }

    impl Clock for Sleeps {
        fn now(&self) -> Duration {
            Duration::from_micros(self.micros.load(Ordering::SeqCst))
        }

        fn wall(&self) -> Duration {
            self.now()
        }

        fn sleep(&self, duration: Duration) {
            self.beside.fetch_add(self.sleepers.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
            (0..20).for_each(|_| std::thread::yield_now());
            self.micros.fetch_add(duration.as_micros() as u64, Ordering::SeqCst);
            self.sleepers.fetch_sub(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn writers_together_pay_as_one_would() {
        const WRITERS: u64 = 4;
        const BYTES: u64 = 1000;
        let (pressure, clock) = (Pressure::default(), Sleeps::default());
        pressure.sink_rate.store(10_000_000, Ordering::Relaxed);
        pressure.set_debt(0.0, 0.5);
        std::thread::scope(|scope| {
            for _ in 0..WRITERS {
                scope.spawn(|| (0..1000).for_each(|_| pressure.pay(BYTES, &clock)));
            }
        });
        assert_eq!(clock.beside.load(Ordering::SeqCst), 0, "one pays at a time");
        let brought = (WRITERS * 1000 * BYTES).next_multiple_of(QUANTUM_BYTES) as f64;
        let took = clock.now().as_secs_f64();
        assert!((took * 10e6 / brought - 1.0).abs() < 0.02, "{took} s for {brought} bytes");
    }

    #[test]
    fn a_large_batch_pays_for_all_its_bytes_and_notices_that_nothing_is_owed_any_more() {
        /// Forgives what is owed when a second is over.
        #[derive(Debug, Default)]
        struct Forgives(Sleeps, Pressure);
        impl Clock for Forgives {
            fn now(&self) -> Duration {
                self.0.now()
            }
            fn wall(&self) -> Duration {
                self.now()
            }
            fn sleep(&self, duration: Duration) {
                self.0.sleep(duration);
                if self.now() >= Duration::from_secs(1) {
                    self.1.set_debt(0.0, -1.0);
                }
            }
        }
        let clock = Forgives::default();
        clock.1.sink_rate.store(10_000_000, Ordering::Relaxed);
        clock.1.set_debt(0.0, 0.5);
        clock.1.pay(5_000_000, &clock);
        assert_eq!(clock.now().as_millis(), 500);
        clock.1.pay(500_000_000, &clock);
        assert_eq!(clock.now().as_millis(), 1000);
    }

    #[test]
    fn no_batch_pays_for_longer_than_a_second() {
        let (pressure, clock) = (Pressure::default(), Sleeps::default());
        pressure.sink_rate.store(10_000_000, Ordering::Relaxed);
        pressure.set_debt(0.99, 0.5);
        pressure.pay(500_000_000, &clock);
        assert_eq!(clock.now(), PAY_MAX);
        pressure.set_debt(1.0, 0.5);
        pressure.pay(500_000_000, &clock);
        assert_eq!(clock.now(), PAY_MAX + GATE_MAX, "at the limit the wait for memory decides");
    }

    #[test]
    fn a_backlog_slows_writers_little_by_little() {
        assert_eq!(follow(-0.1, 100e6), None);
        let mut last = SHARE_START * 100e6;
        for step in 1..400 {
            let rate = follow(f64::from(step) / 100.0, 100e6).expect("a limit");
            assert!(rate <= last && rate > last * 0.95, "step {step}: {last} -> {rate}");
            last = rate;
        }
        assert!(last < 100e6 * SHARE_END / 3.0, "far beyond its end little comes: {last}");
    }

    #[test]
    fn one_merge_that_took_for_ever_does_not_stop_writers() {
        let pressure = Pressure::default();
        pressure.sank(1 << 20, Duration::from_secs(100_000));
        pressure.set_debt(0.0, 0.5);
        let rate = pressure.backlog_rate.load(Ordering::Relaxed) as f64;
        assert!(rate > RATE_START * 0.49 && rate < RATE_START * 0.51, "{rate}");
    }

    /// A background that merges the runs there are, then works elsewhere for as long, and writers that always want
    /// more: the rate in windows of 100 ms, after a while.
    fn settle(merge_rate: f64) -> Vec<f64> {
        const GENERATION: f64 = 16e6;
        const TRIGGER: f64 = 4.0;
        const STEP: Duration = Duration::from_millis(1);
        let pressure = Pressure::default();
        // Bytes in runs, what the job under way took of them and has still to take; moments of the job and of the rest.
        let (mut runs, mut taken, mut left) = (0.0, 0.0, 0.0);
        let (mut now, mut since, mut elsewhere) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        let mut windows = Vec::new();
        while windows.len() < 900 {
            let mut brought = 0.0;
            for _ in 0..100 {
                pressure.set_debt(0.0, (runs / GENERATION - TRIGGER) / TRIGGER);
                let rate = pressure.backlog_rate.load(Ordering::Relaxed).min(300_000_000) as f64;
                let bytes = rate * STEP.as_secs_f64();
                (runs, brought) = (runs + bytes, brought + bytes);
                now += STEP;
                if left > 0.0 {
                    let sunk = (merge_rate * STEP.as_secs_f64()).min(left);
                    (runs, left) = (runs - sunk, left - sunk);
                    if left <= 0.0 {
                        pressure.sank(taken as u64, now - since);
                        (elsewhere, since) = (now + (now - since) / 2, now);
                    }
                } else if now >= elsewhere && runs >= TRIGGER * GENERATION {
                    (taken, left) = (runs, runs);
                } else if now >= elsewhere {
                    since = now;
                }
            }
            windows.push(brought / 0.1);
        }
        windows.split_off(300)
    }

    #[test]
    fn no_window_is_below_half_of_the_median() {
        for merge_rate in [20e6, 30e6, 60e6, 120e6] {
            let mut windows = settle(merge_rate);
            windows.sort_by(f64::total_cmp);
            let (lowest, median) = (windows[0], windows[windows.len() / 2]);
            assert!(lowest >= median / 2.0, "merges {merge_rate}: lowest {lowest}, median {median}");
            let mean = windows.iter().sum::<f64>() / windows.len() as f64;
            assert!(mean > merge_rate * 0.4, "merges {merge_rate}: {mean}");
        }
    }
}
