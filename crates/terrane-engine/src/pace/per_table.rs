//! The throttle of one table: the rate of its writers, by its backlog.

use std::time::Duration;
use terrane_base::sync::atomic::{AtomicU64, Ordering};

use terrane_base::sync::Mutex;

use crate::pace::token_bucket::{RATE_FLOOR, RATE_START, TokenBucket};

/// Time over which the rate of sinking runs is averaged: several compactions, so that none of them shows.
const SINK_MEMORY: Duration = Duration::from_secs(5);
/// Shares of that rate at the start and the end of the backlog. A steeper slope follows single compactions.
const SHARE_START: f64 = 1.3;
pub(crate) const SHARE_END: f64 = 0.7;

/// How far the writers of one table are held back, and why.
#[derive(Debug)]
pub(crate) struct TablePressure {
    /// The token bucket with the rate that its backlog allows.
    pub(crate) pace: TokenBucket,
    /// Rate at which its overflow runs sink, in bytes per second.
    pub(crate) sink_rate: AtomicU64,
    /// Since when there is something to sink that has not been counted.
    due: Mutex<Due>,
    /// The backlog, in thousandths of the way from where writers begin to be slowed to its end.
    backlog_permille: AtomicU64,
}

/// Since when runs are due to sink, if they are.
#[derive(Debug, Default)]
struct Due {
    is_due: bool,
    /// Since when, as far as it was not counted; the last look if they are not.
    since: Option<Duration>,
}

impl Default for TablePressure {
    fn default() -> Self {
        TablePressure {
            pace: TokenBucket::default(),
            sink_rate: AtomicU64::new(RATE_START as u64),
            due: Mutex::default(),
            backlog_permille: AtomicU64::new(0),
        }
    }
}

impl TablePressure {
    /// Sets how far the backlog is from its start (0) to its end (1), unbounded; it is -1 without any runs.
    /// Returns whether writers of the table are slowed.
    pub(crate) fn set_backlog(&self, backlog: f64) -> bool {
        let rate = follow(backlog, self.sink_rate.load(Ordering::Relaxed) as f64);
        debug_assert!(rate.is_none_or(|rate| rate >= 0.0), "a backlog of {backlog} gives the rate {rate:?}");
        self.pace.set(rate);
        self.backlog_permille.store((backlog.max(0.0) * 1000.0) as u64, Ordering::Relaxed);
        rate.is_some()
    }

    /// The rate of its writers, in bytes per second, as far as its backlog decides; `None` is any.
    pub(crate) fn rate(&self) -> Option<f64> {
        self.pace.rate()
    }

    /// The backlog in thousandths; 0 where it does not slow.
    pub(crate) fn backlog_permille(&self) -> u64 {
        self.backlog_permille.load(Ordering::Relaxed)
    }

    /// Notes whether runs are due to sink.
    pub(crate) fn look(&self, now: Duration, is_due: bool) {
        let mut due = self.due.lock();
        // A table without debt is looked at only when something changes.
        let begins = is_due && !due.is_due;
        if !is_due || begins || due.since.is_none() {
            due.since = Some(now);
        }
        due.is_due = is_due;
        debug_assert!(due.since.is_some(), "what sinks next counts from this look or an earlier one");
    }

    /// Notes that `bytes` of overflow runs sank until `now`. The time counts from when they were due, other
    /// jobs in between included: they take their part of it every time.
    pub(crate) fn sank(&self, bytes: u64, now: Duration) {
        let took = now.saturating_sub(self.due.lock().since.replace(now).unwrap_or(now));
        self.sank_in(bytes, took);
    }

    pub(crate) fn sank_in(&self, bytes: u64, took: Duration) {
        let took = took.as_secs_f64().max(1e-3);
        let old = self.sink_rate.load(Ordering::Relaxed) as f64;
        // At most half of it is forgotten at once: the background may have been paused meanwhile.
        let keeps = (-took / SINK_MEMORY.as_secs_f64()).exp().max(0.5);
        let rate = old * keeps + bytes as f64 / took * (1.0 - keeps);
        debug_assert!(rate.is_finite(), "{bytes} bytes sank in {took} s");
        self.sink_rate.store(rate.max(RATE_FLOOR) as u64, Ordering::Relaxed);
    }
}

/// The rate that a backlog allows where runs sink at `sink_rate`; `None` is any rate. It is -1 without any
/// runs.
pub(crate) fn follow(backlog: f64, sink_rate: f64) -> Option<f64> {
    let share = match backlog {
        ..=0.0 => SHARE_START / (1.0 + backlog).max(f64::MIN_POSITIVE),
        ..=1.0 => SHARE_START + (SHARE_END - SHARE_START) * backlog,
        _ => SHARE_END / backlog,
    };
    (backlog > -1.0).then_some(sink_rate * share)
}
