//! The device in memory: the bytes that a power cut and a crash of the process may leave.
#![allow(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(unsafe_code, reason = "mapped regions are written")]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use terrane_base::Kind;
use terrane_device::{Disk, File, MemDisk, OpenMode, SECTOR_BYTES};

const SEEDS: u64 = 300;

fn make(disk: &MemDisk, name: &str) -> Arc<dyn File> {
    disk.open(Path::new(name), OpenMode::Create, false).unwrap()
}

fn bytes_of(disk: &MemDisk, name: &str) -> Option<Vec<u8>> {
    let file = disk.open(Path::new(name), OpenMode::Read, false).ok()?;
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    Some(bytes)
}

/// A file of three synced sectors of 1s, its entry durable.
fn synced(disk: &MemDisk) -> Arc<dyn File> {
    let file = make(disk, "file");
    file.write_at(0, &[1; 3 * SECTOR_BYTES]).unwrap();
    file.sync().unwrap();
    disk.sync_dir(Path::new("")).unwrap();
    file
}

#[test]
fn synced_is_kept_unsynced_is_kept_lost_torn_or_older() {
    let disk = MemDisk::new();
    let file = synced(&disk);
    file.write_at(SECTOR_BYTES as u64, &[2; SECTOR_BYTES]).unwrap();
    file.write_at(SECTOR_BYTES as u64, &[3; SECTOR_BYTES]).unwrap();
    let mut seen = BTreeSet::new();
    for seed in 0..SEEDS {
        let bytes = bytes_of(&disk.crash(seed), "file").unwrap();
        assert_eq!(bytes, bytes_of(&disk.crash(seed), "file").unwrap(), "a seed decides");
        assert_eq!(bytes[..SECTOR_BYTES], [1; SECTOR_BYTES], "synced before");
        assert_eq!(bytes[2 * SECTOR_BYTES..], [1; SECTOR_BYTES], "synced behind");
        let (first, last) = (bytes[SECTOR_BYTES], bytes[2 * SECTOR_BYTES - 1]);
        seen.insert((first, last));
    }
    assert_eq!(
        seen,
        BTreeSet::from([(1, 1), (3, 3), (3, 1), (2, 2)]),
        "lost, kept, torn, older: each occurs"
    );
    file.sync().unwrap();
    let after: BTreeSet<_> =
        (0..SEEDS).map(|seed| bytes_of(&disk.crash(seed), "file").unwrap()[600]).collect();
    assert_eq!(after, BTreeSet::from([3]));
}

/// Else something would be there without what was written before it.
#[test]
fn an_image_is_of_one_moment_over_all_files() {
    const ROUNDS: u64 = 20_000;
    let disk = MemDisk::new();
    // Copied in this order, one by one they would show the second with more than the first.
    let files = ["first", "second"].map(|name| make(&disk, name));
    files.iter().for_each(|file| file.write_at(0, &[0; 64 * SECTOR_BYTES]).unwrap());
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 1..=ROUNDS {
                files.iter().for_each(|file| file.write_at(0, &round.to_le_bytes()).unwrap());
            }
        });
        let round = |image: &MemDisk, name| {
            u64::from_le_bytes(*bytes_of(image, name).unwrap().first_chunk().unwrap())
        };
        while !writer.is_finished() {
            let image = disk.kill();
            let (first, second) = (round(&image, "first"), round(&image, "second"));
            assert!(first == second || first == second + 1, "{first} and {second}");
        }
    });
}

#[test]
fn mapped_stores_are_unsynced_writes() {
    let disk = MemDisk::new();
    let file = synced(&disk);
    file.set_len(8192).unwrap();
    file.sync().unwrap();
    let region = file.map(8192, true).unwrap();
    // SAFETY: in bounds; this thread alone uses the region.
    unsafe { region.write(5000, &[9; 100]) };
    let outcomes = |disk: &MemDisk| -> BTreeSet<u8> {
        (0..SEEDS).map(|seed| bytes_of(&disk.crash(seed), "file").unwrap()[5000]).collect()
    };
    let survivor = disk.kill(); // first, so that it has to find the stores itself
    assert_eq!(outcomes(&disk), BTreeSet::from([0, 9]));
    assert_eq!(bytes_of(&survivor, "file").unwrap()[5000], 9, "the death of the process loses nothing");
    assert_eq!(outcomes(&survivor), BTreeSet::from([0, 9]), "but not more durable than before");
    file.sync().unwrap();
    assert_eq!(outcomes(&disk), BTreeSet::from([9]));
    assert_eq!(outcomes(&survivor), BTreeSet::from([0, 9]), "a copy is a device of its own");
}

#[test]
fn lengths_are_durable_only_after_sync() {
    let disk = MemDisk::new();
    let file = synced(&disk);
    file.write_at(1536, &[4; 512]).unwrap();
    let lens = |disk: &MemDisk| -> BTreeSet<usize> {
        (0..SEEDS).map(|seed| bytes_of(&disk.crash(seed), "file").unwrap().len()).collect()
    };
    let grown = lens(&disk);
    assert!(
        grown.contains(&1536) && grown.contains(&2048) && grown.iter().all(|len| (1536..=2048).contains(len))
    );
    file.sync().unwrap();
    assert_eq!(lens(&disk), BTreeSet::from([2048]));
    file.set_len(100).unwrap();
    for seed in 0..SEEDS {
        let bytes = bytes_of(&disk.crash(seed), "file").unwrap();
        assert!((100..=2048).contains(&bytes.len()) && bytes[..100] == [1; 100]);
    }
    file.set_len(4096).unwrap();
    file.sync().unwrap();
    let bytes = bytes_of(&disk.crash(1), "file").unwrap();
    assert!(bytes[100..].iter().all(|&byte| byte == 0), "what was cut off does not come back");
}

#[test]
fn entries_are_durable_only_after_sync_dir() {
    let disk = MemDisk::new();
    synced(&disk);
    make(&disk, "second").sync().unwrap();
    disk.rename(Path::new("file"), Path::new("renamed")).unwrap();
    disk.remove(Path::new("second")).unwrap();
    let seen: BTreeSet<Vec<String>> =
        (0..SEEDS).map(|seed| disk.crash(seed).list(Path::new("")).unwrap()).collect();
    let states: [&[&str]; 4] = [&["file"], &["file", "second"], &["renamed", "second"], &["renamed"]];
    let states = states.map(|names| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
    assert_eq!(seen, BTreeSet::from(states), "each prefix of the changes, and nothing else");
    assert_eq!(disk.kill().list(Path::new("")).unwrap(), ["renamed"]);
    disk.sync_dir(Path::new("")).unwrap();
    for seed in 0..SEEDS {
        assert_eq!(disk.crash(seed).list(Path::new("")).unwrap(), ["renamed"]);
    }
}

#[test]
fn a_replacing_rename_leaves_the_old_or_the_new() {
    let disk = MemDisk::new();
    let old = make(&disk, "CURRENT");
    old.write_at(0, b"old").unwrap();
    old.sync().unwrap();
    disk.sync_dir(Path::new("")).unwrap();
    let new = make(&disk, "temporary");
    new.write_at(0, b"new").unwrap();
    new.sync().unwrap();
    disk.rename(Path::new("temporary"), Path::new("CURRENT")).unwrap();
    let seen: BTreeSet<Vec<u8>> =
        (0..SEEDS).map(|seed| bytes_of(&disk.crash(seed), "CURRENT").unwrap()).collect();
    assert_eq!(seen, BTreeSet::from([b"old".to_vec(), b"new".to_vec()]));
}

#[test]
fn writeback_makes_some_of_it_durable() {
    let file_byte = |seed| {
        let disk = MemDisk::new();
        let file = synced(&disk);
        file.write_at(0, &[5; 512]).unwrap();
        disk.writeback(seed);
        file.write_at(0, &[6; 512]).unwrap();
        (0..SEEDS).map(|cut| bytes_of(&disk.crash(cut), "file").unwrap()[0]).collect::<BTreeSet<_>>()
    };
    let seen: BTreeSet<_> = (0..20).map(file_byte).collect();
    assert_eq!(seen, BTreeSet::from([BTreeSet::from([1, 5, 6]), BTreeSet::from([5, 6])]));
}

#[test]
fn the_limit_holds_and_freed_space_comes_back() {
    let disk = MemDisk::new();
    disk.set_capacity(10 * 4096);
    let file = make(&disk, "file");
    file.allocate(0, 8 * 4096).unwrap();
    assert_eq!((disk.used_bytes(), disk.free_bytes(Path::new("")).unwrap()), (8 * 4096, 2 * 4096));
    let other = make(&disk, "other");
    let error = other.write_at(0, &[1; 3 * 4096]).unwrap_err();
    assert_eq!(error.kind(), Kind::Full);
    assert!(error.to_string().contains("other"), "{error}");
    file.write_at(0, &[1; 8 * 4096]).unwrap(); // reserved
    file.punch(4096, 4096).unwrap();
    other.write_at(0, &[1; 3 * 4096]).unwrap();
    assert_eq!(kind_of(file.write_at(4096, &[1])), Kind::Full);
    disk.set_capacity(11 * 4096);
    file.write_at(4096, &[1]).unwrap();
    disk.remove(Path::new("other")).unwrap();
    file.set_len(1).unwrap();
    assert_eq!(disk.used_bytes(), 4096);
    assert_eq!(disk.kill().used_bytes(), 4096);
}

fn kind_of<T>(result: terrane_base::Result<T>) -> Kind {
    result.err().map(|error| error.kind()).unwrap()
}

#[test]
fn locks_end_with_the_process() {
    let disk = MemDisk::new();
    let _lock = disk.lock(Path::new("LOCK")).unwrap();
    for after in [disk.kill(), disk.crash(3)] {
        after.lock(Path::new("LOCK")).unwrap();
    }
    assert_eq!(kind_of(disk.lock(Path::new("LOCK"))), Kind::Busy);
}

#[derive(Clone, Debug)]
enum Step {
    Write(u16, u16, u8),
    Store(u16, u16, u8),
    SetLen(u16),
    Allocate(u16, u16),
    Punch(u16, u16),
    Sync,
    Writeback(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let at = 0u16..20_000;
    let len = prop_oneof![1u16..1000, 1u16..9000];
    prop_oneof![
        4 => (at.clone(), len.clone(), 1u8..).prop_map(|(at, len, byte)| Step::Write(at, len, byte)),
        2 => (at.clone(), len.clone(), 1u8..).prop_map(|(at, len, byte)| Step::Store(at, len, byte)),
        1 => at.clone().prop_map(Step::SetLen),
        1 => (at.clone(), len.clone()).prop_map(|(at, len)| Step::Allocate(at, len)),
        1 => (at, len).prop_map(|(at, len)| Step::Punch(at, len)),
        2 => Just(Step::Sync),
        1 => any::<u64>().prop_map(Step::Writeback),
    ]
}

/// Every value that each byte may have after a power cut; the bytes now.
struct Model {
    now: Vec<u8>,
    allowed: Vec<BTreeSet<u8>>,
    lens: BTreeSet<usize>,
}

impl Model {
    fn set(&mut self, at: usize, bytes: &[u8]) {
        self.grow(at + bytes.len());
        self.now[at..at + bytes.len()].copy_from_slice(bytes);
        self.note();
    }

    fn grow(&mut self, len: usize) {
        if len > self.now.len() {
            self.now.resize(len, 0);
        }
        self.note();
    }

    fn note(&mut self) {
        self.lens.insert(self.now.len());
        if self.allowed.len() < self.now.len() {
            self.allowed.resize(self.now.len(), BTreeSet::from([0]));
        }
        for (index, allowed) in self.allowed.iter_mut().enumerate() {
            allowed.insert(self.now.get(index).copied().unwrap_or(0));
        }
    }

    fn sync(&mut self) {
        self.lens = BTreeSet::from([self.now.len()]);
        self.allowed = self.now.iter().map(|&byte| BTreeSet::from([byte])).collect();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// A power cut leaves at each place a byte that was there since the last sync; the death of the process,
    /// the bytes as they were.
    #[test]
    fn a_power_cut_leaves_only_bytes_that_were_written(steps in prop::collection::vec(step(), 1..25), seeds in any::<[u64; 4]>()) {
        let disk = MemDisk::new();
        let file = make(&disk, "file");
        file.set_len(24_000).unwrap();
        file.sync().unwrap();
        disk.sync_dir(Path::new("")).unwrap();
        let mut model = Model { now: vec![0; 24_000], allowed: Vec::new(), lens: BTreeSet::new() };
        model.sync();
        let region = file.map(16_000, true).unwrap();
        for step in steps {
            match step {
                Step::Write(at, len, byte) => {
                    file.write_at(at.into(), &vec![byte; len.into()]).unwrap();
                    model.set(at.into(), &vec![byte; len.into()]);
                }
                Step::Store(at, len, byte) => {
                    let end = (usize::from(at) + usize::from(len)).min(16_000).min(model.now.len());
                    let Some(len) = end.checked_sub(at.into()) else { continue };
                    // SAFETY: in bounds; this thread alone uses the region.
                    unsafe { region.write(at.into(), &vec![byte; len]) };
                    model.set(at.into(), &vec![byte; len]);
                }
                Step::SetLen(len) => {
                    file.set_len(len.into()).unwrap();
                    model.now.truncate(len.into());
                    model.grow(len.into());
                }
                Step::Allocate(at, len) => {
                    file.allocate(at.into(), len.into()).unwrap();
                    model.grow(usize::from(at) + usize::from(len));
                }
                Step::Punch(at, len) => {
                    file.punch(at.into(), len.into()).unwrap();
                    let end = (usize::from(at) + usize::from(len)).min(model.now.len());
                    if usize::from(at) < end {
                        model.set(at.into(), &vec![0; end - usize::from(at)]);
                    }
                }
                Step::Sync => {
                    file.sync().unwrap();
                    model.sync();
                }
                Step::Writeback(seed) => disk.writeback(seed),
            }
        }
        prop_assert!(bytes_of(&disk, "file").unwrap() == model.now);
        let killed = disk.kill();
        prop_assert!(bytes_of(&killed, "file").unwrap() == model.now);
        let (low, high) = (*model.lens.first().unwrap(), *model.lens.last().unwrap());
        for (seed, from) in seeds.iter().flat_map(|&seed| [(seed, &disk), (seed, &killed)]) {
            let crashed = from.crash(seed);
            let bytes = bytes_of(&crashed, "file").unwrap();
            prop_assert!((low..=high).contains(&bytes.len()), "{} not in {low}..={high}", bytes.len());
            for (at, byte) in bytes.iter().enumerate() {
                prop_assert!(model.allowed[at].contains(byte), "{byte} at {at}: {:?}", model.allowed[at]);
            }
            prop_assert!(bytes_of(&crashed.crash(seed ^ 1), "file").unwrap() == bytes, "the rest is durable");
        }
    }
}

#[test]
fn a_link_is_durable_with_its_directory_and_shares_durable_bytes() {
    let disk = MemDisk::new();
    disk.create_dir(Path::new("a")).unwrap();
    disk.create_dir(Path::new("b")).unwrap();
    let file = disk.open(Path::new("a/f"), OpenMode::Create, false).unwrap();
    file.write_at(0, &[7; 4096]).unwrap();
    file.sync().unwrap();
    disk.sync_dir(Path::new("a")).unwrap();
    assert!(disk.link(Path::new("a/f"), Path::new("b/f")).unwrap());
    let kept: Vec<bool> =
        (0..disk.outcomes()).map(|number| disk.crash_as(number).exists(Path::new("b/f")).unwrap()).collect();
    assert!(kept.contains(&true) && kept.contains(&false), "an unsynced link is there or not");
    disk.sync_dir(Path::new("b")).unwrap();
    disk.remove(Path::new("a/f")).unwrap();
    disk.sync_dir(Path::new("a")).unwrap();
    for number in 0..disk.outcomes() {
        let after = disk.crash_as(number);
        let file = after.open(Path::new("b/f"), OpenMode::Read, false).unwrap();
        let mut buf = [0; 4096];
        file.read_at(0, &mut buf).unwrap();
        assert_eq!((buf, file.names().unwrap()), ([7; 4096], 1));
    }
    assert_eq!(disk.used_bytes(), 4096);
    disk.remove(Path::new("b/f")).unwrap();
    assert_eq!(disk.used_bytes(), 0);
}

#[test]
fn a_directory_that_is_durably_gone_names_nothing() {
    let disk = MemDisk::new();
    for dir in ["a", "b"] {
        disk.create_dir(Path::new(dir)).unwrap();
    }
    let file = disk.open(Path::new("a/f"), OpenMode::Create, false).unwrap();
    file.write_at(0, &[7; 4096]).unwrap();
    file.sync().unwrap();
    disk.sync_dir(Path::new("a")).unwrap();
    assert!(disk.link(Path::new("a/f"), Path::new("b/f")).unwrap());
    disk.sync_dir(Path::new("b")).unwrap();
    disk.remove(Path::new("b/f")).unwrap();
    disk.remove(Path::new("b")).unwrap();
    disk.sync_dir(Path::new("")).unwrap();
    for number in 0..disk.outcomes() {
        let after = disk.crash_as(number);
        assert!(!after.exists(Path::new("b")).unwrap());
        let file = after.open(Path::new("a/f"), OpenMode::Read, false).unwrap();
        assert_eq!(file.names().unwrap(), 1, "outcome {number}");
        after.remove(Path::new("a/f")).unwrap();
        assert_eq!(after.used_bytes(), 0, "outcome {number}");
    }
}
