//! The machine under a run: what a reader must know before comparing figures.
//!
//! Everything comes from the kernel; a field that it does not tell is empty. The device is that of the
//! [mount](super::mount) under the database directory.

use std::path::{Path, PathBuf};

use super::mount::Mount;
use super::{hardware, proc};
use crate::error::{Error, Result};
use crate::report::model::Machine;

/// Describes the machine and the device under `directory`, which need not exist yet.
#[must_use]
pub fn describe(directory: &Path) -> Machine {
    let cpu_info = proc::read("/proc/cpuinfo").unwrap_or_default();
    let memory_info = proc::read("/proc/meminfo").unwrap_or_default();
    let mount = Mount::under(&nearest(directory));
    Machine {
        cpu: cpu_name(&cpu_info),
        processors: processors(),
        memory_bytes: proc::number(&memory_info, "MemTotal").unwrap_or(0) * 1024,
        kernel: kernel(),
        file_system: mount.as_ref().map(Mount::file_system).unwrap_or_default(),
        device: mount.as_ref().map(Mount::device).unwrap_or_default(),
        governor: proc::read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").unwrap_or_default(),
        huge_pages: chosen(&proc::read("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default()),
        load: load(),
        counters: hardware::availability(),
    }
}

/// Bytes that a user may still write to the file system under `directory` (or its nearest parent that
/// exists).
///
/// # Errors
/// `Io` if the file system does not tell.
pub fn free_bytes(directory: &Path) -> Result<u64> {
    let directory = nearest(directory);
    let space = rustix::fs::statvfs(&directory)
        .map_err(|error| Error::io("ask for free space on", &directory, error))?;
    Ok(space.f_bavail.saturating_mul(space.f_frsize))
}

/// Processors that this process may run on; at least 1.
fn processors() -> u32 {
    match rustix::thread::sched_getaffinity(None) {
        Ok(set) => set.count().max(1),
        Err(_) => {
            std::thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(1))
        }
    }
}

/// The name in a text of `/proc/cpuinfo`. x86 says `model name`; arm64 says it nowhere, so its part numbers
/// stand in.
#[must_use]
pub fn cpu_name(info: &str) -> String {
    if let Some(name) = proc::field(info, "model name").or_else(|| proc::field(info, "Model")) {
        return name.to_owned();
    }
    match (proc::field(info, "CPU implementer"), proc::field(info, "CPU part")) {
        (Some(implementer), Some(part)) => format!("implementer {implementer} part {part}"),
        _ => String::new(),
    }
}

fn kernel() -> String {
    let names = rustix::system::uname();
    let parts = [names.sysname(), names.release(), names.machine()];
    parts.map(|part| part.to_string_lossy().into_owned()).join(" ")
}

fn load() -> f64 {
    proc::read("/proc/loadavg").and_then(|text| text.split(' ').next()?.parse().ok()).unwrap_or(0.0)
}

/// The word in brackets of a kernel file that lists choices: `always [madvise] never`.
#[must_use]
pub fn chosen(text: &str) -> String {
    let word = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word);
    word.unwrap_or(text).to_owned()
}

/// The directory, or the nearest of its parents that exists.
fn nearest(directory: &Path) -> PathBuf {
    let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let existing = absolute.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    proc::canonical(existing)
}
