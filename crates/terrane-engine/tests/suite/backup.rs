//! Backups: a restore has the same rows as the database had; shared objects survive the removal of other
//! backups; no crash, failure or flipped bit makes a wrong backup.
#![allow(clippy::unwrap_used, reason = "a step that fails ends the test")]

#[path = "backup/refused.rs"]
mod refused;
#[path = "backup/views.rs"]
mod views;
use crate::support;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use support::{DIR, open, part_of_cuts, rows, small_options};
use terrane_base::env::Env;
use terrane_base::options::{JournalMode, Options};
use terrane_base::{Batch, Result};
use terrane_device::{Call, Disk, Failure, Fault, FaultyDisk, MemDisk};
use terrane_engine::backup::{
    BackupInfo, BackupOptions, BackupProgress, Backups, DirectoryPlace, RestoreOptions, Restored,
};
use terrane_engine::{Engine, Row};

const PLACE: &str = "/backups/here";
const TARGET: &str = "/restored/one";

fn backups(disk: impl Disk + 'static) -> Backups {
    Backups::new(Arc::new(DirectoryPlace::new(Arc::new(disk), Path::new(PLACE))), Env::real())
}

fn go_on(_: &BackupProgress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn create(backups: &Backups, engine: &Engine) -> Result<BackupInfo> {
    backups.create(engine, &BackupOptions::default(), &mut go_on)
}

fn restore(backups: &Backups, disk: &MemDisk, id: u64, target: &str) -> Result<Restored> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    backups.restore_on(&disk, id, Path::new(target), &RestoreOptions::default(), &mut go_on)
}

fn reopen(disk: impl Disk + 'static, dir: &str) -> Result<Arc<Engine>> {
    let options = Options { create_if_missing: false, ..small_options() };
    Engine::open_on(Arc::new(disk), Path::new(dir), &options, Env::real())
}

/// Sets `count` keys in both tables, each pair in one batch.
fn write(engine: &Engine, from: u64, count: u64, fill: u8) {
    let tables = ["default", "other"].map(|name| engine.catalog().require(name).unwrap().id);
    for number in from..from + count {
        let mut batch = Batch::new();
        for table in tables {
            batch.put(table, &number.to_be_bytes(), &[fill; 300]).unwrap();
        }
        engine.write(&batch, false).unwrap();
    }
}

/// An engine with two tables, records in levels and in memory.
fn filled(disk: impl Disk + 'static, options: &Options) -> Arc<Engine> {
    let engine = open(disk, options).unwrap();
    engine.create_table("other", &[]).unwrap();
    write(&engine, 0, 300, 1);
    engine.flush().unwrap();
    write(&engine, 200, 200, 2);
    engine
}

/// Every invariant holds, and both tables have the same rows.
fn check(engine: &Arc<Engine>) -> Vec<Row> {
    let report = engine.check(&mut |_, _| ()).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let mut all: Vec<_> = engine.catalog().all().iter().map(|table| rows(engine, table).unwrap()).collect();
    assert_eq!(all.len(), 2);
    assert!(all[0] == all[1], "a batch over two tables is whole or not there");
    all.pop().unwrap()
}

/// The rows of the database in `dir`, which is sound.
fn rows_of(disk: &MemDisk, dir: &str) -> Vec<Row> {
    let engine = reopen(disk.clone(), dir).unwrap();
    let rows = check(&engine);
    engine.close().unwrap();
    rows
}

/// The rows of backup `id`.
fn rows_in(backups: &Backups, id: u64) -> Vec<Row> {
    let elsewhere = MemDisk::new();
    restore(backups, &elsewhere, id, TARGET).unwrap();
    rows_of(&elsewhere, TARGET)
}

fn assert_verified(backups: &Backups, id: u64) {
    let report = backups.verify(id, 0, &mut go_on).unwrap();
    assert!(report.findings.is_empty() && report.objects > 0, "{id}: {:?}", report.findings);
}

#[test]
fn a_backup_is_restored_as_a_database_of_its_own() {
    let modes = [JournalMode::File, JournalMode::Off];
    for (journal, flush) in modes.into_iter().flat_map(|mode| [(mode, false), (mode, true)]) {
        let disk = MemDisk::new();
        let engine = filled(disk.clone(), &Options { journal, ..small_options() });
        let expected = check(&engine);
        let backups = backups(disk.clone());
        let made = backups.create(&engine, &BackupOptions::default().flush(flush), &mut go_on).unwrap();
        assert_eq!((made.id, made.last_seq), (1, engine.visible()));
        assert!(made.extents > 0 && (flush || made.journal_bytes > 0), "{journal:?}");
        assert_eq!(backups.list().unwrap().backups, std::slice::from_ref(&made));
        assert_verified(&backups, 1);
        write(&engine, 0, 400, 3);
        let restored = restore(&backups, &disk, 1, TARGET).unwrap();
        assert_eq!((restored.last_seq, restored.extents), (made.last_seq, made.extents));
        let copy = reopen(disk.clone(), TARGET).unwrap();
        assert!(check(&copy) == expected);
        assert_eq!(copy.visible(), made.last_seq);
        // Each goes its way.
        write(&copy, 100, 400, 4);
        for engine in [&engine, &copy] {
            engine.flush().unwrap();
            engine.wait_until_quiescent().unwrap();
            check(engine);
            engine.close().unwrap();
        }
        let fills = |dir: &str| rows_of(&disk, dir).iter().map(|(_, value)| value[0]).collect::<Vec<_>>();
        assert!(fills(DIR).iter().all(|fill| *fill == 3));
        assert_eq!((&fills(TARGET)[..100], &fills(TARGET)[100..]), (&[1; 100][..], &[4; 400][..]));
        let id = |dir: &str| {
            let disk = Arc::new(disk.clone());
            terrane_levels::Manifest::open_read_only(disk, Path::new(dir)).unwrap().1.database
        };
        assert_ne!(id(DIR), id(TARGET));
        assert_eq!(id(DIR).to_string(), made.database);
    }
}

#[test]
fn shared_objects_are_copied_once_and_kept_while_a_backup_needs_them() {
    let disk = MemDisk::new();
    let engine = filled(disk.clone(), &small_options());
    let backups = backups(disk.clone());
    let mut expected = vec![Vec::new()];
    for round in 1..=5u64 {
        engine.flush().unwrap();
        engine.wait_until_quiescent().unwrap();
        expected.push(check(&engine));
        let made = create(&backups, &engine).unwrap();
        assert_eq!(made.id, round);
        let again = create(&backups, &engine).unwrap();
        assert_eq!(again.copied_bytes, 0, "nothing is new");
        assert_eq!(backups.delete(again.id).unwrap().objects, 0, "all of it is shared");
        // A part of it changes.
        write(&engine, 1000 * round, 50, round as u8);
    }
    for id in 1..=5 {
        assert_verified(&backups, id);
        assert!(rows_in(&backups, id) == expected[id as usize], "{id}");
    }
    assert_eq!(backups.delete(2).unwrap().backups, [2]);
    assert_eq!(backups.purge(2).unwrap().backups, [1, 3]);
    assert_eq!(backups.list().unwrap().backups.iter().map(|backup| backup.id).collect::<Vec<_>>(), [4, 5]);
    for id in 4..=5 {
        assert_verified(&backups, id);
        assert!(rows_in(&backups, id) == expected[id as usize], "{id}");
    }
    assert!(backups.purge(0).unwrap().objects > 0);
    for folder in terrane_engine::backup::FOLDERS {
        assert!(disk.list(&Path::new(PLACE).join(folder)).unwrap().is_empty(), "{folder}");
    }
    assert_eq!(create(&backups, &engine).unwrap().id, 1);
}

#[test]
fn a_cut_at_any_call_leaves_older_backups_whole_and_no_half_one() {
    let (mut cut_after, step) = part_of_cuts();
    loop {
        let memory = MemDisk::new();
        let engine = filled(memory.clone(), &small_options());
        engine.wait_until_quiescent().unwrap();
        let before = check(&engine);
        create(&backups(memory.clone()), &engine).unwrap();
        write(&engine, 600, 100, 7);
        engine.flush().unwrap();
        write(&engine, 700, 20, 8);
        let after = check(&engine);
        engine.close().unwrap();
        drop(engine);
        let disk = FaultyDisk::new(Arc::new(memory.clone()));
        let engine = reopen(memory.clone(), DIR).unwrap();
        disk.cut_after(cut_after);
        let place = backups(disk.clone());
        // One more, and the first one goes.
        let done = create(&place, &engine).and_then(|_| place.delete(1));
        let is_cut = disk.is_cut();
        disk.cut();
        assert_eq!(done.is_err(), is_cut, "at {cut_after}: {done:?}");
        for seed in 0..3 {
            let left = if seed == 0 { memory.kill() } else { memory.crash(seed) };
            let place = backups(left.clone());
            let list = place.list().unwrap();
            assert!(list.damaged.is_empty(), "at {cut_after}: {:?}", list.damaged);
            let ids: Vec<u64> = list.backups.iter().map(|backup| backup.id).collect();
            assert!(ids == [1] || ids == [1, 2] || ids == [2], "at {cut_after}: {ids:?}");
            for id in &ids {
                assert_verified(&place, *id);
                assert!(
                    rows_in(&place, *id) == [&before, &after][*id as usize - 1][..],
                    "at {cut_after}: {id}"
                );
            }
            // It goes on, and no object stays that no backup needs.
            create(&place, &engine).unwrap();
            place.purge(1).unwrap();
            assert!(rows_in(&place, ids.last().unwrap() + 1) == after);
            place.purge(0).unwrap();
            for folder in terrane_engine::backup::FOLDERS {
                assert!(
                    left.list(&Path::new(PLACE).join(folder)).unwrap().is_empty(),
                    "at {cut_after}: {folder}"
                );
            }
        }
        engine.close().unwrap();
        if !is_cut {
            break;
        }
        cut_after += step;
    }
    assert!(cut_after > 20, "{cut_after} calls");
}

#[test]
fn a_restore_that_is_cut_at_any_call_leaves_nothing_or_all() {
    let memory = MemDisk::new();
    let engine = filled(memory.clone(), &small_options());
    let expected = check(&engine);
    let place = backups(memory.clone());
    create(&place, &engine).unwrap();
    let (mut cut_after, step) = part_of_cuts();
    loop {
        let other = MemDisk::new();
        let disk = FaultyDisk::new(Arc::new(other.clone()));
        disk.cut_after(cut_after);
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let done = place.restore_on(&shared, 1, Path::new(TARGET), &RestoreOptions::default(), &mut go_on);
        let is_cut = disk.is_cut();
        disk.cut();
        assert_eq!(done.is_err(), is_cut, "at {cut_after}");
        for seed in 0..3 {
            let left = if seed == 0 { other.kill() } else { other.crash(seed) };
            let is_there = left.exists(Path::new(TARGET)).unwrap();
            assert!(is_there || is_cut);
            if !is_there {
                restore(&place, &left, 1, TARGET).unwrap();
            }
            assert!(rows_of(&left, TARGET) == expected, "at {cut_after}");
        }
        if !is_cut {
            break;
        }
        cut_after += step;
    }
    assert!(cut_after > 10, "{cut_after} calls");
}

#[test]
fn a_call_that_fails_makes_no_backup_and_hurts_none() {
    let memory = MemDisk::new();
    let engine = filled(memory.clone(), &small_options());
    let disk = FaultyDisk::new(Arc::new(memory.clone()));
    let (place, looking) = (backups(disk.clone()), backups(memory.clone()));
    let first = create(&looking, &engine).unwrap();
    let (mut failed, mut made) = (0, first.id);
    for call in Call::ALL.into_iter().filter(|call| *call != Call::Lock) {
        for skip in 0..40 {
            write(&engine, 900 + made, 1, made as u8);
            disk.fail(Fault::new(call, Failure::Full).on("backups").after(skip));
            let result = create(&place, &engine);
            disk.heal();
            let ids: Vec<u64> = looking.list().unwrap().backups.iter().map(|backup| backup.id).collect();
            let newest = *ids.last().unwrap();
            assert_verified(&looking, newest);
            if let Ok(info) = result {
                made = info.id;
                assert_eq!(newest, made);
                break;
            }
            failed += 1;
            // Only the last sync may fail behind the manifest.
            assert!(
                newest == made || call == Call::SyncDir && newest == made + 1,
                "{call:?} {skip}: {ids:?}"
            );
            made = newest;
        }
        looking.purge(2).unwrap();
    }
    assert!(failed > 20, "{failed} calls failed");
}
