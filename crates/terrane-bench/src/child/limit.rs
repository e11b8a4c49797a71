//! A ceiling of memory for a child by a control group, page cache included.
//!
//! Without it an engine that reads through the page cache would have all memory of the machine, and one that
//! caches by itself only its budget. Works where this process may make control groups (version 1 or 2);
//! elsewhere the run says that the limit was not enforced.

use std::path::{Path, PathBuf};
use std::time::Duration;

use terrane::Env;

use crate::error::Result;
use crate::files;

/// Where the memory controllers of version 1 and 2 are mounted, and the name of the file that holds the
/// limit.
const CONTROLLERS: [(&str, &str); 2] =
    [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];

/// How often, and with which pause, a group is tried to be removed.
const REMOVE_TRIES: u32 = 50;
const REMOVE_PAUSE: Duration = Duration::from_millis(10);

/// A control group with a ceiling, removed when dropped (after its processes have ended).
#[derive(Debug)]
pub struct MemoryLimit {
    group: PathBuf,
}

impl MemoryLimit {
    /// Makes a group of at most `bytes` bytes. `Err` holds the reason why this machine or user cannot.
    ///
    /// # Errors
    /// The reason, for the report.
    pub fn new(bytes: u64) -> std::result::Result<Self, String> {
        let mut why = String::from("no memory controller is mounted");
        for (root, file) in CONTROLLERS {
            let group = Path::new(root).join(format!("terrane-bench-{}", std::process::id()));
            if !Path::new(root).join("cgroup.procs").exists() {
                continue;
            }
            let made = files::create_directory(&group)
                .and_then(|()| files::write_control(&group.join(file), &bytes.to_string()));
            match made {
                Ok(()) => return Ok(MemoryLimit { group }),
                Err(error) => {
                    why = error.to_string();
                    let _ = files::remove_control(&group);
                }
            }
        }
        Err(why)
    }

    /// Puts a process into the group; its later children and pages are counted there.
    ///
    /// # Errors
    /// `Io` if the kernel refuses.
    pub fn add(&self, process: u32) -> Result<()> {
        files::write_control(&self.group.join("cgroup.procs"), &process.to_string())
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        // The kernel may take a moment to let go of a process that was killed.
        for _ in 0..REMOVE_TRIES {
            if files::remove_control(&self.group).is_ok() {
                return;
            }
            Env::real().clock.sleep(REMOVE_PAUSE);
        }
        // A group that is still busy stays behind, empty; nothing is lost by it.
    }
}
