//! The version filter against brute force: every short history of a key under every set of snapshots.

use terrane_base::{RecordKind, SeqKind, SeqNo};
use terrane_compaction::versions::{Verdict, VersionFilter, in_one_stripe};

const LEN_MAX: usize = 5;

/// The versions that stay, newest first.
fn survivors(versions: &[SeqKind], snapshots: &[SeqNo], is_bottom: bool) -> Vec<SeqKind> {
    let mut filter = VersionFilter::new(snapshots);
    filter.start_key();
    let mut kept = Vec::new();
    for version in versions {
        match filter.next(*version, || is_bottom) {
            Verdict::Drop | Verdict::Hold => {}
            Verdict::Keep => {
                kept.extend_from_slice(filter.held());
                filter.clear_held();
                kept.push(*version);
            }
        }
    }
    kept
}

/// The newest version that a reader at `seq` finds.
fn read(versions: &[SeqKind], seq: SeqNo) -> Option<SeqKind> {
    versions.iter().copied().find(|version| version.seq() <= seq)
}

/// As a reader sees it where nothing lies deeper: a delete is nothing.
fn read_value(versions: &[SeqKind], seq: SeqNo) -> Option<SeqKind> {
    read(versions, seq).filter(|version| !version.is_delete())
}

/// Numbers 1 to `len`, kinds by the bits of `kinds`, newest first.
fn history(len: usize, kinds: usize) -> Vec<SeqKind> {
    let kind = |bit: usize| if kinds >> bit & 1 == 0 { RecordKind::Put } else { RecordKind::Delete };
    (0..len).rev().map(|bit| SeqKind::new(SeqNo(10 * (bit as u64 + 1)), kind(bit))).collect()
}

fn each_case(mut check: impl FnMut(&[SeqKind], &[SeqNo], &[SeqNo])) {
    for len in 0..=LEN_MAX {
        for kinds in 0..1 << len {
            let versions = history(len, kinds);
            // Snapshots at, before and behind every version.
            let moments: Vec<SeqNo> = (0..=2 * len as u64 + 1).map(|half| SeqNo(5 * half)).collect();
            for chosen in 0..1usize << moments.len().min(12) {
                let is_chosen = |index: &usize| chosen >> index & 1 == 1;
                let snapshots: Vec<SeqNo> =
                    (0..moments.len()).filter(is_chosen).map(|i| moments[i]).collect();
                let mut readers = snapshots.clone();
                readers.push(SeqNo::MAX);
                check(&versions, &snapshots, &readers);
            }
        }
    }
}

#[test]
fn readers_see_the_same_above_other_levels() {
    each_case(|versions, snapshots, readers| {
        let kept = survivors(versions, snapshots, false);
        for reader in readers {
            assert_eq!(
                read(&kept, *reader),
                read(versions, *reader),
                "{versions:?} under {snapshots:?} at {reader}"
            );
        }
    });
}

#[test]
fn readers_see_the_same_in_the_bottom() {
    each_case(|versions, snapshots, readers| {
        let kept = survivors(versions, snapshots, true);
        for reader in readers {
            let (found, expected) = (read_value(&kept, *reader), read_value(versions, *reader));
            assert_eq!(found, expected, "{versions:?} under {snapshots:?} at {reader}");
        }
    });
}

#[test]
fn versions_that_no_reader_sees_are_dropped() {
    each_case(|versions, snapshots, readers| {
        for is_bottom in [false, true] {
            let kept = survivors(versions, snapshots, is_bottom);
            for version in &kept {
                let is_found = readers.iter().any(|reader| read(&kept, *reader) == Some(*version));
                assert!(is_found, "{version:?} of {versions:?} stays under {snapshots:?}");
            }
            let last_is_delete = kept.last().is_some_and(|last| last.is_delete());
            assert!(!is_bottom || !last_is_delete, "{kept:?}: a delete hides nothing");
        }
    });
}

#[test]
fn duplicates_go() {
    let version = SeqKind::new(SeqNo(7), RecordKind::Put);
    assert_eq!(survivors(&[version, version], &[SeqNo(7), SeqNo(3)], false), [version]);
}

#[test]
fn one_stripe_means_that_a_merge_in_the_bottom_drops_every_delete() {
    each_case(|versions, snapshots, _| {
        let (Some(newest), Some(oldest)) = (versions.first(), versions.last()) else { return };
        if in_one_stripe(snapshots, oldest.seq(), newest.seq()) {
            let kept = survivors(versions, snapshots, true);
            assert!(!kept.iter().any(|version| version.is_delete()), "{versions:?} under {snapshots:?}");
        }
    });
}
