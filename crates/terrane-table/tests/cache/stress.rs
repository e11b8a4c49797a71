//! Threads that read, scan, evict, resize and drop extents at once: every value is right, every extent's
//! memory comes back. Also run under ThreadSanitizer and Miri, which see what asserts cannot.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::alone;
use crate::support::store::{TestStore, write_extents};
use crate::support::{Row, until_free};
use terrane_base::{Cursor, Rng, SeqNo};
use terrane_table::{Cache, CursorOptions, Extent, ExtentList, LevelCursor, WriterSettings};

/// Small enough for an interpreter to get somewhere.
const SCALE: usize = if cfg!(miri) { 1 } else { 40 };
const READS: usize = if cfg!(miri) { 5 } else { 400 };
const CHANGES: usize = if cfg!(miri) { 3 } else { usize::MAX };

fn rows() -> Vec<Row> {
    (0..SCALE as u64 * 100)
        .map(|i| Row::put(format!("key{i:06}").as_bytes(), i + 1, &[i as u8; 30]))
        .collect()
}

/// A model of the engine: readers take the current list of extents, which changes meanwhile.
struct Tree {
    extents: Mutex<Arc<Vec<Arc<Extent>>>>,
}

impl Tree {
    fn list(&self) -> Arc<Vec<Arc<Extent>>> {
        self.extents.lock().unwrap().clone()
    }
}

#[test]
fn reads_evictions_and_disappearing_extents() {
    run(Cache::new);
}

/// The same where objects are moved when the cache shrinks; chunks are small, so that it often does.
#[test]
fn reads_evictions_and_moves() {
    run(|bytes| Cache::with_memory(bytes, bytes, Some(16 << 10)));
}

fn run(make: impl Fn(u64) -> Arc<Cache>) {
    let _alone = alone();
    let store = TestStore::new();
    let settings = WriterSettings { block_bytes: 512, ..WriterSettings::default() };
    let rows = rows();
    let write = || Arc::new(write_extents(&rows, settings, SCALE * 400, &store));
    let tree = Tree { extents: Mutex::new(write()) };
    let cache = make(SCALE as u64 * 1500);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..3u64)
            .map(|seed| {
                let (tree, cache, rows) = (&tree, &cache, &rows);
                scope.spawn(move || read_some(&mut Rng::new(seed), tree, cache, rows))
            })
            .collect();
        scope.spawn(|| {
            let mut rng = Rng::new(77);
            for _ in 0..CHANGES {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                match rng.index(3) {
                    0 => cache.resize(SCALE as u64 * rng.index(3000) as u64),
                    1 => cache.clear(),
                    _ => {
                        // A rewrite of everything: the old extents go when their last reader goes.
                        let old = std::mem::replace(&mut *tree.extents.lock().unwrap(), write());
                        old.iter().for_each(|extent| extent.mark_obsolete());
                    }
                }
                std::thread::yield_now();
            }
        });
        for worker in workers {
            worker.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    drop(tree);
    assert!(until_free(|| cache.usage().used_bytes == 0), "{:?}", cache.usage());
    assert_eq!(Arc::strong_count(&cache), 1, "no object is left");
}

fn read_some(rng: &mut Rng, tree: &Tree, cache: &Arc<Cache>, rows: &[Row]) {
    for _ in 0..SCALE * READS {
        let list = tree.list();
        let row = &rows[rng.index(rows.len())];
        if rng.index(20) > 0 {
            let extent = list.extent(list.find(&row.key)).clone();
            drop(list);
            let mut value = Vec::new();
            let found = extent.get(cache, &row.key, SeqNo::MAX, &mut value).unwrap();
            assert_eq!((found, value), (Some(row.seq_kind), row.value.clone()));
        } else {
            let mut cursor = LevelCursor::new(list, cache.clone(), CursorOptions::default());
            cursor.seek(&row.key, SeqNo::MAX).unwrap();
            let at = rows.partition_point(|other| other.key < row.key);
            for expected in rows[at..].iter().take(50) {
                assert_eq!(cursor.entry(), Some(expected.entry()));
                cursor.next().unwrap();
            }
        }
    }
}
