//! A journal on a region, opened as the engine does; a region that leaves out flushes and fences.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use terrane_base::Result;
use terrane_base::env::{Env, SteppedSpawn};
use terrane_device::pm::PmRegion;
use terrane_device::{Disk, MemDisk};
use terrane_journal::JournalSettings;
use terrane_journal::pm::{PmJournal, ZoneDisk};
use terrane_pmem::{Halloc, Omitting, Shadowed, Step};

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

/// A disk whose segments are in `region`: formatted, or with the content of the region.
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

/// The omitted step of the journal's own ones; the allocator's stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Omitted {
    Nothing,
    Flushes,
    Fences,
}

/// The checker's region without the omitted steps of the journal.
pub(crate) fn omitting(region: Arc<Shadowed>, omitted: Omitted) -> Omitting {
    let is_segment = AtomicBool::new(false);
    Omitting::new(region, move |step| match step {
        Step::Flush(offset) => {
            // From here on flushes are those of segments; the fence behind them is theirs, too.
            let of_segment = offset >= CHUNK_BYTES * 2;
            is_segment.store(of_segment, Ordering::Relaxed);
            of_segment && omitted == Omitted::Flushes
        }
        Step::Fence => is_segment.load(Ordering::Relaxed) && omitted == Omitted::Fences,
    })
}
