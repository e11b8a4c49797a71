//! The debt of memory, which all tables share: the rate that it allows, and the gate at which writers wait
//! for it.

use std::time::Duration;
use terrane_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use terrane_base::env::Env;
use terrane_base::sync::{Condvar, Mutex};

use crate::pace::token_bucket::{RATE_FLOOR, RATE_START, TokenBucket};

/// Memory debt below which writers are free.
pub(super) const FREE_DEBT: f64 = 0.75;
/// The shown value of a backlog stays below this.
const SLOWEST: f64 = 0.98;
/// Longest pause for one charge, so that a writer soon notices a close or a failure.
pub(super) const PAUSE_SUM_MAX: Duration = Duration::from_secs(1);
/// Longest wait for memory without a look whether there is some.
pub(super) const GATE_MAX: Duration = Duration::from_millis(50);
/// Least rate of writers during flushes, as a share of the rate of flushes; near the limit it is lower.
const SLOW_SHARE: f64 = 0.25;

/// How far writers are held back, and why.
#[derive(Debug)]
pub(super) struct Pressure {
    /// The larger of memory debt and backlogs, as it is shown, scaled by 2^16.
    debt: AtomicU64,
    /// Memory debt, scaled by 2^16; written by the background, read by every writer.
    memory_debt: AtomicU64,
    /// True if any rate is limited.
    is_slowing: AtomicBool,
    /// True while room is made for a batch that is larger than its share: all others wait.
    is_held: AtomicBool,
    /// The token bucket of writers whose tables are charged for memory.
    pub(super) memory: TokenBucket,
    /// Rate of flushes in bytes per second.
    drain_rate: AtomicU64,
    /// Total time writers were held back, in microseconds, and the part of it for memory.
    paused_micros: AtomicU64,
    paused_for_memory_micros: AtomicU64,
    /// How often memory came back; signalled each time.
    gate: Mutex<u64>,
    freed: Condvar,
}

impl Default for Pressure {
    fn default() -> Self {
        Pressure {
            debt: AtomicU64::new(0),
            memory_debt: AtomicU64::new(0),
            is_slowing: AtomicBool::new(false),
            is_held: AtomicBool::new(false),
            memory: TokenBucket::default(),
            drain_rate: AtomicU64::new(RATE_START as u64),
            paused_micros: AtomicU64::new(0),
            paused_for_memory_micros: AtomicU64::new(0),
            gate: Mutex::new(0),
            freed: Condvar::new(),
        }
    }
}

impl Pressure {
    /// The largest debt; from 1 on writers wait.
    pub(super) fn debt(&self) -> f64 {
        unscaled(self.debt.load(Ordering::Relaxed))
    }

    /// Sets the memory debt, the rate at which the room lasts until what waits is flushed (`None` where
    /// nothing waits), and how far the longest backlog is from its start (0) to its end (1), and wakes
    /// writers that wait for memory.
    pub(super) fn set_debt(&self, memory: f64, flush_rate: Option<f64>, backlog: f64, is_table_slow: bool) {
        debug_assert!(!memory.is_nan() && !backlog.is_nan(), "debt {memory}, backlog {backlog}");
        let rate = self.memory_rate(memory, flush_rate);
        self.memory.set(rate);
        self.is_slowing.store(rate.is_some() || is_table_slow || self.is_held(), Ordering::Relaxed);
        self.memory_debt.store(scaled(memory), Ordering::Relaxed);
        // Only memory stops writers.
        let shown = f64::midpoint(1.0, backlog).min(SLOWEST);
        self.debt.store(scaled(memory.max(shown)), Ordering::Relaxed);
        if memory < 1.0 {
            self.wake();
        }
    }

    /// The rate that memory allows, in bytes per second; `None` is any.
    fn memory_rate(&self, debt: f64, flush_rate: Option<f64>) -> Option<f64> {
        let by_debt = rate_by_debt(debt, self.drain_rate());
        debug_assert!(by_debt >= 0.0, "a rate of {by_debt} holds writers for ever");
        match flush_rate {
            // If the share of writers was made smaller, there is no free memory, and they go on slowly.
            Some(rate) => Some(rate.max(by_debt.min(self.drain_rate() * SLOW_SHARE))),
            None => (debt > FREE_DEBT).then_some(by_debt),
        }
    }

    /// Rate of the last flushes in bytes per second.
    pub(super) fn drain_rate(&self) -> f64 {
        self.drain_rate.load(Ordering::Relaxed) as f64
    }

    /// Wakes writers that wait at the gate.
    pub(super) fn wake(&self) {
        *self.gate.lock() += 1;
        self.freed.notify_all();
    }

    /// Notes that the background removed `bytes` of debt in `took`.
    pub(super) fn drained(&self, bytes: u64, took: Duration) {
        let rate = bytes as f64 / took.as_secs_f64().max(1e-3);
        debug_assert!(rate.is_finite(), "{bytes} bytes in {took:?}");
        let old = self.drain_rate.load(Ordering::Relaxed) as f64;
        self.drain_rate.store((old * 0.75 + rate * 0.25).max(RATE_FLOOR) as u64, Ordering::Relaxed);
    }

    /// Total time writers were held back.
    pub(super) fn paused(&self) -> Duration {
        Duration::from_micros(self.paused_micros.load(Ordering::Relaxed))
    }

    /// The part of that for memory, in microseconds.
    pub(super) fn paused_for_memory_micros(&self) -> u64 {
        self.paused_for_memory_micros.load(Ordering::Relaxed)
    }

    /// Returns true if any writer is slowed.
    #[inline]
    pub(super) fn is_slowing(&self) -> bool {
        self.is_slowing.load(Ordering::Relaxed)
    }

    /// Has every writer wait that comes from now on, or none any more. A writer that computes the debt
    /// meanwhile may let some pass: called again and again while they are to wait.
    pub(super) fn hold(&self, is_held: bool) {
        // Relaxed: one that passes takes what the others leave, as if it had come before.
        let was_held = self.is_held.swap(is_held, Ordering::Relaxed);
        if is_held {
            self.is_slowing.store(true, Ordering::Relaxed);
        } else if was_held {
            self.wake();
        }
    }

    /// Returns true while room is made for a batch that is larger than its share.
    pub(super) fn is_held(&self) -> bool {
        self.is_held.load(Ordering::Relaxed)
    }

    /// Longest payment at the pace of memory: at its limit only until the wait for it decides.
    pub(super) fn longest(&self) -> Duration {
        if unscaled(self.memory_debt.load(Ordering::Relaxed)) < 1.0 { PAUSE_SUM_MAX } else { GATE_MAX }
    }

    pub(super) fn note_paused(&self, took: Duration, for_memory: bool) {
        let micros = took.as_micros() as u64;
        self.paused_micros.fetch_add(micros, Ordering::Relaxed);
        if for_memory {
            self.paused_for_memory_micros.fetch_add(micros, Ordering::Relaxed);
        }
    }

    /// Waits until `look` says how the wait ended. It is asked when memory came back, at `until`, and now and
    /// then. Returns also the time that it took.
    pub(super) fn wait_for_memory<R>(
        &self,
        env: &Env,
        until: Option<Duration>,
        mut look: impl FnMut() -> Option<R>,
    ) -> (R, Duration) {
        let start = env.clock.now();
        let ended = loop {
            let seen = *self.gate.lock();
            // Without the gate: making room evicts, and other writers must not wait for that. A signal that
            // comes meanwhile is seen by its number.
            if let Some(ended) = look() {
                break ended;
            }
            let left = until.map_or(GATE_MAX, |until| until.saturating_sub(env.clock.now()).min(GATE_MAX));
            match env.spawn.stepper() {
                Some(stepper) => stepper.pass(left),
                None => {
                    let mut gate = self.gate.lock();
                    if *gate == seen {
                        self.freed.wait_for(&mut gate, left);
                    }
                }
            }
        };
        let took = env.clock.now() - start;
        self.note_paused(took, true);
        (ended, took)
    }
}

fn scaled(debt: f64) -> u64 {
    (debt.max(0.0) * 65536.0) as u64
}

fn unscaled(debt: u64) -> f64 {
    debt as f64 / 65536.0
}

/// The rate that memory debt allows, in bytes per second.
pub(super) fn rate_by_debt(debt: f64, drain_rate: f64) -> f64 {
    if debt <= FREE_DEBT {
        return f64::INFINITY;
    }
    let room = ((1.0 - debt) / (1.0 - FREE_DEBT)).clamp(0.0, 1.0);
    2.0 * drain_rate * room
}
