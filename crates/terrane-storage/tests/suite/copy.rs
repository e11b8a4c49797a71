//! Two stores that share data files: neither writes to what the other has.
#![allow(clippy::unwrap_used, reason = "a step that fails ends the test")]

use std::path::Path;
use std::sync::Arc;

use terrane_base::ExtentId;
use terrane_device::{Disk, MemDisk, PosixDisk};
use terrane_storage::{LocalStore, SLOT_BYTES, Store, StoreSettings};

const A: &str = "a";
const B: &str = "b";

fn open(disk: &Arc<dyn Disk>, dir: &Path, live: &[(ExtentId, u32)]) -> LocalStore {
    let store = LocalStore::open(disk.clone(), dir, StoreSettings::default()).unwrap();
    store.restore(&mut live.iter().copied()).unwrap();
    store
}

fn memory() -> (MemDisk, Arc<dyn Disk>) {
    let disk = MemDisk::new();
    disk.create_dir(Path::new(A)).unwrap();
    disk.create_dir(Path::new(B)).unwrap();
    (disk.clone(), Arc::new(disk))
}

/// A store with `count` extents, each full of its number.
fn filled(disk: &Arc<dyn Disk>, dir: &Path, count: u8) -> (LocalStore, Vec<(ExtentId, u32)>) {
    let store = open(disk, dir, &[]);
    let live: Vec<_> = (0..count).map(|n| (put(&store, n), 1)).collect();
    store.sync().unwrap();
    (store, live)
}

fn put(store: &LocalStore, fill: u8) -> ExtentId {
    let id = store.allocate(1).unwrap();
    store.write(id, &vec![fill; SLOT_BYTES]).unwrap();
    id
}

fn copy(store: &LocalStore, dir: &Path, live: &[(ExtentId, u32)]) -> terrane_storage::StoreCopy {
    store.hold();
    let copy = store.copy_to(dir, live).unwrap();
    store.release();
    copy
}

fn check(store: &LocalStore, live: &[(ExtentId, u32)]) {
    let mut buf = vec![0; SLOT_BYTES];
    for (n, (id, _)) in live.iter().enumerate() {
        store.read(*id, 0, &mut buf).unwrap();
        assert!(buf.iter().all(|byte| usize::from(*byte) == n), "extent {id} is what it was");
    }
}

#[test]
fn neither_side_writes_to_a_shared_file() {
    let (_, disk) = memory();
    let (a, live) = filled(&disk, Path::new(A), 6);
    let copied = copy(&a, Path::new(B), &live);
    assert_eq!((copied.files_linked, copied.bytes_copied), (1, 0));
    let b = open(&disk, Path::new(B), &live);
    // Both sides free what the other still has, and write as much again.
    for (id, slots) in &live[..3] {
        a.free(*id, *slots).unwrap();
    }
    for (id, slots) in &live[3..] {
        b.free(*id, *slots).unwrap();
    }
    a.reclaim_all().unwrap();
    b.reclaim_all().unwrap();
    for fill in 100..110 {
        put(&a, fill);
        put(&b, fill + 50);
    }
    a.sync().unwrap();
    b.sync().unwrap();
    let mut buf = vec![0; SLOT_BYTES];
    for (n, (id, _)) in live.iter().enumerate() {
        let side = if n < 3 { &b } else { &a };
        side.read(*id, 0, &mut buf).unwrap();
        assert!(buf.iter().all(|byte| usize::from(*byte) == n), "extent {id} is what it was");
    }
    assert_eq!(a.usage().sealed_bytes, b.usage().sealed_bytes);
    assert!(a.usage().sealed_bytes >= 3 * SLOT_BYTES as u64);
    let usage = a.usage();
    let sum = usage.live_bytes + usage.free_bytes + usage.punched_bytes + usage.sealed_bytes;
    assert_eq!(usage.file_bytes, sum);
}

#[test]
fn a_sealed_file_stays_sealed_over_a_restart_and_is_used_again_once_it_is_alone() {
    let (_, disk) = memory();
    let (a, live) = filled(&disk, Path::new(A), 4);
    copy(&a, Path::new(B), &live);
    drop(a);
    let a = open(&disk, Path::new(A), &live[..2]);
    assert_eq!(put(&a, 9).file, 2, "slots of the shared file are free here, and not used");
    check(&open(&disk, Path::new(B), &live), &live);
    disk.remove(Path::new("b/000001.ext")).unwrap();
    let ids: Vec<_> = (0..20).map(|_| put(&a, 9)).collect();
    assert!(ids.iter().any(|id| id.file == 1), "the file is alone again: {ids:?}");
    check(&a, &live[..2]);
}

#[test]
fn a_shared_file_that_one_side_does_not_need_belongs_to_the_other() {
    let (_, disk) = memory();
    let (a, live) = filled(&disk, Path::new(A), 4);
    copy(&a, Path::new(B), &live);
    live.iter().for_each(|(id, slots)| a.free(*id, *slots).unwrap());
    a.sync().unwrap();
    assert!(!disk.exists(Path::new("a/000001.ext")).unwrap());
    assert_eq!(a.usage(), Default::default());
    let b = open(&disk, Path::new(B), &live[..1]);
    assert_eq!(put(&b, 1).file, 1, "one name is left, so its owner writes to it");
    check(&b, &live[..1]);
}

#[test]
fn slots_freed_during_a_copy_are_not_reused() {
    let (disk, shared) = memory();
    disk.forbid_links();
    let (a, live) = filled(&shared, Path::new(A), 4);
    a.hold();
    live.iter().for_each(|(id, slots)| a.free(*id, *slots).unwrap());
    for _ in 0..8 {
        put(&a, 200);
    }
    let copied = a.copy_to(Path::new(B), &live).unwrap();
    a.release();
    assert_eq!((copied.files_linked, copied.bytes_copied), (0, 4 * SLOT_BYTES as u64));
    check(&open(&shared, Path::new(B), &live), &live);
    assert_eq!(a.usage().live_bytes, 8 * SLOT_BYTES as u64);
    assert!(a.free(live[0].0, 1).is_err(), "it was freed before");
    assert_eq!(a.usage().sealed_bytes, 0);
}

#[test]
fn a_copy_has_its_extents_only() {
    for forbid in [false, true] {
        let (disk, shared) = memory();
        if forbid {
            disk.forbid_links();
        }
        let (a, live) = filled(&shared, Path::new(A), 5);
        copy(&a, Path::new(B), &live[..3]);
        let b = open(&shared, Path::new(B), &live[..3]);
        check(&b, &live[..3]);
        check(&a, &live);
        assert_eq!(b.usage().live_bytes, 3 * SLOT_BYTES as u64);
    }
}

#[test]
fn on_the_operating_systems_files_too() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("a"), dir.path().join("b"));
    let disk: Arc<dyn Disk> = Arc::new(PosixDisk::new());
    disk.create_dir(&from).unwrap();
    disk.create_dir(&to).unwrap();
    let (a, live) = filled(&disk, &from, 3);
    assert_eq!(copy(&a, &to, &live).files_linked, 1);
    a.free(live[0].0, 1).unwrap();
    put(&a, 77);
    check(&open(&disk, &to, &live), &live);
}
