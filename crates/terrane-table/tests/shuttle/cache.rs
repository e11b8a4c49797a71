//! The cache with an arena under explored schedules: readers that miss and publish, a limit that falls and
//! rises, objects that are moved to empty chunks, extents that go. Every value read is right, there is no
//! deadlock, and in the end all memory is free.
//!
//! Epochs are real here, one collector for each schedule, and all explored threads are one to them: memory is
//! freed late, never early. The model of a swip above finds memory that is freed too early.

use std::sync::Arc;

use shuttle::sync::Mutex;
use shuttle::thread;
use terrane_base::SeqNo;
use terrane_table::{Cache, Extent, WriterSettings};

use crate::support::Row;
use crate::support::store::{TestStore, write_extents};

/// So small that there are several, and that some of them can be emptied.
const CHUNK_BYTES: usize = 16 << 10;
const CHUNKS: usize = 4;

struct World {
    rows: Vec<Row>,
    cache: Arc<Cache>,
    store: Arc<TestStore>,
    extents: Mutex<Arc<Vec<Arc<Extent>>>>,
}

impl World {
    fn new(chunk_bytes: Option<usize>) -> Arc<World> {
        let rows =
            (0..140).map(|i| Row::put(format!("key{i:03}").as_bytes(), i + 1, &[i as u8; 100])).collect();
        let limit = (CHUNKS * CHUNK_BYTES) as u64;
        let cache = Cache::with_memory(limit, limit, chunk_bytes);
        let world = World { rows, cache, store: TestStore::new(), extents: Mutex::default() };
        *world.extents.lock().unwrap() = world.write();
        // Every other block was used twice and stays when the limit falls: so chunks get gaps, and have to be
        // emptied.
        (0..world.rows.len()).for_each(|at| world.read(at));
        (0..world.rows.len()).filter(|at| at % 8 < 4).for_each(|at| world.read(at));
        let usage = world.cache.usage();
        assert_eq!(
            usage.used_bytes > usage.live_bytes,
            chunk_bytes.is_some(),
            "objects lie in chunks: {usage:?}"
        );
        Arc::new(world)
    }

    fn write(&self) -> Arc<Vec<Arc<Extent>>> {
        let settings = WriterSettings { block_bytes: 512, ..WriterSettings::default() };
        Arc::new(write_extents(&self.rows, settings, 8 << 10, &self.store))
    }

    fn read(&self, at: usize) {
        let extents = self.extents.lock().unwrap().clone();
        let row = &self.rows[at % self.rows.len()];
        let extent =
            &extents[extents.partition_point(|extent| extent.meta.largest.as_slice() < &row.key[..])];
        let mut value = Vec::new();
        let found = extent.get(&self.cache, &row.key, SeqNo::MAX, &mut value).unwrap();
        assert_eq!((found, &value), (Some(row.seq_kind), &row.value));
    }

    /// A merge rewrote everything: the old extents go with their last reader.
    fn rewrite(&self) {
        let new = self.write();
        let old = std::mem::replace(&mut *self.extents.lock().unwrap(), new);
        old.iter().for_each(|extent| extent.mark_obsolete());
    }

    /// No thread is left: all memory comes back.
    fn end(&self) {
        *self.extents.lock().unwrap() = Arc::default();
        for _ in 0..16 {
            terrane_table::swip::enter().collect();
        }
        let usage = self.cache.usage();
        assert_eq!((usage.used_bytes, usage.live_bytes, usage.retired_bytes), (0, 0, 0), "{usage:?}");
    }
}

fn explore(test: impl Fn() + Send + Sync + 'static) {
    let test = Arc::new(move || {
        // SAFETY: nothing that the test makes leaves it, and all its threads have ended with it.
        unsafe { terrane_base::epoch::alone(&test) }
    });
    let random = test.clone();
    shuttle::check_random(move || random(), 1_000);
    shuttle::check_pct(move || test(), 1_000, 3);
}

/// Two readers beside `change`.
fn read_beside(chunk_bytes: Option<usize>, change: fn(&World)) {
    explore(move || {
        let world = World::new(chunk_bytes);
        let mut threads: Vec<_> = (0..2)
            .map(|number| {
                let world = world.clone();
                thread::spawn(move || (0..4).for_each(|turn| world.read(37 * number + 11 * turn)))
            })
            .collect();
        let changing = world.clone();
        threads.push(thread::spawn(move || change(&changing)));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        world.end();
    });
}

fn lower_and_raise(world: &World) {
    let limit = world.cache.usage().limit_bytes;
    for part in [2, 3] {
        world.cache.set_limit(limit / part);
        world.cache.shrink_some(u64::MAX);
    }
    world.cache.resize(limit);
}

#[test]
fn readers_meet_a_limit_that_moves() {
    read_beside(Some(CHUNK_BYTES), lower_and_raise);
}

#[test]
fn readers_meet_extents_that_go() {
    read_beside(Some(CHUNK_BYTES), |world| {
        world.rewrite();
        world.cache.clear();
    });
}

#[test]
fn readers_meet_evictions_on_the_heap() {
    read_beside(None, |world| {
        lower_and_raise(world);
        world.rewrite();
    });
}

#[test]
fn two_move_objects_at_once() {
    explore(|| {
        let world = World::new(Some(CHUNK_BYTES));
        let threads = [2, 3].map(|part| {
            let world = world.clone();
            thread::spawn(move || {
                world.cache.set_limit((CHUNKS * CHUNK_BYTES / part) as u64);
                world.cache.shrink_some(u64::MAX);
                world.read(5 * part);
            })
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        world.end();
    });
}
