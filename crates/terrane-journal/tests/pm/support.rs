//! A journal on a region, opened as the engine does; a region that leaves out flushes and fences.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use terrane_base::Result;
use terrane_base::env::{Env, SteppedSpawn};
use terrane_device::pm::{PmRegion, Survives};
use terrane_device::{Disk, MemDisk};
use terrane_journal::JournalSettings;
use terrane_journal::pm::{PmJournal, ZoneDisk};
use terrane_pmem::{Halloc, Shadowed};

use crate::common::{DIR, Manifest, Row, start};

/// Bytes of a chunk, and of a segment.
pub(crate) const CHUNK_BYTES: u64 = 4096;

pub(crate) fn settings() -> JournalSettings {
    JournalSettings {
        segment_bytes: 2 * CHUNK_BYTES,
        first_segment_bytes: CHUNK_BYTES,
        ring_slots: 16,
        // A trimmed segment gives its zone back at once.
        spare_files_max: 0,
        ..JournalSettings::default()
    }
}

/// A disk whose segments are in `region`: made ready, or with what is in it.
pub(crate) fn disk_on<R: PmRegion + 'static>(region: R, is_new: bool) -> Result<Arc<ZoneDisk<R>>> {
    let base: Arc<dyn Disk> = Arc::new(MemDisk::new());
    base.create_dir(Path::new(DIR))?;
    disk_over(base, region, is_new, false)
}

pub(crate) fn disk_over<R: PmRegion + 'static>(
    base: Arc<dyn Disk>,
    region: R,
    is_new: bool,
    falls_back: bool,
) -> Result<Arc<ZoneDisk<R>>> {
    let (halloc, zones) = match is_new {
        true => (Halloc::create(region, CHUNK_BYTES, 7)?, Vec::new()),
        false => Halloc::open(region, |_| true).map(|(halloc, found)| (halloc, found.zones))?,
    };
    Ok(Arc::new(ZoneDisk::new(base, Path::new(DIR), halloc, zones, falls_back)?))
}

pub(crate) fn open<R: PmRegion + 'static>(
    disk: &Arc<ZoneDisk<R>>,
    manifest: &Arc<Manifest>,
    settings: &JournalSettings,
    env: &Env,
) -> Result<(PmJournal, Vec<Row>)> {
    let disk: Arc<dyn Disk> = disk.clone();
    let (start, rows) = start(&disk, manifest)?;
    let journal = PmJournal::open(disk, Path::new(DIR), settings, env, manifest.clone(), &start)?;
    Ok((journal, rows))
}

/// Without threads: a run is the same each time.
pub(crate) fn stepped() -> Env {
    Env { spawn: Arc::new(SteppedSpawn::default()), ..Env::real() }
}

/// What is left out of the journal's own steps; the allocator's stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Omitted {
    Nothing,
    Flushes,
    Fences,
}

/// The checker's region, shared with the test, without some flushes or fences.
pub(crate) struct Omitting {
    pub(crate) region: Arc<Shadowed>,
    omitted: Omitted,
    /// Flushes from here on are those of segments.
    segments_at: AtomicU64,
    is_segment: AtomicBool,
}

impl Omitting {
    pub(crate) fn new(region: Arc<Shadowed>, omitted: Omitted) -> Self {
        let (segments_at, is_segment) = (AtomicU64::new(CHUNK_BYTES * 2), AtomicBool::new(false));
        Omitting { region, omitted, segments_at, is_segment }
    }
}

impl fmt::Debug for Omitting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.omitted.fmt(f)
    }
}

impl PmRegion for Omitting {
    fn len(&self) -> u64 {
        self.region.len()
    }

    fn survives(&self) -> Survives {
        self.region.survives()
    }

    fn load(&self, offset: u64) -> Result<u64> {
        self.region.load(offset)
    }

    fn store(&self, offset: u64, word: u64) -> Result<()> {
        self.region.store(offset, word)
    }

    fn exchange(&self, offset: u64, expected: u64, word: u64) -> Result<u64> {
        self.region.exchange(offset, expected, word)
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        self.region.read(offset, bytes)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.region.write(offset, bytes)
    }

    fn stream(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.region.stream(offset, bytes)
    }

    fn flush(&self, offset: u64, len: u64) -> Result<()> {
        let is_segment = offset >= self.segments_at.load(Ordering::Relaxed);
        self.is_segment.store(is_segment, Ordering::Relaxed);
        if is_segment && self.omitted == Omitted::Flushes { Ok(()) } else { self.region.flush(offset, len) }
    }

    fn fence(&self) -> Result<()> {
        let is_left_out = self.is_segment.load(Ordering::Relaxed) && self.omitted == Omitted::Fences;
        if is_left_out { Ok(()) } else { self.region.fence() }
    }
}
