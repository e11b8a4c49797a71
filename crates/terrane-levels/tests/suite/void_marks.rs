//! Void marks, of extents that were announced and not ingested: known as long as a reader may meet them in
//! the journal, and no longer.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use common::database;
use terrane_base::{SegmentId, SeqNo};
use terrane_device::MemDisk;
use terrane_format::manifest::{Edit, EditOp, Kept, Seal, SegmentSpec};

const BYTES: u64 = 1 << 20;

fn segment(id: u64) -> EditOp {
    EditOp::AddSegment(SegmentSpec { id: SegmentId(id), file: id as u32, bytes: BYTES })
}

/// Ten numbers in each segment.
fn last(id: u64) -> SeqNo {
    SeqNo(id * 10)
}

fn seal(id: u64) -> EditOp {
    let seal = Seal { last_seq: last(id), end_offset: BYTES / 2, checksum: 0 };
    EditOp::SealSegment { id: SegmentId(id), seal }
}

fn void(seq: u64) -> EditOp {
    EditOp::VoidMark { seq: SeqNo(seq) }
}

fn remove(id: u64) -> EditOp {
    EditOp::RemoveSegment { id: SegmentId(id) }
}

/// The marks that are known after each of these edits, which follow one that makes three segments with marks
/// in each.
fn known_after(edits: Vec<Vec<EditOp>>) -> Vec<Vec<u64>> {
    let begin = vec![segment(1), segment(2), segment(3), seal(1), seal(2), void(3), void(12), void(21)];
    let count = edits.len();
    let edits: Vec<_> = std::iter::once(begin).chain(edits).map(|ops| Edit { ops }).collect();
    let (_, states) = database(&MemDisk::new(), &edits);
    let marks = states.iter().map(|state| state.void_marks.iter().map(|seq| seq.0).collect());
    marks.skip(states.len() - count).collect()
}

#[test]
fn without_history_a_mark_goes_with_its_segment() {
    let known = known_after(vec![vec![remove(1)], vec![remove(2)]]);
    assert_eq!(known, [vec![12, 21], vec![21]]);
    // A segment behind an older one keeps its marks for readers of the older one; they go with it or with the
    // next.
    assert_eq!(known_after(vec![vec![remove(2)], vec![remove(1)]]), [vec![3, 12, 21], vec![12, 21]]);
    // The end of the last segment is not known.
    assert_eq!(known_after(vec![vec![remove(1), remove(2), remove(3)]]), [vec![21]]);
}

#[test]
fn a_void_mark_is_removed_with_its_history() {
    let kept = |id: u64| {
        let kept = Kept {
            first_seq: SeqNo(last(id - 1).0 + 1),
            last_seq: last(id),
            end_offset: BYTES / 2,
            freed_at: 0,
        };
        EditOp::KeepSegment { id: SegmentId(id), kept }
    };
    let forget = |id| EditOp::ForgetSegment { id: SegmentId(id) };
    let known = known_after(vec![vec![kept(1)], vec![kept(2)], vec![forget(1)], vec![forget(2)]]);
    assert_eq!(known, [vec![3, 12, 21], vec![3, 12, 21], vec![12, 21], vec![21]]);
}
