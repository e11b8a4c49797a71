//! Random histories of originals and their clones against a model: clones of clones and of earlier moments,
//! collections of garbage around the making of a clone, crashes, machines without a directory.
//! `TERRANE_CLONES_SEEDS` sets how many histories there are, `TERRANE_CLONES_STEPS` how long each is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use terrane::{Batch, Db, Durability, Kind, SeqNo};
use terrane_base::Rng;
use terrane_base::env::Clock;
use terrane_remote::bucket::faulty::FaultyBucket;
use terrane_remote::{At, Bucket, UnfinishedClone};

use super::{AGE, Place, Rows, compact, key, rows, value};
use crate::support::names;

/// Most databases of a history.
const DATABASES: usize = 5;
/// Most earlier moments of a database that are known.
const MOMENTS: usize = 6;

/// One database.
#[derive(Default)]
struct Known {
    /// The handle, and the bucket through which it goes, if it is open.
    open: Option<(Db, FaultyBucket)>,
    rows: Rows,
    /// Earlier states: the commit, the time at which it was the last one, and the rows.
    moments: Vec<(SeqNo, Duration, Rows)>,
}

/// How often a history did each thing, so that a test sees that it did it.
#[derive(Debug, Default)]
struct Done {
    clones: u32,
    earlier: u32,
    gone: u32,
    crashes: u32,
    unfinished: u32,
    released: u32,
    deleted: usize,
}

struct World {
    rng: Rng,
    place: Place,
    /// By prefix.
    databases: BTreeMap<String, Known>,
    made: u32,
    done: Done,
}

impl World {
    fn new(seed: u64) -> World {
        let databases = BTreeMap::from([("db".to_owned(), Known::default())]);
        let mut world =
            World { rng: Rng::new(seed), place: Place::new(), databases, made: 0, done: Done::default() };
        world.open("db");
        world
    }

    fn any(&mut self) -> String {
        let at = self.rng.index(self.databases.len());
        self.databases.keys().nth(at).expect("one of them").clone()
    }

    fn known(&mut self, prefix: &str) -> &mut Known {
        self.databases.get_mut(prefix).expect("it is known")
    }

    fn open(&mut self, prefix: &str) -> Db {
        if let Some((db, _)) = &self.databases[prefix].open {
            return db.clone();
        }
        let faulty = FaultyBucket::new(self.place.bucket.clone());
        let db = self.place.try_open_through(Arc::new(faulty.clone()), prefix).expect("opens");
        self.known(prefix).open = Some((db.clone(), faulty));
        db
    }

    fn step(&mut self) {
        let prefix = self.any();
        match self.rng.below(100) {
            0..44 => self.write(&prefix),
            44..54 => self.open(&prefix).flush().expect("flushes"),
            54..60 => compact(&self.open(&prefix)),
            60..66 => self.remember(&prefix),
            66..78 if self.databases.len() < DATABASES => self.clone_of(&prefix),
            78..85 => self.collect(&prefix),
            85..90 => self.clone_beside_collection(&prefix),
            90..94 => self.check(&prefix),
            94..96 => self.crash(&prefix),
            96..98 => self.lose(&prefix),
            _ => self.close(&prefix),
        }
    }

    fn write(&mut self, prefix: &str) {
        let db = self.open(prefix);
        let table = db.default_table();
        for _ in 0..1 + self.rng.index(20) {
            let (number, salt) = (self.rng.below(60) as u32, self.rng.next_u64() as u32);
            let mut batch = Batch::new();
            if self.rng.one_in(5) {
                batch.delete(table, key(number)).expect("deletes");
                self.known(prefix).rows.remove(key(number).as_bytes());
            } else {
                batch.put(table, key(number), value(salt)).expect("put");
                self.known(prefix).rows.insert(key(number).into(), value(salt));
            }
            db.write(&batch, Durability::Synced).expect("writes");
        }
    }

    /// Writes down the present state, to clone it when it is an earlier one.
    fn remember(&mut self, prefix: &str) {
        let (commit, time) = (self.open(prefix).snapshot().seq(), self.place.clock.now());
        let known = self.known(prefix);
        known.moments.push((commit, time, known.rows.clone()));
        if known.moments.len() > MOMENTS {
            known.moments.remove(0);
        }
        self.place.clock.sleep(Duration::from_secs(1));
    }

    /// Clones the present state, or an earlier one.
    fn clone_of(&mut self, prefix: &str) {
        let known = &self.databases[prefix];
        let earlier = known.moments.len();
        if earlier == 0 || self.rng.one_in(3) {
            let rows = known.rows.clone();
            return self.clone_with(prefix, None, rows);
        }
        let (commit, time, rows) = known.moments[self.rng.index(earlier)].clone();
        self.clone_with(prefix, Some((commit, time)), rows);
    }

    fn clone_with(&mut self, prefix: &str, moment: Option<(SeqNo, Duration)>, rows: Rows) {
        self.made += 1;
        let to = format!("clone{}", self.made);
        let at = moment.map(|(commit, _)| At::Commit(commit));
        if self.rng.one_in(3) && self.unfinished(prefix, &to, at) {
            self.databases.insert(to, Known { rows, ..Known::default() });
            return;
        }
        match self.place.clone_between(self.place.bucket.clone(), (prefix, &to), at) {
            Ok(_) => {
                self.done.clones += 1;
                self.done.earlier += u32::from(moment.is_some());
                self.databases.insert(to, Known { rows, ..Known::default() });
            }
            Err(error) => {
                let (_, time) = moment.unwrap_or_else(|| panic!("{prefix}: the present state: {error}"));
                let age = self.place.clock.now() - time;
                assert!(error.kind() == Kind::Gone && age >= AGE, "{prefix}: {age:?}: {error}");
                self.done.gone += 1;
            }
        }
    }

    /// The making of a clone dies at some call; returns true if the clone is there. What it left is removed
    /// otherwise.
    fn unfinished(&mut self, prefix: &str, to: &str, at: Option<At>) -> bool {
        let faulty = FaultyBucket::new(self.place.bucket.clone());
        faulty.fail_from(self.rng.below(180));
        let made = self.place.clone_between(Arc::new(faulty), (prefix, to), at);
        if self.place.state(to).is_some() {
            self.done.clones += 1;
            return true;
        }
        assert!(made.is_err(), "{to} was made, and is not there");
        let bucket: Arc<dyn Bucket> = self.place.bucket.clone();
        let removed = self.place.deployment(to).remove_unfinished_clone_in(&bucket, &self.place.env);
        self.done.unfinished += u32::from(removed.expect("removes") != UnfinishedClone::default());
        false
    }

    fn close(&mut self, prefix: &str) {
        if let Some((db, _)) = self.known(prefix).open.take() {
            db.close().expect("closes");
        }
    }

    /// The machine dies in a flush, a compaction or between two of them. Commits were durable before.
    fn crash(&mut self, prefix: &str) {
        let db = self.open(prefix);
        let (_, faulty) = self.known(prefix).open.take().expect("it is open");
        faulty.fail_from(faulty.calls() + self.rng.below(12));
        // Whatever they did: no commit is lost.
        let _ = db.flush();
        if self.rng.one_in(2) {
            let _ = db.compact_range(db.default_table(), ..);
        }
        faulty.set_down(true);
        drop(db);
        if self.rng.one_in(2) {
            self.place.lose_directory(prefix);
        }
        self.done.crashes += 1;
        self.check(prefix);
    }

    fn collect(&mut self, prefix: &str) {
        self.close(prefix);
        self.done.deleted += self.place.collect(prefix, 3);
        self.place.clock.sleep(Duration::from_secs(60));
    }

    /// A collection writes down the garbage; then clones are made, also of what it has written down; then
    /// it deletes.
    fn clone_beside_collection(&mut self, prefix: &str) {
        self.close(prefix);
        let collecting = self.place.collecting(prefix);
        collecting.pass();
        let (before, wait) = (self.databases.len(), self.rng.below(2 * AGE.as_secs()));
        self.place.clock.sleep(Duration::from_secs(wait));
        if self.databases.len() < DATABASES {
            self.clone_of(prefix);
        }
        self.place.clock.sleep(AGE);
        self.done.deleted += collecting.pass();
        drop(collecting);
        if self.databases.len() > before {
            let made = format!("clone{}", self.made);
            self.check(&made);
        }
    }

    /// A person deletes a clone of which no other one reads, and releases its pins.
    fn lose(&mut self, prefix: &str) {
        let bucket = self.place.bucket.clone();
        if prefix == "db" || !names(&*bucket, &format!("{prefix}/gc/pins")).is_empty() {
            return;
        }
        self.close(prefix);
        self.databases.remove(prefix);
        bucket.delete(&names(&*bucket, prefix)).expect("deletes");
        self.place.clock.sleep(AGE);
        let of_lost = format!("memory:/{prefix}");
        for original in self.databases.keys() {
            let deployment = self.place.deployment(original);
            for pin in deployment.clone_pins_in(&*bucket).expect("lists") {
                if pin.clone == of_lost {
                    let env = &self.place.env;
                    deployment.release_clone_in(bucket.clone(), pin.number, false, env).expect("it is lost");
                    self.done.released += 1;
                }
            }
        }
    }

    fn check(&mut self, prefix: &str) {
        let found = rows(&self.open(prefix));
        assert!(found == self.databases[prefix].rows, "{prefix}: {} rows", found.len());
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn random_histories_of_originals_and_clones() {
    let (seeds, steps) = (number("TERRANE_CLONES_SEEDS", 10), number("TERRANE_CLONES_STEPS", 90));
    let mut all = Done::default();
    for seed in 0..seeds {
        println!("seed {seed}");
        let mut world = World::new(seed);
        for _ in 0..steps {
            world.step();
        }
        let prefixes: Vec<String> = world.databases.keys().cloned().collect();
        prefixes.iter().for_each(|prefix| world.collect(prefix));
        for prefix in &prefixes {
            // As a machine that has nothing yet.
            world.close(prefix);
            world.place.lose_directory(prefix);
            world.check(prefix);
        }
        let Done { clones, earlier, gone, crashes, unfinished, released, deleted } = world.done;
        all.clones += clones;
        all.earlier += earlier;
        all.gone += gone;
        all.crashes += crashes;
        all.unfinished += unfinished;
        all.released += released;
        all.deleted += deleted;
    }
    println!("{all:?}");
    let Done { clones, earlier, gone, crashes, unfinished, released, deleted } = all;
    let deleted = u32::try_from(deleted).unwrap_or(u32::MAX);
    let counts = [clones, earlier, gone, crashes, unfinished, released, deleted];
    assert!(seeds < 10 || steps < 90 || counts.iter().all(|count| *count > 0), "{all:?}");
}
