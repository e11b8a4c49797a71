//! The local store passes the suite on every device, and behind a meter, which counts what passes.
#![allow(clippy::unwrap_used, reason = "a step that fails ends the test")]

use std::path::Path;
use std::sync::Arc;

use terrane_device::{Disk, Flow, FlowCounts, MemDisk, PosixDisk};
use terrane_storage::{LocalStore, MeteredStore, Store, StoreSettings, conformance};

fn open(disk: Arc<dyn Disk>, dir: &Path, direct_io: bool) -> Arc<dyn Store> {
    Arc::new(
        LocalStore::open(
            disk,
            dir,
            StoreSettings { direct_io, write_back: true, ..StoreSettings::default() },
        )
        .unwrap(),
    )
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
    reader.write(id, &vec![0; 3 << 20]).unwrap_err();
    assert_eq!(
        left.counts(),
        FlowCounts { writes: 1, bytes_written: 5000, syncs: 1, ..FlowCounts::default() }
    );
    let expected = FlowCounts { reads: 3, bytes_read: 300, writes: 1, ..FlowCounts::default() };
    assert_eq!(right.counts(), expected, "a failed call counts, its bytes do not");
}
