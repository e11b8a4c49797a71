//! Tests that need the real device: permissions, other processes, regions of the operating system.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a failed step ends the test; it looks at files"
)]
#![expect(unsafe_code, reason = "regions are written and read")]

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use terrane_base::Kind;
use terrane_device::{Disk, HUGE_PAGE_BYTES, OpenMode, PosixDisk, Region};

const HELD: &str = "TERRANE_TEST_LOCK";
const REMOVED: &str = "TERRANE_TEST_REMOVED";

#[test]
fn only_the_owner_has_access() {
    let dir = tempfile::tempdir().unwrap();
    let disk = PosixDisk::new();
    let made = dir.path().join("a/b");
    disk.create_dir(&made).unwrap();
    disk.open(&made.join("file"), OpenMode::Create, false).unwrap();
    let _lock = disk.lock(&made.join("LOCK")).unwrap();
    let mode = |path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(dir.path().join("a")), 0o700);
    assert_eq!(mode(made.clone()), 0o700);
    assert_eq!(mode(made.join("file")), 0o600);
    assert_eq!(mode(made.join("LOCK")), 0o600);
}

/// A directory that was found is durable on return as well as one that was made. The kernel's own directory
/// shows it: it is there, and its parent cannot be synced.
#[test]
fn a_directory_that_exists_is_made_durable() {
    let error = PosixDisk::new().create_dir("/proc/self".as_ref()).unwrap_err();
    assert!(error.to_string().contains("sync directory") && error.to_string().contains("/proc"), "{error}");
}

/// The kernel's file system says of a directory that cannot be made that something is missing, although its
/// parent is there.
#[test]
fn a_place_that_takes_no_directory_is_refused_by_name() {
    for path in ["/proc/terrane", "/proc/terrane/below/it"] {
        let error = PosixDisk::new().create_dir(path.as_ref()).unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid, "{error}");
        assert!(error.message().contains("/proc/terrane") && error.message().contains("choose"), "{error}");
    }
}

/// Not a test of its own: the other process of the next one.
#[test]
fn make_a_directory_for_another_test() {
    if let Some(dir) = std::env::var_os(REMOVED) {
        std::env::set_current_dir(&dir).unwrap();
        std::fs::remove_dir(&dir).unwrap();
        let error = PosixDisk::new().create_dir("made/here".as_ref()).unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid);
        println!("refused: {error}");
    }
}

#[test]
fn a_working_directory_that_was_removed_takes_no_directory() {
    let dir = tempfile::tempdir().unwrap();
    let gone = dir.path().join("gone");
    std::fs::create_dir(&gone).unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "posix::make_a_directory_for_another_test", "--nocapture"])
        .env(REMOVED, &gone)
        .stdout(Stdio::piped())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && said.contains("refused: "), "{said}");
}

/// Not a test of its own: the other process of the next one.
#[test]
fn hold_lock_for_another_test() {
    if let Some(path) = std::env::var_os(HELD) {
        let error = PosixDisk::new().lock(path.as_ref()).unwrap_err();
        assert_eq!(error.kind(), Kind::Busy);
        println!("refused: {error}");
    }
}

#[test]
fn another_process_is_refused_with_the_holder_of_the_lock() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("LOCK");
    let _lock = PosixDisk::new().lock(&path).unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "posix::hold_lock_for_another_test", "--nocapture"])
        .env(HELD, &path)
        .stdout(Stdio::piped())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout);
    let expected = format!("is locked by process {}", std::process::id());
    assert!(child.status.success() && text.contains(&expected), "{text}");
}

/// The file has the id of the writer before, here this very process: no one that has the lock now.
#[test]
fn a_writer_that_readers_keep_out_gets_no_process_id() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("LOCK");
    let disk = PosixDisk::new();
    drop(disk.lock(&path).unwrap());
    let readers = [disk.lock_shared(&path).unwrap().unwrap(), disk.lock_shared(&path).unwrap().unwrap()];
    let refused = disk.lock(&path).unwrap_err();
    assert_eq!(refused.kind(), Kind::Busy);
    let (text, pid) = (refused.to_string(), std::process::id().to_string());
    let said = text.strip_prefix(&path.display().to_string()).unwrap();
    assert!(said.contains("locked by readers") && said.contains("open_view"), "{text}");
    assert!(!said.contains(&pid), "{text}");
    assert!(
        disk.lock_shared(&path).unwrap().is_some(),
        "the look left no lock behind that keeps readers out"
    );
    drop(readers);
    disk.lock(&path).unwrap();
}

#[test]
fn heap_regions_are_zero_aligned_and_prefaulted() {
    for len in [0, 1, 5000, HUGE_PAGE_BYTES - 1, HUGE_PAGE_BYTES, 3 * HUGE_PAGE_BYTES + 1] {
        let region = Region::heap(len);
        assert_eq!((region.len(), region.is_empty()), (len, len == 0));
        let unit = if len >= HUGE_PAGE_BYTES { HUGE_PAGE_BYTES } else { 4096 };
        assert_eq!(region.start().as_ptr().addr() % unit, 0);
        region.prefault().unwrap();
        // SAFETY: in bounds; this thread alone uses the region.
        unsafe {
            assert!(region.slice(0, len).iter().all(|&byte| byte == 0));
            if len > 0 {
                region.write(len - 1, &[7]);
                region.prefault().unwrap();
                assert_eq!(region.slice(len - 1, 1), [7], "prefaulting keeps contents");
            }
        }
    }
}

#[test]
fn holes_give_space_back() {
    use std::os::unix::fs::MetadataExt;
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("file");
    let file = PosixDisk::new().open(&path, OpenMode::Create, false).unwrap();
    file.allocate(0, 4 << 20).unwrap();
    let blocks = || std::fs::metadata(&path).unwrap().blocks() * 512;
    assert!(blocks() >= 4 << 20);
    file.punch(1 << 20, 2 << 20).unwrap();
    assert!(blocks() <= (2 << 20) + (64 << 10), "{} bytes are still taken", blocks());
    assert_eq!(file.len().unwrap(), 4 << 20);
}

/// A hostile directory with links and pipes under the engine's file names: the device follows, awaits and
/// overwrites none of them.
#[test]
fn links_and_pipes_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let disk = PosixDisk::new();
    let victim = dir.path().join("victim");
    std::fs::write(&victim, b"the file of another program").unwrap();
    let [link, dangling, pipe] = ["link", "dangling", "pipe"].map(|name| dir.path().join(name));
    std::os::unix::fs::symlink(&victim, &link).unwrap();
    std::os::unix::fs::symlink(dir.path().join("nowhere"), &dangling).unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [&link, &dangling, &pipe] {
        for mode in [OpenMode::Read, OpenMode::Write, OpenMode::Create] {
            for direct in [false, true] {
                let error = disk.open(path, mode, direct).unwrap_err();
                assert_eq!(error.kind(), Kind::Invalid, "{error}");
                assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
            }
        }
        assert_eq!(disk.lock(path).unwrap_err().kind(), Kind::Invalid);
        disk.remove(path).unwrap();
    }
    assert_eq!(std::fs::read(&victim).unwrap(), b"the file of another program");
    assert!(!dir.path().join("nowhere").exists());
    // A directory may lie elsewhere.
    std::fs::create_dir(dir.path().join("there")).unwrap();
    std::os::unix::fs::symlink(dir.path().join("there"), &link).unwrap();
    disk.open(&link.join("file"), OpenMode::Create, false).unwrap();
}

#[test]
fn a_thread_that_is_bound_has_one_processor() {
    let threads = std::thread::available_parallelism().unwrap().get();
    for number in [0, threads, 5 * threads + 1] {
        let bound = std::thread::spawn(move || {
            // A system that refuses is allowed to; then nothing has changed.
            let is_bound = terrane_device::pin_to_processor(number);
            (is_bound, std::thread::available_parallelism().unwrap().get())
        });
        let (is_bound, usable) = bound.join().unwrap();
        assert_eq!(usable, if is_bound { 1 } else { threads });
    }
    assert_eq!(std::thread::available_parallelism().unwrap().get(), threads, "others are not bound");
}
