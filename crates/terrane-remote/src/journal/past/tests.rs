//! What is before an object, and which states of the manifest a journal that was cut has all of.

use terrane_format::journal_object::JournalTag;
use terrane_format::manifest::{DatabaseId, Edit, EditOp, SegmentSpec};

use super::*;

fn before(objects: &[(u64, bool)], number: u64) -> Option<u64> {
    let sizes = objects.iter().map(|(number, is_fence)| (*number, if *is_fence { 128 } else { 500 }));
    object_before(&sizes.collect(), number).map(|(number, _)| number)
}

#[test]
fn void_objects_are_before_none() {
    let objects = [(1, true), (2, false), (17, false), (18, false), (19, true), (20, false), (35, false)];
    assert_eq!(before(&objects, 35), Some(19), "20 is void");
    assert_eq!(before(&objects, 19), Some(18));
    assert_eq!(before(&objects, 18), Some(17));
    assert_eq!(before(&objects, 17), Some(1), "2 is void");
    assert_eq!(before(&objects, 1), None);
    assert_eq!(before(&[(1, true), (40, false)], 40), None, "39 was deleted");
    assert_eq!(before(&[(1, true), (18, true)], 18), None, "17 was deleted");
    assert_eq!(before(&[(1, true), (17, true)], 17), Some(1));
}

/// A manifest that lists these segments.
fn listing(ids: std::ops::RangeInclusive<u64>) -> State {
    let state = State::new(DatabaseId(7), Default::default()).expect("a new database");
    let spec = |id: u64| SegmentSpec { id: SegmentId(id), file: id as u32, bytes: 1 << 16 };
    let ops = ids.map(|id| EditOp::AddSegment(spec(id))).collect();
    state.apply(&Edit { ops }).expect("they are new")
}

/// A journal without its front, of which the segment `id` is there, behind the commit `last_seq`.
fn cut_at(id: u64, last_seq: u64) -> PastJournal {
    let last = JournalObject {
        tag: JournalTag::Bytes,
        number: 9,
        parent: 1,
        first: 9,
        confirmed: 0,
        epoch: 1,
        nonce: 1,
        database: DatabaseId(7),
        is_whole: true,
        len: 0,
    };
    let previous = ChainLink { id: SegmentId(id - 1), last_seq: SeqNo(last_seq), checksum: 1 };
    let (file, bytes) = (id as u32, 1 << 16);
    let header = SegmentHeader { id: SegmentId(id), file, bytes, previous, edit: 0, salt: Some(1) };
    let segment = PastSegment { bytes: header.encode().to_vec(), held: Vec::new() };
    let segments = BTreeMap::from([(SegmentId(id), segment)]);
    PastJournal { last, is_from_start: false, times: Vec::new(), segments }
}

#[test]
fn a_state_needs_each_segment_that_it_lists() {
    let flushed = |state: &State, seq: u64| {
        let closed = EditOp::CleanClose { last_seq: SeqNo(seq) };
        state.apply(&Edit { ops: vec![closed] }).expect("it is closed")
    };
    let has_all =
        |journal: &PastJournal, ids, seq| journal.has_all_of(&flushed(&listing(ids), seq), SeqNo(seq));
    let journal = cut_at(5, 100);
    assert!(has_all(&journal, 5..=6, 100), "nothing is missing before the commit behind 100");
    assert!(!has_all(&journal, 5..=6, 99), "commit 100 is");
    // All of it is flushed, and it was deleted: a replay would miss it all the same.
    assert!(!has_all(&journal, 4..=6, 100));
    assert!(has_all(&journal, 6..=6, 0), "the segment before is there, so all behind it is");
}
