//! Devices that refuse: poisoned after a failed sync, unharmed after a full device or a refused registration.
#![cfg(not(feature = "shuttle"))]
#![allow(clippy::unwrap_used, reason = "a failed test may say so by a panic")]

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Manifest, open, put, replay_rows, settings};
use terrane_base::Kind;
use terrane_base::env::Env;
use terrane_device::{Call, Disk, Failure, Fault, FaultyDisk, MemDisk};
use terrane_journal::{Journal, SegmentState};

const SEGMENT_BYTES: u64 = 8192;

fn faulty() -> (MemDisk, FaultyDisk, Arc<dyn Disk>, Arc<Manifest>) {
    let inner = MemDisk::new();
    let faulty = FaultyDisk::new(Arc::new(inner.clone()));
    (inner, faulty.clone(), Arc::new(faulty), Arc::new(Manifest::default()))
}

#[test]
fn a_failed_sync_poisons() {
    let (_, faulty, disk, manifest) = faulty();
    let (journal, _) = open(&disk, &manifest, &settings(SEGMENT_BYTES)).unwrap();
    journal.commit(&put(b"a", b"1"), true, &mut |_| {}).unwrap();
    // Once would not do: the file of the next segment may still be in the making, and is synced as well.
    faulty.fail(Fault::new(Call::Sync, Failure::Broken).lasting());
    let refused = journal.commit(&put(b"b", b"2"), true, &mut |_| panic!("must not be indexed")).unwrap_err();
    assert_eq!(refused.kind(), Kind::Io);
    faulty.heal();
    assert_eq!(journal.visible().0, 1);
    // The device works again, but the failed sync is not forgotten.
    for sync in [false, true] {
        let refused =
            journal.commit(&put(b"c", b"3"), sync, &mut |_| panic!("must not be indexed")).unwrap_err();
        assert_eq!(refused.kind(), Kind::Poisoned);
        assert!(
            refused.message().contains("open it again") && refused.message().contains("Sync of"),
            "{refused}"
        );
    }
    assert_eq!(journal.sync().unwrap_err().kind(), Kind::Poisoned);
    assert_eq!(journal.close().unwrap_err().kind(), Kind::Poisoned);
    drop(journal);
    // Opened again, what was acknowledged is there; what was not may be.
    let (journal, rows) = open(&disk, &manifest, &settings(SEGMENT_BYTES)).unwrap();
    assert!(rows.len() == 1 || rows.len() == 2);
    journal.commit(&put(b"d", b"4"), true, &mut |_| {}).unwrap();
}

#[test]
fn a_sync_up_to_a_number_asks_nothing_of_the_device_where_a_leader_has_synced() {
    let (_, faulty, disk, manifest) = faulty();
    let (journal, _) = open(&disk, &manifest, &settings(SEGMENT_BYTES)).unwrap();
    let synced = journal.commit(&put(b"a", b"1"), true, &mut |_| {}).unwrap();
    let unsynced = journal.commit(&put(b"b", b"2"), false, &mut |_| {}).unwrap();
    faulty.fail(Fault::new(Call::Sync, Failure::Broken).on("000001.seg").lasting());
    journal.sync_through(synced).unwrap();
    assert_eq!(journal.sync_through(unsynced).unwrap_err().kind(), Kind::Io);
}

#[test]
fn a_sync_up_to_a_number_syncs_no_later_segment() {
    let (_, faulty, disk, manifest) = faulty();
    let (journal, _) = open(&disk, &manifest, &settings(SEGMENT_BYTES)).unwrap();
    let first = journal.commit(&put(b"a", &[0; 3000]), false, &mut |_| {}).unwrap();
    while journal.segments().iter().all(|segment| segment.state != SegmentState::Sealed) {
        journal.commit(&put(b"b", &[0; 3000]), false, &mut |_| {}).unwrap();
    }
    assert!(journal.durable() < first, "no sync was asked for");
    faulty.fail(Fault::new(Call::Sync, Failure::Broken).on("000002.seg").lasting());
    journal.sync_through(first).unwrap();
    assert!(journal.durable() >= first);
    assert_eq!(journal.sync_through(journal.visible()).unwrap_err().kind(), Kind::Io);
}

/// The syncer fails on a sealed segment: no later commit may be acknowledged as durable.
#[test]
fn a_failed_background_sync_poisons() {
    let (_, faulty, disk, manifest) = faulty();
    let (journal, _) = open(&disk, &manifest, &settings(SEGMENT_BYTES)).unwrap();
    // A writer asks for a sync, so the syncer takes the segment when it is complete.
    journal.commit(&put(b"a", b"1"), true, &mut |_| {}).unwrap();
    faulty.fail(Fault::new(Call::Sync, Failure::Broken).on("000001.seg").lasting());
    let clock = Env::real().clock;
    let until = clock.now() + Duration::from_secs(300);
    let kind = loop {
        match journal.commit(&put(b"b", &[0; 1000]), false, &mut |_| {}) {
            Ok(_) => {
                assert!(clock.now() < until, "the syncer has not met the failure");
                clock.sleep(Duration::from_millis(1));
            }
            Err(error) => break error.kind(),
        }
    };
    assert_eq!(kind, Kind::Poisoned);
    faulty.heal();
    assert_eq!(journal.sync().unwrap_err().kind(), Kind::Poisoned);
}

#[test]
fn a_full_device_refuses_and_recovers() {
    let (inner, _, disk, manifest) = faulty();
    let (journal, _) = open(&disk, &manifest, &settings(SEGMENT_BYTES)).unwrap();
    journal.commit(&put(b"first", b""), false, &mut |_| {}).unwrap();
    inner.set_capacity(0);
    let mut acknowledged = 1;
    let error = loop {
        match journal.commit(&put(b"more", &[7; 500]), false, &mut |_| {}) {
            Ok(last) => {
                acknowledged += 1;
                assert_eq!(last.0, acknowledged);
                assert!(acknowledged * 500 < 1 << 30, "the device has room without end");
            }
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), Kind::Full, "{error}");
    assert!(error.message().contains("journal segment") && acknowledged > 5);
    // Batches that still fit are committed, existing ones can be synced, large ones are refused each time.
    journal.commit(&put(b"s", b""), true, &mut |_| {}).unwrap();
    acknowledged += 1;
    for _ in 0..3 {
        let refused =
            journal.commit(&put(b"large", &[7; 6000]), true, &mut |_| panic!("not placed")).unwrap_err();
        assert_eq!(refused.kind(), Kind::Full);
    }
    inner.set_capacity(u64::MAX);
    for _ in 0..50 {
        acknowledged += 1;
        assert_eq!(journal.commit(&put(b"more", &[7; 500]), false, &mut |_| {}).unwrap().0, acknowledged);
    }
    drop(journal);
    let (_, rows) = open(&disk, &manifest, &settings(SEGMENT_BYTES)).unwrap();
    assert_eq!(rows.len() as u64, acknowledged);
}

#[test]
fn a_refused_registration_is_tried_again_with_the_same_segment() {
    let (_, _, disk, manifest) = faulty();
    // The opening, for which a refusal is not an error, and two commits.
    *manifest.refuse.lock().unwrap() = 3;
    let (journal, _) = open(&disk, &manifest, &settings(SEGMENT_BYTES)).unwrap();
    for _ in 0..2 {
        let refused = journal.commit(&put(b"k", b"v"), false, &mut |_| panic!("not placed")).unwrap_err();
        assert!(refused.message().contains("refused by the test"), "{refused}");
    }
    assert_eq!(journal.commit(&put(b"k", b"v"), false, &mut |_| {}).unwrap().0, 1);
    assert_eq!(manifest.listed.lock().unwrap()[0].spec.id.0, 1);
}

/// A batch larger than a segment leaves the prepared one unused; ids still grow along the chain.
#[test]
fn a_large_batch_skips_the_prepared_segment() {
    let (_, _, disk, manifest) = faulty();
    let (journal, _) = open(&disk, &manifest, &settings(SEGMENT_BYTES)).unwrap();
    for value_len in [10, 50_000, 10, 10, 20_000, 10] {
        journal.commit(&put(b"k", &vec![1; value_len]), false, &mut |_| {}).unwrap();
        // Lets the preparer get ready, so that the next large batch meets a small segment.
        while manifest.listed.lock().unwrap().len() <= journal.segments().len() {
            std::thread::yield_now();
        }
    }
    let unused = journal.segments().iter().filter(|segment| segment.state == SegmentState::Unused).count();
    assert!(unused >= 2);
    drop(journal);
    let listed = manifest.listed.lock().unwrap().clone();
    let (replayed, rows) = replay_rows(&*disk, &listed, 0).unwrap();
    assert_eq!((rows.len(), replayed.cut), (6, None));
    assert!(replayed.unused.len() >= unused);
}

/// If it counted as complete, each trim would get it again and never remove it.
#[test]
fn a_segment_that_was_too_small_is_not_complete_before_the_active_one_is() {
    let (_, faulty, disk, manifest) = faulty();
    let (journal, _) = open(&disk, &manifest, &settings(SEGMENT_BYTES)).unwrap();
    // The next one is made and not registered. For the large batch it is too small, and no other is made.
    *manifest.refuse.lock().unwrap() = 1;
    journal.commit(&put(b"k", b"v"), false, &mut |_| {}).unwrap();
    while *manifest.refuse.lock().unwrap() > 0 {
        std::thread::yield_now();
    }
    faulty.fail(Fault::new(Call::Allocate, Failure::Full).lasting());
    let large = put(b"large", &[1; 50_000]);
    while journal.commit(&large, false, &mut |_| panic!("not placed")).unwrap_err().kind() != Kind::Full {}
    let states: Vec<_> = journal.segments().iter().map(|segment| segment.state).collect();
    assert_eq!(states, [SegmentState::Active, SegmentState::Unused]);
    assert_eq!(journal.complete_segments().len(), 0);
    faulty.heal();
    journal.commit(&large, false, &mut |_| {}).unwrap();
    let complete = journal.complete_segments();
    assert_eq!((complete.len(), complete[1].state), (2, SegmentState::Unused));
    assert_eq!(journal.trim(complete[1].id).unwrap(), [complete[0].id, complete[1].id]);
    assert_eq!(journal.complete_segments().len(), 0);
}

/// Every device call of a run fails in turn, once: an acknowledged commit is never lost.
#[test]
fn every_call_fails_once() {
    let calls =
        [Call::Create, Call::Allocate, Call::Map, Call::Sync, Call::SyncDir, Call::Remove, Call::Open];
    for call in calls {
        for skip in 0.. {
            let (inner, faulty, disk, manifest) = faulty();
            disk.create_dir(std::path::Path::new(crate::common::DIR)).unwrap();
            faulty.fail(Fault::new(call, Failure::Broken).after(skip));
            let (acknowledged, synced) = run_until_closed(&disk, &manifest);
            let spent = faulty.count(call) > skip;
            faulty.heal();
            check(&inner.kill(), &manifest, acknowledged);
            check(&inner.crash(skip), &manifest, synced);
            if !spent {
                break;
            }
        }
    }
}

/// Numbers that were acknowledged, and that were acknowledged as durable.
fn run_until_closed(disk: &Arc<dyn Disk>, manifest: &Arc<Manifest>) -> (u64, u64) {
    let (mut acknowledged, mut synced) = (0, 0);
    let Ok((journal, _)) = open(disk, manifest, &settings(SEGMENT_BYTES)) else { return (0, 0) };
    for number in 0..40u64 {
        let is_sync = number % 7 == 3;
        if let Ok(last) = journal.commit(&put(b"key", &[number as u8; 900]), is_sync, &mut |_| {}) {
            acknowledged = last.0;
            synced = if is_sync { last.0 } else { synced };
        }
    }
    if let Ok(last) = journal.close() {
        assert!(last.0 >= acknowledged);
        synced = last.0;
    }
    (acknowledged, synced)
}

fn check(disk: &MemDisk, manifest: &Manifest, at_least: u64) {
    let listed = manifest.listed.lock().unwrap().clone();
    let (replayed, _) = replay_rows(disk, &listed, 0).unwrap();
    assert!(replayed.last_seq.0 >= at_least, "{} of {at_least} came back", replayed.last_seq);
}
