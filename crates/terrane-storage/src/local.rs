//! The store in a directory of a local device.
//!
//! # Which work holds which lock
//! 1. `space` and `files` are held for work in memory only, never across a call to the device.
//! 2. `layout` is held across device calls that change which slots exist or have space: growth, shrinking,
//!    removal, punching. Only [`Store::allocate`] waits for it.
//! 3. `sync` is held across syncs: a second caller must not return before the first has made its bytes
//!    durable.
//!
//! 4. `held` is held for work in memory only.
//!
//! Lock order: `sync`, `layout`, `held`, then `space` or `files`, never both of these.

mod adopt;
mod copy;
mod ends;
mod grow;
mod reclaim;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::OnceLock;
use terrane_base::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use terrane_base::options::IoUring;
use terrane_base::sync::{Mutex, MutexGuard, RwLock};
use terrane_base::{Error, ExtentId, Kind, Result, verify};
use terrane_device::{Disk, OpenMode, PendingRead};

use crate::data_file::{self, DataFile, slot_offset};
use crate::settings::StoreSettings;
use crate::slots::FILE_SLOTS;
use crate::space::{Reserve, Space, cut_short};
use crate::store::{EXTENT_SLOTS_MAX, ReadRequest, SLOT_BYTES, Store, StoreCopy, StoreUsage};

/// Most runs that one sync frees on the device: callers wait for a sync, and a punch costs tens of
/// microseconds (`benches/device.rs` of the device crate).
const SYNC_RECLAIM_RUNS: usize = 64;

/// A store in a directory of a local device.
#[derive(Debug)]
pub struct LocalStore {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    settings: StoreSettings,
    files: RwLock<BTreeMap<u32, Arc<DataFile>>>,
    space: Mutex<Accounting>,
    layout: Mutex<()>,
    sync: Mutex<()>,
    /// True if files were created or removed since the last sync of the directory.
    dir_dirty: AtomicBool,
    /// The first failure of a sync.
    poison: OnceLock<Error>,
    held: Mutex<Held>,
    /// The file at which the next check for removed second names starts.
    next_look: AtomicU32,
}

/// The counts of the space.
#[derive(Debug)]
struct Accounting {
    space: Space,
    state: State,
}

/// Extents that were freed while a copy is being made.
#[derive(Debug, Default)]
struct Held {
    /// Number of running copies.
    count: u32,
    freed: Vec<(ExtentId, u32)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// There are data files, but it is not known yet which extents exist in them.
    Unknown,
    /// There is no data file. A restore is not needed, but restoring nothing is allowed.
    Empty,
    /// Restored, or written to.
    Open,
}

impl LocalStore {
    /// Opens the store in `dir`, an existing directory. If there are data files, [`Store::restore`] must
    /// follow before space can be allocated.
    ///
    /// # Errors
    /// `NotFound` if the directory is missing; `Corrupt` if a data file is longer than the limit; `Invalid`
    /// if io_uring is required and not available; `Io`.
    pub fn open(disk: Arc<dyn Disk>, dir: &Path, settings: StoreSettings) -> Result<Self> {
        if settings.io_uring == IoUring::On {
            disk.check_ring().map_err(|error| error.context("option io_uring=on: set it to auto or off"))?;
        }
        let mode = if settings.read_only { OpenMode::Read } else { OpenMode::Write };
        let mut files = BTreeMap::new();
        let mut space = Space::new();
        for number in disk.list(dir)?.iter().filter_map(|name| data_file::parse_name(name)) {
            let path = dir.join(data_file::name(number));
            let file = disk.open(&path, mode, settings.direct_io)?;
            let file = DataFile::new(file);
            let slots = file.slots()?;
            if slots > u64::from(FILE_SLOTS) {
                let message = format!("data file of {slots} slots: expected at most {FILE_SLOTS}");
                return Err(Error::corrupt(message).at(path.display().to_string(), slot_offset(FILE_SLOTS)));
            }
            // A file without a slot was created just before a crash: its number is free.
            if slots > 0 {
                space.add_file(number, slots as u32);
            }
            if !settings.read_only && file.is_shared()? {
                space.seal(number);
            }
            files.insert(number, Arc::new(file));
        }
        let state = if files.is_empty() { State::Empty } else { State::Unknown };
        Ok(LocalStore {
            disk,
            dir: dir.to_owned(),
            settings,
            files: RwLock::new(files),
            space: Mutex::new(Accounting { space, state }),
            layout: Mutex::new(()),
            sync: Mutex::new(()),
            // The process that created the files may have died before their entries were durable.
            dir_dirty: AtomicBool::new(!settings.read_only),
            poison: OnceLock::new(),
            held: Mutex::default(),
            next_look: AtomicU32::new(0),
        })
    }

    fn check_writable(&self, what: &str) -> Result<()> {
        if self.settings.read_only {
            let message = format!("cannot {what} in {}: it was opened read-only", self.dir.display());
            return Err(Error::invalid(message));
        }
        match self.poison.get() {
            None => Ok(()),
            Some(cause) => {
                let message = format!(
                    "cannot {what} in {} after a failed sync ({cause}): open it again",
                    self.dir.display()
                );
                Err(Error::new(Kind::Poisoned, message))
            }
        }
    }

    /// The accounting, once it is complete.
    fn accounting(&self) -> Result<MutexGuard<'_, Accounting>> {
        let mut accounting = self.space.lock();
        if accounting.state == State::Unknown {
            let message = format!("the extents of {} are not restored yet", self.dir.display());
            return Err(Error::invalid(message));
        }
        accounting.state = State::Open;
        Ok(accounting)
    }

    fn file(&self, number: u32) -> Result<Arc<DataFile>> {
        self.files.read().get(&number).cloned().ok_or_else(|| {
            let path = self.dir.join(data_file::name(number)).display().to_string();
            Error::corrupt(format!("data file {number} is missing")).at(path, 0)
        })
    }

    /// Takes a run in an existing file, and reserves space for the parts of it that may be holes, as far as
    /// an extent of `bytes` reaches. `None` if no run is free.
    fn take(&self, slots: u32, bytes: u64) -> Result<Option<ExtentId>> {
        let Some((id, lacking)) = self.accounting()?.space.take(slots) else { return Ok(None) };
        debug_assert!(id.slot + slots <= FILE_SLOTS, "extent {id} of {slots} slots ends behind its file");
        let end = slot_offset(id.slot) + bytes;
        let mut reached = lacking.iter().filter(|gap| slot_offset(gap.start) < end);
        let held = reached.try_for_each(|gap| {
            self.file(id.file)?.hold_bytes(slot_offset(gap.start), slot_offset(gap.end).min(end))
        });
        let lacks_end = lacking.last().is_some_and(|gap| slot_offset(gap.end) > end);
        match held {
            Ok(()) => {
                if lacks_end {
                    self.space.lock().space.shorten(id, slots);
                }
                Ok(Some(id))
            }
            Err(error) => {
                let mut accounting = self.space.lock();
                accounting.space.untake(id, slots);
                let held = if error.kind() == Kind::Full { accounting.space.take_held(slots) } else { None };
                drop(accounting);
                held.map_or_else(|| Err(self.no_room(bytes, error)), |id| Ok(Some(id)))
            }
        }
    }

    /// Adds the full directory and the wanted bytes to an error.
    #[cold]
    fn no_room(&self, wanted: u64, error: Error) -> Error {
        if error.kind() != Kind::Full {
            return error;
        }
        let free =
            self.disk.free_bytes(&self.dir).map_or_else(|_| "unknown".to_owned(), |free| free.to_string());
        let dir = self.dir.display();
        error.context(format!("no room in {dir}: {wanted} bytes wanted, {free} bytes free on the device"))
    }

    fn sync_files(&self) -> Result<()> {
        let files: Vec<_> = self.files.read().values().cloned().collect();
        files.iter().filter(|_| !terrane_base::planted!(SkipExtentSync)).try_for_each(|file| file.sync())?;
        // Acquire: pairs with the Release stores of `dir_dirty` in this file.
        if self.dir_dirty.swap(false, Ordering::Acquire) { self.disk.sync_dir(&self.dir) } else { Ok(()) }
    }
}

impl Store for LocalStore {
    fn allocate(&self, slots: u32) -> Result<ExtentId> {
        self.allocate_for(slots, slot_offset(slots))
    }

    fn allocate_for(&self, slots: u32, bytes: u64) -> Result<ExtentId> {
        self.check_writable("allocate an extent")?;
        if !(1..=EXTENT_SLOTS_MAX).contains(&slots) {
            return Err(Error::invalid(format!(
                "an extent of {slots} slots: 1 to {EXTENT_SLOTS_MAX} are possible"
            )));
        }
        let bytes = grow::reserved_bytes(slots, bytes);
        debug_assert!(bytes <= slot_offset(slots), "more is reserved than {slots} slots hold");
        if let Some(id) = self.take(slots, bytes)? {
            return Ok(id);
        }
        let _layout = self.layout.lock();
        loop {
            // Checked again under the lock: another thread may have grown a file, or taken what this one
            // made.
            if let Some(id) = self.take(slots, bytes)? {
                return Ok(id);
            }
            if bytes < slot_offset(slots) { self.extend(slots)? } else { self.grow(slots)? }
        }
    }

    fn write(&self, id: ExtentId, bytes: &[u8]) -> Result<()> {
        self.check_writable("write an extent")?;
        self.begin_write(id, bytes.len() as u64)?;
        let file = self.file(id.file)?;
        file.write(slot_offset(id.slot), bytes).map_err(|error| self.no_room(bytes.len() as u64, error))
    }

    fn sync(&self) -> Result<()> {
        self.check_writable("sync")?;
        let guard = self.sync.lock();
        // Checked again under the lock: the sync that this caller waited for may have failed, and with it the
        // caller's bytes.
        self.check_writable("sync")?;
        if let Err(error) = self.sync_files() {
            let error = error.context(format!("extents in {} may be lost", self.dir.display()));
            return Err(self.poison.get_or_init(|| error).clone());
        }
        drop(guard);
        // Space that cannot be freed on the device now is tried again next time; no data is at risk.
        let _ = self.reclaim_runs(SYNC_RECLAIM_RUNS, Reserve::Share);
        Ok(())
    }

    fn read(&self, id: ExtentId, offset: u32, buf: &mut [u8]) -> Result<()> {
        self.file(id.file)?.read(slot_offset(id.slot) + u64::from(offset), buf)
    }

    fn read_batch(&self, reads: &mut [ReadRequest<'_>]) {
        if self.settings.io_uring == IoUring::Off {
            for ReadRequest { id, offset, buf, result } in reads {
                *result = self.read(*id, *offset, buf);
            }
            return;
        }
        let files: Vec<_> = reads.iter().map(|read| self.file(read.id.file)).collect();
        data_file::read_batch(&*self.disk, &files, reads);
    }

    fn begin_read(
        &self,
        id: ExtentId,
        offset: u32,
        len: usize,
        memory: Vec<u8>,
    ) -> Result<Box<dyn PendingRead>> {
        let file = self.file(id.file)?;
        let offset = slot_offset(id.slot) + u64::from(offset);
        Ok(file.begin_read(&*self.disk, offset, len, memory, self.settings.io_uring != IoUring::Off))
    }

    fn prefetch(&self, id: ExtentId, offset: u32, len: u32) {
        if let Ok(file) = self.file(id.file) {
            file.prefetch(slot_offset(id.slot) + u64::from(offset), u64::from(len));
        }
    }

    fn free(&self, id: ExtentId, slots: u32) -> Result<()> {
        if self.settings.read_only {
            return self.check_writable("free an extent");
        }
        let mut held = self.held.lock();
        let mut accounting = self.accounting()?;
        debug_assert!(held.count > 0 || held.freed.is_empty(), "extents wait for the end of no copy");
        if held.count > 0 && !terrane_base::planted!(FreeWhileHeld) {
            if !accounting.space.is_taken(id, slots) {
                return Err(Error::invalid(format!("extent {id} of {slots} slots is not allocated")));
            }
            verify!(!held.freed.contains(&(id, slots)), "extent {id} is freed twice while a copy is made");
            held.freed.push((id, slots));
            return Ok(());
        }
        // Also after a failed sync: only memory changes.
        accounting.space.free(id, slots)
    }

    fn hold(&self) {
        self.held.lock().count += 1;
    }

    fn release(&self) {
        let mut held = self.held.lock();
        debug_assert!(
            held.count > 0 || held.freed.is_empty(),
            "what was freed while held waits for a release"
        );
        held.count = held.count.saturating_sub(1);
        if held.count > 0 {
            return;
        }
        let mut accounting = self.space.lock();
        for (id, slots) in std::mem::take(&mut held.freed) {
            let freed = accounting.space.free(id, slots);
            debug_assert!(freed.is_ok(), "checked when it was freed: {id}");
        }
    }

    fn copy_to(&self, dir: &Path, live: &[(ExtentId, u32)]) -> Result<StoreCopy> {
        self.copy_files(dir, live)
    }

    fn adopt(&self, path: &Path, extents: &[(u32, u32)]) -> Result<Option<u32>> {
        self.adopt_file(path, extents)
    }

    fn restore(&self, live: &mut dyn Iterator<Item = (ExtentId, u32)>) -> Result<()> {
        // Outside the lock: the iterator is the caller's code.
        let live: Vec<_> = live.collect();
        let mut accounting = self.space.lock();
        if accounting.state == State::Open {
            let message =
                format!("the extents of {} are restored already, or it was written to", self.dir.display());
            return Err(Error::invalid(message));
        }
        let mut space = accounting.space.without_extents();
        for (id, slots) in live {
            let place = || data_file::name(id.file);
            space.restore(id, slots).map_err(|error| {
                let is_cut = !space.has_file(id.file) && self.files.read().contains_key(&id.file);
                let error = if is_cut { cut_short(id, slots) } else { error };
                error.at(self.dir.join(place()).display().to_string(), slot_offset(id.slot))
            })?;
        }
        verify!(space.check());
        accounting.space = space;
        accounting.state = State::Open;
        Ok(())
    }

    fn reclaim(&self) -> Result<u64> {
        self.reclaim_runs(usize::MAX, Reserve::Share)
    }

    fn reclaim_all(&self) -> Result<u64> {
        Ok(self.reclaim_runs(usize::MAX, Reserve::Nothing)? + self.cut_loose_ends()? + self.cut_tails()?)
    }

    fn usage(&self) -> StoreUsage {
        let counts = self.space.lock().space.counts();
        let bytes = |slots: u64| slots * SLOT_BYTES as u64;
        StoreUsage {
            file_bytes: bytes(counts.total),
            live_bytes: bytes(counts.taken),
            free_bytes: bytes(counts.total - counts.taken - counts.holes - counts.sealed),
            punched_bytes: bytes(counts.holes),
            sealed_bytes: bytes(counts.sealed),
            files: counts.files,
        }
    }

    fn place(&self, id: ExtentId, offset: u32) -> (String, u64) {
        let path = self.dir.join(data_file::name(id.file)).display().to_string();
        (path, slot_offset(id.slot) + u64::from(offset))
    }
}
