//! Helpers of the suites of all devices.

use std::path::Path;
use std::sync::Arc;

use terrane_base::Kind;
use terrane_device::{Disk, FaultyDisk, MemDisk, MeteredDisk, PosixDisk};

/// Runs `test` on each device, in a directory of its own. Files are opened directly in every second run.
pub(crate) fn on_each(test: impl Fn(&dyn Disk, &Path, bool)) {
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

pub(crate) fn pattern(len: usize, salt: usize) -> Vec<u8> {
    (0..len).map(|i| ((i * 31 + i / 256 + salt * 7) % 251 + 1) as u8).collect()
}

pub(crate) fn kind<T>(result: terrane_base::Result<T>) -> Kind {
    match result {
        Ok(_) => panic!("an error was due"),
        Err(error) => error.kind(),
    }
}
