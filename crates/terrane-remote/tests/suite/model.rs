//! Random histories against a model: writers that die and are replaced, older ones that go on, late parts,
//! copies, garbage, faults.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use terrane_base::env::{Clock, Env, SleepClock};
use terrane_base::{ExtentId, Result, Rng};
use terrane_remote::bucket::MemoryBucket;
use terrane_remote::bucket::faulty::FaultyBucket;
use terrane_remote::{BucketStore, Collected, Roots};
use terrane_storage::Store;

use crate::support::{check, env, memory, names, pattern, put, reopened, retrying};

/// Extents with length and salt.
type Extents = BTreeMap<ExtentId, (usize, u64)>;

/// The content of a durable manifest, which must not be lost.
#[derive(Clone, Debug, Default)]
struct Manifest(Extents);

impl Roots for Manifest {
    fn confirm(&self) -> Result<()> {
        Ok(())
    }

    fn files(&self) -> Result<BTreeSet<u32>> {
        Ok(self.0.keys().map(|id| id.file).collect())
    }
}

struct World {
    rng: Rng,
    env: Env,
    clock: Arc<SleepClock>,
    inner: Arc<MemoryBucket>,
    faulty: FaultyBucket,
    epoch: u64,
    store: BucketStore,
    manifest: Manifest,
    /// Written since the last sync.
    written: Extents,
    /// Allocated and not written.
    reserved: Vec<ExtentId>,
    salt: u64,
    /// Writers that were replaced and do not know it.
    replaced: Vec<BucketStore>,
}

impl World {
    fn new(seed: u64) -> Self {
        let (env, clock) = env();
        let inner = memory(&clock);
        let faulty = FaultyBucket::new(inner.clone());
        let store = reopened(retrying(Arc::new(faulty.clone()), &env), 1, &[]);
        faulty.fail_at_random(20, seed);
        World {
            rng: Rng::new(seed),
            env,
            clock,
            inner,
            faulty,
            epoch: 1,
            store,
            manifest: Manifest::default(),
            written: Extents::new(),
            reserved: Vec::new(),
            salt: 0,
            replaced: Vec::new(),
        }
    }

    fn step(&mut self) {
        match self.rng.below(100) {
            0..40 => self.put(),
            40..45 => self.reserved.push(self.store.allocate_for(1, 3000).expect("allocated")),
            45..50 => self.write_late(),
            50..60 => self.sync(),
            60..75 => self.free(),
            75..80 => self.collect(),
            80..83 => self.clock.sleep(Duration::from_secs(30)),
            83..88 => self.copy(),
            88..95 => self.let_replaced_go_on(),
            95..98 => self.check(),
            _ => self.replace(),
        }
    }

    fn put(&mut self) {
        self.salt += 1;
        let len = 1 + self.rng.index(60_000);
        let id = put(&self.store, len, self.salt).expect("put");
        assert!(self.written.insert(id, (len, self.salt)).is_none(), "an id is given once");
    }

    /// Writes an extent that was allocated long ago, or writes one again.
    fn write_late(&mut self) {
        let written: Vec<ExtentId> = self.written.keys().copied().collect();
        let again = (!written.is_empty()).then(|| *self.rng.pick(&written));
        let Some(id) = self.reserved.pop().or(again) else { return };
        self.salt += 1;
        self.store.write(id, &pattern(2000, self.salt)).expect("written");
        self.written.insert(id, (2000, self.salt));
    }

    fn sync(&mut self) {
        self.store.sync().expect("synced");
        self.manifest.0.append(&mut self.written);
    }

    fn free(&mut self) {
        let live: Vec<ExtentId> = self.manifest.0.keys().chain(self.written.keys()).copied().collect();
        if live.is_empty() {
            return;
        }
        let id = *self.rng.pick(&live);
        self.manifest.0.remove(&id);
        self.written.remove(&id);
        self.store.free(id, 1).expect("freed");
    }

    fn collect(&mut self) {
        self.store.collect_garbage(&self.manifest).expect("the faults are repaired");
    }

    /// Frees an extent while a copy reads it.
    fn copy(&mut self) {
        let Some((id, (len, salt))) = self.manifest.0.pop_last() else { return };
        self.store.hold();
        self.store.free(id, 1).expect("freed");
        self.collect();
        check(&self.store, id, len, salt);
        self.store.release();
    }

    fn let_replaced_go_on(&mut self) {
        for old in &self.replaced {
            self.salt += 1;
            put(old, 1 + self.rng.index(9000), self.salt).expect("the bucket cannot know");
            if self.rng.one_in(2) {
                old.sync().expect("the bucket cannot know");
            }
            // It learns of the newer writer at the latest when it lists that one's objects.
            let _ = old.collect_garbage(&Manifest::default());
        }
    }

    fn check(&self) {
        for (id, (len, salt)) in self.manifest.0.iter().chain(&self.written) {
            check(&self.store, *id, *len, *salt);
        }
        let usage = self.store.usage();
        let slots = (self.manifest.0.len() + self.written.len() + self.reserved.len()) as u64;
        assert_eq!(usage.live_bytes, slots * terrane_storage::SLOT_BYTES as u64);
    }

    /// The writer dies, or goes on without knowing; the next one opens what the manifest has.
    fn replace(&mut self) {
        self.epoch += 1;
        let live: Vec<(ExtentId, u32)> = self.manifest.0.keys().map(|id| (*id, 1)).collect();
        let store = reopened(retrying(Arc::new(self.faulty.clone()), &self.env), self.epoch, &live);
        // The first thing that the new writer does: from then on the older ones find its object in lists.
        let id = put(&store, 10, 0).expect("put");
        store.sync().expect("synced");
        self.manifest.0.insert(id, (10, 0));
        let old = std::mem::replace(&mut self.store, store);
        if self.rng.one_in(2) && self.replaced.len() < 3 {
            self.replaced.push(old);
        }
        self.written.clear();
        self.reserved.clear();
        self.check();
    }
}

#[test]
fn random_histories_lose_nothing_and_leave_nothing() {
    for seed in 0..4 {
        let mut world = World::new(seed);
        for _ in 0..250 {
            world.step();
        }
        // The last writer alone, with all garbage collected.
        world.replaced.clear();
        world.replace();
        world.replaced.clear();
        loop {
            world.clock.sleep(Duration::from_secs(60));
            if world.store.collect_garbage(&world.manifest).expect("collects") == Collected::Nothing {
                break;
            }
        }
        world.check();
        let files = world.manifest.files().expect("known").len();
        let objects: BTreeSet<String> = names(&*world.inner, "db/data")
            .into_iter()
            .map(|name| name.rsplit_once('-').expect("has a part").0.to_owned())
            .collect();
        assert_eq!(objects.len(), files, "seed {seed}: an object for each file that lives, and no other");
        assert_eq!(names(&*world.inner, "db/gc"), Vec::<String>::new(), "seed {seed}");
    }
}
