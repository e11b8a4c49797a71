//! The machine under a run: what a reader must know before comparing figures.
//!
//! Everything comes from the kernel; a field that it does not tell is empty. The device is found through the
//! mount point that is the longest prefix of the database directory (`/proc/self/mountinfo`), then by its
//! number in `/sys/dev/block`.

use std::path::{Path, PathBuf};

use super::{hardware, proc};
use crate::error::{Error, Result};
use crate::report::model::Machine;

/// Describes the machine and what is under `directory`, which need not exist yet.
#[must_use]
pub fn describe(directory: &Path) -> Machine {
    let cpu_info = proc::read("/proc/cpuinfo").unwrap_or_default();
    let memory_info = proc::read("/proc/meminfo").unwrap_or_default();
    let mount = Mount::under(directory);
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
    let told = rustix::fs::statvfs(&directory)
        .map_err(|error| Error::io("ask for free space on", &directory, error))?;
    Ok(told.f_bavail.saturating_mul(told.f_frsize))
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

/// x86 says `model name`; arm64 says it nowhere, so its part numbers stand in.
fn cpu_name(info: &str) -> String {
    if let Some(name) = proc::field(info, "model name").or_else(|| proc::field(info, "Model")) {
        return name.to_owned();
    }
    match (proc::field(info, "CPU implementer"), proc::field(info, "CPU part")) {
        (Some(implementer), Some(part)) => format!("implementer {implementer} part {part}"),
        _ => String::new(),
    }
}

fn kernel() -> String {
    let told = rustix::system::uname();
    let parts = [told.sysname(), told.release(), told.machine()];
    parts.map(|part| part.to_string_lossy().into_owned()).join(" ")
}

fn load() -> f64 {
    proc::read("/proc/loadavg").and_then(|text| text.split(' ').next()?.parse().ok()).unwrap_or(0.0)
}

/// The word in brackets of a kernel file that lists choices: `always [madvise] never`.
fn chosen(text: &str) -> String {
    let word = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word);
    word.unwrap_or(text).to_owned()
}

/// The directory, or the nearest of its parents that exists.
fn nearest(directory: &Path) -> PathBuf {
    let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let existing = absolute.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    proc::canonical(existing)
}

/// One line of `/proc/self/mountinfo`.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    /// `major:minor` of what is mounted.
    number: String,
    point: PathBuf,
    /// Options of this mount.
    options: String,
    kind: String,
    source: String,
    /// Options of the file system.
    super_options: String,
}

impl Mount {
    fn under(directory: &Path) -> Option<Mount> {
        Mount::find(&proc::read("/proc/self/mountinfo")?, &nearest(directory))
    }

    /// The last of the longest matches: a later mount on the same point hides the earlier.
    fn find(text: &str, path: &Path) -> Option<Mount> {
        text.lines()
            .filter_map(Mount::parse)
            .filter(|mount| path.starts_with(&mount.point))
            .max_by_key(|mount| mount.point.components().count())
    }

    /// `36 35 98:0 /root /point options [optional fields] - type source super-options`.
    fn parse(line: &str) -> Option<Mount> {
        let (mount, system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(2);
        let number = mount.next()?.to_owned();
        let point = PathBuf::from(unescape(mount.nth(1)?));
        let options = mount.next()?.to_owned();
        let mut system = system.splitn(3, ' ');
        let kind = system.next()?.to_owned();
        let source = unescape(system.next()?);
        Some(Mount { number, point, options, kind, source, super_options: system.next()?.to_owned() })
    }

    fn file_system(&self) -> String {
        // Both lists begin with `rw` or `ro`; once is enough.
        let more =
            self.super_options.split(',').filter(|option| !self.options.split(',').any(|o| o == *option));
        let options: Vec<&str> = self.options.split(',').chain(more).collect();
        format!("{} ({})", self.kind, options.join(","))
    }

    fn device(&self) -> String {
        let Some((facts, size)) = block_device(&self.number) else { return self.source.clone() };
        format!("{}{size}{facts}", self.source)
    }
}

/// Model and kind of a block device, and its size in words; `None` where the number is no block device's.
fn block_device(number: &str) -> Option<(String, String)> {
    let path = proc::canonical(&PathBuf::from(format!("/sys/dev/block/{number}")));
    let sectors: u64 = proc::read(path.join("size"))?.parse().ok()?;
    // A partition has no queue of its own: its disk is the directory above.
    let disk = if path.join("queue").exists() { path.as_path() } else { path.parent()? };
    let mut facts = String::new();
    if let Some(model) = proc::read(disk.join("device/model")) {
        facts = format!(", {}", model.trim());
    }
    match proc::read(disk.join("queue/rotational")).as_deref() {
        Some("0") => facts.push_str(", says it does not rotate"),
        Some("1") => facts.push_str(", says it rotates"),
        _ => {}
    }
    Some((facts, format!(", {} GiB", (sectors * 512) >> 30)))
}

/// Undoes the octal escapes (`\040`) of `mountinfo`.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        plain.push_str(before);
        match after.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                plain.push(char::from(byte));
                rest = &after[3..];
            }
            None => {
                plain.push('\\');
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
28 27 254:1 / /data\\040set rw,noatime - xfs /dev/vdb1 rw,attr2
29 27 0:24 / /data rw - tmpfs tmpfs rw,size=1k
30 27 0:25 / /data rw - tmpfs second rw,size=2k
broken line";

    #[test]
    fn the_longest_and_latest_mount_wins() {
        let find = |path: &str| Mount::find(MOUNTS, Path::new(path)).map(|mount| mount.source);
        assert_eq!(find("/srv/x").as_deref(), Some("/dev/vda"));
        assert_eq!(find("/data set/x").as_deref(), Some("/dev/vdb1"));
        assert_eq!(find("/data/x").as_deref(), Some("second"));
        assert_eq!(find("/database").as_deref(), Some("/dev/vda"), "a prefix of a name is no parent");
    }

    #[test]
    fn options_are_shown_once() {
        let mount = Mount::find(MOUNTS, Path::new("/")).expect("the root is mounted");
        assert_eq!(mount.file_system(), "ext4 (rw,relatime,discard)");
    }

    #[test]
    fn escapes_and_choices_are_read() {
        assert_eq!(unescape("a\\040b\\134c\\x"), "a b\\c\\x");
        assert_eq!(chosen("always [madvise] never"), "madvise");
        assert_eq!(chosen(""), "");
        assert_eq!(cpu_name("CPU implementer : 0x41\nCPU part : 0xd0c"), "implementer 0x41 part 0xd0c");
    }
}
