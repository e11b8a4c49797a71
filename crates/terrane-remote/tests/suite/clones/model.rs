//! Random histories of originals and their clones against a model.

use std::collections::BTreeMap;
use std::time::Duration;

use terrane::{Db, Durability};
use terrane_base::Rng;
use terrane_base::env::Clock;

use super::{Place, Rows, compact, key, rows, value};

/// Most databases of a history.
const DATABASES: usize = 5;

struct World {
    rng: Rng,
    place: Place,
    /// By prefix: the handle, if it is open, and the rows.
    databases: BTreeMap<String, (Option<Db>, Rows)>,
    made: u32,
}

impl World {
    fn new(seed: u64) -> World {
        let place = Place::new();
        let databases = BTreeMap::from([("db".to_owned(), (Some(place.open("db")), Rows::new()))]);
        World { rng: Rng::new(seed), place, databases, made: 0 }
    }

    fn any(&mut self) -> String {
        let at = self.rng.index(self.databases.len());
        self.databases.keys().nth(at).expect("one of them").clone()
    }

    fn open(&mut self, prefix: &str) -> Db {
        let (db, _) = self.databases.get_mut(prefix).expect("it is known");
        db.get_or_insert_with(|| self.place.open(prefix)).clone()
    }

    fn step(&mut self) {
        let prefix = self.any();
        match self.rng.below(100) {
            0..50 => self.write(&prefix),
            50..62 => self.open(&prefix).flush().expect("flushes"),
            62..68 => compact(&self.open(&prefix)),
            68..80 if self.databases.len() < DATABASES => self.clone_of(&prefix),
            80..92 => self.collect(&prefix),
            92..96 => self.check(&prefix),
            _ => self.close(&prefix),
        }
    }

    fn write(&mut self, prefix: &str) {
        let db = self.open(prefix);
        for _ in 0..1 + self.rng.index(20) {
            let (number, salt) = (self.rng.below(60) as u32, self.rng.next_u64() as u32);
            let (_, rows) = self.databases.get_mut(prefix).expect("it is known");
            if self.rng.one_in(5) {
                db.delete(key(number)).expect("deletes");
                rows.remove(key(number).as_bytes());
            } else {
                db.default_table().put_with(key(number), value(salt), Durability::Synced).expect("put");
                rows.insert(key(number).into(), value(salt));
            }
        }
    }

    fn clone_of(&mut self, prefix: &str) {
        self.made += 1;
        let to = format!("clone{}", self.made);
        let bucket = self.place.bucket.clone();
        if let Some(db) = &self.databases[prefix].0 {
            // What the bucket does not have yet is not in the clone.
            db.sync().expect("synced");
        }
        self.place.clone_between(bucket, (prefix, &to), None).expect("clones");
        let rows = self.databases[prefix].1.clone();
        self.databases.insert(to, (None, rows));
    }

    fn close(&mut self, prefix: &str) {
        let (db, _) = self.databases.get_mut(prefix).expect("it is known");
        if let Some(db) = db.take() {
            db.close().expect("closes");
        }
    }

    fn collect(&mut self, prefix: &str) {
        self.close(prefix);
        if self.place.state(prefix).is_some() {
            self.place.collect(prefix, 3);
            self.place.clock.sleep(Duration::from_secs(60));
        }
    }

    fn check(&mut self, prefix: &str) {
        let found = rows(&self.open(prefix));
        assert!(found == self.databases[prefix].1, "{prefix}: {} rows", found.len());
    }
}

#[test]
fn random_histories_of_originals_and_clones() {
    for seed in 0..8 {
        let mut world = World::new(seed);
        for _ in 0..70 {
            world.step();
        }
        let all: Vec<String> = world.databases.keys().cloned().collect();
        for prefix in &all {
            world.collect(prefix);
        }
        for prefix in &all {
            // As a machine that has nothing yet.
            world.close(prefix);
            world.check(prefix);
        }
        assert!(world.made > 0, "seed {seed} made no clone");
    }
}
