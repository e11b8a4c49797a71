//! Databases as they were, and what was deleted of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use terrane::{Db, Kind, Options, SeqNo};
use terrane_base::Functions;
use terrane_base::env::Clock;
use terrane_remote::{At, Bucket, Deployment, Earlier, JournalRead};

use super::{AGE, Place, check, check_absent, collect, key, numbered, put_all, value};
use crate::support::{names, refused};

/// The rows of each table.
pub(super) type Tables = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

impl Place {
    pub(super) fn open_at_through(
        &self,
        bucket: Arc<dyn Bucket>,
        deployment: &Deployment,
        at: At,
    ) -> terrane::Result<Earlier> {
        let (options, env) = (Options::default(), self.env.clone());
        deployment.at_in(bucket, at, &options, Functions::default(), env)
    }

    fn open_at_as(&self, deployment: &Deployment, at: At) -> terrane::Result<Earlier> {
        self.open_at_through(self.bucket.clone(), deployment, at)
    }

    pub(super) fn open_at(&self, at: At) -> terrane::Result<Earlier> {
        self.open_at_as(&self.deployment("elsewhere"), at)
    }

    pub(super) fn now(&self) -> At {
        At::Time(self.clock.wall())
    }
}

pub(super) fn commit(number: u64) -> At {
    At::Commit(SeqNo(number))
}

/// The tables of a database with their rows.
pub(super) fn tables(db: &Db) -> terrane::Result<Tables> {
    let read = |name: String| {
        let rows = db.table(&name)?.iter().map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec())));
        Ok((name, rows.collect::<terrane::Result<_>>()?))
    };
    db.tables().into_iter().map(read).collect()
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
pub(super) fn number_behind(text: &str, word: &str) -> u64 {
    let behind = text.rsplit_once(word).expect("the word is there").1.trim_start_matches([' ', '#']);
    let digits = behind.split(|c: char| !c.is_ascii_digit()).next().expect("a part");
    digits.parse().expect("a number")
}

#[test]
fn a_deleted_moment_is_refused_with_the_earliest_one() {
    let place = Place::new();
    let _writer = flushed_history(&place);
    let open = || place.open_at(commit(55)).expect("nothing is deleted yet").db;
    check(&open(), 0..15, 2);
    check(&open(), 15..40, 1);
    let early = open();
    // Only journal objects: flushed rows are there, and others are not.
    let journal = numbered(&*place.bucket, "db/journal");
    let gone: Vec<String> = journal.values().skip(1).take(100).cloned().collect();
    place.bucket.delete(&gone).expect("deletes");
    let text = refused(place.open_at(commit(55)), Kind::Gone);
    let earliest = number_behind(&text, "is of commit");
    assert!(earliest > 55 && text.contains("garbage_age_s"), "{text}");
    let at_earliest = place.open_at(commit(earliest)).expect("it can be opened");
    assert_eq!(at_earliest.commit.0, earliest);
    let (salt, rest) = ((earliest / 40) as u32, (earliest % 40) as u32);
    check(&at_earliest.db, 0..rest, salt + 1);
    check(&at_earliest.db, rest..40, salt);
    refused(place.open_at(commit(earliest - 1)), Kind::Gone);
    collect(&place);
    let text = refused(place.open_at(commit(earliest)), Kind::Gone);
    let later = number_behind(&text, "is of commit");
    assert!(later > earliest, "{text}");
    assert_eq!(place.open_at(commit(later)).expect("it can be opened").commit.0, later);
    let text = refused(place.open_at(At::Time(Duration::ZERO)), Kind::Gone);
    assert!(text.contains("1970-01-01T00:00:00.000Z"), "{text}");
    // The one that is open reads the objects that are there, and refuses deleted ones.
    let text = refused(early.get(key(30)).map(drop), Kind::Gone);
    check(&early, 0..15, 2);
    assert!(text.contains("garbage_age_s") && text.contains("earlier state"), "{text}");
}

#[test]
fn a_time_ahead_shows_the_present_state_and_an_empty_bucket_is_refused() {
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
