//! The failing device: the chosen call fails, the others pass.
#![allow(clippy::unwrap_used, reason = "a step that fails ends the test")]

use std::path::Path;
use std::sync::Arc;

use terrane_base::Kind;
use terrane_device::{Call, Disk, Failure, Fault, FaultyDisk, File, FileRead, MemDisk, OpenMode, PosixDisk};

fn disks() -> (MemDisk, FaultyDisk) {
    let inner = MemDisk::new();
    (inner.clone(), FaultyDisk::new(Arc::new(inner)))
}

#[test]
fn the_nth_call_fails_once() {
    let (_, disk) = disks();
    let file = disk.open(Path::new("journal"), OpenMode::Create, false).unwrap();
    let other = disk.open(Path::new("data"), OpenMode::Create, false).unwrap();
    disk.fail(Fault::new(Call::Sync, Failure::Broken).on("journal").after(2));
    let results: Vec<bool> = (0..5).map(|_| other.sync().is_ok() && file.sync().is_ok()).collect();
    assert_eq!(results, [true, true, false, true, true]);
    assert_eq!(disk.count(Call::Sync), 10);
}

#[test]
fn a_lasting_fault_lasts_until_healed() {
    let (inner, disk) = disks();
    let file = disk.open(Path::new("file"), OpenMode::Create, false).unwrap();
    disk.fail(Fault::new(Call::Write, Failure::Full).lasting());
    for _ in 0..3 {
        let error = file.write_at(0, &[1; 20_000]).unwrap_err();
        assert_eq!(error.kind(), Kind::Full);
        assert_eq!(error.place().unwrap().file, "file");
    }
    assert_eq!(file.len().unwrap(), 8192, "a prefix was stored");
    disk.heal();
    file.write_at(0, &[1; 20_000]).unwrap();
    assert!(inner.exists(Path::new("file")).unwrap());
}

#[test]
fn after_the_cut_nothing_works() {
    let (inner, disk) = disks();
    let file = disk.open(Path::new("file"), OpenMode::Create, false).unwrap();
    let before = disk.changes();
    disk.cut_after(2);
    file.write_at(0, b"one").unwrap();
    file.read_at(0, &mut [0; 3]).unwrap(); // changes nothing: not counted
    file.write_at(3, b"two").unwrap();
    assert!(!disk.is_cut());
    assert_eq!(file.write_at(6, &[3; 10_000]).unwrap_err().kind(), Kind::Io);
    assert!(disk.is_cut());
    assert_eq!(disk.changes() - before, 3);
    assert!(file.read_at(0, &mut [0; 3]).is_err());
    assert!(file.sync().is_err() && disk.list(Path::new("")).is_err());
    disk.heal();
    assert!(file.len().is_err(), "a cut stays");
    assert_eq!(inner.open(Path::new("file"), OpenMode::Read, false).unwrap().len().unwrap(), 6);
}

#[test]
fn every_call_can_fail() {
    let (_, disk) = disks();
    let path = Path::new("file");
    let file = disk.open(path, OpenMode::Create, false).unwrap();
    file.write_at(0, &[1; 10]).unwrap();
    let check = |call, result: &dyn Fn() -> bool| {
        assert!(result(), "{call:?} works");
        disk.fail(Fault::new(call, Failure::Broken));
        assert!(!result(), "{call:?} fails");
    };
    check(Call::Open, &|| disk.open(path, OpenMode::Read, false).is_ok());
    check(Call::Exists, &|| disk.exists(path).is_ok());
    check(Call::List, &|| disk.list(Path::new("")).is_ok());
    check(Call::CreateDir, &|| disk.create_dir(Path::new("dir")).is_ok());
    check(Call::Rename, &|| disk.rename(path, path).is_ok());
    check(Call::SyncDir, &|| disk.sync_dir(Path::new("")).is_ok());
    check(Call::Lock, &|| disk.lock(Path::new("LOCK")).is_ok());
    check(Call::FreeBytes, &|| disk.free_bytes(path).is_ok());
    check(Call::Len, &|| file.len().is_ok());
    check(Call::Read, &|| file.read_at(0, &mut [0; 4]).is_ok());
    check(Call::Write, &|| file.write_at(0, &[2; 4]).is_ok());
    check(Call::Sync, &|| file.sync().is_ok());
    check(Call::SetLen, &|| file.set_len(8192).is_ok());
    check(Call::Allocate, &|| file.allocate(0, 8192).is_ok());
    check(Call::Punch, &|| file.punch(0, 4096).is_ok());
    check(Call::Map, &|| file.map(8192, true).is_ok());
    disk.fail(Fault::new(Call::Create, Failure::Broken));
    assert!(disk.open(Path::new("new"), OpenMode::Create, false).is_err());
    disk.fail(Fault::new(Call::Remove, Failure::Broken));
    assert!(disk.remove(path).is_err() && disk.remove(path).is_ok());
}

#[test]
fn reads_of_a_batch_fail_by_themselves() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let real: Arc<dyn Disk> = Arc::new(PosixDisk::new());
    let devices = [(real, dir.path()), (Arc::new(MemDisk::new()), Path::new(""))];
    for (inner, root) in devices {
        let disk = FaultyDisk::new(inner);
        let open = |name: &str| disk.open(&root.join(name), OpenMode::Create, false).unwrap();
        let (left, right) = (open("left"), open("right"));
        for file in [&left, &right] {
            file.write_at(0, &[5; 80_000]).unwrap();
        }
        let read = || {
            let mut bufs = vec![[0; 8000]; 10];
            let mut reads: Vec<_> = bufs
                .iter_mut()
                .enumerate()
                .map(|(i, buf)| {
                    FileRead::new(if i % 2 == 0 { &*left } else { &*right }, i as u64 * 8000, buf)
                })
                .collect();
            disk.read_batch(&mut reads);
            let is_ok: Vec<bool> = reads.iter().map(|read| read.result.is_ok()).collect();
            assert!(is_ok.iter().zip(&bufs).all(|(&is_ok, buf)| !is_ok || *buf == [5; 8000]));
            is_ok
        };
        let failed = |is_ok: Vec<bool>| -> Vec<usize> { (0..10).filter(|&i| !is_ok[i]).collect() };
        assert_eq!(failed(read()), [0usize; 0]);
        disk.fail(Fault::new(Call::Read, Failure::Broken).on("right").after(2));
        assert_eq!(failed(read()), [5], "the third read of that file, and no other");
        disk.fail(Fault::new(Call::Read, Failure::Broken).on("left").lasting());
        assert_eq!(failed(read()), [0, 2, 4, 6, 8]);
        disk.heal();
        assert_eq!(failed(read()), [0usize; 0]);
        assert_eq!(disk.count(Call::Read), 40);
        disk.fail(Fault::new(Call::Read, Failure::Broken).on("right"));
        let begin = |file| disk.begin_read(file, 10, 5000, Vec::new()).finish();
        assert_eq!(begin(&left).unwrap()[..], [5; 5000]);
        assert_eq!(begin(&right).unwrap_err().kind(), Kind::Io);
        assert_eq!(begin(&right).unwrap()[..], [5; 5000]);
        disk.cut();
        assert_eq!(failed(read()).len(), 10);
        assert!(begin(&left).is_err());
    }
}

/// Each way to read returns the bit wrong as often as it was asked for, and the device has it right.
#[test]
fn a_read_returns_a_wrong_bit() {
    type Read = fn(&FaultyDisk, &Arc<dyn File>, u64, usize) -> Vec<u8>;
    let alone: Read = |_, file, offset, len| {
        let mut bytes = vec![0; len];
        file.read_at(offset, &mut bytes).unwrap();
        bytes
    };
    let batched: Read = |disk, file, offset, len| {
        let (mut bytes, mut other) = (vec![0; len], [0; 3]);
        let mut reads = [FileRead::new(&**file, offset, &mut bytes), FileRead::new(&**file, 0, &mut other)];
        disk.read_batch(&mut reads);
        assert!(reads.iter().all(|read| read.result.is_ok()));
        bytes
    };
    let begun: Read =
        |disk, file, offset, len| disk.begin_read(file, offset, len, Vec::new()).finish().unwrap().to_vec();
    for read in [alone, batched, begun] {
        let (inner, disk) = disks();
        let file = disk.open(Path::new("data"), OpenMode::Create, false).unwrap();
        let other = disk.open(Path::new("other"), OpenMode::Create, false).unwrap();
        [&file, &other].iter().for_each(|file| file.write_at(0, &[0; 100]).unwrap());
        // Bit 5 of byte 50.
        disk.fail(Fault::new(Call::Read, Failure::WrongBit(405)).on("data").after(1));
        let wrong = |at: usize| {
            let mut bytes = vec![0; 30];
            bytes[at] = 1 << 5;
            bytes
        };
        assert_eq!(read(&disk, &other, 40, 30), [0; 30], "another file");
        assert_eq!(read(&disk, &file, 51, 30), [0; 30], "the bit lies in front");
        assert_eq!(read(&disk, &file, 20, 30), [0; 30], "the bit lies behind");
        assert_eq!((read(&disk, &file, 40, 30), disk.wrong_bits()), (vec![0; 30], 0), "the first read of it");
        assert_eq!(read(&disk, &file, 40, 30), wrong(10));
        assert_eq!(read(&disk, &file, 40, 30), [0; 30], "once");
        disk.fail(Fault::new(Call::Read, Failure::WrongBit(405)).lasting());
        for offset in [50, 21, 40] {
            assert_eq!(read(&disk, &file, offset, 30), wrong(50 - offset as usize));
        }
        assert_eq!(disk.wrong_bits(), 4);
        disk.heal();
        assert_eq!(read(&disk, &file, 40, 30), [0; 30], "healed");
        let stored = inner.open(Path::new("data"), OpenMode::Read, false).unwrap();
        assert_eq!(read(&disk, &stored, 40, 30), [0; 30], "the device has it right");
    }
}

#[test]
#[should_panic(expected = "returns no bytes")]
fn only_a_read_has_a_wrong_bit() {
    let _ = Fault::new(Call::Write, Failure::WrongBit(0));
}
