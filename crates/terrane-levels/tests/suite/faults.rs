//! Every call of a creation, an append, a roll and an opening fails once, and power is lost after every one
//! of them: what opens afterwards is the old state or the new one, and it always opens.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use std::sync::Arc;

use common::{add, database, dir, env, open, still};
use terrane_base::{Kind, Result};
use terrane_device::{Call, Disk, Failure, Fault, FaultyDisk, MemDisk};
use terrane_format::manifest::Edit;
use terrane_levels::directory::{self, Contents};
use terrane_levels::{Manifest, ManifestSettings, State};

const CHANGING: [Call; 9] = [
    Call::Create,
    Call::CreateDir,
    Call::Rename,
    Call::Remove,
    Call::SyncDir,
    Call::Write,
    Call::Sync,
    Call::SetLen,
    Call::Open,
];

/// Settings under which every few edits roll.
fn rolling() -> ManifestSettings {
    ManifestSettings {
        roll_bytes_min: 300,
        roll_factor: 0,
        roll_bytes_max: u64::MAX,
        ..ManifestSettings::default()
    }
}

fn create(disk: &FaultyDisk) -> Result<(Manifest, State)> {
    directory::prepare(disk, dir())?;
    Manifest::create_with(Arc::new(disk.clone()), dir(), &env(), Vec::new(), rolling())
}

/// Creates, or creates again over what an earlier attempt left.
fn database_on(disk: &MemDisk) -> (Manifest, State) {
    match directory::inspect(disk, dir(), directory::Others::Refused).unwrap() {
        Contents::Database => open(disk).unwrap(),
        Contents::Missing | Contents::Vacant => create(&FaultyDisk::new(Arc::new(disk.clone()))).unwrap(),
    }
}

#[test]
fn a_creation_that_fails_anywhere_can_be_done_again() {
    for failure in [Failure::Broken, Failure::Full] {
        for call in CHANGING {
            for nth in 0.. {
                let disk = MemDisk::new();
                let faulty = FaultyDisk::new(Arc::new(disk.clone()));
                faulty.fail(Fault::new(call, failure).after(nth));
                let created = create(&faulty).is_ok();
                for seed in 0..8 {
                    let (manifest, state) = database_on(&disk.crash(seed));
                    assert!(state.tables.len() == 1 && manifest.edit_number() == 0);
                }
                database_on(&disk);
                if faulty.count(call) <= nth {
                    assert!(created);
                    break;
                }
            }
        }
    }
}

#[test]
fn a_power_cut_anywhere_in_a_creation_leaves_all_or_nothing() {
    let rehearsal = FaultyDisk::new(Arc::new(MemDisk::new()));
    create(&rehearsal).unwrap();
    for cut in 0..=rehearsal.changes() {
        let disk = MemDisk::new();
        let faulty = FaultyDisk::new(Arc::new(disk.clone()));
        faulty.cut_after(cut);
        let created = create(&faulty).is_ok();
        for seed in 0..64 {
            let after = disk.crash(seed);
            if created {
                open(&after).unwrap();
            }
            database_on(&after);
        }
    }
}

/// The program that made the directory beforehand need not have made its entry durable.
#[test]
fn a_database_does_not_vanish_with_its_directory() {
    for seed in 0..32 {
        let disk = MemDisk::new();
        disk.create_dir(dir()).unwrap();
        Manifest::create(Arc::new(disk.clone()), dir(), &env(), Vec::new()).unwrap();
        open(&disk.crash(seed)).unwrap();
    }
}

/// Appends until a failure; returns the states after each edit that was acknowledged, and after the one that
/// was not.
fn append_all(disk: &FaultyDisk, state: &State, count: u32) -> Result<(Vec<State>, Option<State>)> {
    let (manifest, found) = Manifest::open_with(Arc::new(disk.clone()), dir(), rolling())?;
    assert_eq!(&found, state);
    let mut states = vec![found];
    for slot in 0..count {
        let next = states[states.len() - 1].apply(&add(slot, 1)).unwrap();
        match manifest.append(&add(slot, 1)) {
            Ok(()) => states.push(next),
            Err(_) => return Ok((states, Some(next))),
        }
    }
    Ok((states, None))
}

#[test]
fn a_power_cut_anywhere_in_appends_and_rolls_keeps_what_was_acknowledged() {
    const EDITS: u32 = 7;
    let start = MemDisk::new();
    let (manifest, states) = database(&start, &[]);
    drop(manifest);
    let rehearsal = FaultyDisk::new(Arc::new(start.kill()));
    append_all(&rehearsal, &states[0], EDITS).unwrap();
    for cut in 0..=rehearsal.changes() {
        let disk = start.crash(cut);
        let faulty = FaultyDisk::new(Arc::new(disk.clone()));
        faulty.cut_after(cut);
        let (acknowledged, pending) =
            append_all(&faulty, &states[0], EDITS).unwrap_or((states.clone(), None));
        let last = acknowledged.last().unwrap();
        for seed in 0..48 {
            let after = disk.crash(seed);
            let (_, found) = open(&after).unwrap_or_else(|error| panic!("cut {cut} seed {seed}: {error}"));
            assert!(found == *last || Some(&found) == pending.as_ref(), "cut {cut} seed {seed}");
            // And once more inside the recovery: opening wrote, power is lost again.
            let (_, again) = open(&after.crash(seed)).unwrap();
            assert_eq!(again, found, "cut {cut} seed {seed}: an opening made what it found durable");
        }
    }
}

#[test]
fn a_failure_anywhere_in_appends_and_rolls_is_reported_and_loses_nothing() {
    const EDITS: u32 = 7;
    let start = MemDisk::new();
    let (_, states) = database(&start, &[]);
    for failure in [Failure::Broken, Failure::Full] {
        for call in CHANGING {
            for nth in 0.. {
                let disk = start.kill();
                let faulty = FaultyDisk::new(Arc::new(disk.clone()));
                faulty.fail(Fault::new(call, failure).after(nth));
                let (acknowledged, pending) =
                    append_all(&faulty, &states[0], EDITS).unwrap_or((states.clone(), None));
                let last = acknowledged.last().unwrap();
                for seed in 0..8 {
                    let (_, found) = open(&disk.crash(seed)).unwrap();
                    assert!(found == *last || Some(&found) == pending.as_ref(), "{call:?} {nth} seed {seed}");
                }
                if faulty.count(call) <= nth {
                    assert!(pending.is_none() && acknowledged.len() as u32 == EDITS + 1);
                    break;
                }
            }
        }
    }
}

#[test]
fn a_failed_sync_poisons() {
    let disk = MemDisk::new();
    let (_, states) = database(&disk, &[]);
    let faulty = FaultyDisk::new(Arc::new(disk.clone()));
    let (manifest, _) = Manifest::open_with(Arc::new(faulty.clone()), dir(), still()).unwrap();
    faulty.fail(Fault::new(Call::Sync, Failure::Broken));
    for _ in 0..2 {
        assert_eq!(manifest.append(&add(1, 1)).unwrap_err().kind(), Kind::Poisoned);
        assert_eq!(manifest.edit_number(), 0);
        assert_eq!(*manifest.state(), states[0]);
    }
    assert_eq!(manifest.roll().unwrap_err().kind(), Kind::Poisoned);
    assert_eq!(manifest.close().unwrap_err().kind(), Kind::Poisoned);
    drop(manifest);
    // The record is in the file, although its sync failed: opening writes it once more and makes it durable.
    let (_, found) = open(&disk).unwrap();
    assert_eq!(open(&disk.crash(3)).unwrap().1, found);
}

#[test]
fn a_full_device_refuses_an_edit_and_takes_the_next_when_there_is_space() {
    let disk = MemDisk::new();
    let (manifest, _) = database(&disk, &[add(1, 1)]);
    disk.set_capacity(disk.used_bytes());
    let mut slot = 2;
    let error = loop {
        match manifest.append(&add(slot, 1)) {
            Ok(()) => slot += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), Kind::Full);
    let before = State::clone(&manifest.state());
    assert_eq!(open(&disk.crash(1)).unwrap().1, before);
    disk.set_capacity(u64::MAX);
    manifest.append(&add(slot, 1)).unwrap();
    assert_eq!(open(&disk.crash(2)).unwrap().1, before.apply(&add(slot, 1)).unwrap());
}

/// A write that stored half of its bytes before the device was full leaves nothing behind.
#[test]
fn half_a_record_is_taken_off_again() {
    let disk = MemDisk::new();
    database(&disk, &[]);
    let faulty = FaultyDisk::new(Arc::new(disk.clone()));
    let (manifest, _) = Manifest::open_with(Arc::new(faulty.clone()), dir(), still()).unwrap();
    let large = Edit { ops: (0..1000).flat_map(|slot| add(slot, 1).ops).collect() };
    faulty.fail(Fault::new(Call::Write, Failure::Full));
    assert_eq!(manifest.append(&large).unwrap_err().kind(), Kind::Full);
    let (reopened, _) = open(&disk.kill()).unwrap();
    assert_eq!((reopened.torn_bytes(), reopened.edit_number()), (0, 0));
    manifest.append(&large).unwrap();
    assert_eq!(open(&disk.crash(1)).unwrap().1, *manifest.state());
}

/// A roll that finds no space is put off; the old file goes on.
#[test]
fn a_roll_without_space_is_put_off() {
    let disk = MemDisk::new();
    database(&disk, &[]);
    let faulty = FaultyDisk::new(Arc::new(disk.clone()));
    let (manifest, _) = Manifest::open_with(Arc::new(faulty.clone()), dir(), rolling()).unwrap();
    faulty.fail(Fault::new(Call::Write, Failure::Full).on("MANIFEST-000002").lasting());
    for slot in 0..10 {
        manifest.append(&add(slot, 1)).unwrap();
    }
    assert_eq!(manifest.size().file, 1);
    assert_eq!(manifest.roll().unwrap_err().kind(), Kind::Full);
    faulty.heal();
    manifest.roll().unwrap();
    assert_eq!(manifest.size().file, 2);
    assert_eq!(open(&disk.crash(1)).unwrap().1, *manifest.state());
}

/// A roll that failed while there were few edits does not make later ones frequent.
#[test]
fn a_roll_that_failed_early_is_tried_again_when_it_is_due() {
    let disk = MemDisk::new();
    let (_, states) = database(&disk, &[]);
    let faulty = FaultyDisk::new(Arc::new(disk.clone()));
    let (manifest, _) =
        Manifest::open_with(Arc::new(faulty.clone()), dir(), ManifestSettings::default()).unwrap();
    faulty.fail(Fault::new(Call::Write, Failure::Full).on("MANIFEST-000002").lasting());
    assert_eq!(manifest.roll().unwrap_err().kind(), Kind::Full);
    faulty.heal();
    for slot in 0..10 {
        manifest.append(&add(slot, 1)).unwrap();
    }
    assert_eq!(manifest.size().file, 1, "ten edits are far below what the settings ask for");
    assert_ne!(*manifest.state(), states[0]);
}

/// The names of other manifest files and of an unfinished `CURRENT` go away at the next opening; nothing else
/// does.
#[test]
fn opening_cleans_up_after_a_roll_and_touches_nothing_else() {
    let disk = MemDisk::new();
    let (_, states) = database(&disk, &[add(1, 1)]);
    for name in ["MANIFEST-000002", "MANIFEST-000009", "CURRENT.tmp", "MANIFEST-9", "notes.txt"] {
        common::write_file(&disk, &dir().join(name), b"half a file");
    }
    assert_eq!(open(&disk).unwrap().1, states[1]);
    assert_eq!(
        disk.list(dir()).unwrap(),
        ["CURRENT", "MANIFEST-000001", "MANIFEST-9", "data", "journal", "notes.txt"]
    );
}

/// A roll was refused between the rename of `CURRENT` and the sync of the directory, and the process died.
/// Edits of the next opening must not disappear with a name that is not durable.
#[test]
fn a_name_that_an_opening_found_is_durable() {
    let disk = MemDisk::new();
    database(&disk, &[add(1, 1)]);
    let faulty = FaultyDisk::new(Arc::new(disk.clone()));
    let (manifest, _) = Manifest::open_with(Arc::new(faulty.clone()), dir(), still()).unwrap();
    // The first sync makes the entry of the new file durable.
    faulty.fail(Fault::new(Call::SyncDir, Failure::Broken).after(1));
    assert_eq!(manifest.roll().unwrap_err().kind(), Kind::Poisoned);
    let killed = disk.kill();
    let (manifest, _) = open(&killed).unwrap();
    assert_eq!(manifest.size().file, 2, "the rename was seen");
    manifest.append(&add(2, 1)).unwrap();
    for seed in 0..64 {
        let (_, found) = open(&killed.crash(seed)).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(found, *manifest.state(), "seed {seed}");
    }
}
