//! Damaged, cut, exchanged and stale segments: replay gives a prefix of what was written, or an error that
//! names file and offset; never wrong records, never a panic.
#![cfg(not(feature = "shuttle"))]
#![allow(clippy::unwrap_used, reason = "a failed test may say so by a panic")]

use std::path::PathBuf;
use std::sync::Arc;

use crate::common::{DIR, Manifest, Row, open, put, replay_rows, settings};
use proptest::prelude::*;
use terrane_base::{Kind, SegmentId};
use terrane_device::{Disk, File, MemDisk, OpenMode};
use terrane_journal::{Journal, ListedSegment, file_name};

const SEGMENT_BYTES: u64 = 4096;

/// A closed journal of some segments, what it holds, and what the manifest lists.
struct Written {
    disk: Arc<dyn Disk>,
    manifest: Arc<Manifest>,
    rows: Vec<Row>,
}

/// Commits `count` records, syncing after those that `sync` chooses, and lets go without closing.
fn write(count: u64, value_len: usize, sync: impl Fn(u64) -> bool) -> Written {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let manifest = Arc::new(Manifest::default());
    let (journal, _) = open(&disk, &manifest, &settings(SEGMENT_BYTES)).unwrap();
    let rows = commit_rows(&journal, 1..count + 1, value_len, sync);
    Written { disk, manifest, rows }
}

fn commit_rows(
    journal: &dyn Journal,
    numbers: std::ops::Range<u64>,
    value_len: usize,
    sync: impl Fn(u64) -> bool,
) -> Vec<Row> {
    numbers
        .map(|number| {
            let (key, value) = (format!("k{number}").into_bytes(), vec![number as u8; value_len]);
            let last = journal.commit(&put(&key, &value), sync(number), &mut |_| {}).unwrap();
            assert_eq!(last.0, number);
            (number, key, value)
        })
        .collect()
}

impl Written {
    fn listed(&self) -> Vec<ListedSegment> {
        self.manifest.listed.lock().unwrap().clone()
    }

    fn file(&self, number: u32) -> Arc<dyn File> {
        self.disk.open(&PathBuf::from(DIR).join(file_name(number)), OpenMode::Write, false).unwrap()
    }

    fn replay(&self) -> terrane_base::Result<(terrane_journal::Replayed, Vec<Row>)> {
        replay_rows(&*self.disk, &self.listed(), 0)
    }

    /// Replays; whatever comes out is a prefix, and an error has a place.
    fn replay_prefix(&self, what: &str) -> Option<usize> {
        match self.replay() {
            Ok((replayed, rows)) => {
                assert!(self.rows.starts_with(&rows), "{what}: not a prefix");
                assert_eq!(replayed.last_seq.0, rows.len() as u64, "{what}");
                Some(rows.len())
            }
            Err(error) => {
                assert_eq!(error.kind(), Kind::Corrupt, "{what}: {error}");
                assert!(error.place().is_some_and(|place| place.file.ends_with(".seg")), "{what}: {error}");
                None
            }
        }
    }
}

fn byte_at(file: &dyn File, offset: u64) -> u8 {
    let mut byte = [0];
    file.read_at(offset, &mut byte).unwrap();
    byte[0]
}

#[test]
fn whole_journal_comes_back_over_reopenings() {
    let mut written = write(40, 100, |number| number == 7);
    assert_eq!(written.replay().unwrap().1, written.rows);
    for round in 1..4 {
        let (journal, rows) = open(&written.disk, &written.manifest, &settings(SEGMENT_BYTES)).unwrap();
        assert_eq!(rows, written.rows);
        let first = written.rows.len() as u64 + 1;
        written.rows.extend(commit_rows(&journal, first..first + 40, 100, |number| number % 9 == 0));
        if round == 2 {
            journal.close().unwrap();
        }
    }
    let (replayed, rows) = written.replay().unwrap();
    assert_eq!((rows, replayed.cut), (written.rows, None));
}

#[test]
fn a_manifest_without_segments_is_an_empty_journal() {
    let written = write(0, 0, |_| false);
    let (replayed, rows) = written.replay().unwrap();
    assert_eq!((replayed.last_seq.0, rows.len(), replayed.cut), (0, 0, None));
}

/// The end of an unsynced journal is torn at every byte: what stands before the tear comes back, the tear is
/// reported, and nothing is called corrupt.
#[test]
fn torn_at_every_byte() {
    let written = write(12, 20, |_| false);
    let file = written.file(1);
    let end = written.replay().unwrap().0.segments[0].end;
    let mut bytes = vec![0; end as usize];
    file.read_at(0, &mut bytes).unwrap();
    let mut lens = std::collections::BTreeSet::new();
    for filler in [0u8, 0xa5] {
        for cut in 64..end {
            file.write_at(cut, &vec![filler; (end - cut) as usize]).unwrap();
            let (replayed, rows) = written.replay().unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
            assert!(written.rows.starts_with(&rows));
            assert!(replayed.segments[0].end <= cut + 8, "padding at most lies behind the cut");
            lens.insert(rows.len());
            file.write_at(0, &bytes).unwrap();
        }
    }
    assert_eq!(lens.into_iter().collect::<Vec<_>>(), (0..=12).collect::<Vec<_>>());
}

/// A torn group with an intact one behind it is reported as a cut.
#[test]
fn a_tear_before_a_valid_group_is_reported() {
    let written = write(12, 20, |_| false);
    let file = written.file(1);
    let end = written.replay().unwrap().0.segments[0].end;
    let middle = end / 2;
    file.write_at(middle, &[!byte_at(&*file, middle)]).unwrap();
    let (replayed, rows) = written.replay().unwrap();
    assert!(rows.len() < 12 && !rows.is_empty());
    let cut = replayed.cut.expect("reported");
    assert_eq!((cut.id, cut.offset), (SegmentId(1), replayed.segments[0].end));
    assert!(cut.file.ends_with("000001.seg") && cut.reason.contains("expected"), "{cut:?}");
}

/// Every bit of a journal that was closed (all of it durable) is flipped: harmless or reported, never less.
#[test]
fn every_bit_flip_in_a_closed_journal_is_found() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let manifest = Arc::new(Manifest::default());
    let (journal, _) = open(&disk, &manifest, &settings(SEGMENT_BYTES)).unwrap();
    let rows = commit_rows(&journal, 1..30, 180, |number| number % 5 == 0);
    journal.close().unwrap();
    drop(journal);
    let written = Written { disk, manifest, rows };
    let segments = written.replay().unwrap().0.segments;
    assert!(segments.len() > 1);
    let (mut found, mut harmless) = (0u32, 0u32);
    for segment in &segments {
        let file = written.file(segment.spec.file);
        for bit in 0..segment.end * 8 {
            let (offset, mask) = (bit / 8, 1u8 << (bit % 8));
            let byte = byte_at(&*file, offset);
            file.write_at(offset, &[byte ^ mask]).unwrap();
            match written.replay_prefix(&format!("bit {bit} of {}", segment.spec.id)) {
                None => found += 1,
                Some(count) => {
                    // Only padding, or the last mark itself, may go unnoticed; no record may be lost.
                    assert_eq!(count, written.rows.len(), "bit {bit} of {} lost records", segment.spec.id);
                    harmless += 1;
                }
            }
            file.write_at(offset, &[byte]).unwrap();
        }
    }
    assert!(found > 30_000 && harmless < found / 20, "{found} found, {harmless} harmless");
}

/// With a sync in the middle, damage before the mark is corruption, damage behind it a torn tail.
#[test]
fn the_mark_tells_corruption_from_a_torn_tail() {
    // Number 11 carries the mark "durable up to 10".
    check_mark(&write(20, 40, |number| number == 10));
}

/// A thread that does not lead makes durable what it wrote: the next group says so as well.
#[test]
fn the_mark_tells_what_a_thread_beside_the_leader_made_durable() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let manifest = Arc::new(Manifest::default());
    let (journal, _) = open(&disk, &manifest, &settings(SEGMENT_BYTES)).unwrap();
    let mut rows = commit_rows(&journal, 1..11, 40, |_| false);
    journal.sync_through(journal.visible()).unwrap();
    rows.extend(commit_rows(&journal, 11..21, 40, |_| false));
    drop(journal);
    check_mark(&Written { disk, manifest, rows });
}

/// Damages each byte of 20 records, of which 10 were durable when the eleventh was written.
fn check_mark(written: &Written) {
    let file = written.file(1);
    let end = written.replay().unwrap().0.segments[0].end;
    for offset in 64..end {
        let byte = byte_at(&*file, offset);
        file.write_at(offset, &[byte ^ 0x10]).unwrap();
        match written.replay_prefix(&format!("offset {offset}")) {
            None => assert!(offset < end / 2 + 64, "offset {offset} is behind the mark"),
            Some(count) => assert!(count >= 10, "offset {offset}: synced records are lost silently"),
        }
        file.write_at(offset, &[byte]).unwrap();
    }
}

/// The floor from the manifest does the same where no later group carries a mark.
#[test]
fn the_floor_counts_as_a_mark() {
    let written = write(10, 40, |number| number == 10);
    let file = written.file(1);
    let end = written.replay().unwrap().0.segments[0].end;
    file.write_at(end - 60, &[0xff; 30]).unwrap();
    assert_eq!(written.replay().unwrap().1.len(), 9);
    let error = replay_rows(&*written.disk, &written.listed(), 10).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), Kind::Corrupt);
    assert!(
        error.message().contains("durable up to #10") && error.message().contains("only up to #9"),
        "{error}"
    );
}

/// Each segment but the last is removed, emptied, shortened, or exchanged for another: refused, or cut there.
#[test]
fn no_segment_is_ever_skipped() {
    for damage in 0..5 {
        let count = write(60, 300, |_| false).listed().len() as u32;
        assert!(count > 4);
        for victim in 1..count - 1 {
            let written = write(60, 300, |_| false);
            let path = PathBuf::from(DIR).join(file_name(victim));
            match damage {
                0 => written.disk.remove(&path).unwrap(),
                1 => written.file(victim).set_len(SEGMENT_BYTES / 2).unwrap(),
                2 => written.file(victim).write_at(0, &[0; SEGMENT_BYTES as usize]).unwrap(),
                3 => written.file(victim).write_at(0, &[0; 64]).unwrap(),
                _ => {
                    let mut other = vec![0; SEGMENT_BYTES as usize];
                    written.file(victim % (count - 2) + 1).read_at(0, &mut other).unwrap();
                    written.file(victim).write_at(0, &other).unwrap();
                }
            }
            let outcome = written.replay_prefix(&format!("damage {damage} of {victim}"));
            match damage {
                0 | 1 => assert_eq!(outcome, None, "a listed file is never short or missing"),
                // The syncer may have made it durable, and the next segment says so; else it is a torn tail.
                _ => assert!(outcome.is_none_or(|rows| rows < 60), "damage {damage} of {victim}"),
            }
        }
    }
}

/// A segment whose every checksum is right but which is not the one that its successor followed.
#[test]
fn an_exchanged_segment_is_refused() {
    let written = write(60, 300, |_| false);
    let other = {
        let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
        let manifest = Arc::new(Manifest::default());
        let (journal, _) = open(&disk, &manifest, &settings(SEGMENT_BYTES)).unwrap();
        for number in 1..61u64 {
            let (key, value) = (format!("K{number}").into_bytes(), vec![number as u8; 300]);
            journal.commit(&put(&key, &value), false, &mut |_| {}).unwrap();
        }
        Written { disk, manifest, rows: Vec::new() }
    };
    let mut bytes = vec![0; SEGMENT_BYTES as usize];
    other.file(1).read_at(0, &mut bytes).unwrap();
    written.file(1).write_at(0, &bytes).unwrap();
    let error = written.replay().map(|_| ()).unwrap_err();
    assert!(error.kind() == Kind::Corrupt && error.message().contains("do not belong together"), "{error}");
}

/// Recycled files hold the groups of their former segments; none of them may come back.
#[test]
fn stale_bytes_of_a_recycled_file_are_not_seen() {
    let mut written = write(0, 0, |_| false);
    let (journal, _) = open(&written.disk, &written.manifest, &settings(SEGMENT_BYTES)).unwrap();
    let mut next = 1;
    let mut reused = 0;
    for _ in 0..40 {
        written.rows.extend(commit_rows(&journal, next..next + 15, 200, |_| false));
        next += 15;
        let segments = journal.segments();
        let upto = segments[segments.len() - 1].id;
        let dropped =
            segments.iter().filter(|segment| segment.id < upto).map(|segment| segment.last_seq.0).max();
        written.manifest.listed.lock().unwrap().retain(|listed| listed.spec.id >= upto);
        journal.trim(SegmentId(upto.0 - 1)).unwrap();
        if let Some(dropped) = dropped {
            written.rows.retain(|row| row.0 > dropped);
        }
        let listed = written.listed();
        reused += usize::from(listed.iter().any(|segment| u64::from(segment.spec.file) != segment.spec.id.0));
        let rows = written.replay().unwrap().1;
        assert_eq!(rows, written.rows);
    }
    assert!(reused > 10, "the test must reuse files");
}

/// Removed at rest: the segments that live stay, and the next ones come in new files.
#[test]
fn an_opening_tolerates_removed_spare_segments() {
    let written = write(0, 0, |_| false);
    let (journal, _) = open(&written.disk, &written.manifest, &settings(SEGMENT_BYTES)).unwrap();
    let (mut rows, mut next, mut removed) = (Vec::new(), 1, 0);
    for _ in 0..20 {
        rows.extend(commit_rows(&journal, next..next + 15, 200, |_| false));
        next += 15;
        let segments = journal.segments();
        let upto = segments[segments.len() - 1].id;
        let dropped =
            segments.iter().filter(|segment| segment.id < upto).map(|segment| segment.last_seq.0).max();
        written.manifest.listed.lock().unwrap().retain(|listed| listed.spec.id >= upto);
        journal.trim(SegmentId(upto.0 - 1)).unwrap();
        rows.retain(|row| dropped.is_none_or(|dropped| row.0 > dropped));
        removed += journal.remove_spares().unwrap();
        assert_eq!(written.replay().unwrap().1, rows);
    }
    let newest = written.listed().iter().map(|segment| segment.spec.file).max().unwrap();
    assert!(
        removed >= 5 * SEGMENT_BYTES && newest > 8,
        "the test must remove files: {removed} bytes, {newest} files"
    );
}

/// Groups behind an end that an earlier replay recorded are ignored, however valid they are.
#[test]
fn a_recorded_end_holds_for_ever() {
    let written = write(12, 20, |_| false);
    let before = written.replay().unwrap().0.segments[0].end;
    // Damage number 7; the engine recovers 6 and records it.
    let file = written.file(1);
    let offset = before / 2;
    let byte = byte_at(&*file, offset);
    file.write_at(offset, &[!byte]).unwrap();
    let (journal, rows) = open(&written.disk, &written.manifest, &settings(SEGMENT_BYTES)).unwrap();
    let kept = rows.len() as u64;
    let mut expected = rows;
    expected.push((kept + 1, b"new".to_vec(), b"value".to_vec()));
    journal.commit(&put(b"new", b"value"), true, &mut |_| {}).unwrap();
    drop(journal);
    // The damage heals: the old groups are whole again, but they were given up.
    file.write_at(offset, &[byte]).unwrap();
    assert_eq!(written.replay().unwrap().1, expected);
    // Damage before the recorded end is corruption.
    file.write_at(70, &[!byte_at(&*file, 70)]).unwrap();
    let error = written.replay().map(|_| ()).unwrap_err();
    assert!(error.kind() == Kind::Corrupt && error.message().contains("was recovered up to"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Any bytes over any part of a journal. What was durable is there or is missed, as long as one segment
    /// that was begun behind it is whole: damage that takes every later group as well takes all marks with
    /// it.
    #[test]
    fn random_damage(
        places in prop::collection::vec((1u32..5, 0u64..SEGMENT_BYTES, prop::collection::vec(any::<u8>(), 1..300)), 1..4),
        sync_at in 0u64..80,
    ) {
        let written = write(80, 150, |number| number == sync_at);
        let whole = written.replay().unwrap().0.segments;
        prop_assert!(whole.len() >= 4, "the damage must have segments to fall into");
        for (number, offset, bytes) in &places {
            let len = bytes.len().min((SEGMENT_BYTES - offset) as usize);
            written.file(*number).write_at(*offset, &bytes[..len]).unwrap();
        }
        let has_witness = whole.windows(2).any(|pair| {
            pair[0].last_seq.0 >= sync_at && places.iter().all(|place| place.0 != pair[1].spec.file)
        });
        if let Some(rows) = written.replay_prefix("random damage") {
            prop_assert!(!has_witness || rows as u64 >= sync_at);
        }
    }

    /// Segments made of nothing but noise, with a valid header or without.
    #[test]
    fn random_segments(bytes in prop::collection::vec(any::<u8>(), SEGMENT_BYTES as usize), keep_header: bool) {
        let mut written = write(1, 10, |_| false);
        written.rows.clear();
        written.file(1).write_at(if keep_header { 64 } else { 0 }, &bytes[..SEGMENT_BYTES as usize - 64]).unwrap();
        prop_assert_eq!(written.replay_prefix("noise"), Some(0));
    }
}
