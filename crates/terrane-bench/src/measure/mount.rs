//! The mount that has a directory: the mount point that is the longest prefix of its path
//! (`/proc/self/mountinfo`), and the device behind it, by its number in `/sys/dev/block`.

use std::path::{Path, PathBuf};

use super::proc;

/// One line of `/proc/self/mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// `major:minor` of the device.
    pub number: String,
    /// Where it is mounted.
    pub point: PathBuf,
    /// Options of this mount.
    pub options: String,
    /// Kind of the file system.
    pub kind: String,
    /// The source: a device, or a name.
    pub source: String,
    /// Options of the file system.
    pub super_options: String,
}

impl Mount {
    /// The mount that has a directory, which is there and has no links in its path.
    #[must_use]
    pub fn under(directory: &Path) -> Option<Mount> {
        Mount::find(&proc::read("/proc/self/mountinfo")?, directory)
    }

    /// The mount that has a path, in a text of `/proc/self/mountinfo`: the last of the longest matches, since
    /// a later mount on the same point hides the earlier.
    #[must_use]
    pub fn find(text: &str, path: &Path) -> Option<Mount> {
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

    /// The kind of the file system, with all options.
    #[must_use]
    pub fn file_system(&self) -> String {
        // Both lists begin with `rw` or `ro`; once is enough.
        let more =
            self.super_options.split(',').filter(|option| !self.options.split(',').any(|o| o == *option));
        let options: Vec<&str> = self.options.split(',').chain(more).collect();
        format!("{} ({})", self.kind, options.join(","))
    }

    /// The source, with the size, the model and the kind of the device.
    #[must_use]
    pub fn device(&self) -> String {
        let Some((facts, size)) = block_device(&self.number) else { return self.source.clone() };
        format!("{}{size}{facts}", self.source)
    }
}

/// Model and kind of a block device, and its size in words; `None` where the number is not a block device's.
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
