//! The row cache by itself: what it answers is what was filled last; late fills are refused; rows that are
//! overwritten while they are copied are not answers; loads that do not come back send it to sleep.
#![allow(clippy::unwrap_used, reason = "a test says by panicking that it failed")]
#![cfg(not(feature = "shuttle"))]

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use terrane_base::{RecordKind, Rng, SeqKind, SeqNo, TableId};
use terrane_format::filter::hash;
use terrane_table::row_cache::{RowCache, SHARDS};
use terrane_table::{Cache, enter};

const TABLE: TableId = TableId(3);

fn key(number: u64) -> Vec<u8> {
    format!("key{number:09}").into_bytes()
}

/// Long and short values that tell key and version, filled up with one byte.
fn value(number: u64, seq: u64) -> Vec<u8> {
    let mut value = format!("{number}/{seq}/").into_bytes();
    value.resize(value.len() + ((number * 31 + seq * 7) % 120) as usize, seq as u8);
    value
}

fn get(rows: &RowCache, number: u64, seq: SeqNo) -> Option<Vec<u8>> {
    let (key, mut found) = (key(number), b"before".to_vec());
    let is_found = rows.get(&enter(), (TABLE, &key), hash(&key), seq, &mut found).is_some();
    assert!(found.starts_with(b"before") && (is_found || found.len() == 6), "appends, or nothing");
    is_found.then(|| found[6..].to_vec())
}

fn fill(rows: &RowCache, number: u64, seq: u64) {
    let (key, value) = (key(number), value(number, seq));
    let kind = SeqKind::new(SeqNo(seq), RecordKind::Put);
    rows.fill(&enter(), (rows.stamp(), SeqNo::MAX), (TABLE, &key), hash(&key), (kind, &value));
}

/// Fills with rows that no test asks for, until all shards are awake.
fn wake(rows: &RowCache) {
    (500_000_000..500_100_000).take_while(|_| rows.awake() < SHARDS).for_each(|number| fill(rows, number, 1));
    assert_eq!(rows.awake(), SHARDS);
}

fn awake(bytes: u64) -> RowCache {
    let rows = RowCache::new(Cache::new(64 << 20), bytes).unwrap();
    wake(&rows);
    rows
}

#[test]
fn memory_of_any_size_is_used_and_not_passed() {
    for bytes in [300 << 10, 500_001, 1 << 20, 3_333_333, 8 << 20] {
        let rows = awake(bytes);
        assert!((bytes * 4 / 5..=bytes).contains(&rows.memory_bytes()), "{} of {bytes}", rows.memory_bytes());
        let kept = (0..100).filter(|number| {
            fill(&rows, *number, 1);
            get(&rows, *number, SeqNo::MAX) == Some(value(*number, 1))
        });
        assert_eq!(kept.count(), 100, "the row that came last is there");
    }
}

#[test]
fn reads_without_a_load_activate_no_shard() {
    let cache = Cache::new(64 << 20);
    let rows = RowCache::new(cache.clone(), 4 << 20).unwrap();
    (0..100_000).for_each(|number| assert_eq!(get(&rows, number, SeqNo::MAX), None));
    assert_eq!((rows.awake(), cache.usage().used_bytes), (0, 0));
}

#[test]
fn the_row_cache_rests_while_only_blocks_are_read() {
    let rows = awake(4 << 20);
    rows.rest(1_000_000);
    assert_eq!(rows.awake(), SHARDS / 2, "no read asked");
    rows.rest(1_000_100);
    assert_eq!(rows.awake(), SHARDS / 2, "too soon to tell");
    // Fewer of the first shard than are judged by what they found.
    (0..1600).for_each(|number| drop(get(&rows, number, SeqNo::MAX)));
    rows.rest(1_010_000);
    assert_eq!(rows.awake(), SHARDS / 2, "rows were asked for as well");
    for looks in 2..20 {
        rows.rest(looks * 1_000_000);
    }
    assert_eq!(rows.awake(), 1, "one shard stays as a scale model");
}

#[test]
fn the_row_cache_answers_the_last_fill_or_nothing() {
    let rows = awake(1 << 20);
    let mut newest: HashMap<u64, u64> = HashMap::new();
    let (mut hits, mut rng) = (0, Rng::new(1));
    for turn in 1..200_000u64 {
        let number = rng.below(6000);
        match rng.below(8) {
            0 => {
                rows.raise_stamp();
                if turn % 64 == 0 {
                    rows.forget_where(|table, other| table == TABLE && other == key(number));
                } else {
                    rows.forget(&enter(), (TABLE, &key(number)), hash(&key(number)));
                }
                newest.insert(number, turn);
            }
            1 => {
                let found = get(&rows, number, SeqNo(newest.get(&number).copied().unwrap_or(1) - 1));
                assert_eq!(found, None, "a version above the reader's number");
            }
            _ => {
                let seq = *newest.entry(number).or_insert(turn);
                match get(&rows, number, SeqNo::MAX) {
                    Some(found) => {
                        assert_eq!(found, value(number, seq));
                        hits += 1;
                    }
                    None => fill(&rows, number, seq),
                }
            }
        }
    }
    assert!(hits > 30_000, "{hits} hits");
    let stranger = (TableId(4), &key(1)[..]);
    let found = rows.get(&enter(), stranger, hash(&key(1)), SeqNo::MAX, &mut Vec::new());
    assert_eq!(found, None, "another table's key");
}

#[test]
fn a_fill_that_comes_late_is_refused() {
    let rows = awake(1 << 20);
    for number in 0..100 {
        fill(&rows, number, 5);
        assert!(get(&rows, number, SeqNo::MAX).is_some());
        let before = rows.stamp();
        rows.raise_stamp();
        rows.forget(&enter(), (TABLE, &key(number)), hash(&key(number)));
        let old = (SeqKind::new(SeqNo(5), RecordKind::Put), &value(number, 5)[..]);
        rows.fill(&enter(), (before, SeqNo::MAX), (TABLE, &key(number)), hash(&key(number)), old);
        assert_eq!(get(&rows, number, SeqNo::MAX), None, "the read began before the stamp was raised");
        fill(&rows, number, 9);
        assert_eq!(get(&rows, number, SeqNo::MAX), Some(value(number, 9)));
    }
}

#[test]
fn a_read_that_does_not_see_an_ingest_fills_no_row() {
    let rows = awake(1 << 20);
    for number in 0..100 {
        let (key, comes) = (key(number), SeqNo(10 * number + 9));
        fill(&rows, number, 5);
        rows.refuse_fills_below(comes);
        rows.raise_stamp();
        rows.forget(&enter(), (TABLE, &key), hash(&key));
        let old = (SeqKind::new(SeqNo(5), RecordKind::Put), &value(number, 5)[..]);
        // It began behind all of it; what came in is not visible yet.
        rows.fill(&enter(), (rows.stamp(), SeqNo(comes.0 - 1)), (TABLE, &key), hash(&key), old);
        assert_eq!(get(&rows, number, SeqNo::MAX), None);
        let new = (SeqKind::new(comes, RecordKind::Put), &value(number, 9)[..]);
        rows.fill(&enter(), (rows.stamp(), comes), (TABLE, &key), hash(&key), new);
        assert_eq!(get(&rows, number, SeqNo::MAX), Some(value(number, 9)));
    }
}

/// A tiny log that turns over all the time, under readers: whatever they get is whole.
#[test]
fn overtaken_readers_get_no_row() {
    let rows = awake(600 << 10);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for writer in 0..2 {
            let (rows, stop) = (&rows, &stop);
            scope.spawn(move || {
                for number in (0..400_000u64).map(|turn| (turn * 7 + writer) % 20_000) {
                    fill(rows, number, 1);
                }
                stop.store(true, Ordering::Relaxed);
            });
        }
        let readers = (0..2).map(|_| {
            scope.spawn(|| {
                let (mut hits, mut number, mut left) = (0u64, 0, 20_000);
                // Every key once behind the end of a writer: this thread may have had no turn while they
                // wrote.
                while left > 0 {
                    left -= u64::from(stop.load(Ordering::Relaxed));
                    number = (number + 7) % 20_000;
                    if let Some(found) = get(&rows, number, SeqNo::MAX) {
                        assert_eq!(found, value(number, 1));
                        hits += 1;
                    }
                }
                hits
            })
        });
        let hits: u64 = readers.collect::<Vec<_>>().into_iter().map(|reader| reader.join().unwrap()).sum();
        assert!(hits > 0);
    });
}

/// Another set of rows is asked for: it takes the place of the former one, however often that was asked for.
#[test]
fn rows_read_now_replace_rows_read_before() {
    let rows = awake(1 << 20);
    let ask = |from: u64| {
        let is_missing = |number: &u64| get(&rows, *number, SeqNo::MAX).is_none();
        (from..from + 2000).filter(is_missing).inspect(|number| fill(&rows, *number, 1)).count()
    };
    for _ in 0..10 {
        ask(1_000_000);
    }
    assert!(ask(1_000_000) < 200, "a row that is asked for again and again stays");
    assert!(ask(2_000_000) == 2000 && ask(2_000_000) < 200, "asked for once, and there");
}

#[test]
fn shards_without_hits_become_inactive_and_free_their_memory() {
    let cache = Cache::new(64 << 20);
    let rows = RowCache::new(cache.clone(), 4 << 20).unwrap();
    wake(&rows);
    assert!(cache.usage().used_bytes >= rows.memory_bytes() && rows.memory_bytes() <= 4 << 20);
    for number in 1_000_000..2_000_000 {
        get(&rows, number, SeqNo::MAX);
        fill(&rows, number, 1);
    }
    assert_eq!(rows.awake(), 1, "nothing came back");
    // The memory is free once no epoch is left that began before: the other tests of this process have
    // theirs.
    for _ in 0..1_000_000 {
        cache.clear();
        if cache.usage().used_bytes <= rows.memory_bytes() {
            break;
        }
        thread::yield_now();
    }
    assert!(cache.usage().used_bytes <= rows.memory_bytes());
    for turn in 0..2_000_000 {
        if get(&rows, turn % 500, SeqNo::MAX).is_none() {
            fill(&rows, turn % 500, 1);
        }
    }
    assert_eq!(rows.awake(), SHARDS, "everything came back");
}

#[test]
fn too_little_memory_is_not_a_row_cache() {
    assert!(RowCache::new(Cache::new(1 << 20), 100 << 10).is_none());
    let rows = RowCache::new(Cache::new(1 << 10), 4 << 20).unwrap();
    (0..100_000).for_each(|number| fill(&rows, number, 1));
    assert_eq!(rows.awake(), 0, "the cache has no memory to give");
    fill(&rows, 1, 1);
    assert_eq!(get(&rows, 1, SeqNo::MAX), None);
}
