//! Long and short writes to a mapped file.
#![expect(unsafe_code, reason = "regions are written and read")]

use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use crate::mapping;

use super::long::{BULK_BYTES, LONG_BYTES};
use super::*;

/// A mapping of a file of 64 KiB, and the file; the calls go to a handle that may write or not.
fn mapped(may_write: bool) -> (Region, std::fs::File) {
    let file = tempfile::NamedTempFile::new().expect("a file");
    file.as_file().set_len(64 << 10).expect("the device has room");
    let beneath = std::fs::OpenOptions::new().read(true).write(may_write).open(file.path());
    let beneath = Arc::new(OwnedFd::from(beneath.expect("it is there")));
    let (start, owner) = mapping::shared(file.as_file().as_fd(), 64 << 10, true).expect("a mapping");
    // SAFETY: the mapping has this length, is writable, and lives until its owner goes.
    let region = unsafe { Region::from_raw(start, 64 << 10, Box::new(owner)) };
    (region.above(beneath), file.into_file())
}

fn check(region: &Region, file: &std::fs::File, offset: usize, parts: [&[u8]; 3]) {
    // SAFETY: in bounds, and only this thread has the region.
    unsafe { region.write_parts(offset, parts) };
    let mut read = vec![0; parts.concat().len() + 2];
    file.read_exact_at(&mut read, offset as u64 - 1).expect("within the file");
    assert_eq!(read, [&[0][..], &parts.concat(), &[0]].concat(), "in the file");
    // SAFETY: in bounds, and no thread writes.
    let seen = unsafe { region.slice(offset - 1, read.len()) };
    assert_eq!(seen, read, "in the mapping");
}

/// The bytes that the process has given to write calls.
fn written_by_calls() -> Option<u64> {
    let io = std::fs::read_to_string("/proc/thread-self/io").ok()?;
    io.lines().find_map(|line| line.strip_prefix("wchar: "))?.parse().ok()
}

#[test]
fn long_writes_go_to_the_file_by_a_call_and_short_ones_by_stores() {
    let (region, file) = mapped(true);
    if written_by_calls().is_none() {
        println!("not run: this kernel does not count the bytes that a thread writes");
        return;
    }
    let by_calls = |offset, parts| {
        let before = written_by_calls().expect("it was there");
        check(&region, &file, offset, parts);
        written_by_calls().expect("it was there") - before
    };
    assert_eq!(by_calls(100, [&[1; 10], &[], &[3; 20]]), 0);
    assert_eq!(by_calls(5001, [&[1; 32], &[2; LONG_BYTES], &[3; 5]]), LONG_BYTES as u64 + 37);
    assert_eq!(by_calls(20_000, [&[], &[2; 30_000], &[]]), 30_000);
    // Where the pages are allocated for writing, stores are cheaper.
    region.prefault_for_reads().expect("there is memory");
    assert_eq!(by_calls(52_000, [&[], &[2; 5000], &[]]), 5000);
    region.prefault().expect("there is memory");
    assert_eq!(by_calls(58_000, [&[], &[2; 5000], &[]]), 0);
}

#[test]
fn only_bulk_writes_count_as_such() {
    let (region, _) = mapped(true);
    for (len, sum) in [(BULK_BYTES - 1, 0), (BULK_BYTES, BULK_BYTES)] {
        // SAFETY: in bounds, and only this thread has the region.
        unsafe { region.write(0, &vec![1; len]) };
        assert_eq!(region.bulk_bytes(), sum as u64);
    }
}

#[test]
fn a_long_write_that_the_kernel_refuses_is_stored() {
    let (region, file) = mapped(false);
    check(&region, &file, 5001, [&[1; 32], &[2; LONG_BYTES], &[3; 5]]);
}
