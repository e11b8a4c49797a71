//! The row cache's protocol under explored schedules: readers that look into memory, the row cache and the levels, and
//! a writer whose records come down from memory. No reader may get a version older than one that was there when it
//! began.

use std::sync::Arc;

use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::thread;
use terrane_base::{RecordKind, SeqKind, SeqNo, TableId};
use terrane_format::filter::hash;
use terrane_table::{Cache, RowCache, enter};

const TABLE: TableId = TableId(0);

/// A table of one key.
#[derive(Clone, Copy)]
struct Picture {
    memory: Option<u64>,
    levels: u64,
}

struct World {
    rows: RowCache,
    key: Vec<u8>,
    picture: Mutex<Picture>,
    visible: AtomicU64,
}

impl World {
    fn read(&self) {
        let began = self.visible.load(Ordering::SeqCst);
        let stamp = self.rows.stamp();
        let picture = *self.picture.lock().unwrap();
        let seq = SeqNo(self.visible.load(Ordering::SeqCst));
        let (name, hash) = ((TABLE, &self.key[..]), hash(&self.key));
        let mut value = Vec::new();
        let found = if let Some(version) = picture.memory.filter(|version| *version <= seq.0) {
            version
        } else if self.rows.get(&enter(), name, hash, seq, &mut value).is_some() {
            u64::from_le_bytes(value[..].try_into().unwrap())
        } else {
            let version = SeqKind::new(SeqNo(picture.levels), RecordKind::Put);
            self.rows.fill(&enter(), stamp, name, hash, (version, &picture.levels.to_le_bytes()));
            picture.levels
        };
        assert!(found >= began && found <= seq.0, "read {found}, which is not in {began}..={}", seq.0);
    }

    fn write_and_flush(&self, version: u64) {
        self.picture.lock().unwrap().memory = Some(version);
        self.visible.store(version, Ordering::SeqCst);
        self.rows.raise_stamp();
        self.rows.forget(&enter(), (TABLE, &self.key), hash(&self.key));
        let mut picture = self.picture.lock().unwrap();
        *picture = Picture { memory: None, levels: version };
    }
}

fn world() -> Arc<World> {
    // A key of the first shard, which is awake from the first read on.
    let key =
        (0..).map(|number: u32| number.to_be_bytes().to_vec()).find(|key| hash(key) >> 60 == 0).unwrap();
    Arc::new(World {
        rows: RowCache::new(Cache::new(16 << 20), 1 << 20).unwrap(),
        key,
        picture: Mutex::new(Picture { memory: None, levels: 1 }),
        visible: AtomicU64::new(1),
    })
}

#[test]
fn no_reader_gets_an_old_version() {
    let check = || {
        let world = world();
        let mut threads = Vec::new();
        for _ in 0..2 {
            let world = world.clone();
            threads.push(thread::spawn(move || (0..4).for_each(|_| world.read())));
        }
        let writer = world.clone();
        threads.push(thread::spawn(move || (2..4).for_each(|version| writer.write_and_flush(version))));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    };
    shuttle::check_random(check, 3_000);
    shuttle::check_pct(check, 3_000, 3);
}
