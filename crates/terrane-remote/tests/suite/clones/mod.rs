//! Clones: databases that read data objects of another one.

mod crashes;
mod damage;
mod earlier;
mod garbage;
mod model;
mod places;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use terrane::{Db, Durability, Options};
use terrane_base::env::{Clock, Env, SleepClock};
use terrane_base::{Functions, Result};
use terrane_levels::State;
use terrane_remote::bucket::MemoryBucket;
use terrane_remote::{
    At, Bucket, BucketJournal, BucketStore, BucketStoreSettings, Cloned, Collected, Deployment,
    ManifestFolder, ObjectJournalSettings, Roots,
};
use terrane_storage::Store;

use crate::support::{env, memory, names};

/// Garbage is deleted after so many seconds.
pub(super) const AGE: Duration = Duration::from_secs(60);

/// A bucket whose clock moves on by sleeps only, and the directories of machines.
struct Place {
    root: TempDir,
    bucket: Arc<MemoryBucket>,
    clock: Arc<SleepClock>,
    env: Env,
}

impl Place {
    fn new() -> Place {
        let (env, clock) = env();
        let root = tempfile::tempdir().expect("a temporary directory");
        Place { root, bucket: memory(&clock), clock, env }
    }

    fn directory(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// The database `prefix`, with its journal in the bucket.
    fn deployment(&self, prefix: &str) -> Deployment {
        deployment(self.directory(prefix), "memory:", prefix)
    }

    fn open(&self, prefix: &str) -> Db {
        self.try_open(prefix).expect("opens")
    }

    fn try_open(&self, prefix: &str) -> Result<Db> {
        self.try_open_through(self.bucket.clone(), prefix)
    }

    fn try_open_through(&self, bucket: Arc<dyn Bucket>, prefix: &str) -> Result<Db> {
        let (options, functions) = (Options::default(), Functions::default());
        self.deployment(prefix).open_in(bucket, &options, functions, Env::real())
    }

    /// Removes the directory of a database's journal, as on a machine that is lost.
    fn lose_directory(&self, prefix: &str) {
        let dir = self.directory(prefix);
        if dir.exists() {
            std::fs::remove_dir_all(dir).expect("removes");
        }
    }

    fn clone_through(&self, bucket: Arc<dyn Bucket>, to: &str, at: Option<At>) -> Result<Cloned> {
        self.clone_between(bucket, ("db", to), at)
    }

    fn clone_between(
        &self,
        bucket: Arc<dyn Bucket>,
        (from, to): (&str, &str),
        at: Option<At>,
    ) -> Result<Cloned> {
        let (from, to) = (self.deployment(from), self.deployment(to));
        // A job that fails is tried again after a time that a clock of sleeps never shows.
        let (options, env) = (Options::default(), Env::real());
        from.clone_in((bucket.clone(), bucket), (&to, at), &options, Functions::default(), env)
    }

    /// Clones the database `db` as it is.
    fn clone_to(&self, to: &str) -> Cloned {
        self.clone_through(self.bucket.clone(), to, None).expect("clones")
    }

    /// The state of the present manifest of a database, if it has one.
    fn state(&self, prefix: &str) -> Option<State> {
        let folder = ManifestFolder::new(self.bucket.clone(), prefix).expect("a prefix");
        folder.read().expect("reads").and_then(|found| found.state)
    }

    /// Makes passes of the collection of garbage of a database, an hour after each other; returns how many
    /// objects they deleted. Requires: no writer has it open.
    fn collect(&self, prefix: &str, passes: u32) -> usize {
        let collecting = self.collecting(prefix);
        let pass = |_| {
            let deleted = collecting.pass();
            self.clock.sleep(Duration::from_secs(3600));
            deleted
        };
        (0..passes).map(pass).sum()
    }

    /// The collection of garbage of a database. Requires: no writer has it open.
    fn collecting(&self, prefix: &str) -> Collecting {
        let folder = ManifestFolder::new(self.bucket.clone(), prefix).expect("a prefix");
        let found = folder.read().expect("reads").expect("there is a database");
        let state = found.state.expect("there is a state");
        let (bucket, epoch) = (self.bucket.clone(), found.last.epoch + 1);
        let store = BucketStore::open(bucket, prefix, epoch, settings(), self.env.clone()).expect("opens");
        store.restore(&mut state.extents()).expect("restores");
        Collecting { store, roots: Named(state.extents().map(|(id, _)| id.file).collect()) }
    }

    fn data(&self, prefix: &str) -> usize {
        names(&*self.bucket, &format!("{prefix}/data")).len()
    }

    fn pins(&self) -> usize {
        names(&*self.bucket, "db/gc/pins").len()
    }
}

/// A collection of garbage that is under way.
struct Collecting {
    store: BucketStore,
    roots: Named,
}

impl Collecting {
    /// Makes the next pass; returns how many objects it deleted.
    fn pass(&self) -> usize {
        match self.store.collect_garbage(&self.roots).expect("collects") {
            Collected::Deleted { objects, .. } => objects,
            _ => 0,
        }
    }
}

fn settings() -> BucketStoreSettings {
    BucketStoreSettings { object_bytes: 1 << 20, stage_bytes: 64 << 20, garbage_age: AGE, probe: false }
}

fn deployment(journal: PathBuf, url: &str, prefix: &str) -> Deployment {
    let options = [
        ("memory_bytes", "16777216"),
        ("write_memory_bytes", "4194304"),
        ("segment_bytes", "65536"),
        ("close_flush", "false"),
        // Nothing is rewritten but by those that ask for it.
        ("auto_compaction", "false"),
        ("experiments.always_overflow", "true"),
    ];
    let own = ObjectJournalSettings {
        batch_bytes: 4096,
        // Nothing is uploaded for its age.
        batch: Duration::from_secs(36_000_000),
        replaced_age: AGE,
        ..ObjectJournalSettings::default()
    };
    Deployment {
        bucket_journal: Some(BucketJournal { url: None, settings: own }),
        prefix: prefix.to_owned(),
        settings: settings(),
        writer_check_ms: 3_600_000,
        options: options.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        ..Deployment::new(journal, url.to_owned())
    }
}

/// The files that a manifest names.
#[derive(Debug)]
struct Named(BTreeSet<u32>);

impl Roots for Named {
    fn confirm(&self) -> Result<()> {
        Ok(())
    }

    fn files(&self) -> Result<BTreeSet<u32>> {
        Ok(self.0.clone())
    }
}

fn key(number: u32) -> String {
    format!("key{number:06}")
}

fn value(salt: u32) -> Vec<u8> {
    [salt.to_le_bytes(); 30].concat()
}

/// Writes keys durably.
fn put_all(db: &Db, range: std::ops::Range<u32>, salt: u32) {
    for number in range {
        db.default_table().put_with(key(number), value(salt), Durability::Synced).expect("put");
    }
}

fn compact(db: &Db) {
    db.compact_range(db.default_table(), ..).expect("compacts");
}

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// All rows of the default table.
fn rows(db: &Db) -> Rows {
    let rows = db.default_table().iter().map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec())));
    rows.collect::<Result<_>>().expect("reads")
}

fn expected(parts: &[(std::ops::Range<u32>, u32)]) -> Rows {
    let rows =
        parts.iter().flat_map(|(range, salt)| range.clone().map(|number| (key(number).into(), value(*salt))));
    rows.collect()
}

/// A database with two flushed generations, and some rows that are only in the journal.
fn filled(place: &Place) -> Db {
    let db = place.open("db");
    put_all(&db, 0..40, 1);
    db.flush().expect("flushes");
    put_all(&db, 20..60, 2);
    db.flush().expect("flushes");
    put_all(&db, 50..70, 3);
    db
}

fn of_filled() -> Rows {
    expected(&[(0..20, 1), (20..50, 2), (50..70, 3)])
}

#[test]
fn both_go_on_without_each_other() {
    let place = Place::new();
    let original = filled(&place);
    let before = place.data("db");
    let cloned = place.clone_to("copy");
    assert_eq!((cloned.commit.0, place.data("db")), (100, before), "nothing of the original is copied");
    assert!(cloned.extents > 0 && cloned.bytes > 0 && cloned.written_bytes > 0, "{cloned:?}");
    let clone = place.open("copy");
    assert_eq!(rows(&clone), of_filled());
    put_all(&clone, 0..10, 7);
    put_all(&original, 60..80, 8);
    for db in [&clone, &original] {
        db.flush().expect("flushes");
        compact(db);
    }
    let of_clone = expected(&[(0..10, 7), (10..20, 1), (20..50, 2), (50..70, 3)]);
    let of_original = expected(&[(0..20, 1), (20..50, 2), (50..60, 3), (60..80, 8)]);
    assert_eq!((rows(&clone), rows(&original)), (of_clone.clone(), of_original.clone()));
    clone.close().expect("closes");
    original.close().expect("closes");
    for round in 0..2 {
        let (clone, original) = (place.open("copy"), place.open("db"));
        assert_eq!((rows(&clone), rows(&original)), (of_clone.clone(), of_original.clone()), "{round}");
        clone.close().expect("closes");
        original.close().expect("closes");
        place.collect("db", 4);
        place.collect("copy", 4);
    }
}

#[test]
fn a_database_without_rows_and_one_without_a_journal_are_cloned() {
    let place = Place::new();
    place.open("db").close().expect("closes");
    let cloned = place.clone_to("empty");
    assert_eq!((cloned.extents, cloned.bytes, place.pins()), (0, 0, 0), "there is nothing to keep");
    let clone = place.open("empty");
    put_all(&clone, 0..5, 1);
    assert_eq!(rows(&clone), expected(&[(0..5, 1)]));
    let original = place.open("db");
    put_all(&original, 0..30, 1);
    original.create_table("other", &terrane::TableOptions::new()).expect("creates");
    original.table("other").expect("there").put("k", "v").expect("put");
    original.flush().expect("flushes");
    place.clone_to("flushed");
    let clone = place.open("flushed");
    assert_eq!(rows(&clone), expected(&[(0..30, 1)]));
    assert_eq!(clone.table("other").expect("there").get("k").expect("reads").expect("a row"), "v");
    assert_eq!(place.clock.now(), Duration::ZERO, "no caller waited");
}

/// Merges, range deletes and options of tables are in the clone as in the original.
#[test]
fn commits_that_only_the_journal_has_are_in_the_clone() {
    let place = Place::new();
    let original = place.open("db");
    let options = terrane::TableOptions::new().set("merge_operator", "counter").expect("an option");
    let counters = original.create_table("counters", &options).expect("creates");
    counters.merge("n", 5u64.to_le_bytes()).expect("merges");
    put_all(&original, 0..20, 1);
    original.flush().expect("flushes");
    counters.merge("n", 2u64.to_le_bytes()).expect("merges");
    original.default_table().delete_range(key(5), key(10)).expect("deletes");
    put_all(&original, 7..8, 4);
    let cloned = place.clone_to("copy");
    let clone = place.open("copy");
    assert_eq!(rows(&clone), expected(&[(0..5, 1), (7..8, 4), (10..20, 1)]));
    let counters = clone.table("counters").expect("there");
    assert_eq!(counters.get("n").expect("reads").as_deref(), Some(&7u64.to_le_bytes()[..]));
    assert_eq!(counters.kept_options(), original.table("counters").expect("there").kept_options());
    let seq = clone.snapshot().seq();
    assert!(seq >= cloned.commit, "{seq} {cloned:?}");
    let state = place.state("copy").expect("a state");
    assert_ne!(state.database, place.state("db").expect("a state").database);
    assert!(
        state.tables.values().all(|table| table.options.iter().all(|(name, _)| name != "auto_compaction"))
    );
}

/// Deletes and compacts all that the original has, and closes it.
fn emptied(place: &Place, original: terrane::Db) {
    original.default_table().delete_range("a", "z").expect("deletes");
    original.flush().expect("flushes");
    compact(&original);
    assert!(rows(&original).is_empty());
    original.close().expect("closes");
    place.clock.sleep(Duration::from_secs(7200));
}

#[test]
fn a_clone_reads_all_after_the_original_deleted_everything() {
    let place = Place::new();
    let original = filled(&place);
    place.clone_to("copy");
    put_all(&original, 0..5, 9);
    emptied(&place, original);
    place.collect("db", 6);
    let clone = place.open("copy");
    assert_eq!(rows(&clone), of_filled());
    let reader = place.deployment("copy");
    let (options, functions) = (terrane::Options::default(), terrane_base::Functions::default());
    let reading = reader.read_in(place.bucket.clone(), &options, functions.clone(), place.env.clone());
    assert_eq!(rows(&reading.expect("reads").db), of_filled());
    let follower = reader.follow_in(place.bucket.clone(), &options, functions, place.env.clone());
    assert_eq!(rows(&follower.expect("follows").view()), of_filled());
    assert_eq!(place.pins(), 1);
}

#[test]
fn a_pin_goes_when_the_clone_needs_nothing_and_the_garbage_of_the_original_behind_it() {
    let place = Place::new();
    let original = filled(&place);
    place.clone_to("copy");
    emptied(&place, original);
    place.collect("db", 4);
    let kept = place.data("db");
    let clone = place.open("copy");
    put_all(&clone, 0..70, 5);
    clone.flush().expect("flushes");
    compact(&clone);
    clone.close().expect("closes");
    place.collect("copy", 1);
    assert_eq!(place.pins(), 1, "a reader of an earlier state may need the objects");
    assert_eq!(place.collect("db", 4), 0);
    place.collect("copy", 1);
    assert_eq!(place.pins(), 0);
    assert!(place.collect("db", 4) >= 1 && place.data("db") < kept);
    // Nothing of the original is looked for any more.
    let gone = names(&*place.bucket, "db");
    place.bucket.delete(&gone).expect("deletes");
    place.collect("copy", 4);
    let clone = place.open("copy");
    assert_eq!(rows(&clone), expected(&[(0..70, 5)]));
    put_all(&clone, 0..1, 6);
    clone.flush().expect("flushes");
}
