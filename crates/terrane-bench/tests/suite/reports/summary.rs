//! Grouping, medians, pairs and marks.

use terrane_bench::report::metric;
use terrane_bench::report::model::Cell;
use terrane_bench::report::statistic::{Interval, Spread, geometric_mean};
use terrane_bench::report::summary::Summary;

use crate::reports::fixture::{Numbers, cell, large, run};

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9 * b.abs().max(1.0)
}

#[test]
fn medians_ranges_and_intervals() {
    let odd = Spread::of([5.0, 1.0, 3.0]).unwrap();
    assert_eq!((odd.median, odd.min, odd.max, odd.count), (3.0, 1.0, 5.0, 3));
    assert_eq!(Spread::of([1.0, 2.0, 4.0, 100.0, f64::NAN]).unwrap().median, 3.0);
    assert_eq!(Spread::of([2.0]).unwrap().relative(), None, "one value says nothing about noise");
    assert_eq!(Spread::of([]), None);
    assert!(close(geometric_mean([0.5, 2.0, 8.0]).unwrap(), 2.0));
    assert_eq!(geometric_mean([0.0]), None);

    let few = Interval::of_median([1.0, 2.0, 3.0, 4.0]).unwrap();
    assert_eq!((few.low, few.high, few.coverage), (1.0, 4.0, None));
    let interval = |count: u32| Interval::of_median((1..=count).map(f64::from)).unwrap();
    // Tables of the sign test: n = 5: 93.75 %; n = 8, second: 92.97 %; n = 20, sixth: 95.86 %, seventh: 88.5
    // %.
    assert_eq!((interval(5).low, interval(5).high, interval(5).coverage), (1.0, 5.0, Some(0.9375)));
    assert_eq!((interval(8).low, interval(8).high), (2.0, 7.0));
    assert!((interval(8).coverage.unwrap() - 0.9297).abs() < 1e-4);
    assert_eq!((interval(20).low, interval(20).high), (6.0, 15.0));
    assert!((interval(20).coverage.unwrap() - 0.9586).abs() < 1e-4);
}

#[test]
fn the_interval_covers_the_median_as_often_as_it_says() {
    let mut numbers = Numbers::new(1);
    let rounds = 4000;
    let covered = (0..rounds)
        .filter(|_| {
            // Skewed: the median of the square of a uniform number is a quarter.
            let interval = Interval::of_median((0..9).map(|_| numbers.next().powi(2))).unwrap();
            (interval.low..=interval.high).contains(&0.25)
        })
        .count();
    let stated = Interval::of_median((0..9).map(f64::from)).unwrap().coverage.unwrap();
    assert!(
        (covered as f64 / f64::from(rounds) - stated).abs() < 0.02,
        "{covered} of {rounds} against {stated}"
    );
}

#[test]
fn ratios_are_of_pairs_of_one_repetition() {
    // The machine drifts by a factor of ten; each pair has the same ratio. Ratios of medians would say
    // otherwise.
    let mut cells = vec![];
    for (repetition, drift) in [(0, 1.0), (1, 10.0), (2, 3.0)] {
        cells.push(cell("s", "get", "rocksdb", repetition, 100.0 * drift));
        cells.push(cell("s", "get", "terrane", repetition, 250.0 * drift));
    }
    cells.push(cell("s", "get", "terrane", 3, 1.0));
    let report = run("rocksdb", &["terrane", "rocksdb"], cells);
    let summary = Summary::new(&report);
    assert_eq!(summary.engines, ["terrane", "rocksdb"], "in the order of the plan");
    let group = summary.scenarios[0].steps[0].group("terrane").unwrap();
    let ratio = group.ratio.unwrap();
    assert!(close(ratio.median, 2.5) && close(ratio.min, 2.5) && close(ratio.max, 2.5) && ratio.count == 3);
    assert_eq!(group.cells.len(), 4);
    assert!(close(group.value.median, 500.0));
    assert!(group.mark.is_none());
    assert!(close(summary.mean("rocksdb").unwrap().ratio, 1.0));
}

#[test]
fn slow_steps_are_marked_and_null_is_not_a_peer() {
    let mut cells = vec![];
    for repetition in 0..3 {
        for (step, terrane, lmdb) in [("a", 190.0, 150.0), ("b", 300.0, 450.0), ("c", 300.0, 200.0)] {
            cells.push(cell("s", step, "rocksdb", repetition, 100.0));
            cells.push(cell("s", step, "terrane", repetition, terrane));
            cells.push(cell("s", step, "lmdb", repetition, lmdb));
            cells.push(cell("s", step, "null", repetition, 2000.0));
        }
    }
    let report = run("rocksdb", &["rocksdb", "terrane", "lmdb", "null"], cells);
    let summary = Summary::new(&report);
    let marks: Vec<(&str, &str, String)> = summary
        .marked()
        .map(|(_, step, group, mark)| (step.name, group.engine, mark.words(summary.baseline())))
        .collect();
    assert_eq!(
        marks,
        [
            ("a", "terrane", "1.90x of rocksdb".to_owned()),
            ("b", "terrane", "lmdb is 1.50x as fast".to_owned())
        ]
    );
    let ceilings: Vec<f64> = summary.steps().map(|(_, step)| step.ceiling.unwrap()).collect();
    assert!(close(ceilings[0], 2000.0 / 190.0) && close(ceilings[1], 2000.0 / 450.0));
    let mean = summary.mean("terrane").unwrap();
    assert!(
        close(mean.ratio, (1.9_f64 * 3.0 * 3.0).cbrt()) && mean.steps == 3 && summary.steps_compared() == 3
    );
}

#[test]
fn steps_without_operations_have_a_time_and_no_ratio() {
    let report = large(1, 3);
    let summary = Summary::new(&report);
    let step = summary.scenarios[0].steps.iter().find(|step| step.name == "compact_all").unwrap();
    assert!(step.timed && step.groups.iter().all(|group| group.ratio.is_none() && group.mark.is_none()));
    assert!(step.group("terrane").unwrap().value.median < 2.0);
    assert_eq!(summary.steps_compared(), 6);
}

#[test]
fn figures_are_what_they_say() {
    let mut one = cell("s", "x", "e", 0, 1e6);
    one.user_bytes_written = 1000;
    one.process.device_bytes_written = Some(4500);
    one.process.user_seconds = 1.5;
    one.process.system_seconds = 0.5;
    one.disk_bytes = 300;
    one.live_bytes = Some(200);
    one.counters.cache_hits = Some(3);
    one.counters.cache_misses = Some(1);
    one.counters.runs_searched = Some(2_000_000);
    let get = |metric: metric::Metric, cell: &Cell| (metric.of)(cell);
    assert_eq!(get(metric::WRITE_AMPLIFICATION, &one), Some(4.5));
    assert_eq!(get(metric::CPU, &one), Some(2.0), "microseconds per operation");
    assert_eq!(get(metric::SPACE, &one), Some(1.5));
    assert_eq!(get(metric::CACHE_HITS, &one), Some(75.0));
    assert_eq!(get(metric::RUNS, &one), None, "it only wrote");
    assert_eq!(get(metric::READ_AMPLIFICATION, &one), None);
    one.user_bytes_read = 1;
    assert_eq!(get(metric::RUNS, &one), Some(2.0));
    assert_eq!(get(metric::P99, &one), None, "nothing was timed");
}

#[test]
fn numbers_are_short() {
    let written = [0.0, 0.0001, 0.0123, 0.0995, 1.234, 9.995, 99.96, 9999.4, 12_345.0].map(metric::short);
    assert_eq!(written, ["0", "<.001", "0.012", "0.10", "1.23", "10.0", "100", "9999", "12.3k"]);
    assert_eq!([999.0, 999.6, 1_234_567.0].map(metric::scaled), ["999", "1.00k", "1.23M"]);
    assert_eq!([512.0, 1024.0, 1.5e9].map(metric::bytes), ["512B", "1.00K", "1.40G"]);
    assert_eq!([2.0, 0.0123, 0.000_004].map(metric::seconds), ["2.00s", "12.3ms", "4.00us"]);
}
