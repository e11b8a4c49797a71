//! Databases as they were: each moment of a history against a model, and what was deleted.

use std::collections::BTreeMap;
use std::time::Duration;

use terrane::{Batch, Db, Durability, Kind, Options, SeqNo, TableOptions};
use terrane_base::env::Clock;
use terrane_base::{Functions, Rng};
use terrane_remote::{At, Bucket, Deployment, Earlier, JournalRead};

use super::{AGE, Place, check, check_absent, collect, key, numbered, put_all, value};
use crate::support::{names, refused};

/// Keys of a history.
const KEYS: u64 = 30;

/// The rows of each table.
type Tables = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

impl Place {
    fn open_at_as(&self, deployment: &Deployment, at: At) -> terrane::Result<Earlier> {
        let (options, env) = (Options::default(), self.env.clone());
        deployment.at_in(self.bucket.clone(), at, &options, Functions::default(), env)
    }

    fn open_at(&self, at: At) -> terrane::Result<Earlier> {
        self.open_at_as(&self.deployment("elsewhere"), at)
    }

    fn now(&self) -> At {
        At::Time(self.clock.wall())
    }
}

fn commit(number: u64) -> At {
    At::Commit(SeqNo(number))
}

/// What a database shows.
fn tables(db: &Db) -> terrane::Result<Tables> {
    let read = |name: String| {
        let rows = db.table(&name)?.iter().map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec())));
        Ok((name, rows.collect::<terrane::Result<_>>()?))
    };
    db.tables().into_iter().map(read).collect()
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
        let place = Place::new();
        let writer = Some(place.open("m0"));
        let rows = Tables::from([("default".to_owned(), BTreeMap::new())]);
        let (rng, moments) = (Rng::new(seed), Vec::new());
        World { rng, place, writer, machines: 1, rows, last: SeqNo(0), moments }
    }

    fn writer(&self) -> &Db {
        self.writer.as_ref().expect("there is a writer")
    }

    fn step(&mut self) {
        match self.rng.below(100) {
            0..70 => self.commit(),
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
                let value = vec![self.rng.next_u64() as u8; 1 + self.rng.index(300)];
                batch.put(&table, &key, &value).expect("fits");
                rows.insert(key, value);
            }
        }
        self.last = db.write(&batch, Durability::Synced).expect("writes");
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

    /// What the last moment of a commit showed.
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
            let none = Tables::from([("default".to_owned(), BTreeMap::new())]);
            world.check(&earlier, world.at_commit(SeqNo(number)).unwrap_or(&none), &what);
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

/// A state is as it was, or something of it was deleted: no other one is shown.
#[test]
fn beside_a_collector_a_moment_is_right_or_gone() {
    let (mut right, mut gone) = (0, 0);
    for seed in 10..14 {
        let mut world = World::new(seed);
        for round in 0..6 {
            (0..20).for_each(|_| world.step());
            let open = |number: u64| world.place.open_at(commit(number));
            let before: Vec<_> = (1..=world.last.0).step_by(7).map(|number| (number, open(number))).collect();
            if round % 2 == 1 {
                collect(&world.place);
            }
            let after = (1..=world.last.0).step_by(5).map(|number| (number, open(number)));
            let all: Vec<_> = before.into_iter().chain(after).collect();
            for (number, earlier) in all {
                let expected = world.at_commit(SeqNo(number));
                match earlier.and_then(|earlier| tables(&earlier.db)) {
                    Ok(found) => {
                        right += 1;
                        assert!(expected.is_none_or(|rows| *rows == found), "seed {seed}, commit {number}");
                    }
                    Err(error) => {
                        gone += 1;
                        assert_eq!(error.kind(), Kind::Gone, "seed {seed}, commit {number}: {error}");
                    }
                }
            }
        }
    }
    assert!(right > 50 && gone > 50, "{right} are right, {gone} gone");
}

/// Flushes behind commit 40, 80, ..., each in extents of its own.
fn flushed_history(place: &Place) -> Db {
    let writer = place.open("a");
    for salt in 1..=70 {
        put_all(&writer, 0..40, salt);
        writer.flush().expect("flushes");
        place.note_named();
        place.clock.sleep(Duration::from_secs(1));
    }
    writer.compact_range(writer.default_table(), ..).expect("compacts");
    writer
}

/// The number behind a word of a text.
fn number_behind(text: &str, word: &str) -> u64 {
    let behind = text.rsplit_once(word).expect("the word is there").1.trim_start_matches([' ', '#']);
    let digits = behind.split(|c: char| !c.is_ascii_digit()).next().expect("a part");
    digits.parse().expect("a number")
}

#[test]
fn what_was_deleted_is_refused_with_the_earliest_moment() {
    let place = Place::new();
    let _writer = flushed_history(&place);
    let open = || place.open_at(commit(55)).expect("nothing is deleted yet").db;
    check(&open(), 0..15, 2);
    check(&open(), 15..40, 1);
    let early = open();
    // Only journal objects: what is flushed is there, and what was not is not.
    let journal = numbered(&*place.bucket, "db/journal");
    let gone: Vec<String> = journal.values().skip(1).take(100).cloned().collect();
    place.bucket.delete(&gone).expect("deletes");
    let text = refused(place.open_at(commit(55)), Kind::Gone);
    let earliest = number_behind(&text, "is of commit");
    assert!(earliest > 55 && text.contains("garbage_age_s"), "{text}");
    let at_earliest = place.open_at(commit(earliest)).expect("it can be opened");
    assert_eq!(at_earliest.commit.0, earliest);
    check(&at_earliest.db, 0..40, (earliest / 40) as u32);
    collect(&place);
    let text = refused(place.open_at(commit(earliest)), Kind::Gone);
    let later = number_behind(&text, "is of commit");
    assert!(later > earliest, "{text}");
    assert_eq!(place.open_at(commit(later)).expect("it can be opened").commit.0, later);
    let text = refused(place.open_at(At::Time(Duration::ZERO)), Kind::Gone);
    assert!(text.contains("1970-01-01T00:00:00.000Z"), "{text}");
    // The one that is open reads what is there, and says what is not.
    let text = refused(early.get(key(30)).map(drop), Kind::Gone);
    check(&early, 0..15, 2);
    assert!(text.contains("garbage_age_s") && text.contains("earlier state"), "{text}");
}

#[test]
fn a_time_ahead_shows_what_is_there_and_no_database_is_none() {
    let place = Place::new();
    let text = refused(place.open_at(place.now()), Kind::NotFound);
    assert!(text.contains("no database"), "{text}");
    let writer = place.open("a");
    put_all(&writer, 0..5, 1);
    let before = place.now();
    place.clock.sleep(Duration::from_secs(1));
    put_all(&writer, 0..5, 2);
    check(&place.open_at(before).expect("it is there").db, 0..5, 1);
    let ahead = place.open_at(At::Time(Duration::from_secs(1 << 40))).expect("it is there");
    assert_eq!((ahead.commit, ahead.journal), (SeqNo(10), JournalRead::Bucket));
    check(&ahead.db, 0..5, 2);
    assert_eq!(ahead.db.put("k", "v").expect_err("it only reads").kind(), Kind::Invalid);
    let backups = terrane::Backups::open(place.root.path().join("backups"));
    let text = refused(backups.create(&ahead.db).map(drop), Kind::Invalid);
    assert!(text.contains("export"), "{text}");
    // The writer is the writer still.
    put_all(&writer, 0..5, 3);
    check(&ahead.db, 0..5, 2);
}

#[test]
fn with_the_journal_elsewhere_what_was_flushed_is_shown() {
    let place = Place::new();
    let deployment = place.in_directory("a");
    let writer = place.open_as(&deployment).expect("opens");
    let elsewhere = place.in_directory("elsewhere");
    for salt in 1..=3 {
        put_all(&writer, 0..10, salt);
        writer.flush().expect("flushes");
        put_all(&writer, 0..5, 90);
        place.clock.sleep(Duration::from_secs(1));
    }
    for (at, flushed, salt) in
        [(commit(10), 10, 1), (commit(24), 10, 1), (commit(25), 25, 2), (commit(40), 40, 3)]
    {
        let earlier = place.open_at_as(&elsewhere, at).expect("it is there");
        assert_eq!((earlier.commit, earlier.journal), (SeqNo(flushed), JournalRead::Elsewhere), "{at}");
        check(&earlier.db, 0..10, salt);
    }
    let earlier = place.open_at_as(&elsewhere, At::Time(Duration::from_secs(1))).expect("it is there");
    check(&earlier.db, 0..10, 2);
    // A file that does not say where the journal is.
    drop(writer);
    let moved = place.open("a");
    put_all(&moved, 0..1, 4);
    let text = refused(place.open_at_as(&elsewhere, place.now()), Kind::Invalid);
    assert!(text.contains("in_bucket"), "{text}");
}

/// An object with the number of one that an earlier state names, by a writer that was replaced, and late.
#[test]
fn an_object_of_a_replaced_writer_counts_for_no_earlier_state() {
    let place = Place::new();
    let first = place.open("a");
    put_all(&first, 0..40, 1);
    first.flush().expect("flushes");
    place.clock.sleep(Duration::from_secs(1));
    let second = place.open("b");
    put_all(&second, 0..40, 2);
    second.flush().expect("flushes");
    let objects = names(&*place.bucket, "db/data");
    let named = objects.iter().find(|name| name.contains("/00000000000000000002-")).expect("an object");
    let late = named.replacen("/00000000000000000002-", "/00000000000000000001-", 1);
    assert!(!objects.contains(&late), "the number is new");
    check(&place.open_at(commit(80)).expect("it is there").db, 0..40, 2);
    put_all(&second, 0..40, 3);
    second.compact_range(second.default_table(), ..).expect("compacts");
    place.clock.sleep(Duration::from_secs(1));
    let bytes = place.bucket.get(named, u64::MAX - 1).expect("reads");
    place.bucket.create(&late, &bytes).expect("creates");
    place.bucket.delete(std::slice::from_ref(named)).expect("deletes");
    refused(place.open_at(commit(80)), Kind::Gone);
    check(&place.open_at(commit(120)).expect("it is there").db, 0..40, 3);
}

#[test]
fn damage_is_damage_and_not_an_earlier_state() {
    let place = Place::new();
    let _writer = flushed_history(&place);
    let now = place.open_at(place.now()).expect("it is there");
    let early = place.open_at(commit(80)).expect("it is there");
    // The first take-over comes before every state.
    let is_first = |name: &str| name == "db/manifest/00000000000000000001";
    for folder in ["db/manifest", "db/journal", "db/data"] {
        let chosen = names(&*place.bucket, folder);
        for name in [&chosen[0], &chosen[chosen.len() - 1]].into_iter().filter(|name| !is_first(name)) {
            let sound = place.bucket.get(name, u64::MAX - 1).expect("reads");
            let mut wrong = sound.to_vec();
            wrong[if folder == "db/data" { 100 } else { sound.len() / 2 }] ^= 1;
            place.bucket.damage(name, wrong.into()).expect("it is there");
            let read = |at| place.open_at(at).and_then(|earlier| tables(&earlier.db));
            let kinds = [commit(50), place.now()].map(|at| read(at).err().map(|error| error.kind()));
            assert!(
                kinds.iter().all(|kind| kind.is_none_or(|kind| kind == Kind::Corrupt)),
                "{name}: {kinds:?}"
            );
            assert!(kinds.contains(&Some(Kind::Corrupt)), "{name}: {kinds:?}");
            place.bucket.damage(name, sound).expect("it is there");
        }
    }
    // What the present manifest names was lost, what it does not was deleted.
    place.bucket.delete(&names(&*place.bucket, "db/data")).expect("deletes");
    let text = refused(now.db.get(key(3)).map(drop), Kind::Corrupt);
    assert!(text.contains("missing"), "{text}");
    refused(early.db.get(key(3)).map(drop), Kind::Gone);
    refused(place.open_at(place.now()), Kind::Corrupt);
}

/// Of the manifest, too, what was replaced is kept for the age of garbage.
#[test]
fn a_longer_age_of_garbage_keeps_the_manifest() {
    let place = Place::new();
    let mut deployment = place.deployment("a");
    deployment.settings.garbage_age = 3 * Duration::from_secs(3600);
    let writer = place.open_as(&deployment).expect("opens");
    for salt in 1..=140 {
        put_all(&writer, 0..4, salt);
        writer.flush().expect("flushes");
        place.clock.sleep(Duration::from_secs(60));
    }
    let early = place.open_at(commit(6)).expect("it is kept");
    check(&early.db, 0..2, 2);
    check(&early.db, 2..4, 1);
    check_absent(&early.db, 4..5);
    assert!(AGE < Duration::from_secs(3600) && value(1) != value(2), "what the test is about");
}
