//! Cuts of the power and deaths of the process.

use terrane_device::{FaultyDisk, MemDisk};

use super::*;

/// The log's calls that change the device, in a run that nothing stops.
fn calls() -> u64 {
    let faulty = FaultyDisk::new(on(MemDisk::new()));
    let outcomes = history(&open(&(Arc::new(faulty.clone()) as Arc<dyn Disk>)).expect("opens"));
    assert_eq!(outcomes.there.len() + outcomes.gone.len(), 84, "nothing failed");
    assert!(outcomes.gone.len() > 70, "most were deleted");
    faulty.changes()
}

/// Runs the history until the power is cut; returns the device and the outcomes that callers got.
fn run_until(cut: u64) -> (MemDisk, Outcomes) {
    let disk = MemDisk::new();
    let faulty = FaultyDisk::new(on(disk.clone()));
    faulty.cut_after(cut);
    let outcomes =
        open(&(Arc::new(faulty) as Arc<dyn Disk>)).map_or_else(|_| Outcomes::default(), |log| history(&log));
    (disk, outcomes)
}

#[test]
fn a_cut_at_any_call_loses_nothing_acknowledged() {
    for cut in 0..=calls() {
        let (disk, outcomes) = run_until(cut);
        for seed in 0..6 {
            let crashed = on(disk.crash(seed));
            check_outcomes(&open(&crashed).expect("opens"), &outcomes);
            // What the first opening cut off does not come back.
            check(&open(&crashed).expect("opens again"), outcomes.there.iter().copied().chain([5000]));
        }
        check_outcomes(&open(&on(disk.kill())).expect("opens"), &outcomes);
    }
}

#[test]
fn objects_found_at_opening_survive_a_crash() {
    for cut in 0..=calls() {
        let (disk, _) = run_until(cut);
        let killed = disk.kill();
        let log = open(&on(killed.clone())).expect("opens");
        let seen = found(&log);
        for seed in 0..4 {
            let crashed = open(&on(killed.crash(seed))).expect("opens");
            assert_eq!(
                found(&crashed),
                seen,
                "what was listed is there behind a cut of the power, cut at {cut}"
            );
        }
    }
}

#[test]
fn cuts_of_several_openings_in_a_row_lose_nothing() {
    let mut disk = MemDisk::new();
    let mut there = Vec::new();
    for turn in 0..40u64 {
        let faulty = FaultyDisk::new(on(disk.clone()));
        faulty.cut_after(3 + turn % 17);
        if let Ok(log) = open(&(Arc::new(faulty) as Arc<dyn Disk>)) {
            check(&log, there.iter().copied());
            there.extend((turn * 10..turn * 10 + 8).take_while(|number| create(&log, *number).is_ok()));
        }
        disk = if turn % 3 == 0 { disk.kill() } else { disk.crash(turn) };
    }
    assert!(there.len() > 40, "{} objects", there.len());
    let log = open(&on(disk)).expect("opens");
    check(&log, there.iter().copied());
}

/// One thread until a call fails: creates objects of its own, and deletes most of them.
fn part_of(log: &LogBucket, thread: u64) -> Outcomes {
    let mut outcomes = Outcomes::default();
    for round in 0..8 {
        let first = thread * 1000 + round * 10;
        for number in first..first + 6 {
            if create(log, number).is_err() {
                return outcomes;
            }
            outcomes.there.push(number);
        }
        let going = first..first + 5;
        outcomes.there.retain(|number| !going.contains(number));
        if delete(log, going.clone()).is_err() {
            return outcomes;
        }
        outcomes.gone.extend(going);
    }
    outcomes
}

#[test]
fn a_cut_while_several_threads_change_the_log_loses_nothing_acknowledged() {
    let run = |cut: u64| {
        let disk = MemDisk::new();
        let faulty = FaultyDisk::new(on(disk.clone()));
        let log = open(&(Arc::new(faulty.clone()) as Arc<dyn Disk>)).expect("opens");
        faulty.cut_after(cut);
        let mut all = Outcomes::default();
        std::thread::scope(|scope| {
            let log = &log;
            let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || part_of(log, thread))).collect();
            for thread in threads {
                let outcomes = thread.join().expect("no panic");
                all.there.extend(outcomes.there);
                all.gone.extend(outcomes.gone);
            }
        });
        (disk, all, faulty.is_cut())
    };
    for cut in (0..).step_by(7) {
        let (disk, outcomes, was_cut) = run(cut);
        for seed in 0..3 {
            check_outcomes(&open(&on(disk.crash(seed))).expect("opens"), &outcomes);
        }
        check_outcomes(&open(&on(disk.kill())).expect("opens"), &outcomes);
        if !was_cut {
            break;
        }
    }
}
