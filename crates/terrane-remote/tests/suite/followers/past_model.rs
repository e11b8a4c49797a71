//! Each moment of a history against a model: of all of it, beside a collection of garbage that deletes at
//! once, and beside one that deletes old objects.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use terrane::{Batch, Db, Durability, Kind, SeqNo, TableOptions};
use terrane_base::Rng;
use terrane_base::env::{Clock, SleepClock};
use terrane_format::journal_object::JournalTag;
use terrane_format::manifest::ManifestObject;
use terrane_format::manifest::object::OBJECT_HEADER_BYTES;
use terrane_format::object::parse_object_name;
use terrane_remote::bucket::{Listed, MemoryBucket};
use terrane_remote::{At, Bucket, Earlier};

use super::past::{Tables, commit, number_behind, tables};
use super::{AGE, Place, collect, journal_header, key, value};
use crate::support::refused;

/// Keys of a history.
const KEYS: u64 = 30;

/// A clock that moves on by a millisecond with each object that is created.
#[derive(Debug)]
struct Ticking(Arc<SleepClock>);

impl Clock for Ticking {
    fn now(&self) -> Duration {
        self.0.now()
    }

    fn wall(&self) -> Duration {
        self.0.sleep(Duration::from_millis(1));
        self.0.wall()
    }

    fn sleep(&self, duration: Duration) {
        self.0.sleep(duration);
    }
}

/// A database before its first commit.
fn no_rows() -> Tables {
    Tables::from([("default".to_owned(), BTreeMap::new())])
}

/// A writer and the moments behind each of its steps.
struct World {
    rng: Rng,
    place: Place,
    writer: Option<Db>,
    machines: u32,
    rows: Tables,
    last: SeqNo,
    /// The last commit, the time, and what was there then.
    moments: Vec<(SeqNo, Duration, Tables)>,
}

impl World {
    fn new(seed: u64) -> World {
        let mut place = Place::new();
        place.bucket = Arc::new(MemoryBucket::new(Arc::new(Ticking(place.clock.clone()))));
        let writer = Some(place.open("m0"));
        let (rng, moments, rows) = (Rng::new(seed), Vec::new(), no_rows());
        World { rng, place, writer, machines: 1, rows, last: SeqNo(0), moments }
    }

    fn writer(&self) -> &Db {
        self.writer.as_ref().expect("there is a writer")
    }

    fn step(&mut self) {
        match self.rng.below(100) {
            0..65 => self.commit(),
            65..70 => self.ingest(),
            70..80 => self.writer().flush().expect("flushes"),
            80..84 => {
                let db = self.writer();
                db.compact_range(db.default_table(), ..).expect("compacts");
            }
            84..94 => self.create_or_drop(),
            _ => self.take_over(),
        }
        self.place.note_named();
        self.moments.push((self.last, self.place.clock.wall(), self.rows.clone()));
        self.place.clock.sleep(Duration::from_secs(1));
    }

    fn commit(&mut self) {
        let db = self.writer.as_ref().expect("there is a writer");
        let mut batch = Batch::new();
        for _ in 0..1 + self.rng.index(5) {
            let name = self.rng.index(self.rows.len());
            let (name, rows) = self.rows.iter_mut().nth(name).expect("a table");
            let table = db.table(name).expect("it is there");
            let key = key(self.rng.below(KEYS) as u32).into_bytes();
            if self.rng.one_in(4) {
                rows.remove(&key);
                batch.delete(&table, &key).expect("fits");
            } else {
                let value = vec![self.rng.next_u64() as u8; 1 + self.rng.index(1500)];
                batch.put(&table, &key, &value).expect("fits");
                rows.insert(key, value);
            }
        }
        self.last = db.write(&batch, Durability::Synced).expect("writes");
    }

    fn ingest(&mut self) {
        let numbers = (0..1 + self.rng.index(5)).map(|_| self.rng.below(KEYS) as u32);
        let numbers: BTreeMap<_, _> =
            numbers.map(|number| (key(number).into_bytes(), value(number))).collect();
        let db = self.writer();
        let loaded = db.bulk_load(db.default_table(), &numbers).expect("loads");
        self.rows.get_mut("default").expect("it stays").extend(numbers);
        self.last = loaded.seq;
    }

    fn create_or_drop(&mut self) {
        let name = "other";
        match self.rows.remove(name) {
            Some(_) => self.writer().drop_table(name).expect("drops"),
            None => {
                self.writer().create_table(name, &TableOptions::new()).expect("creates");
                self.rows.insert(name.to_owned(), BTreeMap::new());
            }
        }
    }

    /// The machine is lost, and another one goes on.
    fn take_over(&mut self) {
        std::mem::forget(self.writer.take());
        self.writer = Some(self.place.open(&format!("m{}", self.machines)));
        self.machines += 1;
    }

    /// The tables at the last moment of a commit.
    fn at_commit(&self, seq: SeqNo) -> Option<&Tables> {
        let moment = self.moments.iter().rev().find(|(last, ..)| *last <= seq);
        moment.map(|(.., tables)| tables)
    }

    #[track_caller]
    fn check(&self, earlier: &Earlier, rows: &Tables, what: &str) {
        assert_eq!(&tables(&earlier.db).expect("reads"), rows, "{what}");
        assert!(earlier.db.check(&mut |_, _| ()).expect("reads").findings.is_empty(), "{what}");
    }
}

#[test]
fn every_commit_is_opened() {
    for seed in 0..3 {
        let mut world = World::new(seed);
        (0..50).for_each(|_| world.step());
        let last = world.last;
        for number in 1..=last.0 {
            let earlier = world.place.open_at(commit(number)).expect("it is there");
            let what = format!("seed {seed}, commit {number} of {last}");
            let whole = world.moments.iter().rev().find(|(seq, ..)| seq.0 <= number).map(|(seq, ..)| *seq);
            // A number within a batch is the commit before it.
            assert_eq!(Some(earlier.commit), whole.or(Some(SeqNo(0))), "{what}");
            world.check(&earlier, world.at_commit(SeqNo(number)).unwrap_or(&no_rows()), &what);
        }
        let text = refused(world.place.open_at(commit(last.0 + 1)), Kind::Invalid);
        assert!(text.contains(&format!("the last one that the bucket shows is {last}")), "{text}");
        for (seq, time, rows) in &world.moments {
            let earlier = world.place.open_at(At::Time(*time)).expect("it is there");
            let what = format!("seed {seed}, at {time:?}");
            assert_eq!(earlier.commit, *seq, "{what}");
            world.check(&earlier, rows, &what);
        }
    }
}

/// An opened state is as it was, and is read so until an object of it is deleted.
fn right_or_gone(world: &World, opened: Vec<(u64, Earlier)>) -> (u32, u32) {
    let (mut right, mut gone) = (0, 0);
    for (number, earlier) in opened {
        match tables(&earlier.db) {
            Ok(found) => {
                right += 1;
                let expected = world.at_commit(SeqNo(number)).cloned().unwrap_or_else(no_rows);
                assert!(expected == found, "commit {number}");
            }
            Err(error) => {
                gone += 1;
                assert_eq!(error.kind(), Kind::Gone, "commit {number}: {error}");
            }
        }
    }
    (right, gone)
}

/// A state is as it was, or an object of it was deleted: no other one is shown. A refusal names a state that
/// can be opened.
#[test]
fn beside_a_collector_a_moment_is_right_or_gone() {
    let (mut right, mut gone) = (0, 0);
    for seed in 10..13 {
        let mut world = World::new(seed);
        for round in 0..6 {
            (0..20).for_each(|_| world.step());
            let open = |number: u64| world.place.open_at(commit(number));
            let numbers = (1..=world.last.0).step_by(world.last.0.div_ceil(12) as usize);
            let mut opened: Vec<_> =
                numbers.filter_map(|number| Some((number, open(number).ok()?))).collect();
            if round % 2 == 1 {
                collect(&world.place);
            }
            let (mut refusal, mut last) = (None, world.last.0);
            // One refusal is enough.
            while last > 0 && refusal.is_none() {
                match open(last) {
                    Ok(earlier) => opened.push((last, earlier)),
                    Err(error) => refusal = Some(error),
                }
                last = last.saturating_sub(5);
            }
            if let Some(error) = refusal {
                gone += 1;
                let text = refused::<()>(Err(error), Kind::Gone);
                let named = number_behind(&text, "is of commit");
                let earlier = open(named).unwrap_or_else(|error| panic!("{text}, and then {error}"));
                assert_eq!(earlier.commit.0, named, "seed {seed}: {text}");
                opened.push((named, earlier));
            }
            // Each refusal looks for what can be opened, by many openings.
            let manifest = world.place.bucket.list("db/manifest", None).expect("lists");
            for object in manifest.iter().step_by(manifest.len().div_ceil(4)) {
                let opened = world.place.open_at(At::Time(object.modified));
                let kind = opened.err().map(|error| error.kind());
                assert!(kind.is_none_or(|kind| kind == Kind::Gone), "seed {seed}, {object:?}: {kind:?}");
            }
            let counts = right_or_gone(&world, opened);
            (right, gone) = (right + counts.0, gone + counts.1);
        }
    }
    assert!(right > 50 && gone > 20, "{right} are right, {gone} gone");
}

/// Deletes what the writer's collection of garbage would at this time; `named` says when a manifest was last
/// seen to name a file.
fn collect_old(place: &Place, named: &BTreeMap<u32, Duration>) -> usize {
    let (bucket, now) = (&*place.bucket, place.clock.wall());
    let list = |folder: &str| bucket.list(folder, None).expect("lists");
    let is_old = |object: &&Listed| object.modified + AGE <= now;
    let number =
        |object: &Listed| object.name.rsplit('/').next().and_then(parse_object_name).expect("a number");
    let header = |object: &Listed| {
        let front = bucket.get(&object.name, u64::MAX - 1).expect("reads");
        ManifestObject::decode_front(&front).expect("a header")
    };
    let manifest = list("db/manifest");
    let base = manifest.iter().filter(is_old).map(|object| header(object).base).max().unwrap_or(0);
    let is_replaced = |object: &&Listed| number(object) < base && object.bytes > OBJECT_HEADER_BYTES as u64;
    let mut gone: Vec<Listed> = manifest.iter().filter(is_replaced).cloned().collect();
    let journal = list("db/journal");
    let fronts = journal.iter().map(|object| journal_header(bucket, &object.name));
    let headers: Vec<_> = journal.iter().zip(fronts).collect();
    let first = headers.iter().filter(|(object, _)| is_old(object)).map(|(_, header)| header.first).max();
    let is_needed = |header: u64| first.is_none_or(|first| header >= first);
    gone.extend(headers.iter().filter_map(|(object, header)| {
        let goes = !is_needed(header.number) && header.tag == JournalTag::Bytes;
        goes.then(|| Listed::clone(object))
    }));
    let is_dead = |object: &Listed| {
        let file = object.name.rsplit('-').nth(1).expect("a file").parse::<u32>().expect("a number");
        named.get(&file).is_some_and(|seen| *seen + AGE <= now)
    };
    gone.extend(list("db/data").into_iter().filter(is_dead));
    let names: Vec<String> = gone.into_iter().map(|object| object.name).collect();
    bucket.delete(&names).expect("deletes");
    names.len()
}

#[test]
fn moments_younger_than_the_age_of_garbage_are_opened() {
    for seed in 20..22 {
        let (mut world, mut named) = (World::new(seed), BTreeMap::new());
        let mut objects = 0;
        for step in 1..=180 {
            world.step();
            let state = world.place.note_named().state.expect("there is a database");
            let now = world.place.clock.wall();
            named.extend(state.extents().map(|(id, _)| (id.file, now)));
            if step % 15 > 0 {
                continue;
            }
            objects = collect_old(&world.place, &named);
            let young = world.moments.iter().filter(|(_, time, _)| *time + AGE > now);
            for (last, time, rows) in young.step_by(4) {
                for at in [At::Time(*time), At::Commit(*last)] {
                    let what = format!("seed {seed}, step {step}, {at}");
                    let earlier = world.place.open_at(at).unwrap_or_else(|error| panic!("{what}: {error}"));
                    let expected = if at == At::Time(*time) { Some(rows) } else { world.at_commit(*last) };
                    world.check(&earlier, expected.expect("it is a moment"), &what);
                }
            }
        }
        assert!(objects > 0, "the last collection deletes something");
    }
}
