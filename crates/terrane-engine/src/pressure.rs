//! Pacing: writers are slowed in proportion to what the background owes, so that the rate bends and never stops
//! while space is left.
//!
//! Two things are owed, each 0 when none is and 1 at its limit ([`crate::debt`]):
//!
//! * *Memory* comes back by whole generations and its limit is hard. While something waits to be flushed writers go at the
//!   rate at which the room lasts until it is ([`crate::draining`]). Where nothing waits they run free below [`FREE_DEBT`];
//!   above it their rate falls linearly from twice the measured rate of flushes to zero at the limit, where they wait for memory.
//! * The *backlog* of the levels is soft. From its start on writers go at the rate at which overflow runs sink into level 1,
//!   averaged over seconds, a little faster at its start and a little slower at its end ([`follow`]): while it stays
//!   between the two, no moment is slower than half the average. Beyond its end the rate goes on falling, and before its
//!   start it rises until there are no runs at all: writers that ran free up to the start would meet it with more than a
//!   merge can take, and go to and fro between the two.
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
/// Share of the rate of flushes at which writers go without room for more, up to near the limit.
const SLOW_SHARE: f64 = 0.25;
/// Most that writers earn by working between two payments, in bytes.
const EARNED_BYTES_MAX: f64 = 2.0 * QUANTUM_BYTES as f64;

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
    /// The rate at which the room lasts until what waits is flushed, in bytes per second, or [`FREE`].
    flush_rate: AtomicU64,
    /// The rate that the backlog allows, in bytes per second, or [`FREE`].
    backlog_rate: AtomicU64,
    /// Bytes that writers may still bring before they look at the debt again.
    credit: AtomicU64,
    /// Held by the writer that pays; no other work takes it. When the last payment ended: what writers needed for their
    /// own work since then is a part of the next one, or they would go slower than the rate that is meant.
    turn: Mutex<Duration>,
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
            flush_rate: AtomicU64::new(FREE),
            backlog_rate: AtomicU64::new(FREE),
            credit: AtomicU64::new(0),
            turn: Mutex::new(Duration::ZERO),
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

    /// Sets the rate at which the room lasts until what waits is flushed; `None` where nothing waits.
    pub(crate) fn set_flush_rate(&self, rate: Option<f64>) {
        self.flush_rate.store(rate.map_or(FREE, |rate| rate as u64), Ordering::Relaxed);
    }

    /// Rate of the last flushes in bytes per second.
    pub(crate) fn drain_rate(&self) -> f64 {
        self.drain_rate.load(Ordering::Relaxed) as f64
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
        let flush_rate = self.flush_rate.load(Ordering::Relaxed);
        (debt > FREE_DEBT || backlog_rate != FREE || flush_rate != FREE).then(|| {
            let by_debt = rate_by_debt(debt, self.drain_rate());
            let by_memory = match flush_rate {
                FREE => by_debt,
                // Writers whose share of memory became smaller have no room, and go on slowly.
                rate => (rate as f64).max(by_debt.min(self.drain_rate() * SLOW_SHARE)),
            };
            by_memory.min(backlog_rate as f64).max(RATE_FLOOR)
        })
    }

    #[cold]
    fn pay_slowly(&self, bytes: u64, clock: &dyn Clock) {
        if self.takes_credit(bytes) {
            return;
        }
        let start = clock.now();
        let mut turn = self.turn.lock();
        // The writers before may have left enough.
        if !self.takes_credit(bytes) {
            let bought = bytes.max(QUANTUM_BYTES);
            self.credit.fetch_add(bought - bytes, Ordering::Relaxed);
            *turn = self.pause_for(bought, *turn, clock);
        }
        drop(turn);
        self.paused_micros.fetch_add((clock.now() - start).as_micros() as u64, Ordering::Relaxed);
    }

    fn takes_credit(&self, bytes: u64) -> bool {
        let take = |credit: u64| credit.checked_sub(bytes);
        self.credit.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Pauses until bringing `bytes` took, from the end of the last payment on, as long as it does at the rate that is
    /// allowed, as it changes meanwhile, up to [`PAY_MAX`]; at the limit of memory only until the wait for it decides. What a
    /// sleep lasted longer than it was to is credit. Returns the time.
    fn pause_for(&self, bytes: u64, last: Duration, clock: &dyn Clock) -> Duration {
        let (mut owed, mut now) = (bytes as f64, clock.now());
        if let Some(rate) = self.rate() {
            // Who comes back after a while has no more in hand than who always writes.
            owed -= (rate * now.saturating_sub(last).as_secs_f64()).min(EARNED_BYTES_MAX);
        }
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
        now
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

/// The rate that a backlog allows where runs sink at `sink_rate`; `None` is any rate. It is -1 without any runs.
fn follow(backlog: f64, sink_rate: f64) -> Option<f64> {
    let share = match backlog {
        ..=0.0 => SHARE_START / (1.0 + backlog).max(f64::MIN_POSITIVE),
        ..=1.0 => SHARE_START + (SHARE_END - SHARE_START) * backlog,
        _ => SHARE_END / backlog,
    };
    (backlog > -1.0).then_some(sink_rate * share)
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
mod tests;
