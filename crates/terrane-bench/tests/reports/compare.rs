//! Verdicts on runs made by hand.

use terrane_bench::report::compare::{Comparison, Verdict, compare};
use terrane_bench::report::model::{Failed, RunReport};

use crate::fixture::{Numbers, cell, run};

/// A run of one step with `pairs` repetitions around `rate`.
fn noisy(seed: u64, pairs: u32, rate: f64, noise: f64) -> RunReport {
    let mut numbers = Numbers(seed);
    let cells =
        (0..pairs).map(|repetition| cell("s", "get", "terrane", repetition, numbers.near(rate, noise)));
    run("rocksdb", &["terrane"], cells.collect())
}

fn verdict(comparison: &Comparison) -> Verdict {
    assert_eq!(comparison.rows.len(), 1);
    comparison.rows[0].verdict
}

#[test]
fn verdicts_respect_noise() {
    let base = noisy(1, 9, 1e5, 0.01);
    let same = compare(&base, &noisy(2, 9, 1e5, 0.01), 0.05);
    assert_eq!(verdict(&same), Verdict::Same, "{same}");
    assert!(!same.regressed() && same.warnings.is_empty(), "{same}");
    let worse = compare(&base, &noisy(3, 9, 0.8e5, 0.01), 0.05);
    assert_eq!(verdict(&worse), Verdict::Worse, "{worse}");
    assert!(worse.regressed() && worse.to_string().ends_with("REGRESSED\n"), "{worse}");
    let better = compare(&base, &noisy(4, 9, 1.2e5, 0.01), 0.05);
    assert_eq!(verdict(&better), Verdict::Better, "{better}");
    // The median fell by a fifth, but the pairs are all over the place.
    let unsure = compare(&base, &noisy(5, 9, 0.8e5, 0.6), 0.05);
    assert_eq!(verdict(&unsure), Verdict::Unsure, "{unsure}");
    assert!(!unsure.regressed());
    // A fall within a wider bound is none.
    assert_eq!(verdict(&compare(&base, &noisy(3, 9, 0.8e5, 0.01), 0.25)), Verdict::Same);
}

#[test]
fn few_pairs_are_told() {
    let few = compare(&noisy(1, 4, 1e5, 0.01), &noisy(2, 4, 1e5, 0.01), 0.05);
    assert_eq!(few.rows[0].interval.coverage, None);
    assert!(few.to_string().contains("noise cannot be judged"), "{few}");
    let enough = compare(&noisy(1, 5, 1e5, 0.01), &noisy(2, 5, 1e5, 0.01), 0.05);
    assert!(!enough.to_string().contains("noise cannot be judged"), "{enough}");
    let one = compare(&noisy(1, 1, 1e5, 0.0), &noisy(1, 1, 0.5e5, 0.0), 0.05);
    assert!(one.regressed(), "half the rate is a regression even if noise cannot be judged");
}

#[test]
fn a_rate_of_zero_is_the_worst() {
    let mut stopped = noisy(1, 5, 1e5, 0.01);
    stopped.cells.iter_mut().for_each(|cell| cell.operations = 0);
    assert_eq!(verdict(&compare(&noisy(1, 5, 1e5, 0.01), &stopped, 0.05)), Verdict::Worse);
}

#[test]
fn times_of_shape_steps_are_better_when_shorter() {
    let timed = |seconds: f64| {
        let mut report = noisy(1, 5, 1e5, 0.0);
        for cell in &mut report.cells {
            (cell.operations, cell.seconds, cell.seconds_until_quiescent) = (0, seconds, seconds);
        }
        report
    };
    let slower = compare(&timed(1.0), &timed(2.0), 0.05);
    assert!(slower.rows[0].timed && verdict(&slower) == Verdict::Worse, "{slower}");
    assert_eq!(verdict(&compare(&timed(2.0), &timed(1.0), 0.05)), Verdict::Better);
}

#[test]
fn what_is_missing_is_listed_and_what_broke_is_a_regression() {
    let mut a = noisy(1, 5, 1e5, 0.01);
    let b = a.clone();
    a.cells.push(cell("s", "scan", "terrane", 0, 1e5));
    let gone = compare(&a, &b, 0.05);
    assert_eq!((gone.only_a.len(), gone.only_b.len(), gone.broken.len()), (1, 0, 0));
    assert!(
        !gone.regressed() && gone.to_string().contains("only in the first run: s / scan / terrane"),
        "{gone}"
    );
    assert_eq!(compare(&b, &a, 0.05).only_b.len(), 1);
    let fail = |unsupported: bool, step: &str| {
        let mut b = b.clone();
        let own = str::to_owned;
        let (scenario, engine, step) = (own("s"), own("terrane"), own(step));
        b.failed = vec![Failed { scenario, step, engine, repetition: 0, unsupported, why: own("it broke") }];
        compare(&a, &b, 0.05)
    };
    assert!(fail(false, "scan").regressed() && fail(false, "").regressed(), "{}", fail(false, "scan"));
    assert!(!fail(true, "scan").regressed() && !fail(false, "other").regressed());
}

#[test]
fn other_machines_plans_and_partial_runs_are_warned_of() {
    let a = noisy(1, 5, 1e5, 0.01);
    let mut b = a.clone();
    b.header.machine.kernel = "Linux 1.0".to_owned();
    b.header.plan.seed += 1;
    b.end = None;
    let comparison = compare(&a, &b, 0.05);
    for word in ["kernel", "seed", "second run is PARTIAL"] {
        assert!(comparison.warnings.iter().any(|warning| warning.contains(word)), "{comparison}");
    }
    let later: Vec<_> = b
        .cells
        .iter()
        .cloned()
        .map(|mut cell| {
            cell.repetition += 10;
            cell
        })
        .collect();
    let apart = compare(&a, &run("rocksdb", &["terrane"], later), 0.05);
    assert!(apart.rows.is_empty() && apart.only_a.is_empty(), "{apart}");
    assert!(apart.warnings.iter().any(|warning| warning.contains("no repetition is in both")), "{apart}");
}
