//! One suite for every device: reads in batches and pending reads return the same bytes as single reads.
#![allow(clippy::unwrap_used, reason = "a step that fails ends the test")]

use std::path::Path;
use std::sync::Arc;

use crate::support::{kind, on_each, pattern};
use terrane_base::Kind;
use terrane_device::{Disk, FaultyDisk, FileRead, MemDisk, OpenMode, PosixDisk};

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
