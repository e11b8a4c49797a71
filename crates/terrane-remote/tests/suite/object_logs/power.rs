//! Cuts of the power and deaths of the process.

use terrane_device::{FaultyDisk, MemDisk};

use super::*;

/// The log's calls that change the device, in a run that nothing stops.
fn calls() -> u64 {
    let faulty = FaultyDisk::new(on(MemDisk::new()));
    let told = history(&open(&(Arc::new(faulty.clone()) as Arc<dyn Disk>)).expect("opens"));
    assert_eq!(told.there.len() + told.gone.len(), 84, "nothing failed");
    assert!(told.gone.len() > 70, "most were deleted");
    faulty.changes()
}

/// Runs the history until the power is cut; returns the device and what callers were told.
fn run_until(cut: u64) -> (MemDisk, Told) {
    let disk = MemDisk::new();
    let faulty = FaultyDisk::new(on(disk.clone()));
    faulty.cut_after(cut);
    let told =
        open(&(Arc::new(faulty) as Arc<dyn Disk>)).map_or_else(|_| Told::default(), |log| history(&log));
    (disk, told)
}

#[test]
fn a_cut_at_any_call_loses_nothing_acknowledged() {
    for cut in 0..=calls() {
        let (disk, told) = run_until(cut);
        for seed in 0..6 {
            let crashed = on(disk.crash(seed));
            check_told(&open(&crashed).expect("opens"), &told);
            // What the first opening cut off does not come back.
            check(&open(&crashed).expect("opens again"), told.there.iter().copied().chain([5000]));
        }
        check_told(&open(&on(disk.kill())).expect("opens"), &told);
    }
}

#[test]
fn what_an_opening_finds_stays() {
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
