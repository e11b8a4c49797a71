//! Every crash of small histories, and the same operations under many configurations.
//!
//! `TERRANE_SIM_HISTORIES` says how many histories of two operations are explored (default 24, spread over
//! all), `TERRANE_SIM_START` which one is the first; the long run is `terrane sim --crash-points 1000000`.
#![allow(clippy::unwrap_used, reason = "a test")]

use terrane_sim::campaign::Job;
use terrane_sim::explore::KIND_COUNT;
use terrane_sim::metamorph::Metamorph;
use terrane_sim::{Explored, Explorer, Outcome, prepared};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().unwrap())
}

#[test]
fn every_crash_of_pairs_of_operations_leaves_a_prefix() {
    let explorer = Explorer { operations: 2, outcomes_max: 16, again_one_in: 64 };
    assert_eq!(explorer.histories(), KIND_COUNT * KIND_COUNT);
    let count = number("TERRANE_SIM_HISTORIES", 24);
    let start = number("TERRANE_SIM_START", 0) % explorer.histories();
    let mut sum = Explored::default();
    for index in 0..count {
        let history = (start + index * explorer.histories() / count + index % 16) % explorer.histories();
        if let Some(failure) = explorer.work(history, &mut sum) {
            panic!("history {history}: {failure}");
        }
    }
    println!("{sum:?}");
    assert!(sum.states > count, "{sum:?}");
    // Of a few histories that a seed chose it is not known how much each of them does.
    if start == 0 && count >= 24 {
        assert!(sum.states > count * 50 && sum.again > 0 && sum.exhausted > count, "{sum:?}");
        assert!(sum.torn > count && sum.onward > count, "{sum:?}");
    }
}

#[test]
fn every_crash_of_a_two_phase_commit_leaves_it_whole() {
    // All of them in long runs; in short ones each kind of end and of what happens before.
    let step = match number("TERRANE_SIM_HISTORIES", 24) {
        ..8 => 11,
        8..prepared::HISTORIES => 5,
        _ => 1,
    };
    let start = number("TERRANE_SIM_START", 0) % step;
    let mut sum = prepared::Seen::default();
    for history in (start..prepared::HISTORIES).step_by(step as usize) {
        let seen = prepared::explore(history, 8).unwrap();
        sum.states += seen.states;
        sum.prepared += seen.prepared;
        sum.committed += seen.committed;
    }
    println!("{sum:?}");
    assert!(sum.prepared > 100 && sum.committed > 50 && sum.states > sum.prepared + sum.committed, "{sum:?}");
}

#[test]
fn thirty_configurations_give_the_same_answers() {
    let job = Metamorph { operations: 200, variants: 30 };
    let mut sum = Outcome::default();
    // All three in long runs, one of them in short ones.
    let seeds = match number("TERRANE_SIM_HISTORIES", 24) {
        ..8 => vec![number("TERRANE_SIM_START", 0) % 3],
        _ => vec![0, 1, 2],
    };
    for &seed in &seeds {
        if let Some(failure) = job.work(seed, &mut sum) {
            panic!("{failure}");
        }
    }
    assert!(sum.operations > seeds.len() as u64 * 30 * 200, "{sum:?}");
}
