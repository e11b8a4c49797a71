//! A bucket in a directory of a file system.
//!
//! An object is written to a file of its own in `.partial`, synced, and linked to its name: a link is refused
//! if the name is taken, so that of several writers one wins, and no reader finds half of an object. Then the
//! directories are synced. (The directory store of the crate `object_store` syncs nothing.)
//!
//! From the link on an error is `Io`: the object may be there. A directory whose sync failed is not relied on
//! again: the system may have dropped what was to be written and say of the next sync that all is well. No
//! creation in it succeeds until the bucket is opened again.
//!
//! A file that a dead writer left in `.partial` is removed when it is older than a day.
#![expect(clippy::disallowed_methods, reason = "objects of a bucket, whose faults another bucket stands for")]

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use terrane_base::env::Env;
use terrane_base::sync::Mutex;
use terrane_base::{Error, Kind, Result};

use super::{Bucket, Create, Listed, Pending, names};

/// The directory of files that are being written; no name of an object begins with it.
const PARTIAL: &str = ".partial";
/// Age of a file in it that no writer can be writing any more.
const PARTIAL_AGE_MAX: Duration = Duration::from_secs(24 * 3600);

/// Objects as files of a directory, with the part before the last slash of their names as directories.
#[derive(Debug)]
pub struct DirectoryBucket {
    root: PathBuf,
    url: String,
    env: Env,
    /// Directories whose own entries this bucket has synced.
    synced: Mutex<BTreeSet<PathBuf>>,
    /// Directories of which a sync failed.
    failed: Mutex<BTreeSet<PathBuf>>,
    /// Syncs an open directory; tests let it fail.
    sync: fn(&File, &Path) -> io::Result<()>,
}

impl DirectoryBucket {
    /// Opens the bucket in `root`; the directory is created if it is missing.
    ///
    /// # Errors
    /// `Invalid` if the file system has no room for names or denies access; `Io`.
    pub fn open(root: &Path, env: Env) -> Result<Self> {
        DirectoryBucket::open_with(root, env, |opened, _| opened.sync_all())
    }

    fn open_with(root: &Path, env: Env, sync: fn(&File, &Path) -> io::Result<()>) -> Result<Self> {
        if super::log::has_log(root) {
            let text = format!("{} has the log of a journal service: use another directory", root.display());
            return Err(Error::invalid(text));
        }
        let is_new = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
        let new = root.ancestors().take_while(is_new).count();
        let partial = root.join(PARTIAL);
        fs::create_dir_all(&partial).map_err(|why| failed("make the directory", &partial, why))?;
        let root = root.canonicalize().map_err(|why| failed("find", root, why))?;
        let url = format!("file://{}", root.display());
        let (synced, failed) = Default::default();
        let bucket = DirectoryBucket { root, url, env, synced, failed, sync };
        bucket.sync_above(new)?;
        bucket.remove_old_partials()?;
        Ok(bucket)
    }

    /// Makes the entry of the root durable, and those of what was made above it: `new` directories in all.
    fn sync_above(&self, new: usize) -> Result<()> {
        assert!(self.root.is_absolute(), "every directory above it is in its path");
        let count = if terrane_base::planted!(SkipBucketRootSync) { 0 } else { new.max(1) };
        for (at, above) in self.root.ancestors().skip(1).take(count).enumerate() {
            let synced = File::open(above).and_then(|opened| (self.sync)(&opened, above));
            match synced {
                // One that was there before may lie on a device that does not sync, or be another user's; one
                // whose maker died before its sync is synced here if that is possible.
                Err(why) if at < new => return Err(failed("sync the directory", above, why)),
                _ => {}
            }
        }
        Ok(())
    }

    fn remove_old_partials(&self) -> Result<()> {
        let now = self.env.clock.wall();
        for file in self.entries(&self.root.join(PARTIAL))? {
            let age = file.metadata().map_or(Duration::ZERO, |data| now.saturating_sub(modified(&data)));
            if age > PARTIAL_AGE_MAX {
                // Another opening may have removed it.
                let _ = fs::remove_file(file.path());
            }
        }
        Ok(())
    }

    fn path(&self, name: &str) -> Result<PathBuf> {
        names::check(name)?;
        if name.split('/').any(|part| part == PARTIAL) {
            return Err(Error::invalid(format!("object name {name:?}: {PARTIAL} is taken")));
        }
        Ok(self.root.join(name))
    }

    /// The entries of a directory; none if it does not exist.
    fn entries(&self, directory: &Path) -> Result<Vec<fs::DirEntry>> {
        let entries = match fs::read_dir(directory) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|why| failed("list", directory, why))?,
        };
        entries.collect::<io::Result<_>>().map_err(|why| failed("list", directory, why))
    }

    fn create_now(&self, name: &str, parts: &[Bytes]) -> Result<Create> {
        let path = self.path(name)?;
        super::check_parts(name, parts)?;
        if path.try_exists().map_err(|why| failed("look for", &path, why))? {
            // Its creator may have died, or failed, before the entry was durable.
            self.sync_entry(path.parent().unwrap_or(&self.root))?;
            return Ok(Create::AlreadyExists);
        }
        let partial = self.root.join(PARTIAL).join(format!("{:016x}", self.env.random.next_u64()));
        let created = self.write_and_link(&path, &partial, parts);
        // If it stays, a later opening removes it.
        let _ = fs::remove_file(&partial);
        created
    }

    fn write_and_link(&self, path: &Path, partial: &Path, parts: &[Bytes]) -> Result<Create> {
        let directory = path.parent().unwrap_or(&self.root);
        self.make_directories(directory)?;
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(partial)
            .map_err(|why| failed("create", partial, why))?;
        let written = parts.iter().try_for_each(|part| file.write_all(part));
        written.and_then(|()| file.sync_all()).map_err(|why| failed("write", partial, why))?;
        let created = match fs::hard_link(partial, path) {
            Ok(()) => Create::Created,
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => Create::AlreadyExists,
            Err(why) => return Err(failed("link", path, why)),
        };
        // In both cases: the caller goes by what it learns, so the name must not vanish.
        self.sync_entry(directory)?;
        Ok(created)
    }

    /// Makes a directory durable, with those above it.
    fn make_directories(&self, directory: &Path) -> Result<()> {
        if self.synced.lock().contains(directory) {
            return Ok(());
        }
        fs::create_dir_all(directory).map_err(|why| failed("make the directory", directory, why))?;
        // Also if it was there: the process that made it may have died before its entry was durable.
        let within = directory.ancestors().skip(1).take_while(|parent| parent.starts_with(&self.root));
        within.map(Path::to_path_buf).try_for_each(|parent| self.sync_directory(&parent))?;
        self.synced.lock().insert(directory.to_owned());
        Ok(())
    }

    /// Syncs the directory of an object that is there. An error is `Io`, whatever its cause: to the caller
    /// the outcome is unknown.
    fn sync_entry(&self, directory: &Path) -> Result<()> {
        self.sync_directory(directory).map_err(|error| error.with_kind(Kind::Io))
    }

    fn sync_directory(&self, directory: &Path) -> Result<()> {
        debug_assert!(directory.starts_with(&self.root), "the bucket syncs its own directories only");
        let opened = File::open(directory).map_err(|why| failed("open the directory", directory, why))?;
        // Held during the sync: of two syncs at once one may return the failure of both.
        let mut unsure = self.failed.lock();
        if unsure.contains(directory) {
            let message = format!(
                "a sync of the directory {} failed before: open the bucket again, after a look at its device",
                directory.display()
            );
            return Err(Error::new(Kind::Io, message));
        }
        (self.sync)(&opened, directory).map_err(|why| {
            unsure.insert(directory.to_owned());
            failed("sync the directory", directory, why)
        })
    }

    fn open_object(&self, name: &str) -> Result<(File, u64)> {
        let path = self.path(name)?;
        let file = match File::open(&path) {
            Err(why) if matches!(why.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Err(super::missing(&self.url, name));
            }
            file => file.map_err(|why| failed("open", &path, why))?,
        };
        let data = file.metadata().map_err(|why| failed("open", &path, why))?;
        if data.is_dir() {
            return Err(super::missing(&self.url, name));
        }
        Ok((file, data.len()))
    }

    fn read(&self, name: &str, file: &mut File, range: Range<u64>) -> Result<Bytes> {
        let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let mut bytes = vec![0; len];
        let read = file.seek(SeekFrom::Start(range.start)).and_then(|_| file.read_exact(&mut bytes));
        read.map_err(|why| failed("read", &self.root.join(name), why))?;
        Ok(bytes.into())
    }

    fn ranges(&self, name: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let (mut file, len) = self.open_object(name)?;
        let one = |range: &Range<u64>| {
            super::check_range(&self.url, name, range, len)?;
            self.read(name, &mut file, range.clone())
        };
        ranges.iter().map(one).collect()
    }

    /// Adds the objects below a directory, whose name is `folder`.
    fn collect(&self, folder: &str, after: &str, listed: &mut Vec<Listed>) -> Result<()> {
        for entry in self.entries(&self.root.join(folder))? {
            let Some(part) = entry.file_name().to_str().map(str::to_owned) else { continue };
            let name = format!("{folder}/{part}");
            // An object may go while the directory is listed.
            let Ok(data) = entry.metadata() else { continue };
            if entry.file_name() == OsStr::new(PARTIAL) || names::check(&name).is_err() {
                continue;
            }
            if data.is_dir() {
                self.collect(&name, after, listed)?;
            } else if name.as_str() > after {
                listed.push(Listed { name, bytes: data.len(), modified: modified(&data) });
            }
            super::check_listed(&self.url, folder, listed.len())?;
        }
        Ok(())
    }
}

impl Bucket for DirectoryBucket {
    fn url(&self) -> &str {
        &self.url
    }

    fn begin_create(&self, name: &str, parts: Vec<Bytes>) -> Pending<Create> {
        Pending::ready(self.create_now(name, &parts))
    }

    fn begin_get_ranges(&self, name: &str, ranges: Vec<Range<u64>>) -> Pending<Vec<Bytes>> {
        Pending::ready(self.ranges(name, &ranges))
    }

    fn get_tail(&self, name: &str, bytes_max: u64) -> Result<Bytes> {
        let (mut file, len) = self.open_object(name)?;
        self.read(name, &mut file, len.saturating_sub(bytes_max)..len)
    }

    fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<Listed>> {
        self.path(folder)?;
        let mut listed = Vec::new();
        self.collect(folder, after.unwrap_or(""), &mut listed)?;
        listed.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(listed)
    }

    fn delete(&self, names: &[String]) -> Result<()> {
        let paths = names.iter().map(|name| self.path(name)).collect::<Result<Vec<_>>>()?;
        for path in paths {
            match fs::remove_file(&path) {
                Err(why) if why.kind() != io::ErrorKind::NotFound => {
                    return Err(failed("remove", &path, why));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn modified(data: &fs::Metadata) -> Duration {
    data.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default()
}

/// An error of the file system with its remedy.
#[cold]
fn failed(what: &str, path: &Path, why: io::Error) -> Error {
    let kind = why.kind();
    let error = Error::io(format!("cannot {what} {}", path.display()), why);
    match kind {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            error.with_kind(Kind::Full).context("free space on the device of the bucket")
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            error.with_kind(Kind::Invalid).context("give this user the right to write there")
        }
        io::ErrorKind::Unsupported => {
            error.with_kind(Kind::Invalid).context("use a file system whose files can have two names")
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bucket whose first sync of the directory of objects fails for want of space.
    fn failing() -> (tempfile::TempDir, DirectoryBucket) {
        let root = tempfile::tempdir().expect("a temporary directory");
        let mut bucket = DirectoryBucket::open(root.path(), Env::real()).expect("opens");
        bucket.sync = |opened, directory| match directory.ends_with("db") {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => opened.sync_all(),
        };
        (root, bucket)
    }

    #[test]
    fn an_error_behind_the_link_leaves_the_outcome_open_and_no_later_sync_hides_it() {
        let (root, mut bucket) = failing();
        let error = bucket.create("db/1", b"a").expect_err("its entry is not durable");
        assert_eq!(error.kind(), Kind::Io, "the object is there: {error}");
        assert_eq!(bucket.get("db/1", 9).expect("there"), "a");
        // The system would say now that all is well.
        bucket.sync = |opened, _| opened.sync_all();
        for name in ["db/1", "db/2"] {
            let error = bucket.create(name, b"a").expect_err("the sync before failed");
            assert!(error.kind() == Kind::Io && error.to_string().contains("again"), "{error}");
        }
        bucket.create("other/1", b"a").expect("another directory");
        let again = DirectoryBucket::open(root.path(), Env::real()).expect("opens");
        assert_eq!(again.create("db/1", b"a").expect("synced"), Create::AlreadyExists);
    }

    thread_local! {
        static SYNCED: std::cell::RefCell<Vec<PathBuf>> = const { std::cell::RefCell::new(Vec::new()) };
    }

    fn noting(opened: &File, directory: &Path) -> io::Result<()> {
        SYNCED.with_borrow_mut(|synced| synced.push(directory.to_owned()));
        opened.sync_all()
    }

    #[test]
    fn the_directory_of_a_new_bucket_is_durable_before_an_object_is_acknowledged() {
        let within = tempfile::tempdir().expect("a temporary directory");
        let top = within.path().canonicalize().expect("it is there");
        let root = top.join("a/b");
        DirectoryBucket::open_with(&root, Env::real(), noting).expect("opens");
        assert_eq!(SYNCED.take(), [top.join("a"), top], "the directories that have a new entry");
        // The process that made it may have died before its sync.
        DirectoryBucket::open_with(&root, Env::real(), noting).expect("opens");
        assert_eq!(SYNCED.take(), [root.parent().expect("it has one")]);
        let failing = |_: &File, _: &Path| Err(io::ErrorKind::StorageFull.into());
        DirectoryBucket::open_with(&root, Env::real(), failing).expect("it was there before");
        DirectoryBucket::open_with(&root.join("c"), Env::real(), failing).expect_err("it is not durable");
    }

    #[test]
    fn an_object_that_is_there_is_synced_before_its_creation_is_refused() {
        let (_root, bucket) = failing();
        fs::create_dir(bucket.root.join("db")).expect("new");
        fs::write(bucket.root.join("db/1"), b"a").expect("by a writer that died");
        assert_eq!(bucket.create("db/1", b"b").expect_err("not durable").kind(), Kind::Io);
    }
}
