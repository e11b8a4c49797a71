//! Damage on the device: whatever the files have, an answer is right, or it is a miss.

use std::path::PathBuf;
use std::sync::Arc;

use terrane_base::Rng;
use terrane_device::{Call, Disk, Failure, Fault, FaultyDisk, File, MemDisk, OpenMode};
use terrane_remote::Tier;

use super::{BYTES, DIR, get, object, open, put};
use crate::support::pattern;

pub(super) const FRAME_BYTES: u64 = 65_536;
pub(super) const LEN: usize = 1000;

pub(super) fn file(disk: &MemDisk, name: &str) -> Arc<dyn File> {
    disk.open(&PathBuf::from(DIR).join(name), OpenMode::Write, false).expect("there")
}

/// A closed tier with objects 1 to `count`, one frame each.
pub(super) fn filled(count: u32) -> MemDisk {
    let disk = MemDisk::new();
    let tier = open(&disk, BYTES);
    (1..=count).for_each(|number| put(&tier, number, LEN));
    disk
}

/// Reads all objects; each is right or missing. Returns how many are there.
#[track_caller]
pub(super) fn found(tier: &Tier, count: u32) -> usize {
    let is_there = |number: &u32| match get(tier, *number, 0..LEN as u64) {
        None => false,
        Some(bytes) => {
            assert!(bytes == pattern(LEN, (*number).into()), "a wrong answer for object {number}");
            true
        }
    };
    (1..=count).filter(is_there).count()
}

#[test]
fn exchanged_headers_are_misses() {
    let disk = filled(2);
    let headers = file(&disk, "headers");
    let mut read = [0; 128];
    headers.read_at(4096, &mut read).expect("read");
    read.rotate_left(64);
    headers.write_at(4096, &read).expect("written");
    assert_eq!(found(&open(&disk, BYTES), 2), 0);
}

#[test]
fn a_frame_of_an_object_of_another_writer_is_a_miss() {
    let disk = filled(1);
    let tier = open(&disk, BYTES);
    let others = [
        terrane_remote::tier::ObjectKey { nonce: 6, ..object(1) },
        terrane_remote::tier::ObjectKey { epoch: 2, ..object(1) },
        terrane_remote::tier::ObjectKey { part: 1, ..object(1) },
    ];
    assert!(others.iter().all(|other| tier.find(other, &(0..10)).is_none()));
    assert!(tier.find(&object(1), &(0..10)).is_some());
}

#[test]
fn flipped_bits_are_misses() {
    let mut rng = Rng::new(3);
    let mut missed = 0;
    for _ in 0..200 {
        let disk = filled(3);
        let (name, end) =
            if rng.one_in(2) { ("headers", 4096 + 3 * 64) } else { ("frames", 2 * FRAME_BYTES + 1064) };
        let (file, at) = (file(&disk, name), rng.below(end));
        let mut byte = [0];
        file.read_at(at, &mut byte).expect("read");
        byte[0] ^= 1 << rng.below(8);
        file.write_at(at, &byte).expect("written");
        match Tier::open(Arc::new(disk.clone()), &super::settings(BYTES), &terrane_base::env::Env::real()) {
            Ok(tier) => missed += 3 - found(&tier, 3),
            // The file says that it is of something else.
            Err(error) => assert!(name == "headers" && at < 8, "{error}"),
        }
    }
    assert!(missed > 20, "{missed} frames were missed");
}

#[test]
fn a_wrong_bit_of_one_read_is_a_miss() {
    let disk = FaultyDisk::new(Arc::new(filled(1)));
    let tier = open(&disk, BYTES);
    disk.fail(Fault::new(Call::Read, Failure::WrongBit(500 * 8)).on("frames"));
    assert_eq!(found(&tier, 1), 0);
    assert_eq!((disk.wrong_bits(), tier.counts().frames_damaged, tier.counts().is_off), (1, 1, false));
}

#[test]
fn cut_and_missing_files_are_misses() {
    for (name, len) in
        [("frames", 0), ("frames", FRAME_BYTES + 7), ("headers", 0), ("headers", 20), ("headers", 4096 + 70)]
    {
        let disk = filled(3);
        file(&disk, name).set_len(len).expect("cut");
        let tier = open(&disk, BYTES);
        assert!(found(&tier, 3) <= 1, "{name} of {len} bytes");
        put(&tier, 2, LEN);
        assert!(found(&tier, 3) >= 1);
    }
    for name in ["frames", "headers"] {
        let disk = filled(3);
        disk.remove(&PathBuf::from(DIR).join(name)).expect("removed");
        assert_eq!(found(&open(&disk, BYTES), 3), 0);
    }
    // Cut while it is open.
    let disk = filled(3);
    let tier = open(&disk, BYTES);
    file(&disk, "frames").set_len(FRAME_BYTES).expect("cut");
    assert_eq!(found(&tier, 3), 1);
    assert!(!tier.counts().is_off, "only the frames are gone");
}

#[test]
fn random_bytes_in_place_of_the_files_are_misses() {
    let mut rng = Rng::new(5);
    for seed in 0..20 {
        let disk = filled(3);
        let bytes = pattern(3 * FRAME_BYTES as usize, seed);
        if rng.one_in(2) {
            file(&disk, "frames").write_at(0, &bytes).expect("written");
        } else {
            file(&disk, "headers").write_at(4096, &bytes[..64 * 3]).expect("written");
        }
        assert_eq!(found(&open(&disk, BYTES), 3), 0);
    }
}

#[test]
fn a_power_cut_leaves_right_answers_or_none() {
    let mut kept = 0;
    for seed in 0..40 {
        let disk = filled(60);
        let tier = open(&disk, BYTES);
        if seed % 2 == 0 {
            disk.writeback(seed);
        }
        // Slots are written over: what was durable in them is of others.
        (61..=200).for_each(|number| put(&tier, number, LEN));
        disk.writeback(seed + 1);
        let crashed = disk.crash(seed);
        let again = open(&crashed, BYTES);
        kept += found(&again, 200);
        put(&again, 1, LEN);
        assert!(found(&again, 200) > 0);
    }
    assert!(kept > 0, "some frames survive");
    // The death of the process loses no write.
    let disk = filled(60);
    assert_eq!(found(&open(&disk.kill(), BYTES), 60), 60);
}
