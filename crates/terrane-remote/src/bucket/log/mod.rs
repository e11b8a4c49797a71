//! A bucket in a log: objects one behind the other in few files, made durable by one sync for a group.
//!
//! For objects that are many and small, as those of a journal are. A creation is a record at the end of the
//! last file; all that came while a sync ran is written and synced together. Where the objects lie is in
//! memory; an opening reads it from the records. The format is `docs/format/object-log.md`.
//!
//! * `record.rs`: the bytes. * `scan.rs`: reads a file, judges its end. * `open.rs`: an opening.
//! * `write.rs`: changes, of which a group is made; `commit.rs`: its sync, and files that follow each other.
//! * `group.rs`: records that are not synced. * `index.rs`: objects that are there. * `clean.rs`: removes
//!   files whose objects are gone, and copies those that stay. `fuzzing.rs`: body of a fuzz target.
//!
//! Locks, in this order: `cleaning` while a file is emptied; `writer` while a group is written and synced, by
//! the thread that `queue` says is writing; `queue` and `index` for moments, never across a call of the disk.

mod clean;
mod commit;
pub(crate) mod fuzzing;
mod group;
mod index;
mod open;
mod record;
mod scan;
mod write;

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use terrane_base::env::Env;
use terrane_base::sync::atomic::{AtomicBool, Ordering};
use terrane_base::sync::{Condvar, Mutex};
use terrane_base::{Error, Kind, Result};
use terrane_device::{Disk, DiskLock, OpenMode, PosixDisk};

use self::group::Writer;
use self::index::{Index, Object};
use self::write::{Change, Queue};
use super::{Bucket, Create, Listed, Pending, names};

/// Reads of an object until its file counts as lost: the cleaning may have moved it.
const READS: u32 = 4;

/// Most objects of a folder, but for those beyond that are short: with them fewer than a list may have.
const FOLDER_OBJECTS_MAX: usize = names::LISTED_MAX / 40 * 39;

/// How a log lies in its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// Bytes of a file; one with a longer object has more. Default 64 MiB.
    pub file_bytes: u64,
    /// Most objects: a further one is refused as `Full`, unless it is short: with a short one a writer takes
    /// over, and trims. From half of them on writers are asked to trim all that is no longer needed. Each
    /// takes about 150 bytes of memory. Default 3,900,000, which is also the most for one folder.
    pub objects_max: usize,
}

impl Default for LogSettings {
    fn default() -> Self {
        LogSettings { file_bytes: 64 << 20, objects_max: FOLDER_OBJECTS_MAX }
    }
}

impl LogSettings {
    /// Bytes of a file that creations leave free, so that objects can be deleted where the device is full:
    /// the names of as many small objects as a file has take about as much.
    fn reserved_bytes(&self) -> u64 {
        self.file_bytes / 8
    }

    /// Bytes of these that deletions leave free, too: copies of what stays of a file, which can go then.
    fn copies_bytes(&self) -> u64 {
        self.reserved_bytes() / 16
    }

    fn check(&self) -> Result<()> {
        if !(4096..=1 << 40).contains(&self.file_bytes) || self.objects_max == 0 {
            return Err(Error::invalid(format!(
                "settings of an object log: file_bytes={} or objects_max={} is out of range: 4 KiB to 1 TiB, and 1 or more",
                self.file_bytes, self.objects_max
            )));
        }
        Ok(())
    }
}

/// Objects in the log of a directory. Clones are handles of the same log.
#[derive(Clone)]
pub struct LogBucket(Arc<Shared>);

struct Shared {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    url: String,
    env: Env,
    settings: LogSettings,
    /// Most objects of a folder.
    folder_objects_max: usize,
    index: Mutex<Index>,
    queue: Mutex<Queue>,
    /// Signalled when a group has ended.
    written: Condvar,
    writer: Mutex<Writer>,
    /// Why no file is removed any more, if it is so.
    cleaning: Mutex<Option<Error>>,
    /// The last file that was to be begun had no space: files are emptied sooner.
    is_full: AtomicBool,
    /// True if the writer's `failed` has an error, for a look that must not wait for a group.
    has_failed: AtomicBool,
    /// A trouble that an operator should know and that no caller gets as its error.
    trouble: Mutex<Option<Error>>,
    _lock: Box<dyn DiskLock>,
}

impl fmt::Debug for LogBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogBucket").field("url", &self.0.url).finish_non_exhaustive()
    }
}

impl LogBucket {
    /// Opens the log in a directory, which is made if it is missing. One process has it at a time.
    ///
    /// # Errors
    /// `Busy` if another process has it; `Corrupt`, naming file and offset, if what was durable is damaged or
    /// missing; `Invalid` if the directory has something else; `Full`, `Io`.
    pub fn open(disk: Arc<dyn Disk>, dir: &Path, settings: LogSettings, env: Env) -> Result<LogBucket> {
        settings.check()?;
        open::open(disk, dir, settings, env).map(|shared| LogBucket(Arc::new(shared)))
    }

    /// [`LogBucket::open`] in a directory of the operating system.
    ///
    /// # Errors
    /// As there.
    pub fn on_disk(dir: &Path, settings: LogSettings, env: Env) -> Result<LogBucket> {
        LogBucket::open(Arc::new(PosixDisk::new()), dir, settings, env)
    }

    /// Writes a record that says that all before it is durable, unless the last one is such a record: damage
    /// in front of it cannot look like a torn tail any more. For the end of the service.
    ///
    /// # Errors
    /// `Full`, `Io`: what was acknowledged is durable in any case.
    pub fn mark(&self) -> Result<()> {
        let queued = self.0.push(Change::Mark);
        self.0.wait(&queued).map(drop)
    }

    /// As [`LogBucket::mark`], if nothing was written since the last call: for a log that is idle.
    ///
    /// # Errors
    /// As there.
    pub fn mark_if_idle(&self) -> Result<()> {
        // A writer that is busy is not idle.
        let Some(mut writer) = self.0.writer.try_lock() else { return Ok(()) };
        let next = writer.next;
        let is_idle = std::mem::replace(&mut writer.looked, next) == next;
        let is_due = is_idle && writer.marked + 1 < writer.next && writer.failed.is_none();
        drop(writer);
        if is_due { self.mark() } else { Ok(()) }
    }

    /// The last thing that an operator should know and that no caller got, since the last call:
    /// files that cannot go, an object that was found damaged, a failed device.
    #[must_use]
    pub fn take_trouble(&self) -> Option<Error> {
        self.0.trouble.lock().take()
    }

    /// How many files it has, and their bytes of records.
    #[must_use]
    pub fn files(&self) -> (usize, u64) {
        let index = self.0.index.lock();
        (index.files.len(), index.files.values().map(|used| used.bytes).sum())
    }
}

/// Returns true if a directory is that of a log.
pub(super) fn has_log(dir: &Path) -> bool {
    let disk = PosixDisk::new();
    let names = disk.list(dir).unwrap_or_default();
    names.iter().any(|name| record::file_number(name).is_some())
}

impl Shared {
    fn object(&self, name: &str) -> Result<Object> {
        names::check(name)?;
        let found = self.index.lock().objects.get(name).copied();
        found.ok_or_else(|| super::missing(&self.url, name))
    }

    /// Reads ranges of an object, which `of` says for one of so many bytes.
    fn read(&self, name: &str, of: &dyn Fn(u64) -> Result<Vec<Range<u64>>>) -> Result<Vec<Bytes>> {
        for left in (0..READS).rev() {
            let object = self.object(name)?;
            let ranges = of(object.len)?;
            if object.is_damaged {
                let place = self.dir.join(record::file_name(object.file)).display().to_string();
                let text = format!("object {name:?} was damaged before it was copied: restore the directory");
                return Err(Error::corrupt(text).at(place, object.at));
            }
            match self.read_ranges(&object, &ranges) {
                // Moved by the cleaning since the look.
                Err(error) if error.kind() == Kind::NotFound && left > 0 => {}
                Err(error) if error.kind() == Kind::NotFound => return Err(error.with_kind(Kind::Corrupt)),
                read => return read,
            }
        }
        Err(super::missing(&self.url, name))
    }

    fn read_ranges(&self, object: &Object, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let path = self.dir.join(record::file_name(object.file));
        let file = self.disk.open(&path, OpenMode::Read, false)?;
        let one = |range: &Range<u64>| {
            let mut bytes = vec![0; (range.end - range.start) as usize];
            file.read_at(object.at + range.start, &mut bytes)?;
            let found = crc32c::crc32c(&bytes);
            if *range == (0..object.len) && found != object.checksum {
                let text =
                    format!("the checksum of an object: expected {:08x}, found {found:08x}", object.checksum);
                return Err(Error::corrupt(text).at(path.display().to_string(), object.at));
            }
            Ok(Bytes::from(bytes))
        };
        ranges.iter().map(one).collect()
    }

    fn note(&self, error: Error) {
        tracing::warn!(target: "terrane::log", %error, "trouble of a log");
        // An operator gets the first one, and traces have the others: what follows from it says less.
        self.trouble.lock().get_or_insert(error);
    }

    fn check_create(&self, name: &str, parts: &[Bytes]) -> Result<()> {
        names::check(name)?;
        super::check_parts(name, parts)?;
        let bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
        if bytes > record::OBJECT_BYTES_MAX {
            let most = record::OBJECT_BYTES_MAX;
            return Err(Error::invalid(format!("object {name:?} of {bytes} bytes: a log takes {most}")));
        }
        Ok(())
    }
}

impl Bucket for LogBucket {
    fn url(&self) -> &str {
        &self.0.url
    }

    fn syncs_groups(&self) -> bool {
        true
    }

    fn is_crowded(&self) -> bool {
        // Relaxed: it only decides how soon writers trim.
        let is_full = self.0.is_full.load(Ordering::Relaxed);
        is_full || self.0.index.lock().objects.len() >= self.0.settings.objects_max / 2
    }

    fn is_failed(&self) -> bool {
        // Relaxed: a look; a creation gets the error itself.
        self.0.has_failed.load(Ordering::Relaxed)
    }

    fn begin_create(&self, name: &str, parts: Vec<Bytes>) -> Pending<Create> {
        if let Err(error) = self.0.check_create(name, &parts) {
            return Pending::ready(Err(error));
        }
        let queued = self.0.push(Change::create(name, parts));
        let shared = Arc::clone(&self.0);
        Pending::new(move || shared.wait_created(&queued))
    }

    fn begin_get_ranges(&self, name: &str, ranges: Vec<Range<u64>>) -> Pending<Vec<Bytes>> {
        let of = |len: u64| {
            ranges.iter().try_for_each(|range| super::check_range(&self.0.url, name, range, len))?;
            Ok(ranges.clone())
        };
        Pending::ready(self.0.read(name, &of))
    }

    fn get_tail(&self, name: &str, bytes_max: u64) -> Result<Bytes> {
        let tail = |len: u64| Ok(std::iter::once(len.saturating_sub(bytes_max)..len).collect());
        let mut read = self.0.read(name, &tail)?;
        debug_assert_eq!(read.len(), 1, "one result for each range");
        Ok(read.pop().unwrap_or_default())
    }

    fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<Listed>> {
        names::check(folder)?;
        // In parts: groups go on between them. An object that is created or deleted meanwhile may be in the
        // list.
        let start = format!("{folder}/");
        let mut listed: Vec<Listed> = Vec::new();
        loop {
            let after = listed.last().map(|last| last.name.as_str()).or(after);
            let part = self.0.index.lock().part(&start, after);
            let is_last = part.len() < index::PART;
            listed.extend(part);
            super::check_listed(&self.0.url, folder, listed.len())?;
            if is_last {
                return Ok(listed);
            }
        }
    }

    fn delete(&self, names: &[String]) -> Result<()> {
        names.iter().try_for_each(|name| names::check(name))?;
        // In a small file there is room for few names.
        let most = (self.0.settings.copies_bytes() as usize / 128).clamp(16, write::NAMES_MAX);
        for some in names.chunks(most) {
            match self.0.delete_some(some) {
                // What went before may have emptied a file.
                Err(error) if error.kind() == Kind::Full => {
                    self.0.clean_after_deletion();
                    self.0.delete_some(some)?;
                }
                deleted => deleted?,
            }
        }
        self.0.clean_after_deletion();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use terrane_device::MemDisk;

    use super::*;

    /// A folder of more objects than a list may have could neither be listed nor trimmed any more.
    #[test]
    fn a_folder_takes_at_most_the_objects_of_one_list() {
        let disk = Arc::new(MemDisk::new());
        let settings = LogSettings::default();
        let opened = open::open(disk, Path::new("/log"), settings, Env::real()).expect("opens");
        let log = LogBucket(Arc::new(Shared { folder_objects_max: 4, ..opened }));
        let long = [7; 129];
        for number in 0..4 {
            assert_eq!(log.create(&format!("db/journal/{number}"), &long).expect("created"), Create::Created);
        }
        let error = log.create("db/journal/4", &long).expect_err("a list is full");
        assert!(error.kind() == Kind::Full && error.to_string().contains("4 in this folder"), "{error}");
        log.create("other/journal/4", &long).expect("each folder is counted by itself");
        log.create("db/journal/below/4", &long).expect("an object below a folder belongs to another one");
        // Fences, and not any number of them.
        let fences =
            (0..100).take_while(|at| log.create(&format!("db/journal/fence{at}"), &[7; 128]).is_ok());
        assert_eq!(fences.count(), 16);
        log.delete(&["db/journal/0", "db/journal/fence0"].map(str::to_owned)).expect("deleted");
        log.create("db/journal/4", &long).expect_err("as many as before, but for two");
        let names: Vec<String> = (0..16).map(|at| format!("db/journal/fence{at}")).collect();
        log.delete(&names).expect("deleted");
        log.create("db/journal/4", &long).expect("there is room again");
        let (short, most) = (FOLDER_OBJECTS_MAX / 40 + 16, names::LISTED_MAX);
        assert!(FOLDER_OBJECTS_MAX + short < most, "with all that are short a list has them");
    }

    /// Later troubles that follow from it come each second, and would hide it.
    #[test]
    fn the_first_trouble_is_kept_until_it_is_taken() {
        let log =
            LogBucket::open(Arc::new(MemDisk::new()), Path::new("/log"), LogSettings::default(), Env::real());
        let log = log.expect("opens");
        ["first", "second"].into_iter().for_each(|text| log.0.note(Error::corrupt(text)));
        let trouble = log.take_trouble().expect("it was noted").to_string();
        assert!(trouble.contains("first") && log.take_trouble().is_none(), "{trouble}");
        log.0.note(Error::corrupt("third"));
        assert!(log.take_trouble().expect("it was noted").to_string().contains("third"));
    }
}
