//! One thread against the model: lookups, cursors both ways, versions, adversarial keys, counts.
#![cfg(not(feature = "shuttle"))]
#![expect(clippy::unwrap_used, reason = "a failure fails the test")]

use std::collections::BTreeSet;

use crate::support::{Model, Placed, Segments, row, rows_backward, rows_forward};
use proptest::collection::vec;
use proptest::prelude::*;
use terrane_base::key::KEY_BYTES_MAX;
use terrane_base::{Collation, Cursor, RecordKind, Rng, SeqNo};
use terrane_memtable::{Memtable, MemtableCursor};

/// Keys that meet in few bytes: empty, zero bytes, prefixes of each other, shared runs around the 6, 7 and 8
/// bytes at which a prefix moves from the link to the head and out to the segment.
fn keys() -> impl Strategy<Value = Vec<u8>> {
    let shared = prop_oneof![Just(0usize), 1..=10usize, Just(300)];
    let tail = vec(prop_oneof![Just(0u8), Just(1), Just(b'a'), Just(0xff)], 0..5);
    (prop_oneof![Just(0u8), Just(b'a')], shared, tail)
        .prop_map(|(byte, shared, tail)| [vec![byte; shared], tail].concat())
}

fn kinds() -> impl Strategy<Value = RecordKind> {
    prop_oneof![4 => Just(RecordKind::Put), 1 => Just(RecordKind::Delete)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_a_sorted_map(
        records in vec((keys(), kinds(), vec(any::<u8>(), 0..6)), 0..200),
        others in vec(keys(), 0..30),
        seed in 1u64..,
    ) {
        let mut segments = Segments::new(1 << 12);
        let collation = if seed.is_multiple_of(3) { crate::support::by_comparator() } else { Collation::BYTES };
        let kept = |key: Vec<u8>| if collation.is_bytes() { key } else { [key, vec![0]].concat() };
        let others: Vec<_> = others.into_iter().map(kept).collect();
        let value_of = |kind, value: Vec<u8>| if kind == RecordKind::Delete { Vec::new() } else { value };
        let mut placed: Vec<_> = (1..)
            .zip(records)
            .map(|(seq, (key, kind, value))| segments.append(seq, kind, &kept(key), &value_of(kind, value)))
            .collect();
        let mut rng = Rng::new(seed);
        if seed.is_multiple_of(2) {
            rng.shuffle(&mut placed);
        }
        let (memtable, model) = fill_ordered(&placed, &collation);
        check_all(&memtable, &model, &others, &mut rng);
    }
}

fn fill(placed: &[Placed]) -> (std::sync::Arc<Memtable>, Model) {
    fill_ordered(placed, Collation::bytes())
}

fn fill_ordered(placed: &[Placed], collation: &Collation) -> (std::sync::Arc<Memtable>, Model) {
    let memtable = Memtable::ordered(SeqNo(1), false, collation);
    let mut model = Model::default();
    for record in placed {
        record.insert_into(&memtable);
        model.insert(record);
    }
    (memtable, model)
}

/// Holds every way to read against the model. `others` are keys that may be absent.
fn check_all(memtable: &std::sync::Arc<Memtable>, model: &Model, others: &[Vec<u8>], rng: &mut Rng) {
    let rows = model.rows();
    let mut cursor = memtable.cursor();
    assert!(cursor.entry().is_none(), "a new cursor has no position");
    assert_eq!(rows_forward(&mut cursor), rows);
    check_keys(&mut cursor, &rows);
    let reversed: Vec<_> = rows.iter().rev().cloned().collect();
    assert_eq!(rows_backward(&mut cursor), reversed);
    let seq_last = rows.iter().map(|(_, seq_kind, _)| seq_kind.seq().0).max().unwrap_or(0);
    assert_eq!(memtable.last_seq(), SeqNo(seq_last));
    assert_eq!(memtable.entry_count(), rows.len() as u64);
    let probes: BTreeSet<_> = rows.iter().map(|(key, ..)| key).chain(others).collect();
    for key in &probes {
        for seq in [0, rng.index(seq_last as usize + 1) as u64, seq_last, SeqNo::MAX.0].map(SeqNo) {
            check_get(memtable, model, key, seq);
            cursor.seek(key, seq).unwrap();
            let first = rows.iter().position(|(row_key, seq_kind, _)| {
                row_key > key || (row_key == *key && seq_kind.seq() <= seq)
            });
            check_position(&mut cursor, &rows, first, rng);
            // A placement in two steps, from wherever the cursor stands.
            cursor.prepare_seek(key);
            let is_done = cursor.begin_seek(key, seq).unwrap();
            if !is_done {
                assert!(cursor.entry().is_none(), "no position until the placement is done");
                cursor.seek(key, seq).unwrap();
            }
            check_position(&mut cursor, &rows, first, rng);
        }
        cursor.seek_before(key).unwrap();
        let before = rows.iter().rposition(|(row_key, ..)| row_key < key);
        check_position(&mut cursor, &rows, before, rng);
    }
    check_get_many(memtable, model, &probes.into_iter().map(Vec::as_slice).collect::<Vec<_>>());
}

/// Goes from key to key, and meets the newest version of each.
fn check_keys(cursor: &mut MemtableCursor, rows: &[crate::support::Expected]) {
    cursor.seek_first().unwrap();
    for key_rows in rows.chunk_by(|a, b| a.0 == b.0) {
        assert_eq!(row(cursor).as_ref(), Some(&key_rows[0]));
        cursor.next_key().unwrap();
    }
    assert!(cursor.entry().is_none());
}

fn check_get(memtable: &Memtable, model: &Model, key: &[u8], seq: SeqNo) {
    let found = memtable.get(key, seq).map(|version| (version.seq_kind, version.value.to_vec()));
    let wanted = model.get(key, seq).map(|(_, seq_kind, value)| (seq_kind, value));
    assert_eq!(found, wanted, "get {key:?} at {seq}");
}

fn check_get_many(memtable: &Memtable, model: &Model, keys: &[&[u8]]) {
    let mut versions = Vec::new();
    memtable.get_many(keys, SeqNo::MAX, &mut versions);
    assert_eq!(versions.len(), keys.len());
    for (key, version) in keys.iter().zip(&versions) {
        let wanted = model.get(key, SeqNo::MAX).map(|(_, seq_kind, value)| (seq_kind, value));
        assert_eq!(version.map(|version| (version.seq_kind, version.value.to_vec())), wanted);
    }
}

/// The cursor stands at `rows[at]`; then it wanders to and fro and stays in step.
fn check_position(
    cursor: &mut MemtableCursor,
    rows: &[crate::support::Expected],
    at: Option<usize>,
    rng: &mut Rng,
) {
    assert_eq!(row(cursor).as_ref(), at.map(|at| &rows[at]));
    let Some(mut at) = at else { return };
    for _ in 0..6 {
        let forward = rng.index(2) == 0;
        if forward {
            cursor.next().unwrap()
        } else {
            cursor.prev().unwrap()
        }
        let next = if forward { at.checked_add(1).filter(|at| *at < rows.len()) } else { at.checked_sub(1) };
        assert_eq!(row(cursor).as_ref(), next.map(|next| &rows[next]));
        let Some(next) = next else { return };
        at = next;
    }
}

#[test]
fn every_node_size_in_every_order_of_arrival() {
    let mut rng = Rng::new(7);
    for fanout in [1, 4, 5, 16, 17, 48, 49, 255, 256] {
        for prefix in [&b""[..], b"p", b"seven..", b"eight...", b"nine bytes and more"] {
            let mut bytes: Vec<u8> = (0..=255).collect();
            rng.shuffle(&mut bytes);
            let mut segments = Segments::new(1 << 14);
            let mut placed: Vec<_> = (1..)
                .zip(&bytes[..fanout])
                .map(|(seq, &byte)| segments.put(seq, &[prefix, &[byte], b"tail"].concat(), b"v"))
                .collect();
            placed.push(segments.put(1000, prefix, b"terminal"));
            let (memtable, model) = fill(&placed);
            let absent: Vec<_> = bytes.iter().map(|&byte| [prefix, &[byte]].concat()).collect();
            check_all(&memtable, &model, &absent, &mut rng);
        }
    }
}

#[test]
fn longest_keys_parting_at_both_ends() {
    let longest = vec![b'k'; KEY_BYTES_MAX];
    let mut segments = Segments::new(1 << 20);
    let mut placed = Vec::new();
    for (seq, at) in (1..).zip([0, 1, 7, 8, 9, 255, 4096, KEY_BYTES_MAX / 2, KEY_BYTES_MAX - 1]) {
        let mut key = longest.clone();
        key[at] = b'j';
        placed.push(segments.put(seq, &key, b"before"));
        key[at] = b'l';
        placed.push(segments.put(100 + seq, &key, b"behind"));
        placed.push(segments.put(200 + seq, &longest[..at], b"prefix"));
    }
    placed.push(segments.put(300, &longest, b"whole"));
    let mut rng = Rng::new(11);
    rng.shuffle(&mut placed);
    let (memtable, model) = fill(&placed);
    check_all(&memtable, &model, &[longest[..99].to_vec()], &mut rng);
}

#[test]
fn a_chain_of_prefixes_as_deep_as_a_key_is_long() {
    let longest = vec![0u8; 3000];
    let mut segments = Segments::new(1 << 22);
    let mut placed: Vec<_> =
        (0..=3000).map(|len| segments.put(len + 1, &longest[..len as usize], b"")).collect();
    Rng::new(5).shuffle(&mut placed);
    let (memtable, model) = fill(&placed);
    let mut cursor = memtable.cursor();
    assert_eq!(rows_forward(&mut cursor), model.rows());
    assert_eq!(rows_backward(&mut cursor).len(), 3001);
    for len in [0, 1, 1500, 3000] {
        check_get(&memtable, &model, &longest[..len], SeqNo::MAX);
    }
}

#[test]
fn a_key_written_a_hundred_thousand_times_in_runs_from_two_segments() {
    // Two ascending runs, interleaved as two recovery threads would: quadratic if each version walked the
    // chain.
    let mut segments = Segments::new(1 << 22);
    let runs = 50_000;
    let low: Vec<_> = (1..=runs).map(|seq| segments.put(seq, b"counter", b"")).collect();
    let high: Vec<_> = (runs + 1..=2 * runs).map(|seq| segments.put(seq, b"counter", b"")).collect();
    let memtable = Memtable::new(SeqNo(1));
    for (high, low) in high.iter().zip(&low) {
        high.insert_into(&memtable);
        low.insert_into(&memtable);
    }
    assert_eq!(memtable.get(b"counter", SeqNo::MAX).unwrap().seq_kind.seq(), SeqNo(2 * runs));
    assert_eq!(memtable.get(b"counter", SeqNo(77)).unwrap().seq_kind.seq(), SeqNo(77));
    let mut cursor = memtable.cursor();
    let seqs: Vec<_> = rows_backward(&mut cursor).iter().map(|(_, seq_kind, _)| seq_kind.seq().0).collect();
    assert!(seqs.iter().copied().eq(1..=2 * runs));
    assert_eq!(rows_forward(&mut cursor).len() as u64, 2 * runs);
}

#[test]
fn the_same_version_twice_is_one() {
    let mut segments = Segments::new(1 << 12);
    let placed: Vec<_> = (1..=9).map(|seq| segments.put(seq, &[seq as u8 % 2], b"v")).collect();
    let (memtable, model) = fill(&placed);
    let before = (memtable.entry_count(), memtable.record_bytes(), memtable.segments());
    for record in placed.iter().rev().chain(&placed) {
        record.insert_into(&memtable);
    }
    assert_eq!((memtable.entry_count(), memtable.record_bytes(), memtable.segments()), before);
    assert_eq!(rows_forward(&mut memtable.cursor()), model.rows());
}

#[test]
fn bytes_are_counted_per_segment_and_dead_ones_where_they_lie() {
    let mut segments = Segments::new(256);
    let mut rng = Rng::new(3);
    let mut placed: Vec<_> =
        (1..=400).map(|seq| segments.put(seq, &[rng.index(40) as u8], &vec![b'v'; rng.index(30)])).collect();
    rng.shuffle(&mut placed);
    let (memtable, model) = fill(&placed);
    let uses = memtable.segments();
    assert!(uses.len() > 20, "many segments: {}", uses.len());
    assert_eq!(memtable.oldest_segment(), Some(uses[0].id));
    for segment in &uses {
        let here = || placed.iter().filter(|record| record.segment.id == segment.id);
        let newest = |record: &&Placed| model.get(&record.key, SeqNo::MAX).unwrap().1.seq() == record.seq;
        let bytes: usize = here().map(|record| record.len).sum();
        let live: usize = here().filter(newest).map(|record| record.len).sum();
        assert_eq!(
            (segment.bytes, segment.dead_bytes),
            (bytes as u64, (bytes - live) as u64),
            "{:?}",
            segment.id
        );
    }
    assert_eq!(memtable.record_bytes(), uses.iter().map(|segment| segment.bytes).sum::<u64>());
    assert!(memtable.index_bytes() >= 400 * 24);
}

#[test]
fn an_empty_memtable_has_no_entry() {
    let memtable = Memtable::new(SeqNo(42));
    check_all(&memtable, &Model::default(), &[vec![], vec![0], b"key".to_vec()], &mut Rng::new(1));
    assert_eq!(
        (memtable.first_seq(), memtable.oldest_segment(), memtable.is_empty()),
        (SeqNo(42), None, true)
    );
}

#[test]
fn a_cursor_outlives_its_handle_and_every_segment() {
    let mut segments = Segments::new(1 << 12);
    let placed: Vec<_> = (1..=50).map(|seq| segments.put(seq, &[seq as u8], b"value")).collect();
    let (memtable, model) = fill(&placed);
    let mut cursor = memtable.cursor();
    drop((memtable, placed, segments));
    assert_eq!(rows_forward(&mut cursor), model.rows());
}
