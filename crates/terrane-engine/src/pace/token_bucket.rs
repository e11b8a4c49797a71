//! A token bucket: the rate at which a group of writers may write together, and the charges that keep them to
//! it.
//! There is one for memory, which all tables share, and one for each table, for the debt of its levels
//! ([`crate::throttle`]). One writer at a time is charged, for many bytes at once, and pauses for them; bytes
//! of a charge that it does not use are credit for all writers. Writes that do not pause run on credit: one
//! is admitted at once if earlier credit is repaid, and time repays its own ([`crate::throttle::admit`]).

use std::time::Duration;
use terrane_base::sync::atomic::{AtomicU64, Ordering};

use terrane_base::env::Clock;
use terrane_base::sync::Mutex;

/// Least rate at which writers go on, in bytes per second.
pub(crate) const RATE_FLOOR: f64 = 256.0 * 1024.0;
/// The rates assumed before anything was measured, in bytes per second.
pub(crate) const RATE_START: f64 = 64.0 * 1024.0 * 1024.0;
/// Shortest single pause: less is lost in the sleep.
pub(crate) const PAUSE_MIN: Duration = Duration::from_micros(10);
/// Longest single pause, so that a changed rate is noticed.
const PAUSE_MAX: Duration = Duration::from_millis(10);
/// Writers are charged for this many bytes at once: a pause per record would cost more than it holds back.
pub(crate) const QUANTUM_BYTES: u64 = 64 * 1024;
/// Most bytes that writers earn by working between two charges.
const EARNED_BYTES_MAX: f64 = 2.0 * QUANTUM_BYTES as f64;
/// Longest pause for one batch: the rate changes soon, and later writers wait behind it.
const CHARGE_MAX: Duration = Duration::from_secs(1);
/// Stands for a rate without a limit.
const FREE: u64 = u64::MAX;

/// The rate, and the credit and debt of its writers.
#[derive(Debug)]
pub(crate) struct TokenBucket {
    /// The rate that is allowed, in bytes per second, or [`FREE`]; set when the debt is computed.
    rate: AtomicU64,
    /// Bytes that writers may still bring before the next charge.
    credit: AtomicU64,
    /// Locked by the writer that is charged; no other work takes the lock. The value is the time at which the
    /// last charge ended: the time that writers needed for their own work since then counts towards the next
    /// charge, or they would go slower than the rate.
    turn: Mutex<Duration>,
    /// The moment, in microseconds of the clock, at which the writes on credit are repaid.
    repaid_at: AtomicU64,
    /// Bytes of writers whose wait ended before their turn: the next charge includes them.
    left_over: AtomicU64,
}

impl Default for TokenBucket {
    fn default() -> Self {
        TokenBucket {
            rate: AtomicU64::new(FREE),
            credit: AtomicU64::new(0),
            turn: Mutex::new(Duration::ZERO),
            repaid_at: AtomicU64::new(0),
            left_over: AtomicU64::new(0),
        }
    }
}

impl TokenBucket {
    /// Sets the rate in bytes per second; `None` is any.
    pub(crate) fn set(&self, rate: Option<f64>) {
        debug_assert!(rate.is_none_or(|rate| rate >= 0.0), "a rate of {rate:?}");
        // Relaxed, here and below: a measure that is soon replaced by the next.
        if rate.is_none() {
            // Charged at a rate that is gone.
            self.repaid_at.store(0, Ordering::Relaxed);
            self.left_over.store(0, Ordering::Relaxed);
        }
        self.rate.store(rate.map_or(FREE, |rate| rate.max(RATE_FLOOR) as u64), Ordering::Relaxed);
    }

    /// The rate that is allowed, in bytes per second; `None` is any.
    #[inline]
    pub(crate) fn rate(&self) -> Option<f64> {
        let rate = self.rate.load(Ordering::Relaxed);
        (rate != FREE).then_some(rate as f64)
    }

    /// Takes `bytes` of the credit that earlier charges left; returns false if it is too small.
    pub(crate) fn take_credit(&self, bytes: u64) -> bool {
        let take = |credit: u64| credit.checked_sub(bytes);
        self.credit.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Charges a writer for `bytes` that it is about to bring: pauses for as long as they take at the rate,
    /// the wait for its turn included, for `longest` at most. If the writer does not get its turn by then,
    /// the next charge includes its bytes.
    pub(crate) fn charge(&self, bytes: u64, longest: Duration, clock: &dyn Clock) {
        if self.rate().is_none() || self.take_credit(bytes) {
            return;
        }
        let end = clock.now() + longest;
        let Some(mut turn) = self.turn.try_lock_for(longest) else {
            self.left_over.fetch_add(bytes, Ordering::Relaxed);
            return;
        };
        // The writers before may have left enough.
        if !self.take_credit(bytes) {
            let charged = bytes.max(QUANTUM_BYTES);
            self.credit.fetch_add(charged - bytes, Ordering::Relaxed);
            let left_over = self.left_over.swap(0, Ordering::Relaxed);
            let debt;
            (*turn, debt) = self.pause_for(charged.saturating_add(left_over), *turn, end, clock);
            debug_assert!(
                debt <= charged.saturating_add(left_over),
                "a writer is left with more than it was charged"
            );
            if let Some(rate) = self.rate() {
                // After a very low rate no writer pauses long for the bytes of others.
                let most = left_over.min((rate * CHARGE_MAX.as_secs_f64()) as u64);
                self.left_over.fetch_add(most.min(debt), Ordering::Relaxed);
            }
        }
    }

    /// Pauses until `bytes` fit the rate since `last`, the end of the last charge, or until `end`; the rate
    /// may change meanwhile. The excess time of a sleep is credit. Returns the time, and the bytes that did
    /// not fit.
    fn pause_for(&self, bytes: u64, last: Duration, end: Duration, clock: &dyn Clock) -> (Duration, u64) {
        let (mut debt, mut now) = (bytes as f64, clock.now());
        if let Some(rate) = self.rate() {
            // Idle time earns at most `EARNED_BYTES_MAX`: a writer that returns has no advantage over one
            // that always writes.
            debt -= (rate * now.saturating_sub(last).as_secs_f64()).min(EARNED_BYTES_MAX);
        }
        while debt >= 1.0
            && now < end
            && let Some(rate) = self.rate()
        {
            let left = end.saturating_sub(now).max(PAUSE_MIN);
            clock.sleep(Duration::from_secs_f64(debt / rate).clamp(PAUSE_MIN, PAUSE_MAX).min(left));
            let before = std::mem::replace(&mut now, clock.now());
            debt -= rate * (now - before).as_secs_f64();
        }
        self.credit.fetch_add((-debt).clamp(0.0, QUANTUM_BYTES as f64) as u64, Ordering::Relaxed);
        debug_assert!(debt.is_finite(), "{debt} bytes of {bytes} are left");
        (now, debt.max(0.0) as u64)
    }

    /// Charges `bytes` on credit, as soon as earlier credit is repaid. Returns the charge in microseconds,
    /// for [`TokenBucket::refund`] if the write does not come; `None` if earlier credit is not repaid by
    /// `until`. Charges nothing once `gives_up` returns true, because no write will come.
    pub(crate) fn charge_by(
        &self,
        bytes: u64,
        until: Duration,
        clock: &dyn Clock,
        gives_up: &dyn Fn() -> bool,
    ) -> Option<u64> {
        let micros = |time: Duration| time.as_micros() as u64;
        loop {
            let Some(rate) = self.rate() else { return Some(0) };
            debug_assert!(rate > 0.0, "a charge at no rate at all lasts for ever");
            let (now, repaid_at) = (micros(clock.now()), self.repaid_at.load(Ordering::Relaxed));
            // A batch less than a quantum may come early: pauses are that coarse elsewhere, too.
            let grace = (QUANTUM_BYTES as f64 / rate * 1e6) as u64;
            if repaid_at <= now.saturating_add(grace) {
                let charge = ((bytes as f64 / rate * 1e6) as u64).min(micros(CHARGE_MAX));
                let repaid = repaid_at.max(now) + charge;
                let taken =
                    self.repaid_at.compare_exchange(repaid_at, repaid, Ordering::Relaxed, Ordering::Relaxed);
                if taken.is_ok() {
                    return Some(charge);
                }
            } else if repaid_at - grace > micros(until) || now >= micros(until) {
                return None;
            } else if gives_up() {
                return Some(0);
            } else {
                // Time repays the credit; but the rate may change meanwhile.
                let wait = Duration::from_micros(repaid_at - grace - now);
                clock.sleep(wait.clamp(PAUSE_MIN, PAUSE_MAX));
            }
        }
    }

    /// Takes a charge on credit back: the write does not come.
    pub(crate) fn refund(&self, charge: u64) {
        debug_assert!(
            u128::from(charge) <= CHARGE_MAX.as_micros(),
            "no batch was charged {charge} microseconds"
        );
        let less = |repaid_at: u64| Some(repaid_at.saturating_sub(charge));
        let _always = self.repaid_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

#[cfg(test)]
mod tests {
    use terrane_base::env::SleepClock;

    use super::*;

    /// Did it wait for its turn to the end, this test would not end.
    #[test]
    fn a_writer_without_a_turn_goes_on_and_the_next_one_is_charged() {
        const BYTES: u64 = 1_000_000;
        let (pace, clock) = (TokenBucket::default(), SleepClock::default());
        pace.set(Some(10e6));
        let turn = pace.turn.lock();
        for _ in 0..2 {
            pace.charge(BYTES, Duration::from_millis(1), &clock);
        }
        assert_eq!(clock.now(), Duration::ZERO);
        drop(turn);
        pace.charge(BYTES, CHARGE_MAX, &clock);
        assert_eq!(clock.now(), Duration::from_millis(300), "for all three");
        // The bytes that others left are charged in parts to later writers, each within its own longest wait.
        pace.left_over.store(5 * BYTES, Ordering::Relaxed);
        pace.charge(BYTES, Duration::from_millis(200), &clock);
        assert_eq!(clock.now(), Duration::from_millis(500));
        assert_eq!(pace.left_over.load(Ordering::Relaxed), 4 * BYTES);
        pace.set(None);
        assert_eq!(pace.left_over.load(Ordering::Relaxed), 0, "no writer is charged any more");
    }
}
