//! Faults of the device in memory: syncs that fail and then report success, flipped bits; and the enumeration
//! of all outcomes of a power cut.
#![allow(clippy::unwrap_used, reason = "a step that fails ends the test")]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use terrane_device::{Disk, File, MemDisk, OpenMode};

const PAGE: usize = 4096;

fn file_of(disk: &MemDisk, pages: usize) -> Arc<dyn File> {
    let file = disk.open(Path::new("file"), OpenMode::Create, false).unwrap();
    file.write_at(0, &vec![1; pages * PAGE]).unwrap();
    file.sync().unwrap();
    disk.sync_dir(Path::new("")).unwrap();
    file
}

fn byte_at(disk: &MemDisk, offset: u64) -> u8 {
    let file = disk.open(Path::new("file"), OpenMode::Read, false).unwrap();
    let mut byte = [0];
    file.read_at(offset, &mut byte).unwrap();
    byte[0]
}

fn after_crashes(disk: &MemDisk, offset: u64) -> BTreeSet<u8> {
    (0..200).map(|seed| byte_at(&disk.crash(seed), offset)).collect()
}

#[test]
fn a_sync_after_a_failed_one_makes_nothing_durable_that_was_not_written_again() {
    let disk = MemDisk::new();
    let file = file_of(&disk, 2);
    file.write_at(0, &[2]).unwrap();
    file.write_at(PAGE as u64, &[2]).unwrap();
    disk.fail_sync(Path::new("file"));
    assert_eq!(byte_at(&disk, 0), 2, "still read");
    file.sync().unwrap();
    assert_eq!(after_crashes(&disk, 0), BTreeSet::from([1]), "the second sync lies");
    file.write_at(100, &[3]).unwrap();
    file.sync().unwrap();
    assert_eq!(after_crashes(&disk, 0), BTreeSet::from([2]), "written again, the page is whole");
    assert_eq!(after_crashes(&disk, PAGE as u64), BTreeSet::from([1]), "the other page was not");
    assert_eq!(byte_at(&disk.kill(), PAGE as u64), 2, "and is still read");
}

#[test]
fn a_failed_sync_forgets_mapped_stores_too() {
    let disk = MemDisk::new();
    let file = file_of(&disk, 1);
    let region = file.map(PAGE, true).unwrap();
    store(&region, 7, 2);
    disk.fail_sync(Path::new("file"));
    file.sync().unwrap();
    assert_eq!(after_crashes(&disk, 7), BTreeSet::from([1]));
    store(&region, 8, 3);
    file.sync().unwrap();
    assert_eq!(after_crashes(&disk, 7), BTreeSet::from([2]));
}

#[test]
fn a_misdirected_page_is_read_until_the_power_goes_and_then_two_are_wrong() {
    let pages = [0, PAGE as u64, 2 * PAGE as u64, 3 * PAGE as u64];
    for seed in 0..50 {
        let disk = MemDisk::new();
        let file = file_of(&disk, pages.len());
        file.write_at(pages[0], &vec![2; PAGE]).unwrap();
        file.write_at(pages[1], &vec![3; PAGE]).unwrap();
        disk.misdirect_sync(Path::new("file"), seed);
        file.sync().unwrap();
        let read = |disk: &MemDisk| pages.map(|at| byte_at(disk, at));
        assert_eq!(read(&disk), [2, 3, 1, 1]);
        assert_eq!(read(&disk.kill()), [2, 3, 1, 1], "the system still has them");
        let left = read(&disk.crash(seed));
        let wrong = (0..4).filter(|&page| left[page] != [2, 3, 1, 1][page]).count();
        let has_lost = left[0] != 2 || left[1] != 3;
        assert!(has_lost && wrong == 2, "seed {seed}: {left:?}");
        assert_eq!(read(&disk.kill().crash(seed)), left, "a restart repairs nothing");
        file.write_at(pages[0], &vec![2; PAGE]).unwrap();
        file.write_at(pages[1], &vec![3; PAGE]).unwrap();
        file.sync().unwrap();
        assert_eq!(read(&disk.crash(seed))[..2], [2, 3], "written again");
    }
}

#[expect(unsafe_code, reason = "a mapped region is written")]
fn store(region: &terrane_device::Region, at: usize, byte: u8) {
    // SAFETY: in bounds, and no other thread uses the region.
    unsafe { region.write(at, &[byte]) };
}

#[test]
fn every_outcome_is_counted_once() {
    let disk = MemDisk::new();
    let file = file_of(&disk, 3);
    assert_eq!(disk.outcomes(), 1);
    for page in 0..3 {
        file.write_at(page * PAGE as u64, &[2]).unwrap();
    }
    disk.rename(Path::new("file"), Path::new("renamed")).unwrap();
    let count = disk.outcomes();
    assert_eq!(count, 16, "three pages and a name");
    let mut seen = BTreeSet::new();
    for number in 0..count {
        let cut = disk.crash_as(number);
        let names = cut.list(Path::new("")).unwrap();
        let file = cut.open(Path::new(&names[0]), OpenMode::Read, false).unwrap();
        let mut bytes = vec![0; 3 * PAGE];
        file.read_at(0, &mut bytes).unwrap();
        seen.insert((names, [bytes[0], bytes[PAGE], bytes[2 * PAGE]]));
        assert_eq!(cut.outcomes(), 1, "after a cut everything is durable");
    }
    assert_eq!(seen.len(), 16);
}

#[test]
fn rot_flips_one_durable_bit() {
    let disk = MemDisk::new();
    file_of(&disk, 2);
    assert_eq!(disk.rot(1, &|path| path.contains("other")), None);
    let (path, offset) = disk.rot(1, &|path| path.contains("file")).unwrap();
    assert_eq!(path, "/file");
    let changed = byte_at(&disk, offset);
    assert_eq!((changed ^ 1).count_ones(), 1);
    assert_eq!(after_crashes(&disk, offset), BTreeSet::from([changed]));
}
