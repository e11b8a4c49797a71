//! Persistent memory on files and on memory of the process.
#![expect(clippy::unwrap_used, reason = "a failure fails the test")]

use std::path::PathBuf;

use terrane_base::Kind;
use terrane_device::pm::{FlushInstruction, Mapped, PlainMode, PmRegion, Survives, Volatile, conformance};
use terrane_device::{Disk, OpenMode, PosixDisk};

fn dir() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("region");
    (dir, path)
}

#[test]
fn memory_of_the_process_conforms() {
    let region = Volatile::new(8192);
    conformance::run(&region);
    assert_eq!(region.survives(), Survives::Nothing);
    let copy = Volatile::with_content(&[1, 2, 3]);
    assert_eq!((copy.len(), copy.load(0).unwrap()), (64, 0x0003_0201));
}

#[test]
fn mapped_files_conform() {
    for mode in [PlainMode::Buffered, PlainMode::Synced] {
        let (_dir, path) = dir();
        let region = Mapped::create(&path, 8192, mode).unwrap();
        conformance::run(&region);
        region.sync().unwrap();
        region.check(0, 8192).unwrap();
    }
}

#[test]
fn a_region_says_what_its_bytes_survive() {
    let (_dir, path) = dir();
    let buffered = Mapped::create(&path, 4096, PlainMode::Buffered).unwrap();
    let by_instructions = buffered.is_dax() && buffered.instruction() != FlushInstruction::None;
    let survives = if by_instructions { Survives::PowerLoss } else { Survives::ProcessDeath };
    assert_eq!(buffered.survives(), survives);
    drop(buffered);
    let synced = Mapped::open(&path, PlainMode::Synced).unwrap();
    assert_eq!(synced.survives(), Survives::PowerLoss);
}

#[test]
fn stored_bytes_outlive_the_mapping() {
    let (_dir, path) = dir();
    for (round, mode) in [PlainMode::Buffered, PlainMode::Synced].into_iter().enumerate() {
        let region = match round {
            0 => Mapped::create(&path, 4096, mode).unwrap(),
            _ => Mapped::open(&path, mode).unwrap(),
        };
        assert_eq!(region.load(128).unwrap(), round as u64);
        region.store(128, round as u64 + 1).unwrap();
        region.persist(128, 8).unwrap();
        let mut stored = [0; 8];
        let file = PosixDisk::new().open(&path, OpenMode::Read, false).unwrap();
        file.read_at(128, &mut stored).unwrap();
        assert_eq!(u64::from_le_bytes(stored), round as u64 + 1);
    }
}

#[test]
fn a_second_opener_is_refused_until_the_first_is_gone() {
    let (_dir, path) = dir();
    let first = Mapped::create(&path, 4096, PlainMode::Buffered).unwrap();
    assert_eq!(Mapped::open(&path, PlainMode::Buffered).unwrap_err().kind(), Kind::Busy);
    drop(first);
    Mapped::open(&path, PlainMode::Buffered).unwrap();
}

#[test]
fn files_that_cannot_be_regions_are_refused() {
    let (_dir, path) = dir();
    let mode = PlainMode::Buffered;
    assert_eq!(Mapped::open(&path, mode).unwrap_err().kind(), Kind::NotFound);
    for bytes in [0, 100] {
        assert_eq!(Mapped::create(&path, bytes, mode).unwrap_err().kind(), Kind::Invalid);
        assert!(!PosixDisk::new().exists(&path).unwrap(), "a refused file is not made");
    }
    // More than any device has: the file that was begun is gone.
    assert!(Mapped::create(&path, 1 << 62, mode).is_err());
    assert!(!PosixDisk::new().exists(&path).unwrap(), "a file without space is removed");
    drop(Mapped::create(&path, 4096, mode).unwrap());
    assert_eq!(Mapped::create(&path, 4096, mode).unwrap_err().kind(), Kind::Invalid);
    let file = PosixDisk::new().open(&path, OpenMode::Write, false).unwrap();
    for bytes in [0, 4095] {
        file.set_len(bytes).unwrap();
        assert_eq!(Mapped::open(&path, mode).unwrap_err().kind(), Kind::Invalid);
    }
}

/// A load behind the new end would end the process by a signal; a check reports it.
#[test]
fn a_file_that_became_shorter_is_an_error_of_a_check() {
    let (_dir, path) = dir();
    let region = Mapped::create(&path, 4 << 20, PlainMode::Buffered).unwrap();
    region.check(0, 4 << 20).unwrap();
    PosixDisk::new().open(&path, OpenMode::Write, false).unwrap().set_len(8192).unwrap();
    region.check(0, 8192).unwrap();
    assert_eq!(region.check(0, 8193).unwrap_err().kind(), Kind::Corrupt);
    assert_eq!(region.check(2 << 20, 64).unwrap_err().kind(), Kind::Corrupt);
    assert_eq!(region.check(0, (4 << 20) + 1).unwrap_err().kind(), Kind::Invalid);
}

#[test]
fn holes_of_a_file_get_their_space_before_it_is_mapped() {
    let (_dir, path) = dir();
    let file = PosixDisk::new().open(&path, OpenMode::Create, false).unwrap();
    file.set_len(1 << 20).unwrap();
    let blocks = || std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(&path).unwrap());
    assert!(blocks() < 2048, "the file has a hole");
    let region = Mapped::open(&path, PlainMode::Buffered).unwrap();
    assert!(blocks() >= 2048, "the file has its space");
    region.store((1 << 20) - 8, 7).unwrap();
}
