//! The local store passes the suite on every device.
#![allow(clippy::unwrap_used, reason = "a step that fails ends the test")]

use std::path::Path;
use std::sync::Arc;

use terrane_device::{Disk, MemDisk, PosixDisk};
use terrane_storage::{LocalStore, Store, StoreSettings, conformance};

fn open(disk: Arc<dyn Disk>, dir: &Path, direct_io: bool) -> Arc<dyn Store> {
    Arc::new(LocalStore::open(disk, dir, StoreSettings { direct_io, read_only: false }).unwrap())
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
