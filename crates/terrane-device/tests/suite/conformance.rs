//! One suite for every device: the contract of `Disk` and `File`, without a loss of power.
#![allow(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(unsafe_code, reason = "regions are written and read")]

use std::path::PathBuf;

use crate::support::{kind, on_each, pattern};
use terrane_base::Kind;
use terrane_device::{Disk, OpenMode, PosixDisk};

#[test]
fn entries_are_made_listed_renamed_removed() {
    on_each(|disk, root, direct| {
        assert!(disk.list(root).unwrap().is_empty());
        for name in ["b", "a", "c"] {
            disk.open(&root.join(name), OpenMode::Create, direct).unwrap();
        }
        disk.create_dir(&root.join("d/e/f")).unwrap();
        disk.create_dir(&root.join("d/e/f")).unwrap();
        assert_eq!(disk.list(root).unwrap(), ["a", "b", "c", "d"]);
        assert_eq!(kind(disk.open(&root.join("a"), OpenMode::Create, direct)), Kind::Invalid);
        assert_eq!(kind(disk.open(&root.join("x"), OpenMode::Read, direct)), Kind::NotFound);
        assert_eq!(kind(disk.open(&root.join("x/y"), OpenMode::Create, direct)), Kind::NotFound);
        assert_ne!(kind(disk.create_dir(&root.join("a"))), Kind::NotFound);

        disk.open(&root.join("a"), OpenMode::Write, direct).unwrap().write_at(0, b"from a").unwrap();
        disk.rename(&root.join("a"), &root.join("b")).unwrap();
        disk.rename(&root.join("c"), &root.join("d/e/c")).unwrap();
        disk.rename(&root.join("d"), &root.join("g")).unwrap();
        assert_eq!(disk.list(root).unwrap(), ["b", "g"]);
        assert_eq!(disk.list(&root.join("g/e")).unwrap(), ["c", "f"]);
        let mut buf = [0; 6];
        disk.open(&root.join("b"), OpenMode::Read, direct).unwrap().read_at(0, &mut buf).unwrap();
        assert_eq!(&buf, b"from a");

        assert_ne!(kind(disk.remove(&root.join("g"))), Kind::NotFound); // not empty
        disk.remove(&root.join("g/e/f")).unwrap();
        disk.remove(&root.join("b")).unwrap();
        assert_eq!(kind(disk.remove(&root.join("b"))), Kind::NotFound);
        assert_eq!(kind(disk.rename(&root.join("b"), &root.join("c"))), Kind::NotFound);
        assert_eq!(kind(disk.list(&root.join("nowhere"))), Kind::NotFound);
        assert!(disk.exists(&root.join("g/e/c")).unwrap());
        assert!(!disk.exists(&root.join("g/e/c/deeper")).unwrap());
        disk.sync_dir(root).unwrap();
    });
}

#[test]
fn bytes_come_back_whatever_the_alignment() {
    on_each(|disk, root, direct| {
        let file = disk.open(&root.join("file"), OpenMode::Create, direct).unwrap();
        let mut model = Vec::new();
        let writes =
            [(0, 4096), (4096, 100), (1, 1), (5000, 9000), (12_288, 1_000_001), (700, 300_000), (8192, 8192)];
        for (salt, (offset, len)) in writes.into_iter().enumerate() {
            let bytes = pattern(len, salt);
            file.write_at(offset as u64, &bytes).unwrap();
            model.resize(model.len().max(offset + len), 0);
            model[offset..offset + len].copy_from_slice(&bytes);
        }
        file.write_at(3, &[]).unwrap();
        assert_eq!(file.len().unwrap(), model.len() as u64);
        for (offset, len) in
            [(0, model.len()), (0, 4096), (4095, 2), (5, 500_000), (model.len() - 1, 1), (77, 0)]
        {
            let mut buf = vec![0xee; len + 1];
            // From the second byte, so that the buffer is unaligned.
            file.read_at(offset as u64, &mut buf[1..]).unwrap();
            assert!(buf[1..] == model[offset..offset + len], "{len} bytes from {offset}");
        }
        file.sync().unwrap();
    });
}

#[test]
fn a_read_beyond_the_end_is_corruption_with_a_place() {
    on_each(|disk, root, direct| {
        let path = root.join("short");
        let file = disk.open(&path, OpenMode::Create, direct).unwrap();
        file.write_at(0, &pattern(5000, 1)).unwrap();
        for (offset, len) in [(0, 5001), (4096, 4096), (5000, 1), (1 << 20, 10)] {
            let error = file.read_at(offset, &mut vec![0; len]).unwrap_err();
            assert_eq!(error.kind(), Kind::Corrupt, "{error}");
            let place = error.place().unwrap();
            assert_eq!((place.file.as_str(), place.offset), (path.to_str().unwrap(), offset));
            assert!(error.to_string().contains(&format!("expected {len}")), "{error}");
        }
    });
}

#[test]
fn lengths_reservations_and_holes() {
    on_each(|disk, root, direct| {
        let file = disk.open(&root.join("file"), OpenMode::Create, direct).unwrap();
        assert!(file.is_empty().unwrap());
        let bytes = pattern(20_000, 3);
        file.write_at(0, &bytes).unwrap();
        file.allocate(10_000, 90_000).unwrap();
        assert_eq!(file.len().unwrap(), 100_000);
        file.allocate(0, 5000).unwrap(); // never shortens
        file.punch(4096, 8192).unwrap();
        file.punch(12_300, 0).unwrap();
        let mut expected = bytes;
        expected[4096..12_288].fill(0);
        expected.resize(100_000, 0);
        let mut buf = vec![1; 100_000];
        file.read_at(0, &mut buf).unwrap();
        assert!(buf == expected);

        file.set_len(15_001).unwrap();
        file.set_len(30_000).unwrap();
        expected.truncate(15_001);
        expected.resize(30_000, 0);
        buf.truncate(30_000);
        file.read_at(0, &mut buf).unwrap();
        assert!(buf == expected, "what was cut off reads as zeros");
        file.prefetch(0, 1 << 20);
    });
}

#[test]
fn mappings_share_the_file_and_outlive_it() {
    on_each(|disk, root, direct| {
        let path = root.join("mapped");
        let file = disk.open(&path, OpenMode::Create, direct).unwrap();
        assert_eq!(kind(file.map(4096, true)), Kind::Corrupt);
        let bytes = pattern(10_000, 5);
        file.write_at(0, &bytes).unwrap();
        file.allocate(0, 40_000).unwrap();
        let region = file.map(40_000, true).unwrap();
        region.prefault().unwrap();
        region.prefault_range(39_999, 1).unwrap();
        // SAFETY: in bounds; this thread alone uses the region.
        unsafe {
            assert!(region.slice(0, 10_000) == bytes);
            region.write(20_000, b"by mapping");
        }
        let mut buf = [0; 10];
        file.read_at(20_000, &mut buf).unwrap();
        assert_eq!(&buf, b"by mapping");
        file.write_at(20_003, b"WRITING").unwrap();
        let view = disk.open(&path, OpenMode::Read, false).unwrap().map(30_000, false).unwrap();
        view.prefault().unwrap();
        drop(file);
        disk.remove(&path).unwrap();
        // SAFETY: no thread writes any more.
        unsafe {
            assert_eq!(region.slice(20_000, 10), b"by WRITING");
            assert_eq!(view.slice(20_000, 10), b"by WRITING");
        }
    });
}

#[test]
fn a_file_opened_for_reading_refuses_writes() {
    on_each(|disk, root, direct| {
        let path = root.join("file");
        disk.open(&path, OpenMode::Create, direct).unwrap().write_at(0, &[1; 4096]).unwrap();
        let file = disk.open(&path, OpenMode::Read, direct).unwrap();
        for result in [
            file.write_at(0, &[2; 4096]),
            file.set_len(0),
            file.allocate(0, 8192),
            file.map(10, true).map(drop),
        ] {
            let error = result.unwrap_err();
            assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
        }
        let mut buf = [0; 4096];
        file.read_at(0, &mut buf).unwrap();
        assert_eq!(buf, [1; 4096]);
    });
}

#[test]
fn the_second_opener_is_refused_by_name_and_process() {
    on_each(|disk, root, _| {
        let path = root.join("LOCK");
        let lock = disk.lock(&path).unwrap();
        let error = disk.lock(&path).unwrap_err();
        assert_eq!(error.kind(), Kind::Busy);
        let text = error.to_string();
        assert!(
            text.contains(path.to_str().unwrap()) && text.contains(&std::process::id().to_string()),
            "{text}"
        );
        drop(lock);
        drop(disk.lock(&path).unwrap());
        assert!(disk.exists(&path).unwrap());
    });
}

#[test]
fn free_space_is_known() {
    on_each(|disk, root, _| assert!(disk.free_bytes(root).unwrap() > 0));
    let missing = PosixDisk::new().free_bytes(&PathBuf::from("/nowhere/at/all")).unwrap_err();
    assert_eq!(missing.kind(), Kind::NotFound);
}

#[test]
fn disjoint_writes_and_syncs_from_many_threads() {
    on_each(|disk, root, direct| {
        let file = disk.open(&root.join("shared"), OpenMode::Create, direct).unwrap();
        let piece = 10_000;
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let file = &file;
                scope.spawn(move || {
                    for round in 0..8 {
                        let index = round * 4 + thread;
                        file.write_at((index * piece) as u64, &pattern(piece, index)).unwrap();
                        if round % 4 == 3 {
                            file.sync().unwrap();
                        }
                    }
                });
            }
        });
        for index in 0..32 {
            let mut buf = vec![0; piece];
            file.read_at((index * piece) as u64, &mut buf).unwrap();
            assert!(buf == pattern(piece, index), "piece {index}");
        }
    });
}

#[test]
fn a_linked_file_has_two_names_and_lives_until_the_last_goes() {
    on_each(|disk, root, direct| {
        let (a, b) = (root.join("a"), root.join("d/b"));
        disk.create_dir(&root.join("d")).unwrap();
        let file = disk.open(&a, OpenMode::Create, direct).unwrap();
        file.write_at(0, &pattern(10_000, 1)).unwrap();
        assert_eq!(file.names().unwrap(), 1);
        assert!(disk.link(&a, &b).unwrap());
        let other = disk.open(&b, OpenMode::Write, direct).unwrap();
        assert_eq!((file.names().unwrap(), other.names().unwrap()), (2, 2));
        other.write_at(4096, b"through the other name").unwrap();
        let mut buf = [0; 22];
        file.read_at(4096, &mut buf).unwrap();
        assert_eq!(&buf, b"through the other name");
        assert_eq!(kind(disk.link(&a, &b)), Kind::Invalid);
        assert_eq!(kind(disk.link(&root.join("x"), &root.join("y"))), Kind::NotFound);

        disk.remove(&a).unwrap();
        assert_eq!(other.names().unwrap(), 1);
        other.read_at(4096, &mut buf).unwrap();
        assert_eq!(&buf, b"through the other name");
        disk.remove(&b).unwrap();
        assert_eq!(other.names().unwrap(), 0);
    });
}

#[test]
fn a_range_is_copied_to_the_same_place() {
    on_each(|disk, root, direct| {
        let from = disk.open(&root.join("from"), OpenMode::Create, direct).unwrap();
        let to = disk.open(&root.join("to"), OpenMode::Create, direct).unwrap();
        let bytes = pattern(3 << 20, 5);
        from.write_at(0, &bytes).unwrap();
        let (offset, len) = (1 << 20, 1_500_000);
        from.copy_to(&*to, offset, len).unwrap();
        assert_eq!(to.len().unwrap(), offset + len);
        let mut copied = vec![0; len as usize];
        to.read_at(offset, &mut copied).unwrap();
        assert!(copied == bytes[offset as usize..][..len as usize]);
        let mut gap = [1; 4096];
        to.read_at(0, &mut gap).unwrap();
        assert_eq!(gap, [0; 4096]);
        assert_eq!(kind(from.copy_to(&*to, 3 << 20, 1)), Kind::Corrupt);
    });
}
