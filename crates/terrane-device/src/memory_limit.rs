//! A ceiling of memory for another process by a control group, page cache included: the kernel kills a
//! process that exceeds it.
//!
//! The bench holds engines to equal memory by it, and tests the promise about the memory of the process. It
//! works where this process may make control groups (version 1 or 2); elsewhere the caller gets the reason.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use terrane_base::env::Env;

/// Of version 1 and 2: where the memory controller is mounted, the file with the limit, and a file that keeps
/// memory from swap, where the kernel counts that: the limit again, or none.
const CONTROLLERS: [(&str, &str, &str, Option<&str>); 2] = [
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", None),
    ("/sys/fs/cgroup", "memory.max", "memory.swap.max", Some("0")),
];

/// How often, and with which pause, a group is tried to be removed.
const REMOVE_TRIES: u32 = 50;
const REMOVE_PAUSE: Duration = Duration::from_millis(10);

/// Groups that this process has made: each has a name of its own.
static MADE: AtomicU32 = AtomicU32::new(0);

/// A control group with a ceiling, removed when dropped (after its processes have ended).
#[derive(Debug)]
pub struct MemoryLimit {
    group: PathBuf,
}

impl MemoryLimit {
    /// Makes a group of at most `bytes` bytes.
    ///
    /// # Errors
    /// The reason why this machine or user cannot, as a text.
    pub fn new(bytes: u64) -> Result<Self, String> {
        let mut why = String::from("no memory controller is mounted");
        // Relaxed: a number and nothing else.
        let name = format!("terrane-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        for (root, limit_file, swap_file, swap) in CONTROLLERS {
            if rustix::fs::stat(&*Path::new(root).join("cgroup.procs")).is_err() {
                continue;
            }
            let group = Path::new(root).join(&name);
            let limit = bytes.to_string();
            let made = match rustix::fs::mkdir(&*group, Mode::RWXU) {
                // A process that had this one's number before left an empty one.
                Ok(()) | Err(Errno::EXIST) => write(&group.join(limit_file), &limit),
                Err(error) => Err(refused("make", &group, error)),
            };
            if let Err(error) = made {
                why = error;
                let _ = rustix::fs::rmdir(&*group);
                continue;
            }
            // A kernel without it has no swap, or does not count it: then the limit is one of memory alone.
            let _ = write(&group.join(swap_file), swap.unwrap_or(&limit));
            return Ok(MemoryLimit { group });
        }
        Err(why)
    }

    /// Puts a process into the group: its later children and pages are counted there.
    ///
    /// # Errors
    /// The kernel's reason to refuse, as a text.
    pub fn add(&self, process: u32) -> Result<(), String> {
        debug_assert!(process > 0, "0 would be the process that asks");
        write(&self.group.join("cgroup.procs"), &process.to_string())
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        // The kernel may take a moment to let go of a process that was killed.
        for _ in 0..REMOVE_TRIES {
            if rustix::fs::rmdir(&*self.group).is_ok() {
                return;
            }
            Env::real().clock.sleep(REMOVE_PAUSE);
        }
        // A group that is still busy stays behind, empty; nothing is lost by it.
    }
}

/// Writes one line to a file of the kernel, which exists.
fn write(path: &Path, line: &str) -> Result<(), String> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| refused("open", path, error))?;
    let written = rustix::io::write(&file, line.as_bytes()).map_err(|error| refused("write", path, error))?;
    assert!(written == line.len(), "the kernel takes a line whole");
    Ok(())
}

fn refused(what: &str, path: &Path, error: Errno) -> String {
    format!("cannot {what} {}: {error}", path.display())
}
