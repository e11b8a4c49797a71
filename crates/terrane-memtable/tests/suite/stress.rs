//! Real threads: writers on overlapping keys, readers that know how far each writer is.
#![cfg(not(feature = "shuttle"))]
#![expect(clippy::unwrap_used, reason = "a failure fails the test")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crate::support::{Model, Placed, Segments, row, rows_backward, rows_forward};
use terrane_base::{Cursor, Rng, SeqNo};
use terrane_memtable::Memtable;

const WRITERS: usize = 4;

/// Keys that make every kind of change meet: few bytes (growth), shared runs (splits), repeated (versions).
fn key_of(rng: &mut Rng) -> Vec<u8> {
    match rng.index(4) {
        0 => vec![rng.index(256) as u8],
        1 => [&b"a shared run of bytes"[..rng.index(21)], &[rng.index(8) as u8]].concat(),
        2 => (rng.index(3000) as u32).to_be_bytes().to_vec(),
        _ => format!("user{:05}", rng.index(500)).into_bytes(),
    }
}

/// Each writer's records; numbers are dealt out over the writers, so versions of a key come out of order.
fn work(per_writer: usize, seed: u64) -> Vec<Vec<Placed>> {
    let mut rng = Rng::new(seed);
    let mut segments = Segments::new(1 << 16);
    let mut work = vec![Vec::new(); WRITERS];
    for seq in 0..per_writer * WRITERS {
        let value = (seq as u32).to_le_bytes();
        work[seq % WRITERS].push(segments.put(seq as u64 + 1, &key_of(&mut rng), &value));
    }
    work.iter_mut().for_each(|records| rng.shuffle(records));
    work
}

#[test]
fn readers_see_everything_that_was_there_and_nothing_out_of_order() {
    let per_writer = if cfg!(miri) { 30 } else { 10_000 };
    for seed in 1..=3 {
        let work = work(per_writer, seed);
        let memtable = Memtable::new(SeqNo(1));
        let done: [AtomicUsize; WRITERS] = Default::default();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let writers: Vec<_> = work
                .iter()
                .zip(&done)
                .map(|(records, done)| {
                    let memtable = &memtable;
                    scope.spawn(move || {
                        for record in records {
                            record.insert_into(memtable);
                            done.fetch_add(1, Ordering::Release);
                        }
                    })
                })
                .collect();
            for reader in 0..2 {
                let (memtable, work, done, stop) = (&memtable, &work, &done, &stop);
                scope.spawn(move || read(memtable, work, done, stop, reader));
            }
            let ended: Vec<_> = writers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
            stop.store(true, Ordering::Release);
            assert!(ended.iter().all(Result::is_ok), "a writer panicked");
        });
        let mut model = Model::default();
        work.iter().flatten().for_each(|record| model.insert(record));
        assert_eq!(rows_forward(&mut memtable.cursor()), model.rows());
        assert!(rows_backward(&mut memtable.cursor()).iter().eq(model.rows().iter().rev()));
        assert_eq!(memtable.entry_count() as usize, per_writer * WRITERS);
        let bytes: usize = work.iter().flatten().map(|record| record.len).sum();
        assert_eq!(memtable.record_bytes() as usize, bytes);
    }
}

fn read(
    memtable: &std::sync::Arc<Memtable>,
    work: &[Vec<Placed>],
    done: &[AtomicUsize; WRITERS],
    stop: &AtomicBool,
    reader: u64,
) {
    let mut rng = Rng::new(99 + reader);
    let mut cursor = memtable.cursor();
    let mut round = 0u64;
    while !stop.load(Ordering::Acquire) {
        let there: Vec<_> = done.iter().map(|done| done.load(Ordering::Acquire)).collect();
        for (records, there) in work.iter().zip(&there).filter(|(_, there)| **there > 0) {
            let record = &records[rng.index(*there)];
            let version = memtable.get(&record.key, record.seq).expect("inserted before");
            assert_eq!((version.seq_kind.seq(), version.value), (record.seq, record.value.as_slice()));
            cursor.seek(&record.key, record.seq).unwrap();
            assert_eq!(row(&cursor).unwrap().0, record.key);
            assert_eq!(cursor.entry().unwrap().seq_kind.seq(), record.seq);
        }
        round += 1;
        if round % 200 == 1 {
            check_scan(&mut cursor, work, &there, round % 400 == 1);
        }
    }
}

/// A whole scan is in order and misses nothing that was there before it began.
fn check_scan(cursor: &mut impl Cursor, work: &[Vec<Placed>], there: &[usize], forward: bool) {
    let mut rows = if forward { rows_forward(cursor) } else { rows_backward(cursor) };
    if !forward {
        rows.reverse();
    }
    let in_order = |left: &crate::support::Expected, right: &crate::support::Expected| {
        left.0 < right.0 || (left.0 == right.0 && left.1 > right.1)
    };
    assert!(rows.is_sorted_by(in_order));
    let mut seqs: Vec<_> = rows.iter().map(|(_, seq_kind, _)| seq_kind.seq()).collect();
    seqs.sort_unstable();
    for (records, there) in work.iter().zip(there) {
        for record in &records[..*there] {
            assert!(seqs.binary_search(&record.seq).is_ok(), "{:?} at {}", record.key, record.seq);
        }
    }
}

#[test]
fn more_writers_than_lanes_all_come_through() {
    let mut segments = Segments::new(1 << 16);
    let threads = 24;
    let per_thread = if cfg!(miri) { 4 } else { 2000 };
    let work: Vec<Vec<_>> = (0..threads)
        .map(|thread| {
            (0..per_thread)
                .map(|index| segments.put(thread * per_thread + index + 1, &[index as u8, thread as u8], b""))
                .collect()
        })
        .collect();
    let memtable = Memtable::new(SeqNo(1));
    thread::scope(|scope| {
        for records in &work {
            scope.spawn(|| records.iter().for_each(|record| record.insert_into(&memtable)));
        }
    });
    assert_eq!(memtable.entry_count(), threads * per_thread);
    assert_eq!(rows_forward(&mut memtable.cursor()).len() as u64, threads * per_thread);
}
