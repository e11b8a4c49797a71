//! Backups: damage is found, impossible requests are refused, and the watcher gets progress.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use terrane_base::Kind;
use terrane_base::env::Env;
use terrane_device::{Disk, MemDisk, OpenMode};
use terrane_engine::backup::{BackupOptions, BackupProgress, Backups, DirectoryPlace, RestoreOptions};

use crate::backup::{
    PLACE, TARGET, assert_verified, backups, check, create, filled, go_on, restore, rows_in, write,
};
use crate::support::{DIR, small_options};

#[test]
fn no_flipped_byte_is_restored_and_a_recheck_heals() {
    let disk = MemDisk::new();
    let engine = filled(disk.clone(), &small_options());
    engine.wait_until_quiescent().unwrap();
    let expected = check(&engine);
    let place = backups(disk.clone());
    create(&place, &engine).unwrap();
    let mut flipped = 0;
    for folder in terrane_engine::backup::FOLDERS {
        for name in disk.list(&Path::new(PLACE).join(folder)).unwrap() {
            let path = Path::new(PLACE).join(folder).join(&name);
            let file = disk.open(&path, OpenMode::Write, false).unwrap();
            let len = file.len().unwrap();
            for at in (0..len).step_by((len / 40).max(1) as usize).chain([len - 1]) {
                let mut byte = [0];
                file.read_at(at, &mut byte).unwrap();
                file.write_at(at, &[byte[0] ^ 1 << (at % 8)]).unwrap();
                let refused = restore(&place, &MemDisk::new(), 1, TARGET).expect_err("it is damaged");
                assert!(matches!(refused.kind(), Kind::Corrupt | Kind::Invalid), "{refused}");
                assert!(refused.to_string().contains(&name) || refused.kind() == Kind::Invalid, "{refused}");
                let report = place.verify(1, 0, &mut go_on).unwrap();
                assert_eq!(report.findings.len(), 1, "{path:?} at {at}");
                file.write_at(at, &byte).unwrap();
                flipped += 1;
            }
        }
    }
    assert!(flipped > 100, "{flipped}");
    assert!(rows_in(&place, 1) == expected);
    // A newer backup replaces damaged objects of an older one, if its options ask for that check.
    let folder = Path::new(PLACE).join("extents");
    let damaged = folder.join(disk.list(&folder).unwrap().first().unwrap());
    disk.open(&damaged, OpenMode::Write, false).unwrap().write_at(100, &[0; 50]).unwrap();
    create(&place, &engine).unwrap();
    assert_eq!(place.verify(2, 0, &mut go_on).unwrap().findings.len(), 1);
    place.create(&engine, &BackupOptions::default().recheck(true), &mut go_on).unwrap();
    for id in 1..=3 {
        assert_verified(&place, id);
    }
    // A manifest that cannot be read is listed, and nothing goes that it may need.
    let manifest = Path::new(PLACE).join("backups/000002");
    disk.open(&manifest, OpenMode::Write, false).unwrap().write_at(60, &[0xff; 4]).unwrap();
    let list = place.list().unwrap();
    assert_eq!((list.backups.len(), list.damaged[0].0), (2, 2));
    assert_eq!(place.purge(1).unwrap().kept_for, Some(2));
    assert_eq!(place.delete(2).unwrap().kept_for, None);
    assert!(rows_in(&place, 3) == expected);
}

#[test]
fn damage_of_the_database_is_not_a_backup() {
    let disk = MemDisk::new();
    let engine = filled(disk.clone(), &small_options());
    engine.wait_until_quiescent().unwrap();
    let place = backups(disk.clone());
    let data = Path::new(DIR).join("data/000001.ext");
    let file = disk.open(&data, OpenMode::Write, false).unwrap();
    for slot in (0..file.len().unwrap()).step_by(2 << 20) {
        file.write_at(slot + 20, &[0x55; 8]).unwrap();
    }
    let error = create(&place, &engine).unwrap_err();
    assert_eq!(error.kind(), Kind::Corrupt);
    assert!(error.to_string().contains("000001.ext"), "{error}");
    assert!(place.list().unwrap().backups.is_empty());
}

#[test]
fn impossible_requests_are_refused() {
    let disk = MemDisk::new();
    let engine = filled(disk.clone(), &small_options());
    let place = backups(disk.clone());
    assert_eq!(place.list().unwrap_err().kind(), Kind::NotFound);
    assert_eq!(place.purge(1).unwrap_err().kind(), Kind::NotFound);
    create(&place, &engine).unwrap();
    let lock = disk.lock(&Path::new(PLACE).join("LOCK")).unwrap();
    for refused in [create(&place, &engine).map(drop), place.delete(1).map(drop), place.purge(0).map(drop)] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), Kind::Busy);
        assert!(error.to_string().contains("another backup"), "{error}");
    }
    drop(lock);
    assert_eq!(restore(&place, &disk, 1, DIR).unwrap_err().kind(), Kind::Invalid, "never over a database");
    assert_eq!(restore(&place, &disk, 1, PLACE).unwrap_err().kind(), Kind::Invalid);
    let error = restore(&place, &disk, 7, TARGET).unwrap_err();
    assert_eq!(error.kind(), Kind::NotFound);
    assert!(error.to_string().contains("[1]"), "{error}");
    assert_eq!(place.delete(7).unwrap_err().kind(), Kind::NotFound);
    assert_eq!(place.verify(7, 0, &mut go_on).unwrap_err().kind(), Kind::NotFound);
    // Cancelled at each step: nothing is left of it.
    for steps in 0..3 {
        let mut left = steps;
        let mut stop = |_: &BackupProgress| {
            left -= 1;
            if left < 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        write(&engine, 900, 1, steps as u8);
        let error = place.create(&engine, &BackupOptions::default(), &mut stop).unwrap_err();
        assert_eq!(error.kind(), Kind::Cancelled);
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        left = steps;
        let mut stop = |_: &BackupProgress| {
            left -= 1;
            if left < 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let error = place.restore_on(&shared, 1, Path::new(TARGET), &RestoreOptions::default(), &mut stop);
        assert_eq!(error.unwrap_err().kind(), Kind::Cancelled);
        assert!(!disk.exists(Path::new(TARGET)).unwrap());
    }
    assert_eq!(place.list().unwrap().backups.len(), 1);
    let elsewhere = Path::new("/elsewhere");
    disk.create_dir(&elsewhere.join("mine")).unwrap();
    let other = DirectoryPlace::new(Arc::new(disk.clone()), elsewhere);
    let error = create(&Backups::new(Arc::new(other), Env::real()), &engine).unwrap_err();
    assert_eq!(error.kind(), Kind::Invalid);
    assert!(error.to_string().contains("mine"), "{error}");
    engine.close().unwrap();
}

#[test]
fn progress_ends_with_everything_done() {
    let disk = MemDisk::new();
    let engine = filled(disk.clone(), &small_options());
    let place = backups(disk.clone());
    let mut reports = Vec::new();
    let mut watch = |progress: &BackupProgress| {
        reports.push(*progress);
        ControlFlow::Continue(())
    };
    let made =
        place.create(&engine, &BackupOptions::default().bytes_per_second(1 << 30), &mut watch).unwrap();
    let (first, last) = (reports[0], *reports.last().unwrap());
    assert_eq!((first.objects_done, first.bytes_done), (0, 0));
    assert_eq!((last.objects_done, last.bytes_done), (last.objects, last.bytes));
    assert_eq!((last.bytes, last.bytes_moved), (made.extent_bytes + made.journal_bytes, made.copied_bytes));
    assert!(reports.windows(2).all(|pair| pair[0].objects_done < pair[1].objects_done));
}
