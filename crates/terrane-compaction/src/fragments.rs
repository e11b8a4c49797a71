//! Range deletes as *fragments*: disjoint ranges of keys, each with the newest number of each stripe of
//! snapshots ([`crate::versions`]), because within a stripe the newer one hides everything that an older one
//! does.
//!
//! A walk over the starts and the ends of all pieces in key order keeps the numbers that are over the
//! current key, and how many pieces have each.

use std::collections::BTreeMap;

use terrane_base::{Collation, SeqNo};
use terrane_format::range_deletes::Fragment;

/// Range deletes that may overlap, in any order, as disjoint fragments in key order, each with the newest
/// number of each stripe. `snapshots` are the live ones, ascending.
#[must_use]
pub fn fragmented(pieces: &[Fragment], snapshots: &[SeqNo], collation: &Collation) -> Vec<Fragment> {
    let mut starts: Vec<&Fragment> = pieces.iter().collect();
    let mut ends = starts.clone();
    collation.sort_by_key(&mut starts, |piece| &piece.start);
    collation.sort_by_key(&mut ends, |piece| &piece.end);
    // How many pieces over the current key have a number; below zero if a comparator contradicts itself and
    // pieces end before they start.
    let mut active: BTreeMap<SeqNo, isize> = BTreeMap::new();
    let (mut started, mut ended) = (0, 0);
    let mut fragments = Vec::new();
    let mut from: &[u8] = &[];
    while let Some(end) = ends.get(ended) {
        let next_start = starts.get(started).map(|piece| piece.start.as_slice());
        // At equal keys ends come first.
        let starts_next = next_start.is_some_and(|start| collation.lt(start, &end.end));
        let to = if starts_next { next_start.unwrap_or_default() } else { &end.end };
        if collation.lt(from, to) && !active.is_empty() {
            add(&mut fragments, (from, to), &newest_of_stripes(&active, snapshots), collation);
        }
        from = to;
        let piece = if starts_next { starts[started] } else { end };
        for seq in &piece.seqs {
            let count = active.entry(*seq).or_default();
            *count += if starts_next { 1 } else { -1 };
            if *count == 0 {
                active.remove(seq);
            }
        }
        if starts_next { started += 1 } else { ended += 1 }
    }
    fragments
}

fn newest_of_stripes(active: &BTreeMap<SeqNo, isize>, snapshots: &[SeqNo]) -> Vec<SeqNo> {
    let mut kept: Vec<SeqNo> = Vec::new();
    let mut stripe = None;
    for (seq, _) in active.iter().rev().filter(|(_, count)| **count > 0) {
        let own = snapshots.partition_point(|snapshot| snapshot < seq);
        if stripe.replace(own) != Some(own) {
            kept.push(*seq);
        }
    }
    debug_assert!(kept.is_sorted_by(|a, b| a > b), "the newest number comes first");
    kept
}

/// Appends a fragment, unless it is empty or has no number.
pub(crate) fn add(
    fragments: &mut Vec<Fragment>,
    (start, end): (&[u8], &[u8]),
    seqs: &[SeqNo],
    collation: &Collation,
) {
    if collation.le(end, start) || seqs.is_empty() {
        return;
    }
    debug_assert!(
        !collation.is_bytes() || fragments.last().is_none_or(|last| *last.end <= *start),
        "fragments come in order, and apart: a search would miss one"
    );
    if let Some(last) = fragments.last_mut().filter(|last| last.end == start && last.seqs == seqs) {
        end.clone_into(&mut last.end);
        return;
    }
    fragments.push(Fragment { start: start.to_vec(), end: end.to_vec(), seqs: seqs.to_vec() });
}
