//! The rate of writers as a function of debt, and their charges.

use terrane_base::env::Clock;

use super::pressure::{FREE_DEBT, GATE_MAX, PAUSE_SUM_MAX, Pressure, rate_by_debt};
use crate::pace::per_table::{SHARE_END, TablePressure, follow};
use crate::pace::token_bucket::{QUANTUM_BYTES, RATE_FLOOR, RATE_START, TokenBucket};
use std::time::Duration;
use terrane_base::sync::atomic::{AtomicU64, Ordering};

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

/// A clock that goes on while a thread sleeps, and counts threads that sleep at the same time.
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
fn writers_together_are_charged_as_one() {
    const WRITERS: u64 = 4;
    const BYTES: u64 = 1000;
    let (table, clock) = (TablePressure::default(), Sleeps::default());
    table.sink_rate.store(10_000_000, Ordering::Relaxed);
    assert!(table.set_backlog(0.5));
    std::thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| (0..1000).for_each(|_| table.pace.charge(BYTES, PAUSE_SUM_MAX, &clock)));
        }
    });
    assert_eq!(clock.beside.load(Ordering::SeqCst), 0, "one is charged at a time");
    let brought = (WRITERS * 1000 * BYTES).next_multiple_of(QUANTUM_BYTES) as f64;
    let took = clock.now().as_secs_f64();
    assert!((took * 10e6 / brought - 1.0).abs() < 0.02, "{took} s for {brought} bytes");
}

#[test]
fn a_large_batch_is_charged_for_all_its_bytes_until_the_debt_is_gone() {
    /// Forgives the debt after one second.
    #[derive(Debug, Default)]
    struct Forgives(Sleeps, TablePressure);
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
                self.1.set_backlog(-1.0);
            }
        }
    }
    let clock = Forgives::default();
    clock.1.sink_rate.store(10_000_000, Ordering::Relaxed);
    clock.1.set_backlog(0.5);
    clock.1.pace.charge(5_000_000, PAUSE_SUM_MAX, &clock);
    assert_eq!(clock.now().as_millis(), 500);
    clock.1.pace.charge(500_000_000, PAUSE_SUM_MAX, &clock);
    assert_eq!(clock.now().as_millis(), 1000);
}

#[test]
fn no_batch_pauses_for_longer_than_a_second() {
    let (pressure, table, clock) = (Pressure::default(), TablePressure::default(), Sleeps::default());
    table.set_backlog(0.5);
    pressure.set_debt(0.99, None, 0.5, true);
    table.pace.charge(500_000_000, pressure.longest(), &clock);
    assert_eq!(clock.now(), PAUSE_SUM_MAX);
    pressure.set_debt(1.0, None, 0.5, true);
    table.pace.charge(500_000_000, pressure.longest(), &clock);
    assert_eq!(clock.now(), PAUSE_SUM_MAX + GATE_MAX, "at the limit the wait for memory decides");
}

#[test]
fn two_token_buckets_take_as_long_as_the_slower_one() {
    let (memory, table, clock) = (TokenBucket::default(), TokenBucket::default(), Sleeps::default());
    memory.set(Some(10e6));
    table.set(Some(5e6));
    for _ in 0..10_000 {
        table.charge(1000, PAUSE_SUM_MAX, &clock);
        memory.charge(1000, PAUSE_SUM_MAX, &clock);
    }
    let took = clock.now().as_secs_f64();
    assert!((1.9..2.2).contains(&took), "{took} s for 10 MB at 5 MB a second");
}

#[test]
fn memory_alone_says_when_its_pace_is_free() {
    let pressure = Pressure::default();
    pressure.set_debt(FREE_DEBT, None, -1.0, false);
    assert!(!pressure.is_slowing() && pressure.memory.rate().is_none());
    pressure.set_debt(FREE_DEBT, None, 0.5, true);
    assert!(pressure.is_slowing() && pressure.memory.rate().is_none(), "some table has debt, memory is free");
    pressure.set_debt(0.9, None, -1.0, false);
    assert!(pressure.is_slowing() && pressure.memory.rate().is_some());
    pressure.set_debt(0.1, Some(50e6), -1.0, false);
    assert_eq!(pressure.memory.rate(), Some(50e6), "a flush under way");
}

#[test]
fn the_time_that_runs_sink_in_begins_when_they_are_due() {
    let at = Duration::from_secs;
    let rate = |sank: &[u64]| {
        let table = TablePressure::default();
        // Opened with runs: not since the clock began.
        table.look(at(1000), true);
        table.look(at(1001), true);
        sank.iter().for_each(|second| table.sank(64 << 20, at(*second)));
        table.sink_rate.load(Ordering::Relaxed)
    };
    let of = |seconds: &[u64]| {
        let table = TablePressure::default();
        seconds.iter().for_each(|second| table.sank_in(64 << 20, at(*second)));
        table.sink_rate.load(Ordering::Relaxed)
    };
    assert_eq!(rate(&[1002]), of(&[2]));
    assert_eq!(rate(&[1002, 1005]), of(&[2, 3]));
    let table = TablePressure::default();
    table.look(at(1000), true);
    table.look(at(1009), false);
    table.sank(64 << 20, at(1010));
    assert_eq!(table.sink_rate.load(Ordering::Relaxed), of(&[1]), "nothing was due before");
}

#[test]
fn a_backlog_slows_writers_little_by_little() {
    assert_eq!(follow(-1.0, 100e6), None);
    assert!(follow(-0.99, 100e6) > Some(10_000e6), "hardly any runs");
    let mut last = follow(-0.8, 100e6).expect("a limit");
    for step in -79..400 {
        let rate = follow(f64::from(step) / 100.0, 100e6).expect("a limit");
        assert!(rate <= last && rate > last * 0.94, "step {step}: {last} -> {rate}");
        last = rate;
    }
    assert!(last < 100e6 * SHARE_END / 3.0, "far beyond its end little comes: {last}");
}

#[test]
fn one_merge_that_took_for_ever_does_not_stop_writers() {
    let table = TablePressure::default();
    table.sank_in(1 << 20, Duration::from_secs(100_000));
    table.set_backlog(0.5);
    let rate = table.rate().expect("a limit");
    assert!(rate > RATE_START * 0.49 && rate < RATE_START * 0.51, "{rate}");
}

/// A background that merges the runs there are, then works elsewhere for as long, and writers that always
/// want more: the rate in windows of 100 ms, after a while.
fn steady_rates(merge_rate: f64) -> Vec<f64> {
    const GENERATION: f64 = 16e6;
    const TRIGGER: f64 = 4.0;
    const STEP: Duration = Duration::from_millis(1);
    let table = TablePressure::default();
    // Bytes in runs, what the job under way took of them and has still to take; moments of the job and of the
    // rest.
    let (mut runs, mut taken, mut left) = (0.0, 0.0, 0.0);
    let (mut now, mut since, mut elsewhere) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    let mut windows = Vec::new();
    while windows.len() < 900 {
        let mut brought = 0.0;
        for _ in 0..100 {
            table.set_backlog((runs / GENERATION - TRIGGER) / TRIGGER);
            let rate = table.rate().unwrap_or(f64::MAX).min(300e6);
            let bytes = rate * STEP.as_secs_f64();
            (runs, brought) = (runs + bytes, brought + bytes);
            now += STEP;
            if left > 0.0 {
                let sunk = (merge_rate * STEP.as_secs_f64()).min(left);
                (runs, left) = (runs - sunk, left - sunk);
                if left <= 0.0 {
                    table.sank_in(taken as u64, now - since);
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
        let mut windows = steady_rates(merge_rate);
        windows.sort_by(f64::total_cmp);
        let (lowest, median) = (windows[0], windows[windows.len() / 2]);
        assert!(lowest >= median / 2.0, "merges {merge_rate}: lowest {lowest}, median {median}");
        let mean = windows.iter().sum::<f64>() / windows.len() as f64;
        assert!(mean > merge_rate * 0.4, "merges {merge_rate}: {mean}");
    }
}
