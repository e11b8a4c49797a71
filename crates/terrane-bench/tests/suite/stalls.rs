//! Which intervals of a repetition are stalls.

use terrane_bench::report::statistic::stalls;

#[test]
fn a_stall_is_below_a_tenth_of_the_median() {
    let steady: &[u64] = &[100, 100, 9, 0, 100, 10, 100];
    let (starts, longest) = stalls(&[steady, &[5, 5, 5]], 0.5);
    assert_eq!(starts, [1.0, 1.5]);
    assert!((longest - 1.0).abs() < 1e-9);
}
