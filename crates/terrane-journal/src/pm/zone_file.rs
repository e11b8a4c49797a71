//! A segment file that is a zone of persistent memory.
//!
//! Its length is that of its zone, in whole chunks; before [`File::allocate`] it has none. Its mapping is the
//! region's own memory. Of a region without such memory (the checker's) it is a copy, whose stores go to the
//! region at [`Lines::flush`] or [`File::sync`].
//!
//! Which thread may touch what: `place` and `copy` are set once, under their locks. The bytes of the zone
//! follow the rules of [`Region`]; Halloc never touches them while the zone is granted.
#![expect(unsafe_code, reason = "makes a region of a part of another region's memory")]

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use terrane_base::sync::Mutex;
use terrane_base::sync::atomic::{AtomicBool, Ordering};
use terrane_base::{Error, Kind, Result};
use terrane_device::pm::PmRegion;
use terrane_device::{Disk, File, Lines, OpenMode, Region};
use terrane_pmem::{Halloc, Owner, Zone};

/// Bytes that a sync compares at once.
const COMPARE_BYTES: u64 = 64 << 10;

/// Where the bytes of a file are.
#[derive(Clone)]
enum Backing {
    /// It was created and has no space yet.
    Nowhere,
    Zone(Zone),
    /// Persistent memory was full: an ordinary file.
    File(Arc<dyn File>),
}

/// The state that all handles and mappings of a file share. A file that was removed gives its zone back when
/// the last of them goes: until then its bytes stay what they are.
pub(super) struct Held<R: PmRegion> {
    pub(super) halloc: Arc<Halloc<R>>,
    /// Numbers of all zones that are held, named or not.
    pub(super) numbers: Arc<Mutex<BTreeSet<u32>>>,
    pub(super) number: u32,
    place: Mutex<Backing>,
    is_removed: AtomicBool,
    /// The mapping, for a region without memory.
    copy: Mutex<Option<Arc<Region>>>,
}

impl<R: PmRegion> Held<R> {
    pub(super) fn new(
        halloc: Arc<Halloc<R>>,
        numbers: Arc<Mutex<BTreeSet<u32>>>,
        number: u32,
        zone: Option<Zone>,
    ) -> Self {
        debug_assert!(zone.is_none_or(|zone| zone.owner() == Owner(number)), "the owner names the file");
        let is_new = numbers.lock().insert(number);
        assert!(is_new, "file {number} has two zones: an opening would find two of one owner");
        let place = Mutex::new(zone.map_or(Backing::Nowhere, Backing::Zone));
        Held { halloc, numbers, number, place, is_removed: AtomicBool::new(false), copy: Mutex::new(None) }
    }

    /// The zone, if it has one.
    pub(super) fn zone(&self) -> Option<Zone> {
        match &*self.place.lock() {
            Backing::Zone(zone) => Some(*zone),
            _ => None,
        }
    }

    /// True if it became an ordinary file.
    pub(super) fn is_file(&self) -> bool {
        matches!(&*self.place.lock(), Backing::File(_))
    }

    /// The file has no name any more.
    pub(super) fn remove(&self) {
        // Release: pairs with the Acquire in `drop`.
        let was_removed = self.is_removed.swap(true, Ordering::Release);
        debug_assert!(!was_removed, "file {} lost its name twice", self.number);
        if terrane_base::planted!(ReuseMappedZone)
            && let Some(zone) = self.zone()
        {
            let _ = self.halloc.free_zone(zone);
        }
    }
}

impl<R: PmRegion> Drop for Held<R> {
    fn drop(&mut self) {
        if self.is_removed.load(Ordering::Acquire)
            && let Some(zone) = self.zone()
        {
            // Where it fails the zone stays in use until the next opening, which finds no segment for it.
            let _ = self.halloc.free_zone(zone);
        }
        let was_held = self.numbers.lock().remove(&self.number);
        debug_assert!(was_held, "file {} was let go twice", self.number);
    }
}

/// A handle of a file in persistent memory.
pub(super) struct ZoneFile<R: PmRegion> {
    held: Arc<Held<R>>,
    path: PathBuf,
    /// Where the file goes if persistent memory is full.
    fallback: Option<Arc<dyn Disk>>,
}

impl<R: PmRegion> fmt::Debug for ZoneFile<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZoneFile").field("path", &self.path).field("zone", &self.held.zone()).finish()
    }
}

impl<R: PmRegion + 'static> ZoneFile<R> {
    pub(super) fn new(held: Arc<Held<R>>, path: PathBuf, fallback: Option<Arc<dyn Disk>>) -> Self {
        ZoneFile { held, path, fallback }
    }

    fn region(&self) -> &R {
        self.held.halloc.region()
    }

    fn named(&self, error: Error) -> Error {
        error.at(self.path.display().to_string(), 0)
    }

    fn place(&self) -> Backing {
        self.held.place.lock().clone()
    }

    /// The offset in the region of a range of the file.
    fn range(&self, zone: &Zone, offset: u64, len: u64) -> Result<u64> {
        debug_assert!(
            zone.offset() + zone.bytes() <= self.region().len(),
            "{zone:?} leaves its region, so an offset in it may lie outside the region"
        );
        if offset <= zone.bytes() && len <= zone.bytes() - offset {
            return Ok(zone.offset() + offset);
        }
        let message = format!("{len} bytes at {offset} are outside the zone of {} bytes", zone.bytes());
        Err(Error::corrupt(message).at(self.path.display().to_string(), offset))
    }

    fn no_space(&self) -> Error {
        self.named(Error::invalid("a segment file in persistent memory has no space before it is allocated"))
    }

    /// Grants a zone, or makes an ordinary file where that is allowed.
    fn grant(&self, bytes: u64) -> Result<Backing> {
        let halloc = &self.held.halloc;
        assert!(bytes > 0, "a segment has a header, so its file is not empty");
        let chunks = u16::try_from(bytes.div_ceil(halloc.chunk_bytes())).map_err(|_| {
            let most = u64::from(u16::MAX) * halloc.chunk_bytes();
            self.named(Error::invalid(format!(
                "a zone of {bytes} bytes: this pool has zones of up to {most}"
            )))
        })?;
        let is_wrong = terrane_base::planted!(GrantToNoFile);
        match halloc.grant(chunks, Owner(self.held.number + u32::from(is_wrong))) {
            Ok(zone) => Ok(Backing::Zone(zone)),
            Err(error) if error.kind() == Kind::Full => {
                let Some(base) = &self.fallback else {
                    let what = format!(
                        "the pool {} is full: wait until flushes have made room, enlarge it (pmem_bytes of a new one), or \
                         set pmem_full_to_file",
                        self.region().name()
                    );
                    return Err(self.named(error.context(what)));
                };
                let file = base.open(&self.path, OpenMode::Create, false)?;
                if let Err(error) = file.allocate(0, bytes) {
                    // The segment has no place then, so its removal would not meet the file. Best effort: the
                    // original error is the one to report.
                    let _ = base.remove(&self.path);
                    return Err(error);
                }
                Ok(Backing::File(file))
            }
            Err(error) => Err(self.named(error)),
        }
    }

    /// The bytes of the zone as memory.
    fn memory(&self, zone: &Zone, len: usize) -> Result<Region> {
        if let Some(memory) = self.region().memory() {
            let at =
                usize::try_from(zone.offset()).expect("the region is mapped, so its offsets are addresses");
            assert!(at + len <= memory.len(), "zone {zone:?} lies outside the region's memory");
            // SAFETY: in bounds; the memory lives as long as the region, which the owner keeps.
            let region =
                unsafe { Region::from_raw(memory.start().add(at), len, Box::new(self.held.clone())) };
            return Ok(region);
        }
        let copy = self.copy(zone)?;
        let start = copy.start();
        // SAFETY: `len` is at most the zone's, which the copy has; the copy lives as long as its owner.
        Ok(unsafe { Region::from_raw(start, len, Box::new((copy, self.held.clone()))) })
    }

    fn copy(&self, zone: &Zone) -> Result<Arc<Region>> {
        let mut copy = self.held.copy.lock();
        if let Some(copy) = &*copy {
            return Ok(copy.clone());
        }
        let read = &mut |at, bytes: &mut [u8]| self.region().read(zone.offset() + at, bytes);
        let region = Arc::new(Region::filled(zone.bytes() as usize, read)?);
        assert!(region.len() as u64 == zone.bytes(), "a copy has the bytes of its zone");
        *copy = Some(region.clone());
        Ok(region)
    }

    /// Stores to the region what a copy has in a range, where it differs.
    fn store_copy(&self, zone: &Zone, offset: u64, len: u64) -> Result<()> {
        let Some(copy) = self.held.copy.lock().clone() else { return Ok(()) };
        let (mut at, end) = (offset, offset + len);
        assert!(end <= copy.len() as u64, "the stores to {offset} and {len} bytes were in the copy");
        while at < end {
            let piece = COMPARE_BYTES.min(end - at);
            // SAFETY: the caller says that the stores to this range are complete.
            let bytes = unsafe { copy.slice(at as usize, piece as usize) };
            let mut there = vec![0; piece as usize];
            self.region().read(zone.offset() + at, &mut there)?;
            if there != bytes {
                self.region().write(zone.offset() + at, bytes)?;
            }
            at += piece;
        }
        Ok(())
    }

    fn flush_range(&self, zone: &Zone, offset: u64, len: u64) -> Result<()> {
        debug_assert!(zone.owner() == Owner(self.held.number), "the zone of another file is flushed");
        let at = self.range(zone, offset, len)?;
        self.store_copy(zone, offset, len)?;
        self.region().note_stores(at, len)?;
        self.region().flush(at, len)
    }
}

impl<R: PmRegion + 'static> File for ZoneFile<R> {
    fn path(&self) -> &PathBuf {
        &self.path
    }

    fn len(&self) -> Result<u64> {
        match self.place() {
            Backing::Nowhere => Ok(0),
            Backing::Zone(zone) => Ok(zone.bytes()),
            Backing::File(file) => file.len(),
        }
    }

    fn names(&self) -> Result<u64> {
        Ok(u64::from(!self.held.is_removed.load(Ordering::Acquire)))
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        match self.place() {
            Backing::Nowhere => Err(self.no_space()),
            Backing::Zone(zone) => {
                let at = self.range(&zone, offset, buf.len() as u64)?;
                // A poisoned line is an error here, named by the file of the region.
                self.region().read_checked(at, buf).map_err(|error| {
                    error.context(format!("segment {} in persistent memory", self.path.display()))
                })
            }
            Backing::File(file) => file.read_at(offset, buf),
        }
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        match self.place() {
            Backing::Nowhere => Err(self.no_space()),
            Backing::Zone(zone) => {
                let at = self.range(&zone, offset, bytes.len() as u64)?;
                if let Some(copy) = self.held.copy.lock().clone() {
                    // SAFETY: within the zone; by the rules of `File` no other thread writes the range.
                    unsafe { copy.write(offset as usize, bytes) };
                }
                self.region().write(at, bytes)
            }
            Backing::File(file) => file.write_at(offset, bytes),
        }
    }

    fn sync(&self) -> Result<()> {
        match self.place() {
            // Nothing to lose: a file without a zone is gone after the process.
            Backing::Nowhere => Ok(()),
            Backing::Zone(zone) => {
                self.flush_range(&zone, 0, zone.bytes())?;
                self.region().fence()
            }
            Backing::File(file) => file.sync(),
        }
    }

    fn set_len(&self, len: u64) -> Result<()> {
        match self.place() {
            Backing::File(file) => file.set_len(len),
            _ if self.len()? == len => Ok(()),
            _ => {
                Err(self
                    .named(Error::invalid("the length of a file in persistent memory is that of its zone")))
            }
        }
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        let end = offset.saturating_add(len);
        let mut place = self.held.place.lock();
        match &*place {
            Backing::Nowhere => {
                let granted = self.grant(end)?;
                debug_assert!(
                    !matches!(&granted, Backing::Zone(zone) if zone.bytes() < end),
                    "a zone has room for what was asked"
                );
                *place = granted;
            }
            Backing::Zone(zone) if end <= zone.bytes() => {}
            Backing::Zone(zone) => {
                let message = format!("a zone of {} bytes does not grow to {end}", zone.bytes());
                return Err(self.named(Error::invalid(message)));
            }
            Backing::File(file) => return file.allocate(offset, len),
        }
        Ok(())
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        match self.place() {
            Backing::File(file) => file.punch(offset, len),
            // A zone keeps its chunks.
            _ => Ok(()),
        }
    }

    fn prefetch(&self, offset: u64, len: u64) {
        if let Backing::File(file) = self.place() {
            file.prefetch(offset, len);
        }
    }

    fn map(&self, len: usize, writable: bool) -> Result<Region> {
        match self.place() {
            Backing::Nowhere => Err(self.no_space()),
            Backing::Zone(zone) => {
                self.range(&zone, 0, len as u64)?;
                let memory = self.memory(&zone, len)?;
                assert!(memory.len() == len, "a mapping has the bytes that were asked for");
                Ok(memory)
            }
            Backing::File(file) => file.map(len, writable),
        }
    }

    fn lines(&self) -> Option<&dyn Lines> {
        let has_lines = self.region().has_cheap_fences() && self.held.zone().is_some();
        has_lines.then_some(self)
    }
}

impl<R: PmRegion + 'static> Lines for ZoneFile<R> {
    fn flush(&self, offset: u64, len: u64) -> Result<()> {
        let zone = self.held.zone().ok_or_else(|| self.no_space())?;
        debug_assert!(len > 0, "a flush of nothing hides that its caller wrote nothing");
        self.flush_range(&zone, offset, len)
    }

    fn fence(&self) -> Result<()> {
        self.region().fence()
    }
}
