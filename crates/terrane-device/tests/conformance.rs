//! One suite for every device: what `Disk` and `File` promise while the power is on.
#![allow(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(unsafe_code, reason = "regions are written and read")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_base::Kind;
use terrane_device::{Disk, FaultyDisk, FileRead, MemDisk, MeteredDisk, OpenMode, PosixDisk};

/// Runs `test` on each device, in a directory of its own. Files are opened directly in every second run.
fn on_each(test: impl Fn(&dyn Disk, &Path, bool)) {
    for direct in [false, true] {
        // Beside the build, not in /tmp, which may lie in memory and refuse direct I/O.
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        test(&PosixDisk::new(), dir.path(), direct);
        let memory = || Arc::new(MemDisk::new());
        let metered = MeteredDisk::new(memory(), Arc::default());
        let disks: [&dyn Disk; 3] = [&MemDisk::new(), &FaultyDisk::new(memory()), &metered];
        for disk in disks {
            disk.create_dir(Path::new("some/dir")).unwrap();
            test(disk, Path::new("some/dir"), direct);
        }
        // Wrappers around the real one: they must find its files through theirs.
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let metered = MeteredDisk::new(Arc::new(PosixDisk::new()), Arc::default());
        test(&FaultyDisk::new(Arc::new(metered)), dir.path(), direct);
    }
}

fn pattern(len: usize, salt: usize) -> Vec<u8> {
    (0..len).map(|i| ((i * 31 + i / 256 + salt * 7) % 251 + 1) as u8).collect()
}

fn kind<T>(result: terrane_base::Result<T>) -> Kind {
    match result {
        Ok(_) => panic!("an error was due"),
        Err(error) => error.kind(),
    }
}

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
        // SAFETY: nobody writes any more.
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

/// Reads of every size and alignment, of which each `bad`-th goes beyond the end of its file.
fn reads_of(lens: &[usize], bad: usize) -> Vec<(usize, u64, usize)> {
    let sizes = [1, 100, 4096, 16 << 10, 5000, 8192, 70_000];
    (0..200)
        .map(|i| {
            let file = i % lens.len();
            let len = sizes[i % sizes.len()];
            let room = (lens[file] - len) as u64;
            let at = (i as u64 * 7919 * 13) % room;
            let at = if i % 3 == 0 { at / 4096 * 4096 } else { at };
            if i % bad == bad - 1 { (file, lens[file] as u64 - 10, len.max(11)) } else { (file, at, len) }
        })
        .collect()
}

#[test]
fn a_batch_reads_what_single_reads_read() {
    on_each(|disk, root, direct| {
        let lens = [300_000, 81_920, 99_999];
        let open = |index: usize| {
            let file = disk.open(&root.join(format!("f{index}")), OpenMode::Create, direct).unwrap();
            file.write_at(0, &pattern(lens[index], index)).unwrap();
            file
        };
        let files = [open(0), open(1), open(2)];
        for (count, bad) in [(0, 7), (1, 1), (1, 7), (2, 7), (3, 2), (63, 7), (64, 5), (65, 7), (200, 11)] {
            let wanted = &reads_of(&lens, bad)[..count];
            let mut bufs: Vec<Vec<u8>> = wanted.iter().map(|&(_, _, len)| vec![0xee; len + 2]).collect();
            let mut reads: Vec<FileRead<'_>> = wanted
                .iter()
                .zip(&mut bufs)
                .map(|(&(file, offset, len), buf)| FileRead::new(&*files[file], offset, &mut buf[1..=len]))
                .collect();
            disk.read_batch(&mut reads);
            let results: Vec<_> = reads.into_iter().map(|read| read.result).collect();
            for (((index, offset, len), buf), result) in wanted.iter().zip(&bufs).zip(results) {
                let at = *offset as usize;
                if at + len > lens[*index] {
                    let error = result.unwrap_err();
                    assert_eq!(error.kind(), Kind::Corrupt, "{error}");
                    let place = error.place().unwrap();
                    assert!(place.file.ends_with(&format!("f{index}")) && place.offset == *offset, "{error}");
                    continue;
                }
                result.unwrap();
                assert!(buf[1..=*len] == pattern(lens[*index], *index)[at..at + len], "{len} from {at}");
                assert_eq!((buf[0], buf[len + 1]), (0xee, 0xee), "nothing around the buffer is touched");
            }
        }
    });
}

#[test]
fn a_read_that_was_begun_brings_what_a_read_brings() {
    on_each(|disk, root, direct| {
        let path = root.join("file");
        let file = disk.open(&path, OpenMode::Create, direct).unwrap();
        let bytes = pattern(400_000, 2);
        file.write_at(0, &bytes).unwrap();
        let mut memory = Vec::new();
        for (offset, len) in [(0, 400_000), (1, 0), (4096, 4096), (5, 300_000), (399_999, 1), (9000, 70_000)]
        {
            let pending = disk.begin_read(&file, offset as u64, len, memory);
            let found = pending.finish().unwrap();
            assert!(found[..] == bytes[offset..offset + len], "{len} bytes from {offset}");
            memory = found.into_memory();
        }
        // Several at once, finished in another order; some are given up.
        let begin = |i: usize| disk.begin_read(&file, i as u64 * 10_000, 20_000, vec![0xee; 30_000]);
        let mut pending: Vec<_> = (0..38).map(|i| Some(begin(i))).collect();
        for i in (0..38).rev().filter(|i| i % 3 != 0) {
            let found = pending[i].take().unwrap().finish().unwrap();
            assert!(found[..] == bytes[i * 10_000..i * 10_000 + 20_000]);
        }
        drop(pending);
        for (offset, len) in [(399_000, 1001), (1 << 20, 10)] {
            let error = disk.begin_read(&file, offset, len, Vec::new()).finish().unwrap_err();
            assert_eq!(error.kind(), Kind::Corrupt, "{error}");
            assert_eq!(error.place().unwrap().offset, offset);
        }
        // The file may be closed and removed meanwhile.
        let pending = disk.begin_read(&file, 100, 300_000, Vec::new());
        drop(file);
        disk.remove(&path).unwrap();
        assert!(pending.finish().unwrap()[..] == bytes[100..300_100]);
    });
}

#[test]
fn batches_of_many_threads_do_not_meet() {
    on_each(|disk, root, direct| {
        let len = 1 << 20;
        let file = disk.open(&root.join("file"), OpenMode::Create, direct).unwrap();
        let bytes = pattern(len, 4);
        file.write_at(0, &bytes).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4usize {
                let (file, bytes) = (&file, &bytes);
                scope.spawn(move || {
                    for round in 0..10 {
                        let at = |i: usize| ((thread * 31 + round * 17 + i) * 7919) % (len - 9000);
                        let mut bufs = vec![vec![0; 9000]; 40];
                        let mut reads: Vec<_> = bufs
                            .iter_mut()
                            .enumerate()
                            .map(|(i, buf)| FileRead::new(&**file, at(i) as u64, buf))
                            .collect();
                        disk.read_batch(&mut reads);
                        assert!(reads.iter().all(|read| read.result.is_ok()));
                        for (i, buf) in bufs.iter().enumerate() {
                            assert!(*buf == bytes[at(i)..at(i) + 9000]);
                        }
                    }
                });
            }
        });
    });
}

#[test]
fn a_file_of_another_disk_is_read_too() {
    on_each(|disk, root, direct| {
        let other = MemDisk::new();
        let foreign = other.open(Path::new("foreign"), OpenMode::Create, false).unwrap();
        foreign.write_at(0, &[1; 100]).unwrap();
        let own = disk.open(&root.join("own"), OpenMode::Create, direct).unwrap();
        own.write_at(0, &[2; 100]).unwrap();
        let (mut first, mut second) = ([0; 50], [0; 50]);
        let mut reads = [FileRead::new(&*foreign, 10, &mut first), FileRead::new(&*own, 10, &mut second)];
        disk.read_batch(&mut reads);
        assert!(reads.iter().all(|read| read.result.is_ok()));
        assert_eq!((first, second), ([1; 50], [2; 50]));
    });
}

#[test]
fn only_the_real_device_has_a_ring() {
    let memory = MemDisk::new();
    assert_eq!(kind(memory.check_ring()), Kind::Invalid);
    assert_eq!(kind(FaultyDisk::new(Arc::new(memory)).check_ring()), Kind::Invalid);
    let disk = PosixDisk::new();
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = disk.open(&dir.path().join("file"), OpenMode::Create, false).unwrap();
    file.write_at(0, &[3; 9000]).unwrap();
    let mut bufs = vec![[0; 3000]; 3];
    let mut reads: Vec<_> =
        bufs.iter_mut().enumerate().map(|(i, buf)| FileRead::new(&*file, i as u64 * 3000, buf)).collect();
    disk.read_batch(&mut reads);
    assert!(reads.iter().all(|read| read.result.is_ok()));
    assert!(bufs.iter().all(|buf| *buf == [3; 3000]));
    // Whether this system has rings is not ours to say, but the count and the check agree.
    assert_eq!(disk.ring_reads(), if disk.check_ring().is_ok() { 3 } else { 0 });
}
