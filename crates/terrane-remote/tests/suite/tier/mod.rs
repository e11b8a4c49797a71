//! The tier: what it keeps, what it refuses to answer with, and the store over it.

mod damage;
mod databases;
mod store;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use terrane_base::env::Env;
use terrane_base::{Kind, Rng};
use terrane_device::{Call, Disk, Failure, Fault, FaultyDisk, MemDisk, PosixDisk};
use terrane_remote::tier::{FRAME_PAYLOAD_BYTES, ObjectKey};
use terrane_remote::{Tier, TierSettings};

use crate::support::{pattern, refused};
use damage::{FRAME_BYTES, LEN, file, filled, found};

/// The least tier: 127 frames.
pub(super) const BYTES: u64 = 8 << 20;
const FRAMES: u64 = 127;
const DIR: &str = "/cache";

pub(super) fn object(number: u32) -> ObjectKey {
    ObjectKey { nonce: 5, epoch: 1, number, part: 0 }
}

pub(super) fn settings(bytes: u64) -> TierSettings {
    TierSettings { directory: DIR.into(), bytes }
}

pub(super) fn open(disk: &dyn Shared, bytes: u64) -> Tier {
    Tier::open(disk.shared(), &settings(bytes), &Env::real()).expect("opens")
}

/// A disk that can be shared.
pub(super) trait Shared {
    fn shared(&self) -> Arc<dyn Disk>;
}

impl Shared for MemDisk {
    fn shared(&self) -> Arc<dyn Disk> {
        Arc::new(self.clone())
    }
}

impl Shared for FaultyDisk {
    fn shared(&self) -> Arc<dyn Disk> {
        Arc::new(self.clone())
    }
}

/// Gives the tier an object of such bytes, and waits until they are written.
pub(super) fn put(tier: &Tier, number: u32, len: usize) {
    tier.offer(&object(number), 0, &pattern(len, number.into()).into(), len as u64);
    tier.settle();
}

pub(super) fn get(tier: &Tier, number: u32, range: std::ops::Range<u64>) -> Option<Bytes> {
    tier.find(&object(number), &range)?.read()
}

#[test]
fn cached_frames_are_found_also_after_a_restart() {
    let disk = MemDisk::new();
    let tier = open(&disk, BYTES);
    let lens = [1, 100, 65_472, 65_473, 400_000];
    for (number, len) in (1..).zip(lens) {
        put(&tier, number, len);
    }
    let check = |tier: &Tier, seed: u64| {
        let mut rng = Rng::new(seed);
        for (number, len) in (1..).zip(lens) {
            let whole = pattern(len, number.into());
            assert_eq!(get(tier, number, 0..len as u64).as_deref(), Some(&whole[..]));
            for _ in 0..20 {
                let start = rng.below(len as u64);
                let end = start + 1 + rng.below(len as u64 - start);
                let found = get(tier, number, start..end);
                assert_eq!(found.as_deref(), Some(&whole[start as usize..end as usize]));
            }
            assert_eq!(get(tier, number, 0..len as u64 + 1), None, "the object ends before");
        }
    };
    check(&tier, 1);
    let written = tier.counts().bytes_written;
    assert_eq!((written, tier.counts().misses), (lens.iter().sum::<usize>() as u64, 5));
    drop(tier);
    let again = open(&disk, BYTES);
    assert_eq!((again.counts().frames, again.counts().bytes_written), (1 + 1 + 1 + 2 + 7, 0));
    check(&again, 2);
    assert_eq!(get(&again, 9, 0..1), None);
    // Another size keeps what has a slot there.
    drop(again);
    check(&open(&disk, 2 * BYTES), 3);
    drop(open(&disk, BYTES));
    assert!((BYTES - 65_600..=BYTES).contains(&disk.used_bytes()), "{} bytes", disk.used_bytes());
    check(&open(&disk, BYTES), 4);
}

#[test]
fn a_part_of_a_frame_does_not_come_in() {
    let disk = MemDisk::new();
    let tier = open(&disk, BYTES);
    let bytes = Bytes::from(pattern(100_000, 1));
    // The object goes on behind these bytes.
    tier.offer(&object(1), 0, &bytes, 200_000);
    tier.settle();
    assert!(get(&tier, 1, 0..FRAME_PAYLOAD_BYTES).is_some());
    assert_eq!(get(&tier, 1, FRAME_PAYLOAD_BYTES..100_000), None);
}

#[test]
fn an_object_that_was_uploaded_in_parts_is_found() {
    let disk = MemDisk::new();
    let tier = open(&disk, BYTES);
    let whole = pattern(300_001, 8);
    let parts: Vec<Bytes> =
        [&whole[..7], &whole[7..150_000], &whole[150_000..]].map(|part| part.to_vec().into()).into();
    tier.offer_object(&object(8), &parts);
    tier.settle();
    assert_eq!(get(&tier, 8, 0..300_001).as_deref(), Some(&whole[..]));
    tier.forget(&object(8));
    assert_eq!(get(&tier, 8, 0..10), None);
    assert_eq!(tier.counts().frames, 0);
}

/// The tier against a map of what was offered, under random operations and restarts: answers are right, and
/// its files never have more bytes than was set.
#[test]
fn random_load_keeps_the_bound_and_never_answers_wrongly() {
    let disk = MemDisk::new();
    let mut rng = Rng::new(11);
    let mut tier = open(&disk, BYTES);
    let (mut hits, mut restarts) = (0, 0);
    let len = |number: u32| 1 + (number as usize * 77_777) % 500_000;
    for round in 0..1500 {
        if round % 100 == 0 {
            // What was offered is there, however busy the machine is.
            tier.settle();
        }
        let number = 1 + rng.below(60) as u32;
        let len = len(number);
        match rng.below(20) {
            0 => tier.forget(&object(number)),
            1 if rng.one_in(10) => {
                drop(tier);
                tier = open(&disk, BYTES);
                restarts += 1;
            }
            1..8 => {
                let bytes = Bytes::from(pattern(len, number.into()));
                tier.offer(&object(number), 0, &bytes, len as u64);
            }
            _ => {
                let start = rng.below(len as u64);
                let end = start + 1 + rng.below(len as u64 - start);
                if let Some(found) = get(&tier, number, start..end) {
                    assert!(
                        found == pattern(len, number.into())[start as usize..end as usize],
                        "object {number}"
                    );
                    hits += 1;
                }
            }
        }
        assert!(disk.used_bytes() <= BYTES, "{} bytes", disk.used_bytes());
    }
    tier.settle();
    let counts = tier.counts();
    assert!(hits > 100 && restarts > 3 && counts.frames > FRAMES / 2, "{hits} {restarts} {counts:?}");
    assert_eq!((counts.frames_damaged, counts.slots), (0, FRAMES));
}

#[test]
fn readers_beside_the_writer_see_whole_frames_only() {
    let disk = MemDisk::new();
    let tier = open(&disk, BYTES);
    std::thread::scope(|scope| {
        for reader in 0..2 {
            let tier = &tier;
            scope.spawn(move || {
                let mut rng = Rng::new(reader);
                for _ in 0..1500 {
                    let number = 1 + rng.below(20) as u32;
                    if let Some(found) = get(tier, number, 5..650_000) {
                        assert!(found == pattern(650_000, number.into())[5..], "object {number}");
                    }
                }
            });
        }
        let mut rng = Rng::new(9);
        for _ in 0..300 {
            put(&tier, 1 + rng.below(20) as u32, 650_000);
        }
    });
    assert_eq!(tier.counts().frames_damaged, 0, "an exchanged slot is a miss, and no damage");
}

#[test]
fn a_directory_that_is_in_use_is_refused() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let settings = TierSettings { directory: dir.path().join("cache"), bytes: BYTES };
    let open = || Tier::open(Arc::new(PosixDisk::new()), &settings, &Env::real());
    let first = open().expect("opens");
    let error = refused(open(), Kind::Busy);
    assert!(error.contains("[cache] directory of its own"), "{error}");
    put(&first, 1, 1000);
    drop(first);
    assert_eq!(get(&open().expect("free"), 1, 0..1000).as_deref(), Some(&pattern(1000, 1)[..]));
}

#[test]
fn a_directory_of_something_else_is_refused_and_left_alone() {
    let disk = MemDisk::new();
    let write = |name: &str, bytes: &[u8]| {
        disk.create_dir(Path::new(DIR)).expect("made");
        let path = Path::new(DIR).join(name);
        let file = disk.open(&path, terrane_device::OpenMode::Create, false).expect("made");
        file.write_at(0, bytes).expect("written");
        path
    };
    for name in ["notes.txt", "headers"] {
        let path = write(name, b"dear diary");
        let error = refused(Tier::open(disk.shared(), &settings(BYTES), &Env::real()), Kind::Invalid);
        assert!(error.contains("name a directory of its own"), "{error}");
        let file = disk.open(&path, terrane_device::OpenMode::Read, false).expect("there");
        let mut bytes = [0; 10];
        file.read_at(0, &mut bytes).expect("read");
        assert_eq!((file.len().expect("len"), &bytes), (10, b"dear diary"));
        disk.remove(&path).expect("removed");
    }
    let error = refused(Tier::open(disk.shared(), &settings(BYTES - 1), &Env::real()), Kind::Invalid);
    assert!(error.contains("8 MiB"), "{error}");
}

#[test]
fn a_device_without_room_turns_it_off_at_opening() {
    let disk = MemDisk::new();
    disk.set_capacity(BYTES / 2);
    let tier = open(&disk, BYTES);
    assert_eq!(tier.off().map(|error| error.kind()), Some(Kind::Full));
    put(&tier, 1, 1000);
    assert_eq!(get(&tier, 1, 0..10), None);
    assert!(tier.counts().is_off);
    drop(tier);
    disk.set_capacity(2 * BYTES);
    let tier = open(&disk, BYTES);
    put(&tier, 1, 1000);
    assert!(get(&tier, 1, 0..10).is_some(), "the next opening tries again");
}

#[test]
fn an_error_of_the_device_turns_it_off() {
    for (call, failure) in
        [(Call::Write, Failure::Full), (Call::Write, Failure::Broken), (Call::Read, Failure::Broken)]
    {
        let disk = FaultyDisk::new(Arc::new(MemDisk::new()));
        let tier = open(&disk, BYTES);
        put(&tier, 1, 1000);
        assert!(get(&tier, 1, 0..10).is_some());
        disk.fail(Fault::new(call, failure));
        put(&tier, 2, 1000);
        if call == Call::Read {
            assert_eq!(get(&tier, 1, 0..10), None);
        }
        assert!(tier.off().is_some(), "{call:?} {failure:?}");
        // The fault has passed, and the tier stays off.
        put(&tier, 3, 1000);
        assert_eq!((get(&tier, 1, 0..10), get(&tier, 3, 0..10), tier.counts().frames), (None, None, 0));
    }
}

#[test]
fn an_exchanged_frame_is_a_miss() {
    let disk = filled(4);
    let frames = file(&disk, "frames");
    let mut read = vec![vec![0; FRAME_BYTES as usize]; 2];
    frames.read_at(0, &mut read[0]).expect("read");
    frames.read_at(FRAME_BYTES, &mut read[1]).expect("read");
    // Each is sound, and lies where the other one belongs.
    frames.write_at(0, &read[1]).expect("written");
    frames.write_at(FRAME_BYTES, &read[0]).expect("written");
    let tier = open(&disk, BYTES);
    assert_eq!(tier.counts().frames, 4, "the headers say so");
    assert_eq!(found(&tier, 4), 2);
    assert_eq!((tier.counts().frames_damaged, tier.counts().frames), (2, 2));
    put(&tier, 1, LEN);
    assert_eq!(found(&tier, 4), 3, "it comes in again");
}
