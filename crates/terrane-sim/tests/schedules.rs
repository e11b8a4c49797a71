//! A sample of the histories of `cargo xtask schedules`: the whole engine under chosen schedules. The modules
//! try the parts of the explorer.
//!
//! Run with `cargo test -p terrane-sim --features schedule --test schedules`.
#![cfg(feature = "schedule")]
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "schedules/arguments.rs"]
mod arguments;
#[path = "schedules/histories.rs"]
mod histories;
#[path = "schedules/programs.rs"]
mod programs;
#[path = "schedules/strategy.rs"]
mod strategy;

use parking_lot::Mutex;
use terrane_sim::threads::campaign::{Campaign, Failed, replay, run};

/// The histories of the sample begin here; `TERRANE_SCHEDULES_START` begins elsewhere.
const START: u64 = 30;

/// An explored engine is not alone in its process: an epoch that an engine of another test has pinned keeps
/// its memory from being freed, which no turn of its own threads ends. So these tests run one after another.
static TURN: Mutex<()> = Mutex::new(());

fn start() -> u64 {
    std::env::var("TERRANE_SCHEDULES_START").map_or(START, |text| {
        text.parse().expect("TERRANE_SCHEDULES_START is a number: the seed of the first history")
    })
}

/// Histories of the sample, each under 40 schedules; `TERRANE_SCHEDULES_HISTORIES` takes more or fewer.
fn histories() -> u64 {
    std::env::var("TERRANE_SCHEDULES_HISTORIES")
        .map_or(20, |text| text.parse().expect("a number of histories"))
}

fn text_of(failed: &Failed) -> String {
    let Failed { history, schedule, strategy, why, begun } = failed;
    format!(
        "history {history} under schedule {schedule} ({strategy}): {why}\n{}\nagain: cargo xtask schedules --replay {history}:{schedule}",
        begun.join("\n")
    )
}

/// Every answer is right under every schedule of the sample.
#[test]
fn every_answer_is_right_under_chosen_schedules() {
    let _turn = TURN.lock();
    let histories = histories();
    let campaign = Campaign { start: start(), histories, schedules: 40, time: None };
    let done = run(&campaign, &mut |_| ()).map_err(|(_, failed)| text_of(&failed)).unwrap();
    assert_eq!((done.histories, done.schedules), (histories, 40 * histories));
    assert!(done.choices > 100 * done.schedules, "threads are chosen at most points: {}", done.choices);
}

/// A sample fails where a bug is planted: a flush and a merge that met let acknowledged rows vanish. About
/// every second sample meets it; the first one does today.
#[test]
#[cfg(feature = "planted")]
fn a_planted_bug_is_found() {
    let finds = |start: u64| {
        let mut sample = std::process::Command::new(std::env::current_exe().unwrap());
        sample.args(["--exact", "every_answer_is_right_under_chosen_schedules"]);
        sample.env("TERRANE_PLANTED", "MergeIntoFlushedGeneration");
        sample.env("TERRANE_SCHEDULES_START", start.to_string());
        sample.env("TERRANE_SCHEDULES_HISTORIES", "20");
        let output = sample.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let is_failure = said.contains("again: cargo xtask schedules --replay");
        assert_eq!(output.status.success(), !is_failure, "{said}");
        is_failure
    };
    let is_found = (0..20).any(|sample| finds(1080 + 20 * sample));
    assert!(is_found, "no sample of 20 found the planted bug");
}

/// The schedules of a seed are the same in every run, or a failure could not be repeated.
#[test]
fn a_schedule_takes_the_same_way_again() {
    let _turn = TURN.lock();
    for schedule in [0, 1, 2, 3, 17] {
        let [one, other] = [(), ()].map(|()| replay(7, schedule).map_err(|failed| text_of(&failed)).unwrap());
        assert_eq!(one, other, "schedule {schedule}");
    }
}
