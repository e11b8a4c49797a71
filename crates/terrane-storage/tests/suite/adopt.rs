//! Files that come from outside: linked, sealed while they have their first name, and right accounting.
#![allow(clippy::unwrap_used, reason = "a step that fails ends the test")]

use std::path::Path;
use std::sync::Arc;

use terrane_base::{ExtentId, Kind};
use terrane_device::{Disk, MemDisk, OpenMode};
use terrane_storage::{LocalStore, SLOT_BYTES, Store, StoreSettings};

const DIR: &str = "store";
const OUTSIDE: &str = "outside";

fn open(disk: &Arc<dyn Disk>, live: &[(ExtentId, u32)]) -> LocalStore {
    let store = LocalStore::open(disk.clone(), Path::new(DIR), StoreSettings::default()).unwrap();
    store.restore(&mut live.iter().copied()).unwrap();
    store
}

/// A file of three slots, each full of its number, and a tail.
fn outside(disk: &dyn Disk) {
    let file = disk.open(Path::new(OUTSIDE), OpenMode::Create, false).unwrap();
    for slot in 0..3u8 {
        file.write_at(u64::from(slot) * SLOT_BYTES as u64, &vec![slot; SLOT_BYTES]).unwrap();
    }
    file.write_at(3 * SLOT_BYTES as u64, b"a tail").unwrap();
    file.sync().unwrap();
}

fn check(store: &LocalStore, file: u32) {
    let mut buf = vec![0; SLOT_BYTES];
    for (slot, slots) in [(0, 1), (1, 2)] {
        store.read(ExtentId { file, slot }, 0, &mut buf).unwrap();
        assert!(buf.iter().all(|byte| u32::from(*byte) == slot), "slot {slot} of {slots}");
    }
}

#[test]
fn a_file_is_linked_and_left_alone() {
    let device = MemDisk::new();
    device.create_dir(Path::new(DIR)).unwrap();
    let disk: Arc<dyn Disk> = Arc::new(device);
    outside(&*disk);
    let store = open(&disk, &[]);
    let own = store.allocate(1).unwrap();
    let extents = [(0, 1), (1, 2)];
    let number = store.adopt(Path::new(OUTSIDE), &extents).unwrap().expect("linked");
    assert_ne!(number, own.file);
    store.sync().unwrap();
    check(&store, number);
    assert_eq!(store.usage().live_bytes, 4 * SLOT_BYTES as u64);
    // Free slots of it are not used while it has its first name.
    store.free(ExtentId { file: number, slot: 1 }, 2).unwrap();
    for _ in 0..40 {
        let id = store.allocate(1).unwrap();
        assert_ne!(id.file, number);
        store.write(id, &[9; 100]).unwrap();
    }
    let mut buf = vec![0; SLOT_BYTES];
    disk.open(Path::new(OUTSIDE), OpenMode::Read, false)
        .unwrap()
        .read_at(SLOT_BYTES as u64, &mut buf)
        .unwrap();
    assert!(buf.iter().all(|byte| *byte == 1), "a slot that is free here is whole there");
    // An opening knows it by what the manifest says.
    drop(store);
    disk.remove(Path::new(OUTSIDE)).unwrap();
    let live = [(ExtentId { file: number, slot: 0 }, 1), (ExtentId { file: number, slot: 1 }, 2)];
    let store = open(&disk, &live);
    check(&store, number);
    for (id, slots) in live {
        store.free(id, slots).unwrap();
    }
    store.reclaim_all().unwrap();
    assert_eq!(store.usage().live_bytes, 0);
}

#[test]
fn files_that_do_not_fit_are_refused_and_leave_nothing() {
    let device = MemDisk::new();
    device.create_dir(Path::new(DIR)).unwrap();
    let disk: Arc<dyn Disk> = Arc::new(device);
    outside(&*disk);
    let store = open(&disk, &[]);
    let refused = |extents: &[(u32, u32)], kind| {
        let error = store.adopt(Path::new(OUTSIDE), extents).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    };
    refused(&[], Kind::Invalid);
    refused(&[(600, 1)], Kind::Invalid);
    refused(&[(0, 4)], Kind::Corrupt);
    refused(&[(0, 2), (1, 1)], Kind::Corrupt);
    assert_eq!(store.usage(), terrane_storage::StoreUsage::default());
    assert!(disk.list(Path::new(DIR)).unwrap().is_empty());
    assert!(store.adopt(Path::new("nowhere"), &[(0, 1)]).is_err());
    store.adopt(Path::new(OUTSIDE), &[(0, 3)]).unwrap().expect("linked");
}
