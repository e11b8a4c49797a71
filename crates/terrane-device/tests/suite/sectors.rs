//! A direct read transfers only the sectors of the requested bytes: counted by the system, per thread.
#![allow(clippy::unwrap_used, reason = "a test says by panicking that it failed")]

use std::sync::Arc;

use terrane_device::{Disk, File, FileRead, OpenMode, PosixDisk};

/// Runs of which the least count is taken.
const RUNS: usize = 10;

/// Bytes that this thread has read from a device so far.
fn device_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/io").ok()?;
    text.lines().find_map(|line| line.strip_prefix("read_bytes: "))?.parse().ok()
}

/// Least bytes that this thread read from a device in a run of `reads`. The system counts for a thread also
/// the pages of the program that it loads, and what the file system reads of its own: never less than the
/// reads, and more in a run that meets with it.
fn least(reads: &dyn Fn()) -> Option<u64> {
    let run = |_| {
        let before = device_bytes()?;
        reads();
        Some(device_bytes()? - before)
    };
    (0..RUNS).map(run).min().flatten()
}

/// The unit that the file system states for direct reads.
fn sector(path: &std::path::Path) -> Option<u64> {
    use rustix::fs::{AtFlags, CWD, StatxFlags};
    let info = rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::DIOALIGN).ok()?;
    let is_stated = info.stx_mask & StatxFlags::DIOALIGN.bits() != 0 && info.stx_dio_offset_align > 0;
    is_stated.then(|| u64::from(info.stx_dio_offset_align.max(info.stx_dio_mem_align)))
}

#[test]
fn a_read_transfers_its_sectors_only() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (disk, path) = (PosixDisk::new(), dir.path().join("file"));
    let Ok(file) = disk.open(&path, OpenMode::Create, true) else {
        return println!("not run: this file system has no direct I/O");
    };
    let bytes: Vec<u8> = (0..1 << 20).map(|at: u32| (at / 7) as u8).collect();
    file.write_at(0, &bytes).unwrap();
    file.sync().unwrap();
    let Some(sector) = sector(&path).filter(|bytes| *bytes < 4096) else {
        return println!("not run: direct reads of this file system are whole pages");
    };
    // 1,900 bytes, beginning anywhere: alone, of a batch, and begun.
    let offsets: Vec<u64> = (0..100).map(|at| at * 9_973).collect();
    let want = |offset: u64| &bytes[offset as usize..offset as usize + 1900];
    let alone = || {
        for &offset in &offsets {
            let mut buf = vec![0; 1900];
            file.read_at(offset, &mut buf).unwrap();
            assert!(buf == want(offset), "bytes at {offset}");
        }
    };
    let by_ring = || {
        let mut bufs = vec![vec![0; 1900]; offsets.len()];
        let reads = offsets.iter().zip(&mut bufs);
        let mut reads: Vec<_> = reads.map(|(&offset, buf)| FileRead::new(&*file, offset, buf)).collect();
        disk.read_batch(&mut reads);
        assert!(reads.iter().all(|read| read.result.is_ok()));
        drop(reads);
        assert!(offsets.iter().zip(&bufs).all(|(&offset, buf)| buf == want(offset)), "bytes of a batch");
        for &offset in &offsets {
            let file: Arc<dyn File> = file.clone();
            let read = disk.begin_read(&file, offset, 1900, Vec::new()).finish().unwrap();
            assert!(*read == *want(offset), "bytes of a read that was begun at {offset}");
        }
    };
    let Some(counted) = least(&alone) else { return println!("not run: the system does not count") };
    if counted == 0 {
        return println!("not run: the system does not count reads of this file system");
    }
    let spans = |offset: u64| (offset + 1900).next_multiple_of(sector) - offset / sector * sector;
    let exact: u64 = offsets.iter().map(|&offset| spans(offset)).sum();
    assert_eq!(counted, exact, "reads by themselves, in sectors of {sector}");
    // The threads of a ring may count apart; this thread never reads more.
    let counted = least(&by_ring).expect("the system counts");
    assert!(counted <= 2 * exact, "{counted} bytes read by a ring for {exact}, in sectors of {sector}");
}
