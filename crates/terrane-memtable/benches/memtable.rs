//! Insert, read and iterate a million 16-byte keys with 100-byte values, against `crossbeam-skiplist` and the
//! standard `BTreeMap` holding pointers to the same records.
//!
//! Times are for the whole set; those of one thread are processor time, those of two by the clock. `cargo
//! bench -p terrane-memtable`; with `--test` a tiny size runs once.
#![expect(unsafe_code, reason = "writes segment memory as the journal would")]

use std::cell::LazyCell;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, Throughput};
use crossbeam_skiplist::SkipMap;
use terrane_base::env::Env;
use terrane_base::record::Record;
use terrane_base::{Cursor, RecordKind, Rng, SegmentId, SeqNo, TableId};
use terrane_device::{Region, SegmentMemory};
use terrane_memtable::{GlobalIndex, Memtable};

const SEGMENT_BYTES: usize = 64 << 20;
const VALUE: [u8; 100] = [7; 100];

/// Records in the order of their arrival.
struct Records {
    spots: Vec<(Arc<SegmentMemory>, usize)>,
    /// A random order to read them in.
    order: Vec<u32>,
}

/// The record of the compared indexes: key and number to order by, and the value.
type RivalKey = (&'static [u8], Reverse<u64>);

impl Records {
    fn new(keys: impl Iterator<Item = [u8; 16]>) -> Self {
        let mut spots = Vec::new();
        let (mut segment, mut offset) = (new_segment(1), 0);
        let mut bytes = Vec::new();
        for key in keys {
            bytes.clear();
            Record { kind: RecordKind::Put, table: TableId(1), key: &key, value: &VALUE }.encode(&mut bytes);
            if offset + bytes.len() > SEGMENT_BYTES {
                (segment, offset) = (new_segment(segment.id.0 + 1), 0);
            }
            // SAFETY: heap memory beyond everything written so far; within the region, as just checked.
            unsafe { segment.region.write(offset, &bytes) };
            spots.push((segment.clone(), offset));
            offset += bytes.len();
        }
        let mut order: Vec<_> = (0..spots.len() as u32).collect();
        Rng::new(5).shuffle(&mut order);
        Records { spots, order }
    }

    fn key(&self, index: usize) -> &'static [u8] {
        let (segment, offset) = &self.spots[index];
        // SAFETY: the segments are leaked by `leak`; the key follows a header of 4 bytes.
        unsafe { std::slice::from_raw_parts(segment.region.start().as_ptr().add(offset + 4), 16) }
    }

    fn insert(&self, memtable: &Memtable, index: usize) {
        let (segment, offset) = &self.spots[index];
        // SAFETY: `new` wrote a record there.
        unsafe { memtable.insert(segment, *offset, SeqNo(index as u64 + 1)) }
    }

    fn len(&self) -> usize {
        self.spots.len()
    }

    fn memtable(&self) -> Arc<Memtable> {
        let memtable = Memtable::new(SeqNo(1));
        (0..self.len()).for_each(|index| self.insert(&memtable, index));
        memtable
    }

    fn skip_map(&self) -> SkipMap<RivalKey, usize> {
        let map = SkipMap::new();
        for index in 0..self.len() {
            map.insert((self.key(index), Reverse(index as u64)), index);
        }
        map
    }

    fn tree_map(&self) -> BTreeMap<RivalKey, usize> {
        (0..self.len()).map(|index| ((self.key(index), Reverse(index as u64)), index)).collect()
    }
}

fn new_segment(id: u64) -> Arc<SegmentMemory> {
    Arc::new(SegmentMemory { id: SegmentId(id), region: Region::heap(SEGMENT_BYTES) })
}

fn decimal(number: u64) -> [u8; 16] {
    format!("{number:016}").into_bytes().try_into().expect("16 digits")
}

/// The key sets: random bytes; numbers in decimal, random (with repetitions) and ascending.
fn sets(count: u64) -> Vec<(&'static str, &'static Records)> {
    let (mut rng, mut digits) = (Rng::new(1), Rng::new(2));
    let random = Records::new((0..count).map(|_| {
        let halves = [rng.next_u64().to_be_bytes(), rng.next_u64().to_be_bytes()];
        halves.concat().try_into().expect("16 bytes")
    }));
    let numbers = Records::new((0..count).map(|_| decimal(digits.below(count))));
    let ascending = Records::new((0..count).map(decimal));
    let leak = |records| &*Box::leak(Box::new(records));
    vec![("random", leak(random)), ("numbers", leak(numbers)), ("ascending", leak(ascending))]
}

/// Time that `body` takes of this thread.
fn timed(env: &Env, body: impl FnOnce()) -> Duration {
    let start = thread_time(env);
    body();
    thread_time(env) - start
}

/// Time that `body`, which starts threads, takes by the clock.
fn timed_by_clock(env: &Env, body: impl FnOnce()) -> Duration {
    let start = env.clock.now();
    body();
    env.clock.now() - start
}

/// Processor time of this thread where the system tells it: neighbours on a shared machine count less.
fn thread_time(env: &Env) -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = stat.split(' ').next().and_then(|nanos| nanos.parse().ok());
    nanos.map_or_else(|| env.clock.now(), Duration::from_nanos)
}

/// Runs `body` per round and sums what it says it took; what it builds and drops besides is not measured.
fn measure(c: &mut Criterion, name: &str, count: usize, mut body: impl FnMut() -> Duration) {
    let mut group = c.benchmark_group("memtable");
    group.sample_size(10).warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_secs(2));
    group.throughput(Throughput::Elements(count as u64));
    group.bench_function(name, |b| b.iter_custom(|rounds| (0..rounds).map(|_| body()).sum()));
    group.finish();
}

fn inserts(c: &mut Criterion, env: &Env, set: &str, records: &'static Records) {
    let count = records.len();
    measure(c, &format!("insert/{set}/radix"), count, || {
        let memtable = Memtable::new(SeqNo(1));
        timed(env, || (0..count).for_each(|index| records.insert(&memtable, index)))
    });
    measure(c, &format!("insert/{set}/radix, 2 threads"), count, || {
        let memtable = Memtable::new(SeqNo(1));
        timed_by_clock(env, || {
            std::thread::scope(|scope| {
                for half in 0..2 {
                    let memtable = &memtable;
                    scope.spawn(move || (half..count).step_by(2).for_each(|i| records.insert(memtable, i)));
                }
            });
        })
    });
    measure(c, &format!("insert/{set}/skiplist"), count, || {
        let map = SkipMap::new();
        timed(env, || {
            for index in 0..count {
                map.insert((records.key(index), Reverse(index as u64)), index);
            }
        })
    });
    measure(c, &format!("insert/{set}/skiplist, 2 threads"), count, || {
        let map = SkipMap::new();
        timed_by_clock(env, || {
            std::thread::scope(|scope| {
                for half in 0..2 {
                    let map = &map;
                    scope.spawn(move || {
                        for index in (half..count).step_by(2) {
                            map.insert((records.key(index), Reverse(index as u64)), index);
                        }
                    });
                }
            });
        })
    });
    measure(c, &format!("insert/{set}/btree"), count, || {
        let mut map = BTreeMap::new();
        timed(env, || {
            for index in 0..count {
                map.insert((records.key(index), Reverse(index as u64)), index);
            }
        })
    });
}

fn reads(c: &mut Criterion, env: &Env, set: &str, records: &'static Records) {
    let count = records.len();
    let memtable = records.memtable();
    let in_order = |body: &mut dyn FnMut(&'static [u8])| {
        records.order.iter().for_each(|index| body(records.key(*index as usize)));
    };
    measure(c, &format!("get/{set}/radix"), count, || {
        timed(env, || in_order(&mut |key| assert!(black_box(memtable.get(key, SeqNo::MAX)).is_some())))
    });
    measure(c, &format!("get_many of 64/{set}/radix"), count, || {
        let mut versions = Vec::new();
        timed(env, || {
            for group in records.order.chunks(64) {
                let keys: Vec<_> = group.iter().map(|index| records.key(*index as usize)).collect();
                memtable.get_many(&keys, SeqNo::MAX, &mut versions);
                assert!(black_box(&versions).iter().all(Option::is_some));
            }
        })
    });
    measure(c, &format!("scan/{set}/radix"), count, || {
        let mut cursor = memtable.cursor();
        timed(env, || assert_eq!(scan(&mut cursor), count))
    });
    // Built only if the command line asks for a measurement of it.
    let map = LazyCell::new(|| records.skip_map());
    let tree = LazyCell::new(|| records.tree_map());
    measure(c, &format!("get/{set}/skiplist"), count, || {
        LazyCell::force(&map);
        timed(env, || in_order(&mut |key| assert!(map.lower_bound(newest(key).as_ref()).is_some())))
    });
    measure(c, &format!("get/{set}/btree"), count, || {
        LazyCell::force(&tree);
        timed(env, || in_order(&mut |key| assert!(tree.range((key, Reverse(u64::MAX))..).next().is_some())))
    });
    measure(c, &format!("scan/{set}/skiplist"), count, || {
        LazyCell::force(&map);
        timed(env, || {
            let sum: u64 = map.iter().map(|entry| u64::from(entry.key().0[15])).sum();
            black_box(sum);
        })
    });
    measure(c, &format!("scan/{set}/btree"), count, || {
        LazyCell::force(&tree);
        timed(env, || {
            let sum: u64 = tree.keys().map(|key| u64::from(key.0[15])).sum();
            black_box(sum);
        })
    });
}

fn newest(key: &'static [u8]) -> std::ops::Bound<RivalKey> {
    std::ops::Bound::Included((key, Reverse(u64::MAX)))
}

fn scan(cursor: &mut impl Cursor) -> usize {
    let (mut count, mut sum) = (0, 0);
    cursor.seek_first().expect("memory does not fail");
    while let Some(entry) = cursor.entry() {
        sum += u64::from(entry.key[15]) + u64::from(entry.value[0]);
        count += 1;
        cursor.next().expect("memory does not fail");
    }
    black_box(sum);
    count
}

fn merges(c: &mut Criterion, env: &Env, set: &str, records: &'static Records) {
    let half = records.len() / 2;
    let part = |range: std::ops::Range<usize>| {
        let memtable = Memtable::new(SeqNo(range.start as u64 + 1));
        range.for_each(|index| records.insert(&memtable, index));
        memtable
    };
    let frozen = part(half..2 * half);
    measure(c, &format!("merge/{set}/radix"), half, || {
        let global = GlobalIndex::from_frozen(part(0..half));
        timed(env, || assert!(global.merge(&frozen, &[], &mut |_| true)))
    });
}

fn all(c: &mut Criterion) {
    let env = Env::real();
    let count = if std::env::args().any(|arg| arg == "--test") { 1000 } else { 1_000_000 };
    for (set, records) in sets(count) {
        let memtable = records.memtable();
        println!(
            "{set}: {} entries, index {:.1} bytes per key",
            memtable.entry_count(),
            memtable.index_bytes() as f64 / count as f64
        );
        drop(memtable);
        inserts(c, &env, set, records);
        reads(c, &env, set, records);
        merges(c, &env, set, records);
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    all(&mut criterion);
    criterion.final_summary();
}
