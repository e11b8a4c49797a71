//! The conformance suite on every journal of this crate.
#![cfg(not(feature = "shuttle"))]
#![allow(clippy::unwrap_used, reason = "a failed test may say so by a panic")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::common::{DIR, Manifest, open, settings};
use terrane_base::{Batch, Error, Kind, Result, SegmentId, TableId};
use terrane_device::{Disk, MemDisk, PosixDisk};
use terrane_journal::{CommitLog, Journal, JournalStart, LoggedJournal, NullJournal, conformance};

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

/// A log in memory.
#[derive(Debug, Default)]
struct MemoryLog(Mutex<Logged>);

#[derive(Debug, Default)]
struct Logged {
    appended: BTreeMap<SegmentId, Vec<u8>>,
    durable: BTreeMap<SegmentId, Vec<u8>>,
    trimmed: SegmentId,
    refuses: bool,
}

impl CommitLog for MemoryLog {
    fn append(&self, segment: SegmentId, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut logged = self.0.lock().unwrap();
        let known = logged.appended.entry(segment).or_default();
        assert_eq!(known.len() as u64, offset, "bytes come in their order, without a gap");
        known.extend_from_slice(bytes);
        Ok(())
    }

    fn persist(&self) -> Result<()> {
        let mut logged = self.0.lock().unwrap();
        if logged.refuses {
            return Err(Error::new(Kind::Poisoned, "another writer"));
        }
        logged.durable = logged.appended.clone();
        Ok(())
    }

    fn held(&self, _segment: SegmentId) -> u64 {
        0
    }

    fn trim(&self, upto: SegmentId) {
        self.0.lock().unwrap().trimmed = upto;
    }

    fn stop(&self) {}
}

fn logged(log: &Arc<MemoryLog>) -> LoggedJournal {
    let (disk, log): (Arc<dyn Disk>, Arc<dyn CommitLog>) = (Arc::new(MemDisk::new()), log.clone());
    disk.create_dir(Path::new(DIR)).unwrap();
    let (env, registrar, start) =
        (terrane_base::env::Env::real(), Arc::new(Manifest::default()), JournalStart::default());
    let dir = Path::new(DIR);
    LoggedJournal::open((disk, log), dir, &settings(16 << 10), &env, registrar, &start).unwrap()
}

#[test]
fn logged_journal() {
    conformance::run(&mut || Box::new(logged(&Arc::default())));
}

/// A synced commit is in the log when it returns, an unsynced one is given to it.
#[test]
fn a_batch_that_the_log_refuses_is_not_committed() {
    let log = Arc::new(MemoryLog::default());
    let journal = logged(&log);
    let mut batch = Batch::new();
    batch.put(TableId::DEFAULT, b"key", &[7; 2000]).unwrap();
    let has = |map: &BTreeMap<SegmentId, Vec<u8>>, count: usize| {
        let bytes: Vec<u8> = map.values().flatten().copied().collect();
        let found = bytes.chunk_by(|a, b| a == b).filter(|run| run.len() >= 2000 && run[0] == 7).count();
        assert_eq!(found, count, "values in the log");
    };
    for count in 1..=20 {
        journal.commit(&batch, count % 2 == 0, &mut |_| {}).unwrap();
        has(&log.0.lock().unwrap().appended, count);
        has(&log.0.lock().unwrap().durable, count - count % 2);
    }
    let first = journal.complete_segments()[0].id;
    journal.trim(first).unwrap();
    assert_eq!(log.0.lock().unwrap().trimmed, first);
    log.0.lock().unwrap().refuses = true;
    let refused = journal.commit(&batch, true, &mut |_| {}).unwrap_err();
    assert!(refused.to_string().contains("another writer"), "{refused}");
    assert_eq!(journal.commit(&batch, false, &mut |_| {}).unwrap_err().kind(), Kind::Poisoned);
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
