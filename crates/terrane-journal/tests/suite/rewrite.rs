//! The journal written again: what fails on the way leaves the directory as it was, and memory has a bound.
#![cfg(not(feature = "shuttle"))]
#![allow(clippy::unwrap_used, reason = "a failed test may say so by a panic")]

use std::path::Path;
use std::sync::Arc;

use crate::common::{DIR, Manifest, open, put, settings};
use terrane_base::env::Env;
use terrane_base::{Error, Kind, Result, SegmentId, SeqNo};
use terrane_device::{Disk, MemDisk};
use terrane_journal::{BatchFilter, FoundBatch, Journal, NewNames, ReplaySettings, Rewritten, rewrite};

/// Says of a batch, by how many were asked for before, what takes its place.
struct Judge<F> {
    decide: F,
    asked: u64,
}

impl<F: FnMut(u64, &FoundBatch<'_>) -> Result<Option<Vec<u8>>>> BatchFilter for Judge<F> {
    fn begin(&mut self, _: &[(SegmentId, SeqNo)]) -> Result<()> {
        Ok(())
    }

    fn batch(&mut self, batch: &FoundBatch<'_>) -> Result<Option<Vec<u8>>> {
        self.asked += 1;
        (self.decide)(self.asked - 1, batch)
    }
}

/// A device with a journal of `count` batches of one record.
fn written(count: u64, segment_bytes: u64) -> (Arc<dyn Disk>, Arc<Manifest>) {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let manifest = Arc::new(Manifest::default());
    let (journal, _) = open(&disk, &manifest, &settings(segment_bytes)).unwrap();
    for number in 0..count {
        let batch = put(&number.to_be_bytes(), &[7; 100]);
        journal.commit(&batch, number + 1 == count, &mut |_| {}).unwrap();
    }
    (disk, manifest)
}

fn rewritten(disk: &dyn Disk, manifest: &Manifest, judge: &mut dyn BatchFilter) -> Result<Rewritten> {
    let listed = manifest.listed.lock().unwrap().clone();
    let settings = ReplaySettings {
        threads: 1,
        durable_floor: SeqNo(0),
        flushed: SeqNo(0),
        make_durable: true,
        salt: 0,
    };
    let names = NewNames { segment: SegmentId(1000), file: 1000, edit: 0 };
    rewrite(disk, Path::new(DIR), &listed, &settings, &*Env::real().spawn, names, judge)
}

fn names(disk: &dyn Disk) -> Vec<String> {
    let mut names = disk.list(Path::new(DIR)).unwrap();
    names.sort();
    names
}

#[test]
fn a_rewriting_that_fails_leaves_no_file() {
    let (disk, manifest) = written(300, 4096);
    assert!(manifest.listed.lock().unwrap().len() > 5);
    let before = names(&*disk);
    let mut most = 0;
    for last in [0, 100, 299] {
        let decide = |asked, batch: &FoundBatch<'_>| {
            most = most.max(names(&*disk).len());
            match asked == last {
                true => Err(Error::corrupt("on purpose")),
                false => Ok(Some(batch.records.to_vec())),
            }
        };
        let mut judge = Judge { decide, asked: 0 };
        let error = rewritten(&*disk, &manifest, &mut judge).unwrap_err();
        assert!(error.to_string().contains("on purpose"), "{error}");
        assert_eq!(judge.asked, last + 1);
        assert_eq!(names(&*disk), before, "batch {last}");
    }
    assert!(most > before.len() + 3, "files were there on the way: {most}");
}

/// A rewritten segment is in memory until it is written: once it is too long, the filter is not called again.
#[test]
fn a_rewritten_segment_that_would_be_too_long_is_refused_at_once() {
    let (disk, manifest) = written(40, 64 << 10);
    // No code reads these bytes, so they take no memory.
    let mut judge = Judge { decide: |_, _: &FoundBatch<'_>| Ok(Some(vec![0; 256 << 20])), asked: 0 };
    let error = rewritten(&*disk, &manifest, &mut judge).unwrap_err();
    assert_eq!(error.kind(), Kind::Invalid);
    assert!(error.to_string().contains("segment s1 would have"), "{error}");
    assert_eq!(judge.asked, 8, "of 2 GiB");
}
