//! A device that becomes full while segments are left early: commits keep the room that they have, and the
//! journal ends with a mark.
#![cfg(not(feature = "shuttle"))]
#![allow(clippy::unwrap_used, reason = "a failed test may say so by a panic")]

use std::path::Path;
use std::sync::Arc;

use crate::common::{DIR, Manifest, open, put, replay_rows, settings};
use terrane_base::env::Env;
use terrane_base::{Kind, Result, SeqNo};
use terrane_device::{Call, Disk, Failure, Fault, FaultyDisk, MemDisk, OpenMode};
use terrane_journal::{
    FileJournal, Journal, JournalSettings, JournalStart, SegmentRegistrar, SegmentSpec, SegmentState,
};

const KIB: u64 = 1 << 10;

/// A journal of segments up to 1 MiB, the first of which has 64 KiB.
fn opened() -> (MemDisk, Arc<dyn Disk>, Arc<Manifest>, FileJournal) {
    let inner = MemDisk::new();
    let (disk, manifest): (Arc<dyn Disk>, Arc<Manifest>) = (Arc::new(inner.clone()), Arc::default());
    let settings = JournalSettings { long_segment_bytes: 2048 * KIB, ..settings(1024 * KIB) };
    let journal = open(&disk, &manifest, &settings).unwrap().0;
    (inner, disk, manifest, journal)
}

fn commit(journal: &dyn Journal, len: usize) {
    journal.commit(&put(b"key", &vec![7; len]), false, &mut |_| {}).unwrap();
}

fn refused(journal: &dyn Journal, len: usize) -> Kind {
    let refused = journal.commit(&put(b"key", &vec![7; len]), false, &mut |_| panic!("not placed"));
    refused.unwrap_err().kind()
}

#[test]
fn a_segment_with_room_is_not_left_where_no_other_one_can_be_made() {
    let (inner, _, _, journal) = opened();
    commit(&journal, 8000);
    inner.set_capacity(0);
    journal.seal_longer_than(0).unwrap();
    assert!(journal.complete_segments().is_empty(), "the rest of it is all the room that commits have");
    for _ in 0..5 {
        commit(&journal, 8000);
    }
    assert_eq!(refused(&journal, 20_000), Kind::Full);
    inner.set_capacity(u64::MAX);
    journal.seal_longer_than(0).unwrap();
    assert_eq!(journal.complete_segments().len(), 1, "another one can be made");
    commit(&journal, 20_000);
}

#[test]
fn a_refused_batch_leaves_the_prepared_segment_to_shorter_ones() {
    let (inner, disk, manifest, journal) = opened();
    commit(&journal, 8000);
    journal.seal_longer_than(0).unwrap();
    inner.set_capacity(0);
    for _ in 0..2 {
        assert_eq!(refused(&journal, 500_000), Kind::Full);
        commit(&journal, 8000);
    }
    inner.set_capacity(u64::MAX);
    commit(&journal, 500_000);
    journal.close().unwrap();
    drop(journal);
    let rows = replay_rows(&*disk, &manifest.listed.lock().unwrap(), 0).unwrap().1;
    assert_eq!(rows.iter().map(|row| row.2.len()).collect::<Vec<_>>(), [8000, 8000, 8000, 500_000]);
}

/// The segment of a batch that is longer than all others is left behind it, and no segment follows.
#[test]
fn a_close_without_space_for_a_segment_marks_the_end_of_the_one_that_was_left() {
    let (inner, disk, manifest, journal) = opened();
    commit(&journal, 8000);
    journal.seal_longer_than(0).unwrap();
    let prepared = journal.memory_bytes() - 64 * KIB;
    inner.set_capacity(inner.used_bytes() + 5_000_000 + 20_000);
    commit(&journal, 5_000_000);
    journal.seal_longer_than(0).unwrap();
    let left = journal.complete_segments().last().unwrap().clone();
    assert!(left.bytes > 5_000_000 && left.state == SegmentState::Sealed, "{left:?} behind {prepared} bytes");
    journal.close().unwrap();
    let last = journal.segments().iter().find(|segment| segment.id == left.id).unwrap().clone();
    assert!(last.used > left.used, "a mark lies behind the records: {last:?}");
    assert_eq!(last.state, SegmentState::Active, "no trim takes the segment with the mark");
    drop(journal);
    inner.set_capacity(u64::MAX);
    let (replayed, rows) = replay_rows(&*disk, &manifest.listed.lock().unwrap(), 0).unwrap();
    assert_eq!(rows.iter().map(|row| row.2.len()).collect::<Vec<_>>(), [8000, 5_000_000]);
    assert_eq!(replayed.segments.last().unwrap().end, last.used);
    // Records behind the greatest mark are a torn tail; those in front of it must be there.
    let name = format!("{:06}.seg", left.file);
    let path = std::path::Path::new(crate::common::DIR).join(name);
    let file = disk.open(&path, terrane_device::OpenMode::Write, false).unwrap();
    file.write_at(4_000_000, b"damage").unwrap();
    let damaged = replay_rows(&*disk, &manifest.listed.lock().unwrap(), 0).map(drop).unwrap_err();
    assert_eq!(damaged.kind(), Kind::Corrupt, "{damaged}");
}

#[test]
fn a_segment_that_was_left_and_trimmed_needs_no_mark() {
    let (inner, disk, manifest, journal) = opened();
    inner.set_capacity(inner.used_bytes() + 5_000_000 + 20_000);
    commit(&journal, 5_000_000);
    journal.seal_longer_than(0).unwrap();
    let left = journal.complete_segments().last().unwrap().id;
    inner.set_capacity(0);
    journal.trim(left).unwrap();
    manifest.listed.lock().unwrap().retain(|segment| segment.spec.id > left);
    journal.close().unwrap();
    drop(journal);
    assert_eq!(replay_rows(&*disk, &manifest.listed.lock().unwrap(), 0).unwrap().1.len(), 0);
}

/// Before the batch that room is made for, it would count beside it.
#[test]
fn a_long_segment_that_was_prepared_makes_room() {
    let (_, _, _, journal) = opened();
    for _ in 0..3 {
        commit(&journal, 1_500_000);
    }
    commit(&journal, 5_000_000);
    assert!(journal.memory_bytes() > 11_000_000, "a long segment comes: {} bytes", journal.memory_bytes());
    journal.remove_spares().unwrap();
    journal.seal_longer_than(0).unwrap();
    let last = journal.complete_segments().last().unwrap().id;
    journal.trim(last).unwrap();
    assert!(journal.memory_bytes() <= 1024 * KIB, "{} bytes are left", journal.memory_bytes());
    commit(&journal, 8000);
}

/// A manifest that says what a flush takes beside the records, and what a merge takes.
#[derive(Default)]
struct Beside {
    manifest: Manifest,
    overhead: u64,
    merge_room: u64,
}

impl SegmentRegistrar for Beside {
    fn register(&self, segment: &SegmentSpec) -> Result<()> {
        self.manifest.register(segment)
    }
    fn flush_overhead(&self, bytes: u64) -> u64 {
        assert!(bytes >= 64 * KIB, "a segment of {bytes} bytes");
        self.overhead
    }
    fn merge_room(&self) -> u64 {
        self.merge_room
    }
}

/// A journal on a device of one mebibyte.
fn on_one_mebibyte(beside: Beside) -> (MemDisk, Arc<dyn Disk>, FileJournal) {
    let memory = MemDisk::new();
    memory.set_capacity(1024 * KIB);
    let disk: Arc<dyn Disk> = Arc::new(memory.clone());
    disk.create_dir(Path::new(DIR)).unwrap();
    let settings = JournalSettings { leaves_room: true, ..settings(1024 * KIB) };
    let (beside, start) = (Arc::new(beside), JournalStart::default());
    let journal = FileJournal::open(disk.clone(), Path::new(DIR), &settings, &Env::real(), beside, &start);
    (memory, disk, journal.unwrap())
}

#[test]
fn the_room_that_is_left_has_what_a_flush_takes_beside_the_records() {
    let (memory, disk, journal) = on_one_mebibyte(Beside { overhead: 400 * KIB, ..Beside::default() });
    let refused =
        |number: u64| journal.commit(&put(&number.to_le_bytes(), &[7; 2000]), false, &mut |_| {}).err();
    let error = (0..1000).find_map(refused).expect("it takes more than the device has");
    assert!(error.lacks_space(), "{error}");
    let (used, free) = (memory.used_bytes(), disk.free_bytes(Path::new(DIR)).unwrap());
    assert!(used >= 64 * KIB && free >= used + 400 * KIB, "{used} bytes of segments, {free} are free");
}

/// Segments of deletes may take of the kept room, each behind a flush, as long as a merge has some.
#[test]
fn the_kept_room_has_a_segment_of_deletes_and_what_a_merge_takes() {
    const MERGE: u64 = 200 * KIB;
    let (_, disk, journal) = on_one_mebibyte(Beside { merge_room: MERGE, ..Beside::default() });
    let commit = || journal.commit(&put(b"key", &[7; 2000]), false, &mut |_| {}).map(drop);
    let free = || disk.free_bytes(Path::new(DIR)).unwrap();
    // Another program takes the free bytes, as runs of deletes do.
    let takes = disk.open(Path::new("other"), OpenMode::Create, false).unwrap();
    let full = (0..1000).find_map(|_| commit().err()).expect("it takes more than the device has");
    assert!(full.lacks_space() && free() >= MERGE + 64 * KIB, "{full}, {} bytes", free());
    takes.allocate(0, free() - MERGE - 64 * KIB).unwrap();
    journal.use_kept_room(Some(SeqNo(1)));
    commit().unwrap();
    assert_eq!(free(), MERGE);
    journal.use_kept_room(Some(SeqNo(2)));
    let refused = (0..1000).find_map(|_| commit().err()).expect("the segment ends");
    assert!(refused.lacks_space(), "{refused}");
    assert_eq!(free(), MERGE, "a merge would have no room");
}

#[test]
fn a_segment_that_cannot_be_mapped_leaves_the_kept_room_to_the_next_one() {
    let memory = MemDisk::new();
    memory.set_capacity(1024 * KIB);
    let faulty = FaultyDisk::new(Arc::new(memory));
    let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
    let rule = JournalSettings { leaves_room: true, ..settings(1024 * KIB) };
    let (journal, _) = open(&disk, &Arc::default(), &rule).unwrap();
    let commit = || journal.commit(&put(b"key", &[7; 2000]), false, &mut |_| {}).map(drop);
    let full = (0..1000).find_map(|_| commit().err()).expect("it takes more than the device has");
    assert_eq!(full.kind(), Kind::Full);
    faulty.fail(Fault::new(Call::Map, Failure::Broken));
    journal.use_kept_room(Some(SeqNo(1)));
    assert_eq!(commit().unwrap_err().kind(), Kind::Io);
    commit().unwrap();
}
