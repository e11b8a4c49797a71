//! Which objects there are, where they lie, and what of each file is still needed.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

use terrane_base::{Error, Result};

use super::record::{Found, Header, Tag, padded};
use crate::bucket::Listed;

/// Where an object lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Object {
    /// The number of its file.
    pub(super) file: u64,
    /// Where its bytes begin there.
    pub(super) at: u64,
    pub(super) len: u64,
    /// Of its bytes.
    pub(super) checksum: u32,
    /// Microseconds since the Unix epoch.
    pub(super) modified: u64,
    /// Its bytes were damaged before they were copied here: no read takes them.
    pub(super) is_damaged: bool,
}

/// The use of a file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FileUse {
    /// Bytes of its records.
    pub(super) bytes: u64,
    /// Bytes of records whose object is there.
    pub(super) live: u64,
    pub(super) objects: u64,
}

/// Objects that one look visits: groups wait meanwhile.
pub(super) const PART: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) objects: BTreeMap<String, Object>,
    pub(super) files: BTreeMap<u64, FileUse>,
    /// How many objects lie in each folder itself; none that has no object.
    folders: BTreeMap<String, usize>,
}

/// Bytes of the record of an object.
fn record_bytes(name: &str, object: &Object) -> u64 {
    padded(Header::front_bytes(name) + object.len)
}

/// The folder of an object.
fn folder(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(folder, _)| folder)
}

impl Index {
    /// Counts a record of so many bytes.
    pub(super) fn grow(&mut self, file: u64, bytes: u64) {
        self.files.entry(file).or_default().bytes += bytes;
    }

    /// Adds an object, or moves it to where its copy lies.
    pub(super) fn add(&mut self, name: &str, object: Object) {
        self.remove(name);
        let used = self.files.entry(object.file).or_default();
        used.live += record_bytes(name, &object);
        used.objects += 1;
        debug_assert!(used.live <= used.bytes, "a record was counted before its object");
        match self.folders.get_mut(folder(name)) {
            Some(count) => *count += 1,
            None => _ = self.folders.insert(folder(name).to_owned(), 1),
        }
        self.objects.insert(name.to_owned(), object);
    }

    pub(super) fn remove(&mut self, name: &str) {
        let Some(object) = self.objects.remove(name) else { return };
        let used = self.files.get_mut(&object.file).expect("a file stays as long as it has objects");
        used.live -= record_bytes(name, &object);
        used.objects -= 1;
        let count =
            self.folders.get_mut(folder(name)).expect("a folder is counted as long as it has objects");
        *count -= 1;
        if *count == 0 {
            self.folders.remove(folder(name));
        }
    }

    /// How many objects lie in the folder of this name.
    pub(super) fn count_beside(&self, name: &str) -> usize {
        self.folders.get(folder(name)).copied().unwrap_or(0)
    }

    /// Takes a record that was found in the file `file`, with its payload at `at`; `names` are those of a
    /// deletion.
    ///
    /// # Errors
    /// `Corrupt` if it creates an object that is there.
    pub(super) fn replay(&mut self, found: &Found, names: &[&str], file: u64, at: u64) -> Result<()> {
        let Header { tag, len, checksum, modified, .. } = found.header;
        self.grow(file, padded(Header::front_bytes(&found.name) + len));
        match tag {
            Tag::Delete => names.iter().for_each(|name| self.remove(name)),
            Tag::Create if self.objects.contains_key(&found.name) => {
                return Err(Error::corrupt(format!("object {:?} is created a second time", found.name)));
            }
            Tag::Create | Tag::Copy | Tag::CopyDamaged => {
                let is_damaged = tag == Tag::CopyDamaged;
                self.add(&found.name, Object { file, at, len, checksum, modified, is_damaged });
            }
        }
        Ok(())
    }

    /// A part of the objects whose names begin with `start`: the first ones behind the name `after`. The last
    /// part of a list is shorter than [`PART`].
    pub(super) fn part(&self, start: &str, after: Option<&str>) -> Vec<Listed> {
        let from = after.filter(|after| *after > start);
        let from = from.map_or(Bound::Included(start), Bound::Excluded);
        let inside = self.objects.range::<str, _>((from, Bound::Unbounded));
        let listed = |(name, object): (&String, &Object)| Listed {
            name: name.clone(),
            bytes: object.len,
            modified: Duration::from_micros(object.modified),
        };
        inside.take_while(|(name, _)| name.starts_with(start)).take(PART).map(listed).collect()
    }

    /// Adds to `found` what lies in the file `file` of a part of the objects, the first ones behind the name
    /// `after`; returns the last name of the part, none if there is no further one.
    pub(super) fn part_in(
        &self,
        file: u64,
        after: Option<&str>,
        found: &mut Vec<(String, Object)>,
    ) -> Option<String> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut last = None;
        for (name, object) in self.objects.range::<str, _>((from, Bound::Unbounded)).take(PART) {
            if object.file == file {
                found.push((name.clone(), *object));
            }
            last = Some(name);
        }
        last.cloned()
    }

    /// The first file, unless it is the one that is written, and what it has.
    pub(super) fn front(&self, written: u64) -> Option<(u64, FileUse)> {
        self.files
            .iter()
            .next()
            .map(|(number, used)| (*number, *used))
            .filter(|(number, _)| *number != written)
    }

    /// Returns true if most of what the files have is no longer needed, but for `slack`.
    pub(super) fn is_wasteful(&self, slack: u64) -> bool {
        let (bytes, live) =
            self.files.values().fold((0, 0), |(bytes, live), used| (bytes + used.bytes, live + used.live));
        bytes > 2 * live + slack
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_counted_by_their_folders() {
        let mut index = Index::default();
        let object = Object { file: 1, at: 0, len: 1, checksum: 0, modified: 0, is_damaged: false };
        for name in ["db/journal/1", "db/journal/2", "db/other", "db/journal/1"] {
            index.grow(1, 1000);
            index.add(name, object);
        }
        assert_eq!(index.count_beside("db/journal/3"), 2, "a copy counts once");
        assert_eq!((index.count_beside("db/x"), index.count_beside("x")), (1, 0));
        index.remove("db/journal/1");
        index.remove("db/journal/1");
        assert_eq!(index.count_beside("db/journal/1"), 1);
        index.remove("db/journal/2");
        assert!(!index.folders.contains_key("db/journal"), "an empty folder is not kept");
    }
}
