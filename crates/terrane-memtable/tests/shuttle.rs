//! Schedules of a few inserts and reads, explored: growth, splits, versions, iteration, pinning, merging.
#![cfg(feature = "shuttle")]
#![expect(clippy::unwrap_used, reason = "a failure fails the test")]

#[path = "suite/support/mod.rs"]
mod support;

use std::sync::Arc;

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner, thread};
use support::{Model, Placed, Segments, rows_backward, rows_forward};
use terrane_base::{Cursor, SeqNo};
use terrane_memtable::{GlobalIndex, Memtable};

fn explore(rounds: usize, test: impl Fn() + Send + Sync + 'static) {
    let config = || {
        let mut config = Config::new();
        // A memtable is built on the stack, and the explorer's atomics are large.
        config.stack_size = 1 << 20;
        config.silence_warnings = true;
        config
    };
    let test = Arc::new(test);
    let again = test.clone();
    Runner::new(RandomScheduler::new(rounds), config()).run(move || test());
    Runner::new(PctScheduler::new(3, rounds), config()).run(move || again());
}

/// Records in a segment of their own, whose id is their first number.
fn put_all<'k>(keys: impl IntoIterator<Item = &'k [u8]>, first_seq: u64) -> Vec<Placed> {
    let mut segments = Segments::beginning_with(first_seq, 1 << 14);
    (first_seq..).zip(keys).map(|(seq, key)| segments.put(seq, key, b"value")).collect()
}

/// Inserts `before`, then each list of `writers` by a thread of its own while two readers look; checks that
/// the readers miss nothing of `before` and that nothing is missing in the end.
fn race(before: &[Placed], writers: &[Vec<Placed>]) {
    race_in(&Memtable::new(SeqNo(1)), before, writers);
}

/// [`race`] in a memtable that is empty.
fn race_in(memtable: &Arc<Memtable>, before: &[Placed], writers: &[Vec<Placed>]) {
    before.iter().for_each(|record| record.insert_into(memtable));
    let spawn_writer = |records: &Vec<Placed>| {
        let (memtable, records) = (memtable.clone(), records.clone());
        thread::spawn(move || {
            for (done, record) in (1..).zip(records) {
                record.insert_into(&memtable);
                assert!(memtable.entry_count() >= done, "a writer counts what it has inserted");
                assert!(
                    memtable.get(&record.key, record.seq).is_some_and(|v| v.seq_kind.seq() == record.seq)
                );
            }
        })
    };
    let mut threads: Vec<_> = writers.iter().map(spawn_writer).collect();
    for backward in [false, true] {
        let (memtable, before) = (memtable.clone(), before.to_vec());
        threads.push(thread::spawn(move || read(&memtable, &before, backward)));
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let mut model = Model::default();
    before.iter().chain(writers.iter().flatten()).for_each(|record| model.insert(record));
    assert_eq!(rows_forward(&mut memtable.cursor()), model.rows());
    assert_eq!(memtable.entry_count() as usize, model.rows().len());
    let dead: u64 = memtable.segments().iter().map(|segment| segment.dead_bytes).sum();
    let newest = |record: &&Placed| model.get(&record.key, SeqNo::MAX).unwrap().1.seq() == record.seq;
    let all = before.iter().chain(writers.iter().flatten());
    let live: usize = all.filter(newest).map(|record| record.len).sum();
    assert_eq!(memtable.record_bytes() - dead, live as u64);
}

fn read(memtable: &Arc<Memtable>, before: &[Placed], backward: bool) {
    for record in before {
        let version = memtable.get(&record.key, record.seq).expect("inserted before");
        assert_eq!(version.seq_kind.seq(), record.seq);
    }
    let mut cursor = memtable.cursor();
    let mut rows = if backward { rows_backward(&mut cursor) } else { rows_forward(&mut cursor) };
    if backward {
        rows.reverse();
    }
    assert!(rows.is_sorted_by(|left, right| left.0 < right.0 || (left.0 == right.0 && left.1 > right.1)));
    for record in before {
        let there = |row: &support::Expected| row.0 == record.key && row.1.seq() == record.seq;
        assert!(rows.iter().any(there), "{:?} in a scan", record.key);
    }
    if let Some(record) = before.last() {
        cursor.seek(&record.key, record.seq).unwrap();
        assert_eq!(cursor.entry().unwrap().key, record.key);
    }
}

/// The lanes, the first chunks, the root and the counters of a segment are made by the insertions that need
/// them first, here by two at once, while readers look for parts that are not there yet.
#[test]
fn two_writers_begin_an_empty_memtable_at_once() {
    explore(2000, || {
        let mut segments = Segments::new(1 << 14);
        let mut put = |seq, key: &[u8]| segments.put(seq, key, b"value");
        // Both in one segment.
        let writers = [vec![put(1, b"a"), put(2, b"same")], vec![put(3, b"same"), put(4, b"b")]];
        let memtable = Memtable::with_filter(SeqNo(1), true);
        race_in(&memtable, &[], &writers);
        let bytes: usize = writers.iter().flatten().map(|record| record.len).sum();
        assert_eq!(memtable.segments()[0].bytes, bytes as u64);
    });
}

/// `count` one-byte keys below a shared prefix, from `first` on.
fn fan(first: u8, count: u8) -> Vec<Vec<u8>> {
    (first..first + count).map(|byte| vec![b'p', byte]).collect()
}

fn fan_race(already: u8) {
    let before = fan(1, already);
    let left = [vec![b'p', 0], vec![b'p', 200]];
    let right = [vec![b'p', 201], vec![b'p', 100]];
    race(
        &put_all(before.iter().map(Vec::as_slice), 1),
        &[put_all(left.iter().map(Vec::as_slice), 100), put_all(right.iter().map(Vec::as_slice), 200)],
    );
}

#[test]
fn posts_of_a_list_are_linked_side_by_side() {
    explore(1000, || {
        race_in(
            &Memtable::ordered(SeqNo(1), false, &support::by_comparator()),
            &put_all([&b"b\0"[..], b"d\0", b"f\0"], 1),
            &[put_all([&b"c\0"[..], b"e\0", b"b\0"], 10), put_all([&b"ca\0"[..], b"e\0", b"a\0"], 20)],
        );
    });
}

#[test]
fn node4_grows_while_another_is_added() {
    explore(2000, || fan_race(3));
}

#[test]
fn node16_grows_while_another_is_added() {
    explore(400, || fan_race(15));
}

#[test]
fn node48_grows_while_another_is_added() {
    explore(100, || fan_race(47));
}

#[test]
fn two_writers_add_the_same_byte() {
    explore(2000, || {
        race(
            &put_all([&b"ka"[..], b"kb"], 1),
            &[put_all([&b"kcx"[..], b"kcxyz"], 10), put_all([&b"kcy"[..], b"kcxyy"], 20)],
        );
    });
}

#[test]
fn a_prefix_splits_while_its_node_grows() {
    explore(2000, || {
        race(
            &put_all([&b"shared prefix a"[..], b"shared prefix b", b"shared prefix c"], 1),
            &[
                put_all([&b"shared prefix d"[..], b"shared prefix e"], 10),
                put_all([&b"shared post"[..], b"shared "], 20),
            ],
        );
    });
}

#[test]
fn a_leaf_splits_while_its_key_is_written_again() {
    explore(2000, || {
        race(
            &put_all([&b"leaf"[..], b"other"], 1),
            &[
                put_all([&b"leaf"[..], b"leaf"], 10),
                put_all([&b"leaf longer"[..], b"leap"], 20),
                put_all([&b""[..], b"leaf"], 30),
            ],
        );
    });
}

#[test]
fn versions_of_one_key_come_out_of_order() {
    explore(2000, || {
        let mut versions = put_all([&b"k"[..]; 9], 1);
        let before = versions.split_off(7);
        let last = versions.split_off(4);
        // The same version twice as well.
        let first = [versions.clone(), versions[1..2].to_vec()].concat();
        race(&before, &[first, last]);
    });
}

#[test]
fn segments_are_pinned_once_and_counted() {
    explore(1000, || {
        let mut segments = Segments::new(32);
        let placed: Vec<_> =
            (1..=6u64).map(|seq| segments.put(seq, &[seq as u8], b"a value of it")).collect();
        let halves = |parity| placed.iter().filter(|p| p.seq.0 % 2 == parity).cloned().collect::<Vec<_>>();
        let memtable = Memtable::new(SeqNo(1));
        let threads = [halves(0), halves(1), placed.clone()].map(|records| {
            let memtable = memtable.clone();
            thread::spawn(move || records.iter().for_each(|record| record.insert_into(&memtable)))
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let uses = memtable.segments();
        assert_eq!(uses.len(), 6);
        for (segment, record) in uses.iter().zip(&placed) {
            assert_eq!((segment.id, segment.bytes), (record.segment.id, record.len as u64));
        }
    });
}

#[test]
fn readers_go_on_while_a_memtable_is_merged() {
    explore(1000, || {
        let old = put_all([&b"a"[..], b"b", b"cde"], 1);
        let new = put_all([&b"b"[..], b"cd", b"b", b"d"], 10);
        let [global, frozen] = [&old, &new].map(|records| {
            let memtable = Memtable::new(SeqNo(1));
            records.iter().for_each(|record| record.insert_into(&memtable));
            memtable
        });
        let global = Arc::new(GlobalIndex::from_frozen(global));
        let merging = global.clone();
        let merger = thread::spawn(move || assert!(merging.merge(&frozen, &[SeqNo(10)], &mut |_| true)));
        for record in &old {
            let version = global.get(&record.key, record.seq).expect("there before the merge");
            assert_eq!(version.seq_kind.seq(), record.seq);
        }
        let rows = rows_forward(&mut global.cursor());
        assert!(old.iter().all(|record| rows.iter().any(|row| row.1.seq() == record.seq)));
        merger.join().unwrap();
        assert_eq!(global.entry_count(), 7);
        assert_eq!(rows_forward(&mut global.cursor()).len(), 7);
    });
}
