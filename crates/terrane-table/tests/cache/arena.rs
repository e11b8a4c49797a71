//! A cache whose objects lie in an arena: the limit counts chunks, a lower limit gives them back, and objects
//! that are moved for that are found as before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::alone;
use crate::support::store::{TestStore, write_extents};
use crate::support::{Row, until_free};
use terrane_base::{Cursor, Rng, SeqNo};
use terrane_table::cache::ObjectKind;
use terrane_table::{Cache, CursorOptions, Extent, ExtentCursor, WriterSettings};

const CHUNK_BYTES: usize = 256 << 10;

fn rows(count: u64) -> Vec<Row> {
    (0..count)
        .map(|i| Row::put(format!("key{i:08}").as_bytes(), i + 1, &i.to_le_bytes().repeat(12)))
        .collect()
}

struct Data {
    rows: Vec<Row>,
    extents: Vec<Arc<Extent>>,
    cache: Arc<Cache>,
}

impl Data {
    fn new(count: u64, limit: usize) -> Data {
        let rows = rows(count);
        let extents = write_extents(&rows, WriterSettings::default(), 200 << 10, &TestStore::new());
        Data { rows, extents, cache: Cache::with_memory(64 << 20, limit as u64, Some(CHUNK_BYTES)) }
    }

    fn extent(&self, key: &[u8]) -> &Arc<Extent> {
        &self.extents[self.extents.partition_point(|extent| extent.meta.largest.as_slice() < key)]
    }

    fn read(&self, row: &Row) {
        let mut value = Vec::new();
        let found = self.extent(&row.key).get(&self.cache, &row.key, SeqNo::MAX, &mut value).unwrap();
        assert_eq!((found, value), (Some(row.seq_kind), row.value.clone()));
    }

    /// Gives epochs and moves time until the cache holds at most `limit`.
    fn shrink_to(&self, limit: u64) {
        let is_free = || {
            self.cache.shrink_some(u64::MAX);
            self.cache.usage().used_bytes <= limit
        };
        assert!(until_free(is_free), "still more than {limit} bytes: {:?}", self.cache.usage());
    }

    fn misses(&self) -> u64 {
        self.cache.usage().kinds.iter().map(|kind| kind.misses).sum()
    }
}

#[test]
fn memory_is_chunks_and_all_of_it_comes_back() {
    let _alone = alone();
    let mut data = Data::new(60_000, 64 << 20);
    data.rows.iter().for_each(|row| data.read(row));
    let usage = data.cache.usage();
    assert!(usage.live_bytes > 6 << 20, "{usage:?}");
    let gaps = usage.used_bytes - usage.live_bytes;
    assert!(gaps <= 2 * CHUNK_BYTES as u64 + usage.live_bytes / 16, "{usage:?}");
    let misses = data.misses();
    data.rows.iter().for_each(|row| data.read(row));
    assert_eq!(data.misses(), misses, "all of it is cached");
    data.extents.clear();
    data.shrink_to(0);
    assert_eq!(data.cache.usage().live_bytes, 0);
    assert_eq!(Arc::strong_count(&data.cache), 1, "no object is left");
}

/// Objects that stay are moved together: what fits the lower limit is still there.
#[test]
fn a_lower_limit_empties_chunks_without_losing_what_fits() {
    let _alone = alone();
    let data = Data::new(60_000, 64 << 20);
    data.rows.iter().for_each(|row| data.read(row));
    let full = data.cache.usage();
    let limit = full.used_bytes / 2;
    data.cache.set_limit(limit);
    data.shrink_to(limit);
    let half = data.cache.usage();
    assert!(half.used_bytes <= limit && half.live_bytes >= limit * 8 / 10, "{half:?}");
    let cached: usize = data.extents.iter().map(|extent| extent.cached_blocks()).sum();
    assert!(cached as u64 * (16 << 10) >= limit * 7 / 10, "{cached} blocks are left of {limit} bytes");
    data.rows.iter().step_by(7).for_each(|row| data.read(row));
    assert!(data.cache.usage().used_bytes <= limit);
}

/// A block under a cursor is not moved from below it; the memory comes back when the cursor goes.
#[test]
fn objects_that_cursors_hold_are_not_moved() {
    let _alone = alone();
    let data = Data::new(20_000, 64 << 20);
    data.rows.iter().for_each(|row| data.read(row));
    let mut cursors: Vec<_> = (0..data.rows.len())
        .step_by(1500)
        .map(|at| {
            let row = &data.rows[at];
            let extent = data.extent(&row.key).clone();
            let mut cursor = ExtentCursor::new(extent, data.cache.clone(), CursorOptions::default());
            cursor.seek(&row.key, SeqNo::MAX).unwrap();
            (cursor, at)
        })
        .collect();
    for share in [2, 4, 8] {
        data.cache.set_limit(data.cache.usage().used_bytes / share);
        data.cache.shrink_some(u64::MAX);
        for (cursor, at) in &mut cursors {
            assert_eq!(cursor.entry(), Some(data.rows[*at].entry()));
            cursor.next().unwrap();
            *at += 1;
        }
    }
    cursors.clear();
    data.cache.set_limit(0);
    data.shrink_to(0);
}

/// Threads read at random while the limit goes up and down under them.
#[test]
fn the_limit_holds_while_objects_move() {
    let _alone = alone();
    let data = Data::new(40_000, 4 << 20);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|seed| {
                let data = &data;
                scope.spawn(move || {
                    let mut rng = Rng::new(seed);
                    (0..6000).for_each(|_| data.read(&data.rows[rng.index(data.rows.len())]));
                })
            })
            .collect();
        scope.spawn(|| {
            let mut rng = Rng::new(99);
            while !done.load(Ordering::Relaxed) {
                data.cache.set_limit((1 << 20) + rng.index(4 << 20) as u64);
                for _ in 0..4 {
                    data.cache.shrink_some(256 << 10);
                    std::thread::yield_now();
                }
            }
        });
        let ended: Vec<_> = readers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        done.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok), "a reader panicked");
    });
    let data_kind = data.cache.usage().kinds[ObjectKind::Data as usize];
    assert!(data_kind.evictions > 0 && data_kind.bypasses < data_kind.misses, "{data_kind:?}");
    data.cache.set_limit(1 << 20);
    data.shrink_to(1 << 20);
}

/// A cache in use stays full: gaps cost little, and a lone reader finds room for everything.
#[test]
fn a_full_cache_is_dense() {
    let _alone = alone();
    let limit = 4 << 20;
    let data = Data::new(60_000, limit);
    let mut rng = Rng::new(5);
    let mut least = u64::MAX;
    for turn in 0..12_000 {
        data.read(&data.rows[rng.index(data.rows.len())]);
        let usage = data.cache.usage();
        assert!(usage.used_bytes <= limit as u64, "{usage:?}");
        if turn > 4000 {
            least = least.min(usage.live_bytes);
        }
    }
    let bypasses: u64 = data.cache.usage().kinds.iter().map(|kind| kind.bypasses).sum();
    assert_eq!(bypasses, 0);
    assert!(least >= limit as u64 * 7 / 10, "{least} of {limit} bytes in use");
}
