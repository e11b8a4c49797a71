//! A writer that comes while a view is made, between its reading of the manifest and its look at the lock.
#![allow(clippy::unwrap_used, reason = "a step that fails ends the test")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use terrane_base::env::Env;
use terrane_base::{Functions, Kind, Result};
use terrane_device::{Disk, DiskLock, File, MemDisk, OpenMode};
use terrane_engine::{Engine, Viewed};

use super::{all_rows, expected_rows, primary, write};
use crate::support::{DIR, open, small_options};

type Coming = Box<dyn FnOnce() + Send>;

/// A device at whose first look at the lock something comes first.
#[derive(Clone)]
struct LookedAt {
    inner: MemDisk,
    coming: Arc<Mutex<Option<Coming>>>,
    /// Times that `CURRENT` was opened: each reading of the manifest begins so.
    readings: Arc<AtomicU64>,
}

impl LookedAt {
    fn new(inner: &MemDisk, coming: impl FnOnce() + Send + 'static) -> Self {
        let coming: Coming = Box::new(coming);
        LookedAt {
            inner: inner.clone(),
            coming: Arc::new(Mutex::new(Some(coming))),
            readings: Arc::default(),
        }
    }

    fn view(&self) -> Viewed {
        let (disk, functions): (Arc<dyn Disk>, _) = (Arc::new(self.clone()), Functions::default());
        Viewed::of(&disk, Path::new(DIR), &small_options(), &Env::real(), &functions, None).unwrap()
    }
}

impl std::fmt::Debug for LookedAt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LookedAt")
    }
}

impl Disk for LookedAt {
    fn open(&self, path: &Path, mode: OpenMode, direct: bool) -> Result<Arc<dyn File>> {
        self.readings.fetch_add(u64::from(path.ends_with("CURRENT")), Ordering::Relaxed);
        self.inner.open(path, mode, direct)
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        self.inner.create_dir(path)
    }

    fn list(&self, path: &Path) -> Result<Vec<String>> {
        self.inner.list(path)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.inner.exists(path)
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf> {
        self.inner.real_path(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<bool> {
        self.inner.link(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.inner.remove(path)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.inner.sync_dir(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn DiskLock>> {
        self.inner.lock(path)
    }

    fn lock_shared(&self, path: &Path) -> Result<Option<Box<dyn DiskLock>>> {
        if let Some(coming) = self.coming.lock().take() {
            coming();
        }
        self.inner.lock_shared(path)
    }

    fn free_bytes(&self, path: &Path) -> Result<u64> {
        self.inner.free_bytes(path)
    }
}

/// A closed database of 100 rows that were set once.
fn closed() -> MemDisk {
    let disk = MemDisk::new();
    let engine = primary(disk.clone());
    write(&engine, 0, 100, 1);
    engine.close().unwrap();
    disk
}

/// Opens it for writing and sets the rows again.
fn write_again(disk: &MemDisk) -> Arc<Engine> {
    let engine = open(disk.clone(), &small_options()).unwrap();
    engine.set_background_paused(true);
    write(&engine, 0, 100, 2);
    engine
}

#[test]
fn a_writer_that_comes_in_front_of_the_look_is_seen_there() {
    let disk = closed();
    let (staying, writer) = (disk.clone(), Arc::new(Mutex::new(None)));
    let kept = writer.clone();
    let looked_at = LookedAt::new(&disk, move || *kept.lock() = Some(write_again(&staying)));
    let beside = looked_at.view();
    assert!(beside.writer.is_some_and(|busy| busy.kind() == Kind::Busy));
    assert_eq!((beside.attempts, looked_at.readings.load(Ordering::Relaxed)), (1, 2));
    assert!(all_rows(&beside.engine).unwrap() == expected_rows([1; 100]), "what was there at the beginning");
    writer.lock().take().unwrap().close().unwrap();
    assert!(all_rows(&looked_at.view().engine).unwrap() == expected_rows([2; 100]));
}

#[test]
fn a_writer_that_comes_and_goes_in_front_of_the_look_is_noticed() {
    let disk = closed();
    let passing = disk.clone();
    let looked_at = LookedAt::new(&disk, move || write_again(&passing).close().unwrap());
    let behind = looked_at.view();
    assert!(behind.writer.is_none());
    assert_eq!((behind.attempts, looked_at.readings.load(Ordering::Relaxed)), (2, 4));
    assert!(all_rows(&behind.engine).unwrap() == expected_rows([2; 100]));
}
