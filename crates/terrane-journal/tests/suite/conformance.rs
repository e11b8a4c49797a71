//! The conformance suite on every journal of this crate.
#![cfg(not(feature = "shuttle"))]
#![allow(clippy::unwrap_used, reason = "a failed test may say so by a panic")]

use std::path::Path;
use std::sync::Arc;

use crate::common::{Manifest, open, settings};
use terrane_device::{Disk, MemDisk, PosixDisk};
use terrane_journal::{Journal, JournalStart, NullJournal, conformance};

#[test]
fn null_journal() {
    let settings = settings(16 << 10);
    conformance::run(&mut || Box::new(NullJournal::new(&settings, &JournalStart::default()).unwrap()));
}

#[test]
fn null_journal_with_the_smallest_ring() {
    let settings = terrane_journal::JournalSettings { ring_slots: 2, ..settings(16 << 10) };
    conformance::run(&mut || Box::new(NullJournal::new(&settings, &JournalStart::default()).unwrap()));
}

/// Every owner copies its own records, however few.
#[test]
fn null_journal_with_parallel_copies() {
    let settings = terrane_journal::JournalSettings { parallel_copy_bytes: 1, ..settings(64 << 10) };
    conformance::run(&mut || Box::new(NullJournal::new(&settings, &JournalStart::default()).unwrap()));
}

#[test]
fn file_journal_in_memory() {
    conformance::run(&mut || {
        let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
        Box::new(open(&disk, &Arc::new(Manifest::default()), &settings(16 << 10)).unwrap().0)
    });
}

/// A device whose paths start at a directory of the test's own.
#[test]
fn file_journal_on_the_real_device() {
    let mut dirs = Vec::new();
    conformance::run(&mut || {
        let dir = tempfile::tempdir().unwrap();
        let journal: Box<dyn Journal> = Box::new(open_in(dir.path()));
        dirs.push(dir);
        journal
    });
}

fn open_in(dir: &Path) -> terrane_journal::FileJournal {
    let disk: Arc<dyn Disk> = Arc::new(PosixDisk::new());
    let registrar = Arc::new(Manifest::default());
    terrane_journal::FileJournal::open(
        disk,
        dir,
        &settings(16 << 10),
        &terrane_base::env::Env::real(),
        registrar,
        &JournalStart::default(),
    )
    .unwrap()
}
