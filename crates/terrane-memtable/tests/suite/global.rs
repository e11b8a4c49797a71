//! The global index against a model: merges by pointer, versions dropped under snapshots, cancelled merges.
#![cfg(not(feature = "shuttle"))]
#![expect(clippy::unwrap_used, reason = "a failure fails the test")]

use std::sync::Arc;

use crate::support::{Expected, Model, Placed, Segments, rows_backward, rows_forward};
use proptest::collection::vec;
use proptest::prelude::*;
use terrane_base::{RecordKind, SeqNo};
use terrane_memtable::{GlobalIndex, Memtable};

fn memtable_of(placed: &[Placed]) -> Arc<Memtable> {
    let memtable = Memtable::new(placed.first().map_or(SeqNo(1), |record| record.seq));
    placed.iter().for_each(|record| record.insert_into(&memtable));
    memtable
}

/// The versions of one memtable that a merge keeps: the newest of each key, and what a snapshot sees.
fn kept(placed: &[Placed], snapshots: &[SeqNo]) -> Vec<Placed> {
    let mut model = Model::default();
    placed.iter().for_each(|record| model.insert(record));
    let seen = |record: &&Placed| {
        let sees = |seq: &SeqNo| {
            model.get(&record.key, *seq).is_some_and(|(_, seq_kind, _)| seq_kind.seq() == record.seq)
        };
        sees(&SeqNo::MAX) || snapshots.iter().any(sees)
    };
    placed.iter().filter(seen).cloned().collect()
}

fn as_seen(model: &Model, key: &[u8], seq: SeqNo) -> Option<Expected> {
    model.get(key, seq)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn merges_agree_with_a_sorted_map(
        memtables in vec(vec((vec(0u8..3, 0..4), any::<bool>()), 0..80), 1..5),
        snapshots in vec(1u64..400, 0..6),
        cancelled_after in 0usize..3,
    ) {
        let mut snapshots: Vec<_> = snapshots.into_iter().map(SeqNo).collect();
        snapshots.sort();
        let mut segments = Segments::new(512);
        let mut seq = 0;
        let memtables: Vec<Vec<Placed>> = memtables.into_iter().map(|records| {
            records.into_iter().map(|(key, delete)| {
                seq += 1;
                let kind = if delete { RecordKind::Delete } else { RecordKind::Put };
                // Values of a few KiB, so that `progress` is called within a merge.
                let value = if delete { Vec::new() } else { vec![seq as u8; 4096] };
                segments.append(seq, kind, &key, &value)
            }).collect()
        }).collect();
        let global = GlobalIndex::from_frozen(memtable_of(&memtables[0]));
        let mut merged = Model::default();
        let mut everything = Model::default();
        memtables[0].iter().for_each(|record| merged.insert(record));
        memtables.iter().flatten().for_each(|record| everything.insert(record));
        for placed in &memtables[1..] {
            let frozen = memtable_of(placed);
            let mut calls = 0;
            let mut progress = |_| { calls += 1; calls != cancelled_after };
            if !global.merge(&frozen, &snapshots, &mut progress) {
                prop_assert!(global.merge(&frozen, &snapshots, &mut |_| true));
            }
            kept(placed, &snapshots).iter().for_each(|record| merged.insert(record));
        }
        let rows = merged.rows();
        let mut cursor = global.cursor();
        prop_assert_eq!(rows_forward(&mut cursor), rows.clone());
        prop_assert!(rows_backward(&mut cursor).iter().eq(rows.iter().rev()));
        prop_assert_eq!(global.entry_count(), rows.len() as u64);
        for (key, ..) in &everything.rows() {
            for seq in snapshots.iter().copied().chain([SeqNo::MAX]) {
                let found = global.get(key, seq).map(|version| (version.seq_kind, version.value.to_vec()));
                let wanted = as_seen(&everything, key, seq).map(|(_, seq_kind, value)| (seq_kind, value));
                prop_assert_eq!(found, wanted);
            }
        }
        check_counts(&global, &memtables, &everything);
    }
}

/// Every record of every merged memtable counts in its segment; all but the newest of each key are dead.
fn check_counts(global: &GlobalIndex, memtables: &[Vec<Placed>], everything: &Model) {
    let placed: Vec<_> = memtables.iter().flatten().collect();
    let bytes: usize = placed.iter().map(|record| record.len).sum();
    let newest = |record: &&&Placed| everything.get(&record.key, SeqNo::MAX).unwrap().1.seq() == record.seq;
    let live: usize = placed.iter().filter(newest).map(|record| record.len).sum();
    let uses = global.segments();
    assert_eq!(uses.iter().map(|segment| segment.bytes).sum::<u64>(), bytes as u64);
    assert_eq!(uses.iter().map(|segment| segment.dead_bytes).sum::<u64>(), (bytes - live) as u64);
    assert!(uses.is_sorted_by(|left, right| left.id < right.id));
    assert!(uses.iter().all(|segment| segment.dead_bytes <= segment.bytes));
    assert_eq!(global.last_seq().0, placed.len() as u64);
}

#[test]
fn progress_reports_all_bytes_and_can_stop() {
    let mut segments = Segments::new(1 << 20);
    let placed: Vec<_> = (1..=1000u64).map(|seq| segments.put(seq, &seq.to_be_bytes(), &[0; 1000])).collect();
    let frozen = memtable_of(&placed);
    let global = GlobalIndex::from_frozen(Memtable::new(SeqNo(1)));
    let mut last = 0;
    assert!(!global.merge(&frozen, &[], &mut |bytes| {
        assert!(bytes > last && bytes - last < 80 << 10);
        last = bytes;
        bytes < 500_000
    }));
    let part = global.entry_count();
    assert!(part > 400 && part < 600, "{part}");
    assert!(global.merge(&frozen, &[], &mut |_| true));
    assert_eq!((global.entry_count(), global.record_bytes()), (1000, frozen.record_bytes()));
    assert_eq!(global.first_seq(), SeqNo(1));
}

#[test]
fn records_stay_readable_when_only_the_global_index_is_left() {
    let mut segments = Segments::new(1 << 10);
    let first: Vec<_> = (1..=100u64).map(|seq| segments.put(seq, &[seq as u8, 1], b"first")).collect();
    let second: Vec<_> = (101..=200u64).map(|seq| segments.put(seq, &[seq as u8, 2], b"second")).collect();
    let global = GlobalIndex::from_frozen(memtable_of(&first));
    let frozen = memtable_of(&second);
    assert!(global.merge(&frozen, &[], &mut |_| true));
    drop((first, second, segments, frozen));
    let mut cursor = global.cursor();
    drop(global);
    let rows = rows_forward(&mut cursor);
    assert_eq!(rows.len(), 200);
    assert!(rows.iter().all(|(key, _, value)| value == if key[1] == 1 { &b"first"[..] } else { b"second" }));
}

/// A generation may be flushed as a cancelled merge left it: with keys alone it would be as if what the range
/// deletes hide were below them.
#[test]
fn a_cancelled_merge_has_the_range_deletes() {
    let mut segments = Segments::new(64 << 10);
    let first = [segments.put(1, b"key", b"old")];
    let mut second = vec![segments.append(2, RecordKind::RangeDelete, b"a", b"z")];
    second.extend((3..60).map(|seq| segments.put(seq, format!("key{seq}").as_bytes(), &[7; 4096])));
    let (global, frozen) = (GlobalIndex::from_frozen(memtable_of(&first)), memtable_of(&second));
    assert!(!global.merge(&frozen, &[], &mut |_| false), "cancelled");
    assert!(global.entry_count() > 2 && global.entry_count() < 50, "{} were taken in", global.entry_count());
    assert_eq!(global.index().hidden(b"key", SeqNo::MAX), Some(SeqNo(2)));
    assert!(global.merge(&frozen, &[], &mut |_| true));
    assert_eq!(global.entry_count(), 59, "each once");
    assert_eq!(global.index().range_deletes().unwrap().len(), 1);
}

#[test]
fn a_closed_generation_refuses_and_a_cancelled_merge_is_not_a_merge() {
    let mut segments = Segments::new(512);
    let mut rows = |first: u64| -> Vec<Placed> {
        let row = |seq: u64| segments.append(seq, RecordKind::Put, &seq.to_be_bytes(), &vec![1; 40 << 10]);
        (first..first + 4).map(row).collect()
    };
    let (first, second, third) = (rows(1), rows(5), rows(9));
    let global = GlobalIndex::from_frozen(memtable_of(&first));
    assert!(global.has_taken_in(SeqNo(1)) && !global.has_taken_in(SeqNo(5)));
    let frozen = memtable_of(&second);
    assert!(!global.merge(&frozen, &[], &mut |_| false), "it is cancelled");
    assert!(!global.has_taken_in(SeqNo(5)), "a part of it is not all of it");
    assert!(global.merge(&frozen, &[], &mut |_| true));
    assert!(global.has_taken_in(SeqNo(5)));
    global.close_to_merges();
    assert!(!global.merge(&memtable_of(&third), &[], &mut |_| true), "it is closed");
    assert!(global.is_closed() && !global.has_taken_in(SeqNo(9)));
    assert_eq!(global.entry_count(), 8, "nothing of it is there");
}
