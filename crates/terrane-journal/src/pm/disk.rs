//! A disk whose segment files lie in persistent memory.
//!
//! Files `NNNNNN.seg` of one directory are zones, and the number in the name is the zone's owner; everything
//! else is on the disk beneath, and so are segment files that were there before, or that were made when
//! persistent memory was full. So all that reads segments as files (replay, scan, change feed, history,
//! check, copies) reads them in persistent memory as well.
//!
//! A zone is granted, durably, when its file is allocated, and given back when its file is removed and no
//! handle or mapping of it is left. A zone whose file was removed before a crash, or that was granted just
//! before it, is an ordinary file after the next opening: one that no segment uses, which the opener of the
//! journal reuses or removes. Nothing leaks.
//!
//! Which thread may touch what: the names are behind one lock, which is not held while memory is accessed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_base::sync::Mutex;
use terrane_base::{Error, Result};
use terrane_device::pm::PmRegion;
use terrane_device::{Disk, DiskLock, File, FileRead, OpenMode, PendingRead};
use terrane_pmem::{Halloc, Zone};

use super::zone_file::{Held, ZoneFile};
use crate::file_number;

/// See the head of the file.
pub struct ZoneDisk<R: PmRegion> {
    base: Arc<dyn Disk>,
    /// The directory of segments.
    dir: PathBuf,
    halloc: Arc<Halloc<R>>,
    falls_back: bool,
    numbers: Arc<Mutex<BTreeSet<u32>>>,
    named: Mutex<BTreeMap<u32, Arc<Held<R>>>>,
}

impl<R: PmRegion> fmt::Debug for ZoneDisk<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZoneDisk").field("dir", &self.dir).field("base", &self.base).finish_non_exhaustive()
    }
}

impl<R: PmRegion + 'static> ZoneDisk<R> {
    /// The disk `base` with the segment files of its directory `dir` in the region of `halloc`, where an
    /// opening found `zones`. With `falls_back`, a file that persistent memory has no room for is made on
    /// `base`.
    ///
    /// # Errors
    /// `Corrupt` if two zones have one owner.
    pub fn new(
        base: Arc<dyn Disk>,
        dir: &Path,
        halloc: Halloc<R>,
        zones: Vec<Zone>,
        falls_back: bool,
    ) -> Result<Self> {
        let (halloc, numbers) = (Arc::new(halloc), Arc::new(Mutex::new(BTreeSet::new())));
        let mut named = BTreeMap::new();
        for zone in zones {
            let number = zone.owner().0;
            if named.contains_key(&number) {
                let message = format!("two zones belong to segment file {number}");
                return Err(Error::corrupt(message).at("persistent memory", zone.offset()));
            }
            let held = Held::new(halloc.clone(), numbers.clone(), number, Some(zone));
            named.insert(number, Arc::new(held));
        }
        assert!(numbers.lock().len() == named.len(), "each zone that was found has a name");
        Ok(ZoneDisk { base, dir: dir.to_owned(), halloc, falls_back, numbers, named: Mutex::new(named) })
    }

    /// The allocator.
    #[must_use]
    pub fn halloc(&self) -> &Arc<Halloc<R>> {
        &self.halloc
    }

    /// The number in the path of a segment file of the directory.
    fn number(&self, path: &Path) -> Option<u32> {
        if path.parent() != Some(&self.dir) {
            return None;
        }
        file_number(path.file_name()?.to_str()?)
    }

    /// The file in persistent memory with this path.
    fn held(&self, path: &Path) -> Option<Arc<Held<R>>> {
        self.number(path).and_then(|number| self.named.lock().get(&number).cloned())
    }

    fn handle(&self, held: Arc<Held<R>>, path: &Path) -> Arc<dyn File> {
        debug_assert!(self.number(path) == Some(held.number), "{path:?} names another file");
        let fallback = self.falls_back.then(|| self.base.clone());
        Arc::new(ZoneFile::new(held, path.to_owned(), fallback))
    }

    fn create(&self, number: u32, path: &Path) -> Result<Arc<dyn File>> {
        let refuse = |why: &str| Err(Error::invalid(why).at(path.display().to_string(), 0));
        if self.base.exists(path)? {
            return refuse("the segment file exists already");
        }
        debug_assert!(number > 0, "0 is the number of a segment without a file");
        let mut named = self.named.lock();
        if named.contains_key(&number) || self.numbers.lock().contains(&number) {
            return refuse("the segment file exists already in persistent memory, or is still mapped");
        }
        let held = Arc::new(Held::new(self.halloc.clone(), self.numbers.clone(), number, None));
        named.insert(number, held.clone());
        drop(named);
        Ok(self.handle(held, path))
    }

    fn refuse_zone(&self, path: &Path, what: &str) -> Result<()> {
        match self.held(path) {
            Some(held) if !held.is_file() => Err(Error::invalid(format!(
                "a segment file in persistent memory cannot be {what}: it is a zone of the pool"
            ))
            .at(path.display().to_string(), 0)),
            _ => Ok(()),
        }
    }
}

impl<R: PmRegion + 'static> Disk for ZoneDisk<R> {
    fn open(&self, path: &Path, mode: OpenMode, direct: bool) -> Result<Arc<dyn File>> {
        match (self.number(path), mode) {
            (Some(number), OpenMode::Create) => self.create(number, path),
            (Some(_), _) => match self.held(path) {
                Some(held) => Ok(self.handle(held, path)),
                None => self.base.open(path, mode, direct),
            },
            (None, _) => self.base.open(path, mode, direct),
        }
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        self.base.create_dir(path)
    }

    fn list(&self, path: &Path) -> Result<Vec<String>> {
        let mut names = self.base.list(path)?;
        if path == self.dir {
            names.extend(self.named.lock().keys().map(|number| crate::file_name(*number)));
            names.sort_unstable();
            names.dedup();
            debug_assert!(names.is_sorted_by(|a, b| a < b), "a file is listed once");
        }
        Ok(names)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        if self.held(path).is_some() { Ok(true) } else { self.base.exists(path) }
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf> {
        self.base.real_path(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.refuse_zone(from, "renamed")?;
        self.refuse_zone(to, "replaced")?;
        self.base.rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<bool> {
        match self.held(from) {
            // As on a file system without second names: the caller copies.
            Some(held) if !held.is_file() => Ok(false),
            _ => self.base.link(from, to),
        }
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let held = self.number(path).and_then(|number| self.named.lock().remove(&number));
        match held {
            Some(held) => {
                debug_assert!(self.numbers.lock().contains(&held.number), "a file with a name is held");
                held.remove();
                if held.is_file() { self.base.remove(path) } else { Ok(()) }
            }
            None => self.base.remove(path),
        }
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.base.sync_dir(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn DiskLock>> {
        self.base.lock(path)
    }

    fn lock_shared(&self, path: &Path) -> Result<Option<Box<dyn DiskLock>>> {
        self.base.lock_shared(path)
    }

    fn free_bytes(&self, path: &Path) -> Result<u64> {
        self.base.free_bytes(path)
    }

    fn read_batch(&self, reads: &mut [FileRead<'_>]) {
        self.base.read_batch(reads);
    }

    fn begin_read(
        &self,
        file: &Arc<dyn File>,
        offset: u64,
        len: usize,
        memory: Vec<u8>,
    ) -> Box<dyn PendingRead> {
        self.base.begin_read(file, offset, len, memory)
    }

    fn beneath(&self) -> Option<Arc<dyn Disk>> {
        self.base.beneath()
    }

    fn has_lines(&self) -> bool {
        self.halloc.region().has_cheap_fences()
    }

    fn is_public(&self) -> bool {
        self.base.is_public()
    }

    fn check_ring(&self) -> Result<()> {
        self.base.check_ring()
    }

    fn ring_reads(&self) -> u64 {
        self.base.ring_reads()
    }
}
