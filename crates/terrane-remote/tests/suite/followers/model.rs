//! Random histories against a model: a follower has a prefix of what the writers committed, and all that was
//! synced.

use std::collections::BTreeMap;
use std::sync::Arc;

use terrane::{Batch, Db, Durability, Follower, Kind, SeqNo};
use terrane_base::Rng;
use terrane_remote::bucket::faulty::FaultyBucket;

use super::{Place, collect, key};

/// Keys of a history.
const KEYS: u32 = 40;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;
/// The changes of a commit.
type Changes = Vec<(u32, Option<Vec<u8>>)>;

struct World {
    rng: Rng,
    place: Place,
    faulty: FaultyBucket,
    writer: Option<Db>,
    machines: u32,
    /// The machine of the writer.
    machine: String,
    follower: Follower,
    /// Each commit with its last number.
    history: Vec<(SeqNo, Changes)>,
    synced: SeqNo,
    /// Views of before, and what they show.
    views: Vec<(Db, Rows)>,
}

impl World {
    fn new(seed: u64) -> World {
        let place = Place::new();
        let faulty = FaultyBucket::new(place.bucket.clone());
        let writer = place.open("m0");
        let bucket = Arc::new(faulty.clone());
        let follower = place.follow_through(bucket, &place.deployment("elsewhere")).expect("follows");
        World {
            rng: Rng::new(seed),
            place,
            faulty,
            writer: Some(writer),
            machines: 1,
            machine: "m0".to_owned(),
            follower,
            history: Vec::new(),
            synced: SeqNo(0),
            views: Vec::new(),
        }
    }

    fn writer(&self) -> &Db {
        self.writer.as_ref().expect("there is a writer")
    }

    fn step(&mut self) {
        match self.rng.below(100) {
            0..60 => self.commit(),
            60..68 => self.writer().flush().expect("flushes"),
            68..71 => {
                let db = self.writer();
                db.compact_range(db.default_table(), ..).expect("compacts");
            }
            71..75 => collect(&self.place),
            75..80 => self.take_over(),
            80..84 => self.check_views(),
            _ => self.catch_up(),
        }
    }

    fn commit(&mut self) {
        let mut changes = Changes::new();
        for _ in 0..1 + self.rng.index(5) {
            let len = 1 + self.rng.index(300);
            let value = vec![self.rng.next_u64() as u8; len];
            let number = self.rng.below(u64::from(KEYS)) as u32;
            changes.retain(|(other, _)| *other != number);
            changes.push((number, Some(value).filter(|_| !self.rng.one_in(4))));
        }
        let db = self.writer();
        let mut batch = Batch::new();
        for (number, value) in &changes {
            match value {
                Some(value) => batch.put(db.default_table(), key(*number), value),
                None => batch.delete(db.default_table(), key(*number)),
            }
            .expect("fits");
        }
        let durability = if self.rng.one_in(3) { Durability::Synced } else { Durability::Buffered };
        let seq = self.writer().write(&batch, durability).expect("writes");
        self.history.push((seq, changes));
        if durability == Durability::Synced {
            self.synced = seq;
        }
    }

    /// The writer dies, or closes, and the next one is on the same machine or on another one.
    fn take_over(&mut self) {
        let before = self.writer.take().expect("there is a writer");
        let stays = self.rng.one_in(3);
        if stays {
            before.close().expect("closes");
        } else {
            self.machine = format!("m{}", self.machines);
            self.machines += 1;
            if self.rng.one_in(2) {
                // It goes on, and does not know.
                std::mem::forget(before);
            }
        }
        let writer = self.place.open(&self.machine);
        let has = writer.snapshot().seq();
        assert!(has >= self.synced, "what was synced is there: {has} of {}", self.synced);
        self.history.retain(|(seq, _)| *seq <= has);
        self.synced = has;
        self.writer = Some(writer);
    }

    /// The rows after the first commits up to this number.
    fn rows_at(&self, seq: SeqNo) -> Rows {
        let mut rows = Rows::new();
        for (_, changes) in self.history.iter().filter(|(last, _)| *last <= seq) {
            for (number, value) in changes {
                let key = key(*number).into_bytes();
                match value {
                    Some(value) => drop(rows.insert(key, value.clone())),
                    None => drop(rows.remove(&key)),
                }
            }
        }
        rows
    }

    fn catch_up(&mut self) {
        // Some attempts fail at some request; the last one at none.
        for attempts_left in (0..self.rng.index(4)).rev() {
            self.faulty.fail_at_random(2 + 6 * attempts_left as u64, self.rng.next_u64());
            if let Err(error) = self.follower.catch_up() {
                assert_eq!(error.kind(), Kind::Io, "{error}");
            }
        }
        self.faulty.fail_at_random(u64::MAX, 0);
        self.follower.catch_up().expect("no request fails");
        let (view, seq) = (self.follower.view(), self.follower.stats().seq);
        assert!(seq >= self.synced, "the follower has {seq}, and {} was synced", self.synced);
        let rows = self.rows_at(seq);
        assert_eq!(scan(&view).expect("new commits are there"), rows, "as it was at {seq}");
        self.views.push((view, rows));
        if self.views.len() > 4 {
            self.views.remove(0);
        }
    }

    /// A view of before is as it was, or the writer deleted what it needs.
    fn check_views(&self) {
        for (view, rows) in &self.views {
            match scan(view) {
                Ok(found) => assert_eq!(&found, rows),
                Err(error) => assert_eq!(error.kind(), Kind::Gone, "{error}"),
            }
        }
    }
}

fn scan(db: &Db) -> terrane::Result<Rows> {
    db.iter().map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec()))).collect()
}

#[test]
fn random_histories_are_followed() {
    for seed in 0..4 {
        let mut world = World::new(seed);
        for _ in 0..250 {
            world.step();
        }
        world.writer().sync().expect("syncs");
        world.synced = world.writer().snapshot().seq();
        world.catch_up();
        assert_eq!(world.follower.lag().expect("looks"), 0, "seed {seed}");
    }
}
