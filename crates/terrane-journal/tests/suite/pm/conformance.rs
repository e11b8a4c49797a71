//! The conformance suite on every kind of region.

use std::path::Path;
use std::sync::Arc;

use terrane_base::env::Env;
use terrane_device::Disk;
use terrane_device::pm::{Mapped, PlainMode, PmRegion, Volatile};
use terrane_journal::{FileJournal, Journal, JournalSettings, JournalStart, conformance};
use terrane_pmem::{Emulated, Profile};

use crate::common::{DIR, Manifest, settings};
use crate::pm::support::{Omitted, disk_on, omitting, open};

const REGION_BYTES: u64 = 64 << 20;

fn run_on<R: PmRegion + 'static>(settings: &JournalSettings, region: &mut dyn FnMut() -> R) {
    conformance::run(&mut || {
        let disk = disk_on(region(), true).unwrap();
        Box::new(open(&disk, &Arc::new(Manifest::default()), settings, &Env::real()).unwrap().0)
    });
}

fn mapped(mode: PlainMode) -> Mapped {
    // The file loses its name with the directory, and lives as long as the mapping.
    let dir = tempfile::tempdir().unwrap();
    Mapped::create(&dir.path().join("pool"), REGION_BYTES, mode).unwrap()
}

#[test]
fn conformance_on_volatile_memory() {
    run_on(&settings(16 << 10), &mut || Volatile::new(REGION_BYTES));
}

/// Every owner copies its own records; the leader's flush covers them.
#[test]
fn conformance_with_parallel_copies() {
    let settings = JournalSettings { parallel_copy_bytes: 1, ring_slots: 2, ..settings(64 << 10) };
    run_on(&settings, &mut || Volatile::new(REGION_BYTES));
}

#[test]
fn conformance_on_emulated_memory() {
    run_on(&settings(16 << 10), &mut || Emulated::new(Volatile::new(REGION_BYTES), Profile::DRAM));
}

#[test]
fn conformance_on_a_mapped_file() {
    run_on(&settings(16 << 10), &mut || mapped(PlainMode::Buffered));
}

/// A region without memory of its own to map.
#[test]
fn conformance_on_shadowed_memory() {
    let shadowed = || Arc::new(terrane_pmem::Shadowed::new(8 << 20));
    run_on(&settings(16 << 10), &mut || omitting(shadowed(), Omitted::Nothing));
}

/// Fences write to a device: the journal in files does what it does in files.
#[test]
fn conformance_of_the_file_journal_on_a_pool() {
    conformance::run(&mut || {
        let disk: Arc<dyn Disk> = disk_on(mapped(PlainMode::Synced), true).unwrap();
        let (registrar, start) = (Arc::new(Manifest::default()), JournalStart::default());
        let settings = settings(16 << 10);
        let journal =
            FileJournal::open(disk, Path::new(DIR), &settings, &Env::real(), registrar, &start).unwrap();
        Box::new(journal) as Box<dyn Journal>
    });
}
