//! The row cache's protocol under explored schedules: readers that look into memory, the row cache and the
//! levels, and a writer whose records come down from memory, or come in beneath it before they are visible.
//! No reader may get a version older than one that was there when it began.

use std::sync::Arc;

use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::thread;
use terrane_base::{RecordKind, SeqKind, SeqNo, TableId};
use terrane_format::filter::hash;
use terrane_table::{Cache, RowCache, enter};

const TABLE: TableId = TableId(0);

/// A table of one key.
#[derive(Clone, Copy, PartialEq, Eq)]
struct View {
    memory: Option<u64>,
    levels: u64,
    /// The next older version in the levels.
    below: u64,
}

struct World {
    rows: RowCache,
    key: Vec<u8>,
    view: Mutex<View>,
    visible: AtomicU64,
}

impl World {
    fn read(&self) {
        let began = self.visible.load(Ordering::SeqCst);
        let stamp = self.rows.stamp();
        // Nothing that the number sees has come in behind the view.
        let (view, seq) = loop {
            let view = *self.view.lock().unwrap();
            let seq = SeqNo(self.visible.load(Ordering::SeqCst));
            if view == *self.view.lock().unwrap() {
                break (view, seq);
            }
        };
        let (name, hash) = ((TABLE, &self.key[..]), hash(&self.key));
        let mut value = Vec::new();
        let found = if let Some(version) = view.memory.filter(|version| *version <= seq.0) {
            version
        } else if self.rows.get(&enter(), name, hash, seq, &mut value).is_some() {
            u64::from_le_bytes(value[..].try_into().unwrap())
        } else {
            let version = if view.levels <= seq.0 { view.levels } else { view.below };
            let kind = SeqKind::new(SeqNo(version), RecordKind::Put);
            self.rows.fill(&enter(), (stamp, seq), name, hash, (kind, &version.to_le_bytes()));
            version
        };
        assert!(found >= began && found <= seq.0, "read {found}, which is not in {began}..={}", seq.0);
    }

    fn write_and_flush(&self, version: u64) {
        self.view.lock().unwrap().memory = Some(version);
        self.visible.store(version, Ordering::SeqCst);
        self.rows.raise_stamp();
        self.rows.forget(&enter(), (TABLE, &self.key), hash(&self.key));
        let mut view = self.view.lock().unwrap();
        *view = View { memory: None, levels: version, below: view.levels };
    }

    fn come_in(&self, version: u64) {
        let mut view = self.view.lock().unwrap();
        *view = View { memory: None, levels: version, below: view.levels };
        drop(view);
        self.rows.refuse_fills_below(SeqNo(version));
        self.rows.raise_stamp();
        self.rows.forget(&enter(), (TABLE, &self.key), hash(&self.key));
        self.visible.store(version, Ordering::SeqCst);
    }
}

fn world() -> Arc<World> {
    // A key of the first shard, which is awake from the first read on.
    let key =
        (0..).map(|number: u32| number.to_be_bytes().to_vec()).find(|key| hash(key) >> 60 == 0).unwrap();
    Arc::new(World {
        rows: RowCache::new(Cache::new(16 << 20), 1 << 20).unwrap(),
        key,
        view: Mutex::new(View { memory: None, levels: 1, below: 0 }),
        visible: AtomicU64::new(1),
    })
}

/// Readers that read so often each, beside a writer.
fn check(reads: usize, write: fn(&World)) {
    let check = move || {
        let world = world();
        let mut threads = Vec::new();
        for _ in 0..2 {
            let world = world.clone();
            threads.push(thread::spawn(move || (0..reads).for_each(|_| world.read())));
        }
        threads.push(thread::spawn(move || write(&world)));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    };
    // With an epoch of its own: objects retired in the epoch that all threads share would be freed outside of
    // the execution that made them.
    let test = move || {
        // SAFETY: nothing that the test makes leaves it, and all its threads have ended with it.
        unsafe { terrane_base::epoch::alone(&check) }
    };
    shuttle::check_random(test, 3_000);
    shuttle::check_pct(test, 3_000, 3);
}

#[test]
fn no_reader_gets_an_old_version() {
    check(4, |world| (2..4).for_each(|version| world.write_and_flush(version)));
}

#[test]
fn no_reader_gets_a_row_that_an_ingest_replaced() {
    check(2, |world| world.come_in(2));
}
