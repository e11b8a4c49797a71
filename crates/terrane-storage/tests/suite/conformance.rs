//! The local store passes the suite on every device, and behind a meter, which counts what passes.
#![allow(clippy::unwrap_used, reason = "a step that fails ends the test")]

use std::path::Path;
use std::sync::Arc;

use terrane_base::Kind;
use terrane_base::options::IoUring;
use terrane_device::{Disk, Flow, FlowCounts, MemDisk, PosixDisk};
use terrane_storage::{LocalStore, MeteredStore, ReadRequest, Store, StoreSettings, conformance};

fn open(disk: Arc<dyn Disk>, dir: &Path, direct_io: bool) -> Arc<dyn Store> {
    Arc::new(LocalStore::open(disk, dir, StoreSettings { direct_io, ..StoreSettings::default() }).unwrap())
}

fn on_posix(direct_io: bool) {
    conformance::run(|| {
        // Beside the build, not in /tmp, which may lie in memory and refuse direct I/O.
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        move || open(Arc::new(PosixDisk::new()), dir.path(), direct_io)
    });
}

#[test]
fn on_files() {
    on_posix(false);
}

#[test]
fn on_files_around_the_page_cache() {
    on_posix(true);
}

#[test]
fn on_files_without_io_uring() {
    conformance::run(|| {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let settings = StoreSettings { io_uring: IoUring::Off, ..StoreSettings::default() };
        move || Arc::new(LocalStore::open(Arc::new(PosixDisk::new()), dir.path(), settings).unwrap())
    });
}

#[test]
fn io_uring_that_must_be_had_and_cannot_is_refused_by_name() {
    let settings = StoreSettings { io_uring: IoUring::On, ..StoreSettings::default() };
    let error = LocalStore::open(Arc::new(MemDisk::new()), Path::new(""), settings).unwrap_err();
    assert_eq!(error.kind(), Kind::Invalid);
    assert!(error.to_string().contains("io_uring=on"), "{error}");
    let disk = PosixDisk::new();
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let is_there = disk.check_ring().is_ok();
    assert_eq!(LocalStore::open(Arc::new(disk), dir.path(), settings).is_ok(), is_there);
}

#[test]
fn only_batches_that_may_use_a_ring_do() {
    for io_uring in [IoUring::Auto, IoUring::Off] {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let disk = PosixDisk::new();
        let settings = StoreSettings { io_uring, ..StoreSettings::default() };
        let store = LocalStore::open(Arc::new(disk.clone()), dir.path(), settings).unwrap();
        let id = store.allocate(1).unwrap();
        store.write(id, &[9; 10_000]).unwrap();
        let mut bufs = vec![[0; 1000]; 8];
        let mut reads: Vec<_> =
            bufs.iter_mut().enumerate().map(|(i, buf)| ReadRequest::new(id, i as u32 * 1000, buf)).collect();
        store.read_batch(&mut reads);
        assert!(reads.iter().all(|read| read.result.is_ok()));
        assert!(bufs.iter().all(|buf| *buf == [9; 1000]));
        let is_used = io_uring == IoUring::Auto && disk.check_ring().is_ok();
        assert_eq!(disk.ring_reads(), if is_used { 8 } else { 0 });
    }
}

#[test]
fn in_memory() {
    conformance::run(|| {
        let disk = Arc::new(MemDisk::new());
        move || open(disk.clone(), Path::new(""), false)
    });
}

#[test]
fn behind_a_meter() {
    conformance::run(|| {
        let disk = Arc::new(MemDisk::new());
        move || Arc::new(MeteredStore::new(open(disk.clone(), Path::new(""), false), Arc::default()))
    });
}

#[test]
fn views_of_one_store_count_apart_what_passes_through_each() {
    let store = open(Arc::new(MemDisk::new()), Path::new(""), false);
    let (left, right): (Arc<Flow>, Arc<Flow>) = (Arc::default(), Arc::default());
    let writer = MeteredStore::new(store.clone(), left.clone());
    let reader = MeteredStore::new(store, right.clone());
    let id = writer.allocate(1).unwrap();
    writer.write(id, &[7; 5000]).unwrap();
    writer.sync().unwrap();
    let mut bytes = [0; 100];
    for _ in 0..3 {
        reader.read(id, 4096, &mut bytes).unwrap();
    }
    assert_eq!(bytes, [7; 100]);
    let mut more = [0; 50];
    let mut reads = [ReadRequest::new(id, 0, &mut bytes), ReadRequest::new(id, 3 << 20, &mut more)];
    reader.read_batch(&mut reads);
    assert!(reads[0].result.is_ok());
    let beyond = u64::from(reads[1].result.is_ok()) * 50;
    reader.write(id, &vec![0; 3 << 20]).unwrap_err();
    assert_eq!(
        left.counts(),
        FlowCounts { writes: 1, bytes_written: 5000, syncs: 1, ..FlowCounts::default() }
    );
    let expected =
        FlowCounts { reads: 5, bytes_read: 400 + beyond, batches: 1, writes: 1, ..FlowCounts::default() };
    assert_eq!(right.counts(), expected, "a failed call counts, its bytes do not");
}
