//! A token bucket: the rate at which a group of writers may write together, and the charges that keep them to
//! it.
//!
//! There is one for memory, which all tables share, and one for each table, for the debt of its levels
//! ([`crate::throttle`]). Writers pay one after the other, for many bytes at once; bytes that a
//! payment does not use are credit for all of them. Writes that do not wait run on credit: one is admitted at
//! once if earlier credit is repaid, and time repays its own ([`crate::throttle::admit`]).

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
/// Writers pay for this many bytes at once: a pause per record would cost more than it holds back.
pub(crate) const QUANTUM_BYTES: u64 = 64 * 1024;
/// Most that writers earn by working between two payments, in bytes.
const EARNED_BYTES_MAX: f64 = 2.0 * QUANTUM_BYTES as f64;
/// Longest time that one batch is paid by: those behind it wait for a rate that is soon another
/// one.
const PRICE_MAX: Duration = Duration::from_secs(1);
/// Stands for a rate without a limit.
const FREE: u64 = u64::MAX;

/// The rate, and the credit and debt of its writers.
#[derive(Debug)]
pub(crate) struct TokenBucket {
    /// The rate that is allowed, in bytes per second, or [`FREE`]; set when the debt is computed.
    rate: AtomicU64,
    /// Bytes that writers may still bring before they pay again.
    credit: AtomicU64,
    /// Held by the writer that pays; no other work takes it. When the last payment ended: what writers needed
    /// for their own work since then is a part of the next one, or they would go slower than the rate that is
    /// meant.
    turn: Mutex<Duration>,
    /// The moment, in microseconds of the clock, at which the writes on credit are repaid.
    unpaid: AtomicU64,
    /// Bytes of writers whose wait ended before their turn: the next writer that pays pays for them, too.
    left_over: AtomicU64,
}

impl Default for TokenBucket {
    fn default() -> Self {
        TokenBucket {
            rate: AtomicU64::new(FREE),
            credit: AtomicU64::new(0),
            turn: Mutex::new(Duration::ZERO),
            unpaid: AtomicU64::new(0),
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
            // Paid at a rate that is gone.
            self.unpaid.store(0, Ordering::Relaxed);
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

    /// Takes `bytes` of the credit that other writers paid.
    pub(crate) fn take_credit(&self, bytes: u64) -> bool {
        let take = |credit: u64| credit.checked_sub(bytes);
        self.credit.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Pays for `bytes` that a writer is about to bring: pauses as long as that takes at the rate, its turn
    /// included, for `longest` at most. If a writer does not get its turn by then, the next writer pays for
    /// it.
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
            let bought = bytes.max(QUANTUM_BYTES);
            self.credit.fetch_add(bought - bytes, Ordering::Relaxed);
            let left_over = self.left_over.swap(0, Ordering::Relaxed);
            let owed;
            (*turn, owed) = self.pause_for(bought.saturating_add(left_over), *turn, end, clock);
            if let Some(rate) = self.rate() {
                // After a very low rate no writer pays long for the bytes of others.
                let most = left_over.min((rate * PRICE_MAX.as_secs_f64()) as u64);
                self.left_over.fetch_add(most.min(owed), Ordering::Relaxed);
            }
        }
    }

    /// Pauses until bringing `bytes` took, from the end of the last payment on, as long as it does at the
    /// rate that is allowed, as it changes meanwhile, or `end`. What a sleep lasted longer than it was to is
    /// credit. Returns the time, and the bytes that are not paid.
    fn pause_for(&self, bytes: u64, last: Duration, end: Duration, clock: &dyn Clock) -> (Duration, u64) {
        let (mut owed, mut now) = (bytes as f64, clock.now());
        if let Some(rate) = self.rate() {
            // Idle time earns at most `EARNED_BYTES_MAX`: a writer that returns has no advantage over one
            // that always writes.
            owed -= (rate * now.saturating_sub(last).as_secs_f64()).min(EARNED_BYTES_MAX);
        }
        while owed >= 1.0
            && now < end
            && let Some(rate) = self.rate()
        {
            let left = end.saturating_sub(now).max(PAUSE_MIN);
            clock.sleep(Duration::from_secs_f64(owed / rate).clamp(PAUSE_MIN, PAUSE_MAX).min(left));
            let before = std::mem::replace(&mut now, clock.now());
            owed -= rate * (now - before).as_secs_f64();
        }
        self.credit.fetch_add((-owed).clamp(0.0, QUANTUM_BYTES as f64) as u64, Ordering::Relaxed);
        debug_assert!(owed.is_finite(), "{owed} bytes are owed of {bytes}");
        (now, owed.max(0.0) as u64)
    }

    /// Pays for `bytes` by the time that follows, as soon as what is unpaid is paid. Returns what was paid,
    /// to be given back by [`TokenBucket::refund`] if the write does not come; `None` if it is not paid by
    /// `until`. Pays nothing once `gives_up` says that no write will come.
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
            let (now, unpaid) = (micros(clock.now()), self.unpaid.load(Ordering::Relaxed));
            // A batch less than a quantum may come early: pauses are that coarse elsewhere, too.
            let grace = (QUANTUM_BYTES as f64 / rate * 1e6) as u64;
            if unpaid <= now.saturating_add(grace) {
                let price = ((bytes as f64 / rate * 1e6) as u64).min(micros(PRICE_MAX));
                let paid = unpaid.max(now) + price;
                let taken = self.unpaid.compare_exchange(unpaid, paid, Ordering::Relaxed, Ordering::Relaxed);
                if taken.is_ok() {
                    return Some(price);
                }
            } else if unpaid - grace > micros(until) || now >= micros(until) {
                return None;
            } else if gives_up() {
                return Some(0);
            } else {
                // It is time that pays; but the rate may change meanwhile.
                let owed = Duration::from_micros(unpaid - grace - now);
                clock.sleep(owed.clamp(PAUSE_MIN, PAUSE_MAX));
            }
        }
    }

    /// Takes a charge on credit back: the write does not come.
    pub(crate) fn refund(&self, price: u64) {
        debug_assert!(
            u128::from(price) <= PRICE_MAX.as_micros(),
            "no batch was charged {price} microseconds"
        );
        let less = |unpaid: u64| Some(unpaid.saturating_sub(price));
        let _always = self.unpaid.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

#[cfg(test)]
mod tests {
    use terrane_base::env::SleepClock;

    use super::*;

    /// Did it wait for its turn to the end, this test would not end.
    #[test]
    fn a_writer_without_a_turn_goes_on_and_the_next_one_pays() {
        const BYTES: u64 = 1_000_000;
        let (pace, clock) = (TokenBucket::default(), SleepClock::default());
        pace.set(Some(10e6));
        let turn = pace.turn.lock();
        for _ in 0..2 {
            pace.charge(BYTES, Duration::from_millis(1), &clock);
        }
        assert_eq!(clock.now(), Duration::ZERO);
        drop(turn);
        pace.charge(BYTES, PRICE_MAX, &clock);
        assert_eq!(clock.now(), Duration::from_millis(300), "for all three");
        // The bytes that others left are paid in parts by the writers that come, each within its own longest
        // wait.
        pace.left_over.store(5 * BYTES, Ordering::Relaxed);
        pace.charge(BYTES, Duration::from_millis(200), &clock);
        assert_eq!(clock.now(), Duration::from_millis(500));
        assert_eq!(pace.left_over.load(Ordering::Relaxed), 4 * BYTES);
        pace.set(None);
        assert_eq!(pace.left_over.load(Ordering::Relaxed), 0, "no writer has to pay any more");
    }
}
