//! Loss of power and death of the process at random moments of a run with several writers, over many lives of
//! one journal: acknowledged comes back, what comes back is a prefix of the commit order, batches are whole.
#![cfg(not(feature = "shuttle"))]
#![allow(clippy::unwrap_used, reason = "a failed test may say so by a panic")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::common::{Manifest, Row, open, replay_rows, settings};
use terrane_base::{Batch, Rng, TableId};
use terrane_device::{Disk, FaultyDisk, MemDisk};
use terrane_journal::{FileJournal, Journal};

const SEGMENT_BYTES: u64 = 8192;

#[derive(Default)]
struct Model {
    /// The keys of each committed batch, acknowledged or not, by its first number.
    batches: BTreeMap<u64, Vec<Vec<u8>>>,
    acknowledged: u64,
    synced: u64,
}

/// The first number of a seed.
fn mix(seed: u64) -> u64 {
    Rng::new(seed).next_u64()
}

fn commit_some(journal: &FileJournal, model: &Mutex<Model>, seed: u64, trims: Option<&Manifest>) {
    for step in 0..30u64 {
        let choice = mix(seed ^ mix(step));
        let keys: Vec<Vec<u8>> =
            (0..1 + choice % 4).map(|i| format!("{seed}-{step}-{i}").into_bytes()).collect();
        let mut batch = Batch::new();
        for key in &keys {
            batch.put(TableId::DEFAULT, key, &vec![choice as u8; (choice >> 8) as usize % 700]).unwrap();
        }
        let sync = (choice >> 20).is_multiple_of(5);
        let committed = journal.commit(&batch, sync, &mut |placed| {
            model.lock().unwrap().batches.insert(placed.first_seq.0, keys.clone());
        });
        let mut model = model.lock().unwrap();
        if let Ok(last) = committed {
            model.acknowledged = model.acknowledged.max(last.0);
            if sync {
                model.synced = model.synced.max(last.0);
            }
        }
        drop(model);
        if let Some(manifest) = trims
            && step == 20
        {
            trim_oldest(journal, manifest);
        }
    }
}

/// As the engine does after a flush: out of the manifest first, then out of the journal.
fn trim_oldest(journal: &FileJournal, manifest: &Manifest) {
    let segments = journal.segments();
    if segments.len() > 3 {
        let upto = segments[1].id;
        manifest.listed.lock().unwrap().retain(|listed| listed.spec.id > upto);
        // Behind a cut of the power no file can be removed; the segments are trimmed nevertheless.
        let _ = journal.trim(upto);
        assert!(journal.segments().iter().all(|segment| segment.id > upto));
    }
}

/// The recovered batches are complete, and a prefix of the commits of this and earlier lives.
fn check(rows: &[Row], model: &Model, at_least: u64, context: &str) -> u64 {
    let by_number: BTreeMap<u64, &Vec<u8>> = rows.iter().map(|row| (row.0, &row.1)).collect();
    let last = rows.last().map_or(0, |row| row.0);
    assert!(last >= at_least, "{context}: acknowledged {at_least}, came back {last}");
    for (&first, keys) in &model.batches {
        let present =
            keys.iter().enumerate().filter(|(i, _)| by_number.contains_key(&(first + *i as u64))).count();
        if first > last {
            assert_eq!(present, 0, "{context}: half a batch");
        } else if rows.first().is_some_and(|row| row.0 <= first) {
            assert_eq!(present, keys.len(), "{context}: half a batch");
            for (i, key) in keys.iter().enumerate() {
                assert_eq!(by_number[&(first + i as u64)], key, "{context}: other records than committed");
            }
        }
    }
    last
}

fn live(
    disk: &MemDisk,
    manifest: &Arc<Manifest>,
    seed: u64,
    model: Model,
    floor: u64,
) -> (MemDisk, Model, u64) {
    let faulty = FaultyDisk::new(Arc::new(disk.clone()));
    let shared: Arc<dyn Disk> = Arc::new(faulty.clone());
    let (journal, rows) = open(&shared, manifest, &settings(SEGMENT_BYTES)).unwrap();
    let last = check(&rows, &model, floor, &format!("seed {seed}"));
    // Batches that were not recovered never existed; their numbers are used again.
    let mut model = Model { acknowledged: last, synced: last, ..model };
    model.batches.retain(|&first, _| first <= last);
    let model = Mutex::new(model);
    if seed.is_multiple_of(3) {
        faulty.cut_after(mix(seed) % 60);
    }
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (journal, model, manifest) = (&journal, &model, &**manifest);
            scope.spawn(move || {
                commit_some(journal, model, mix(seed * 31 + thread), (thread == 0).then_some(manifest));
            });
        }
        disk.writeback(seed);
    });
    drop(journal);
    let model = model.into_inner().unwrap();
    let is_kill = seed.is_multiple_of(4);
    let floor = if is_kill { model.acknowledged } else { model.synced };
    (if is_kill { disk.kill() } else { disk.crash(seed) }, model, floor)
}

#[test]
fn random_crashes_lose_no_acknowledged_commit() {
    for start in 0..40u64 {
        let (mut disk, mut model, mut floor) = (MemDisk::new(), Model::default(), 0);
        let manifest = Arc::new(Manifest::default());
        for life in 0..6 {
            (disk, model, floor) = live(&disk, &manifest, start * 100 + life, model, floor);
        }
    }
}

/// A crash right after recovery, before its result is recorded or right after that, repeats the recovery.
#[test]
fn recovery_can_be_repeated() {
    for seed in 0..60 {
        let manifest = Arc::new(Manifest::default());
        let (disk, model, floor) = live(&MemDisk::new(), &manifest, seed, Model::default(), 0);
        let listed = manifest.listed.lock().unwrap().clone();
        let (_, rows) = replay_rows(&disk, &listed, 0).unwrap();
        check(&rows, &model, floor, "first recovery");
        // Recovered batches are durable: no power cut removes them, whether their end is recorded or not.
        let disk = disk.crash(seed + 1);
        assert_eq!(replay_rows(&disk, &listed, 0).unwrap().1, rows, "seed {seed}");
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        drop(open(&shared, &manifest, &settings(SEGMENT_BYTES)).unwrap());
        let listed = manifest.listed.lock().unwrap().clone();
        assert_eq!(replay_rows(&disk.crash(seed + 2), &listed, 0).unwrap().1, rows, "seed {seed}");
    }
}
