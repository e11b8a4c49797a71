//! Verdicts on runs made by hand.

use terrane_bench::report::compare::{Comparison, Verdict, compare};
use terrane_bench::report::model::{Failed, RunReport};

use crate::reports::fixture::{Numbers, cell, run};

/// A run of one step with `pairs` repetitions around `rate`.
fn noisy(seed: u64, pairs: u32, rate: f64, noise: f64) -> RunReport {
    let mut numbers = Numbers::new(seed);
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
    // A fall within a wider bound does not count.
    assert_eq!(verdict(&compare(&base, &noisy(3, 9, 0.8e5, 0.01), 0.25)), Verdict::Same);
}

#[test]
fn few_pairs_are_reported_as_unsure() {
    let few = compare(&noisy(1, 4, 1e5, 0.01), &noisy(2, 4, 1e5, 0.01), 0.05);
    assert_eq!(few.rows[0].interval.coverage, None);
    assert!(few.to_string().contains("noise cannot be judged"), "{few}");
    let enough = compare(&noisy(1, 5, 1e5, 0.01), &noisy(2, 5, 1e5, 0.01), 0.05);
    assert!(!enough.to_string().contains("noise cannot be judged"), "{enough}");
    assert!(few.to_string().contains("--repetitions 5"), "{few}");
    for rate in [0.5e5, 2e5] {
        let four = compare(&noisy(1, 4, 1e5, 0.0), &noisy(1, 4, rate, 0.0), 0.05);
        assert_eq!(verdict(&four), Verdict::Unsure, "{four}");
        assert!(!four.regressed() && four.to_string().ends_with("no regression\n"), "{four}");
    }
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
fn a_cell_missing_in_the_second_run_is_a_regression_with_a_reason() {
    let mut a = noisy(1, 5, 1e5, 0.01);
    let b = a.clone();
    a.cells.push(cell("s", "scan", "terrane", 0, 1e5));
    let gone = compare(&a, &b, 0.05);
    assert_eq!((gone.only_a.len(), gone.only_b.len(), gone.missing.len()), (1, 0, 1));
    assert!(gone.regressed() && gone.to_string().ends_with("REGRESSED\n"), "{gone}");
    let line = "MISSING in the second run: s / scan / terrane: it was not run";
    assert!(gone.to_string().contains(line), "{gone}");
    let more = compare(&b, &a, 0.05);
    assert!(
        more.only_b.len() == 1 && !more.regressed(),
        "what only the second has is not a regression: {more}"
    );
    let fail = |unsupported: bool, step: &str, repetition: u32| {
        let mut b = b.clone();
        let own = str::to_owned;
        let (scenario, engine, step) = (own("s"), own("terrane"), own(step));
        b.failed = vec![Failed { scenario, step, engine, repetition, unsupported, why: own("it broke") }];
        compare(&a, &b, 0.05)
    };
    for (unsupported, step) in [(false, "scan"), (true, "scan"), (false, "")] {
        let failed = fail(unsupported, step, 0);
        assert!(failed.regressed() && failed.to_string().contains("it broke"), "{failed}");
    }
    assert!(
        !fail(false, "other", 0).to_string().contains("it broke"),
        "another step's failure is not a reason"
    );
}

#[test]
fn fewer_repetitions_are_fine_and_one_that_failed_is_not() {
    let a = noisy(1, 9, 1e5, 0.01);
    let mut b = noisy(2, 6, 1e5, 0.01);
    assert!(!compare(&a, &b, 0.05).regressed());
    let own = str::to_owned;
    let (scenario, engine, step) = (own("s"), own("terrane"), own("get"));
    b.failed =
        vec![Failed { scenario, step, engine, repetition: 6, unsupported: false, why: own("it broke") }];
    let broken = compare(&a, &b, 0.05);
    assert!(broken.regressed() && broken.to_string().contains("it broke"), "{broken}");
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
    assert!(apart.is_empty() && apart.only_a.is_empty() && apart.regressed(), "{apart}");
    assert!(apart.to_string().contains("none of the same repetitions"), "{apart}");
    assert!(apart.to_string().ends_with("NOTHING TO COMPARE: no cell is in both runs\n"), "{apart}");
}
