//! The local store in trouble: full, failing, foreign and read-only places, and power cuts.
#![allow(clippy::unwrap_used, reason = "a step that fails ends the test")]

use std::path::Path;
use std::sync::Arc;

use terrane_base::{ExtentId, Kind};
use terrane_device::{Call, Disk, Failure, Fault, FaultyDisk, MemDisk, OpenMode};
use terrane_storage::{LocalStore, SLOT_BYTES, Store, StoreSettings};

const DIR: &str = "db/extents";
const SLOT: u64 = SLOT_BYTES as u64;

fn disk() -> MemDisk {
    let disk = MemDisk::new();
    disk.create_dir(Path::new(DIR)).unwrap();
    disk
}

fn open_on(disk: &(impl Disk + Clone + 'static), read_only: bool) -> LocalStore {
    let settings = StoreSettings { read_only, ..StoreSettings::default() };
    LocalStore::open(Arc::new(disk.clone()), Path::new(DIR), settings).unwrap()
}

fn open(disk: &(impl Disk + Clone + 'static)) -> LocalStore {
    open_on(disk, false)
}

fn first_byte(store: &LocalStore, id: ExtentId) -> u8 {
    let mut buf = [0];
    store.read(id, 0, &mut buf).unwrap();
    buf[0]
}

#[test]
fn a_full_device_is_named_and_freed_space_resumes() {
    let disk = disk();
    disk.set_capacity(6 * SLOT);
    let store = open(&disk);
    let extents: Vec<ExtentId> = (0..6).map(|_| store.allocate(1).unwrap()).collect();
    let error = store.allocate(3).unwrap_err();
    assert_eq!(error.kind(), Kind::Full);
    let text = error.to_string();
    assert!(
        text.contains(DIR) && text.contains(&(3 * SLOT).to_string()) && text.contains("0 bytes free"),
        "{text}"
    );
    for &id in &extents {
        store.write(id, &vec![9; SLOT_BYTES]).unwrap(); // what was allocated has its space
    }
    store.sync().unwrap();
    assert_eq!(store.usage().live_bytes, 6 * SLOT, "a refused allocation leaves nothing behind");
    assert_eq!(disk.used_bytes(), 6 * SLOT);
    store.free(extents[1], 1).unwrap();
    store.free(extents[2], 1).unwrap();
    assert_eq!(store.allocate(2).unwrap(), extents[1]);
    disk.set_capacity(7 * SLOT);
    store.allocate(1).unwrap();
}

/// An extent that ends long before its slot takes the space of its bytes, and leaves a slot that is whole for
/// the next one.
#[test]
fn a_short_extent_takes_little_space() {
    let disk = disk();
    disk.set_capacity(SLOT / 2);
    let store = open(&disk);
    let short = store.allocate_for(1, 5_000).unwrap();
    store.write(short, &[7; 5_000]).unwrap();
    let next = store.allocate_for(1, 9_000).unwrap();
    store.write(next, &[8; 9_000]).unwrap();
    store.sync().unwrap();
    assert_eq!(disk.used_bytes(), 5 * 4096);
    assert_eq!(store.allocate(1).unwrap_err().kind(), Kind::Full);
    drop(store);
    let store = open(&disk);
    store.restore(&mut [(short, 1), (next, 1)].into_iter()).unwrap();
    assert_eq!((first_byte(&store, short), first_byte(&store, next)), (7, 8));
    disk.set_capacity(2 * SLOT);
    store.free(short, 1).unwrap();
    let whole = store.allocate(1).unwrap();
    assert_eq!((whole, disk.used_bytes()), (short, SLOT + 3 * 4096));
    store.write(whole, &vec![9; SLOT_BYTES]).unwrap();
}

/// The slot of an extent that is short in this process, too, is not a whole one when it is free.
#[test]
fn a_slot_that_was_short_is_whole_for_the_next_extent() {
    let disk = disk();
    let store = open(&disk);
    let short = store.allocate_for(1, 5_000).unwrap();
    store.free(short, 1).unwrap();
    let whole = store.allocate(1).unwrap();
    disk.set_capacity(disk.used_bytes());
    assert_eq!(whole, short);
    store.write(whole, &vec![9; SLOT_BYTES]).unwrap();
}

#[test]
fn a_full_device_makes_no_empty_file() {
    let disk = disk();
    disk.set_capacity(SLOT);
    let store = open(&disk);
    for _ in 0..2 {
        assert_eq!(store.allocate(2).unwrap_err().kind(), Kind::Full);
        assert!(disk.list(Path::new(DIR)).unwrap().is_empty());
    }
    assert_eq!(store.usage(), Default::default());
    assert_eq!(store.allocate(1).unwrap(), ExtentId { file: 1, slot: 0 });
}

#[test]
fn on_a_full_device_the_reserve_serves_where_holes_cannot() {
    let disk = disk();
    let store = open(&disk);
    let extents: Vec<ExtentId> = (0..120).map(|_| store.allocate(1).unwrap()).collect();
    store.sync().unwrap();
    // A wide hole below, and free slots that keep their space above.
    extents[..100].iter().for_each(|&id| store.free(id, 1).unwrap());
    store.reclaim().unwrap();
    while store.usage().free_bytes > 0 {
        store.allocate(1).unwrap();
    }
    extents[100..110].iter().for_each(|&id| store.free(id, 1).unwrap());
    assert!(store.usage().punched_bytes > 0);
    disk.set_capacity(disk.used_bytes());
    for id in &extents[100..110] {
        assert_eq!(store.allocate(1).unwrap(), *id);
        store.write(*id, &vec![1; SLOT_BYTES]).unwrap();
    }
    assert_eq!(store.allocate(1).unwrap_err().kind(), Kind::Full);
}

#[test]
fn after_a_failed_sync_writes_are_refused_and_reads_go_on() {
    for call in [Call::Sync, Call::SyncDir] {
        let disk = FaultyDisk::new(Arc::new(disk()));
        let store = open(&disk);
        let id = store.allocate(1).unwrap();
        store.write(id, &[5; 10]).unwrap();
        disk.fail(Fault::new(call, Failure::Broken));
        let error = store.sync().unwrap_err();
        assert_eq!(error.kind(), Kind::Io, "{error}");
        for result in
            [store.sync(), store.write(id, &[6]), store.allocate(1).map(drop), store.reclaim().map(drop)]
        {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), Kind::Poisoned);
            assert!(error.to_string().contains(DIR), "{error}");
        }
        assert_eq!(first_byte(&store, id), 5);
        store.free(id, 1).unwrap();
    }
}

#[test]
fn a_failed_call_leaves_the_accounting_right() {
    for call in [Call::Create, Call::Allocate, Call::Write, Call::Remove, Call::SetLen, Call::Punch] {
        let disk = FaultyDisk::new(Arc::new(disk()));
        let store = open(&disk);
        disk.fail(Fault::new(call, Failure::Broken));
        let mut extents = Vec::new();
        let mut failures = 0;
        for _ in 0..81 {
            match store.allocate(1) {
                Ok(id) => {
                    failures += usize::from(store.write(id, &[1; 10_000]).is_err());
                    extents.push(id);
                }
                Err(_) => failures += 1,
            }
        }
        let kept = extents.swap_remove(40);
        extents.iter().for_each(|&id| store.free(id, 1).unwrap());
        for _ in 0..3 {
            failures += usize::from(store.reclaim().is_err());
        }
        // A file that is not emptied is never removed: free the last one, too.
        store.free(kept, 1).unwrap();
        let more: Vec<ExtentId> = (0..600).map(|_| store.allocate(1).unwrap()).collect();
        more.iter().for_each(|&id| store.free(id, 1).unwrap());
        failures += usize::from(store.reclaim().is_err());
        store.reclaim().unwrap();
        assert_eq!(failures, 1, "{call:?} failed once and was seen once");
        let usage = store.usage();
        assert_eq!((usage.live_bytes, usage.files), (0, 1), "{call:?}: {usage:?}");
        let files = disk.list(Path::new(DIR)).unwrap();
        assert_eq!(files.len(), 1, "{call:?}: {files:?}");
    }
}

#[test]
fn only_what_was_written_is_synced() {
    let disk = FaultyDisk::new(Arc::new(disk()));
    let store = open(&disk);
    let extents: Vec<ExtentId> = (0..3).map(|_| store.allocate(512).unwrap()).collect();
    store.sync().unwrap();
    let syncs = (disk.count(Call::Sync), disk.count(Call::SyncDir));
    assert_eq!(syncs, (3, 1));
    store.sync().unwrap();
    assert_eq!((disk.count(Call::Sync), disk.count(Call::SyncDir)), syncs);
    store.write(extents[1], &[1]).unwrap();
    store.sync().unwrap();
    assert_eq!((disk.count(Call::Sync), disk.count(Call::SyncDir)), (4, 1));
}

#[test]
fn read_only_reads_and_refuses_the_rest() {
    let disk = disk();
    let store = open(&disk);
    let id = store.allocate(1).unwrap();
    store.write(id, &[4; 100]).unwrap();
    store.sync().unwrap();
    drop(store);
    let store = open_on(&disk, true);
    store.restore(&mut [(id, 1)].into_iter()).unwrap();
    assert_eq!(first_byte(&store, id), 4);
    let results = [
        store.allocate(1).map(drop),
        store.write(id, &[1]),
        store.sync(),
        store.free(id, 1),
        store.reclaim().map(drop),
    ];
    for result in results {
        let error = result.unwrap_err();
        assert!(error.kind() == Kind::Invalid && error.to_string().contains("read-only"), "{error}");
    }
    assert_eq!(store.usage().live_bytes, SLOT);
}

#[test]
fn foreign_files_are_left_alone() {
    let disk = disk();
    for name in ["1.ext", "0000001.ext", "000000.ext", "000003.seg", "notes.txt", "-00001.ext", "+00001.ext"]
    {
        disk.open(&Path::new(DIR).join(name), OpenMode::Create, false).unwrap().write_at(0, b"mine").unwrap();
    }
    let before = disk.list(Path::new(DIR)).unwrap();
    let store = open(&disk);
    let id = store.allocate(1).unwrap();
    assert_eq!(store.place(id, 7), (format!("{DIR}/000001.ext"), 7));
    store.free(id, 1).unwrap();
    let after = disk.list(Path::new(DIR)).unwrap();
    assert!(before.iter().all(|name| after.contains(name)), "{after:?}");
    assert_eq!(after.len(), before.len() + 1);
}

#[test]
fn odd_lengths_of_data_files() {
    let disk = disk();
    let make = |name: &str, len| {
        disk.open(&Path::new(DIR).join(name), OpenMode::Create, false).unwrap().set_len(len).unwrap();
    };
    make("000001.ext", 0); // made just before a crash
    make("000002.ext", 3 * SLOT + 5); // cut while growing
    let store = open(&disk);
    assert_eq!(store.usage().file_bytes, 3 * SLOT);
    let in_file_2 = |slot, slots| (ExtentId { file: 2, slot }, slots);
    let error = store.restore(&mut [in_file_2(3, 1)].into_iter()).unwrap_err();
    assert_eq!(error.kind(), Kind::Corrupt);
    let place = error.place().unwrap();
    assert_eq!((place.file.as_str(), place.offset), ("db/extents/000002.ext", 3 * SLOT));
    store.restore(&mut [in_file_2(0, 3)].into_iter()).unwrap();
    let id = store.allocate(512).unwrap();
    assert_eq!(id, ExtentId { file: 1, slot: 0 });
    assert_eq!(store.allocate(1).unwrap(), ExtentId { file: 2, slot: 3 });
    store.write(ExtentId { file: 2, slot: 3 }, &vec![8; SLOT_BYTES]).unwrap();
    drop(store);
    make("000004.ext", 512 * SLOT + SLOT);
    let error = LocalStore::open(Arc::new(disk), Path::new(DIR), StoreSettings::default()).unwrap_err();
    assert_eq!(error.kind(), Kind::Corrupt);
    assert!(error.to_string().contains("000004.ext"), "{error}");
}

#[test]
fn synced_extents_survive_every_power_cut() {
    for seed in 0..150 {
        let disk = disk();
        let store = open(&disk);
        let mut live: Vec<(ExtentId, u32, u8)> = Vec::new();
        let rounds = 1 + seed % 12;
        for round in 0..rounds {
            // New extents, made durable; then some old ones are freed and their places used again.
            for slots in [1, 1 + (seed as u32 + round as u32) % 30] {
                let id = store.allocate(slots).unwrap();
                let byte = (round * 16 + u64::from(slots)) as u8;
                store.write(id, &vec![byte; 3000]).unwrap();
                live.push((id, slots, byte));
            }
            store.sync().unwrap();
            if round % 3 == 2 {
                let (id, slots, _) = live.swap_remove((seed as usize + round as usize) % live.len());
                store.free(id, slots).unwrap();
                store.reclaim().unwrap();
                disk.writeback(seed ^ round);
            }
        }
        // Not synced: may be lost, must harm nothing.
        let id = store.allocate(1 + seed as u32 % 40).unwrap();
        store.write(id, &[0xff; 5000]).unwrap();
        let after = disk.crash(seed);
        let store = open(&after);
        store.restore(&mut live.iter().map(|&(id, slots, _)| (id, slots))).unwrap();
        for &(id, _, byte) in &live {
            let mut buf = vec![0; 3000];
            store.read(id, 0, &mut buf).unwrap();
            assert!(buf.iter().all(|&b| b == byte), "extent {id}, seed {seed}");
        }
        let id = store.allocate(1).unwrap();
        assert!(live.iter().all(|&(other, slots, _)| {
            other.file != id.file || !(other.slot..other.slot + slots).contains(&id.slot)
        }));
    }
}

/// The length of a growth that was under way may be durable in part, and is not a whole number of slots then.
#[test]
fn unused_bytes_behind_the_last_slot_are_given_back() {
    let disk = disk();
    let store = open(&disk);
    let id = store.allocate(1).unwrap();
    store.write(id, &vec![7; SLOT_BYTES]).unwrap();
    store.sync().unwrap();
    drop(store);
    let path = Path::new(DIR).join(&disk.list(Path::new(DIR)).unwrap()[0]);
    let file = disk.open(&path, OpenMode::Write, false).unwrap();
    let tail = 690_695;
    file.allocate(file.len().unwrap(), tail).unwrap();
    assert!(disk.used_bytes() > SLOT);

    let store = open(&disk);
    store.restore(&mut [(id, 1)].into_iter()).unwrap();
    assert!(store.reclaim_all().unwrap() >= tail);
    assert_eq!((disk.used_bytes(), file.len().unwrap()), (SLOT, SLOT));
    assert_eq!(first_byte(&store, id), 7);
    assert_eq!(store.reclaim_all().unwrap(), 0);
}

/// A slot that a whole extent had keeps its space when a short one takes it, until the store rests.
#[test]
fn slots_give_back_what_they_have_behind_the_ends_of_their_extents() {
    let disk = disk();
    let store = open(&disk);
    let whole = || store.allocate(1).unwrap();
    let ids = [whole(), whole(), whole()];
    let write = |id, len: usize| store.write(id, &(0..len).map(|at| at as u8).collect::<Vec<u8>>()).unwrap();
    ids.iter().for_each(|&id| write(id, SLOT_BYTES));
    let live = [(ids[0], 100_000), (ids[1], SLOT_BYTES - 4096), (ids[2], 8192)];
    for (id, len) in live {
        store.free(id, 1).unwrap();
        assert_eq!(store.allocate_for(1, len as u64).unwrap(), id);
        write(id, len);
    }
    store.sync().unwrap();
    assert!(disk.used_bytes() >= 3 * SLOT, "slots keep their space while work goes on");
    let given = store.reclaim_all().unwrap();
    assert!(given >= 2 * SLOT - 102_400 - 8192, "{given}");
    // Little behind an end is left as it is.
    assert_eq!(disk.used_bytes(), 102_400 + SLOT + 8192);
    assert_eq!(store.reclaim_all().unwrap(), 0, "once");
    for (id, len) in live {
        let mut read = vec![0; len];
        store.read(id, 0, &mut read).unwrap();
        assert!(read.iter().enumerate().all(|(at, &byte)| byte == at as u8), "{id} of {len} bytes");
    }
    // A slot without all of its space is reserved again for a whole extent.
    disk.set_capacity(disk.used_bytes() + SLOT - 8192);
    store.free(ids[2], 1).unwrap();
    assert_eq!(whole(), ids[2]);
    assert_eq!(disk.free_bytes(Path::new(DIR)).unwrap(), 0);
    write(ids[2], SLOT_BYTES);
}

/// Behind an opening it is not known how much space a free slot has.
#[test]
fn a_free_slot_of_unknown_state_gives_back_the_pages_behind_a_short_extent() {
    let disk = disk();
    let before = open(&disk);
    let ids = [before.allocate(1).unwrap(), before.allocate(1).unwrap()];
    ids.iter().for_each(|&id| before.write(id, &vec![9; SLOT_BYTES]).unwrap());
    before.sync().unwrap();
    drop(before);
    let store = open(&disk);
    store.restore(&mut [(ids[1], 1)].into_iter()).unwrap();
    assert_eq!(store.allocate_for(1, 5000).unwrap(), ids[0]);
    store.write(ids[0], &[7; 5000]).unwrap();
    store.reclaim_all().unwrap();
    assert_eq!(disk.used_bytes(), SLOT + 8192);
    assert_eq!((first_byte(&store, ids[0]), first_byte(&store, ids[1])), (7, 9));
}
