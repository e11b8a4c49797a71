//! Earlier moments where the objects of manifest and journal have times that do not fit together, as with
//! two clocks, and where the writer goes on while a moment is opened.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use terrane::{Db, Durability, Kind, Options, Result, TableOptions};
use terrane_base::env::{Clock, Env};
use terrane_base::sync::Mutex;
use terrane_base::{Error, Functions};
use terrane_remote::bucket::{Create, Listed, MemoryBucket, Pending};
use terrane_remote::{At, Bucket, Earlier};

use super::past::commit;
use super::{Place, check, check_absent, collect, key, put_all, put_as, value};
use crate::support::{names, refused};

/// A call that is made once, before the data objects are listed.
type Once = Box<dyn FnOnce() + Send>;

/// A bucket that says of manifest objects from a name on that they are of another time.
struct Retimed {
    inner: Arc<MemoryBucket>,
    from: String,
    /// Creations of manifest objects fail.
    refuses: Mutex<bool>,
    before_data: Mutex<Option<Once>>,
}

/// By how much they are later.
const LATER: Duration = Duration::from_secs(1000);

impl Retimed {
    fn new(place: &Place, from: &str) -> Retimed {
        let (inner, from) = (place.bucket.clone(), from.to_owned());
        Retimed { inner, from, refuses: Mutex::new(false), before_data: Mutex::new(None) }
    }
}

impl fmt::Debug for Retimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retimed").field("from", &self.from).finish_non_exhaustive()
    }
}

impl Bucket for Retimed {
    fn url(&self) -> &str {
        self.inner.url()
    }

    fn begin_create(&self, name: &str, parts: Vec<Bytes>) -> Pending<Create> {
        if *self.refuses.lock() && name.starts_with("db/manifest/") {
            return Pending::ready(Err(Error::new(Kind::Io, "a creation that fails")));
        }
        self.inner.begin_create(name, parts)
    }

    fn begin_get_ranges(&self, name: &str, ranges: Vec<std::ops::Range<u64>>) -> Pending<Vec<Bytes>> {
        self.inner.begin_get_ranges(name, ranges)
    }

    fn get_tail(&self, name: &str, bytes_max: u64) -> Result<Bytes> {
        self.inner.get_tail(name, bytes_max)
    }

    fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<Listed>> {
        let before_data = self.before_data.lock().take_if(|_| folder == "db/data");
        if let Some(before_data) = before_data {
            before_data();
        }
        let mut listed = self.inner.list(folder, after)?;
        let is_later = |name: &str| name.starts_with("db/manifest/") && name >= self.from.as_str();
        for object in listed.iter_mut().filter(|object| is_later(&object.name)) {
            object.modified += LATER;
        }
        Ok(listed)
    }

    fn delete(&self, names: &[String]) -> Result<()> {
        self.inner.delete(names)
    }
}

fn open_at(place: &Place, bucket: Retimed, at: At) -> Result<Earlier> {
    place.open_at_through(Arc::new(bucket), &place.deployment("elsewhere"), at)
}

/// The name of the next manifest object.
fn next_manifest(place: &Place) -> String {
    let last = names(&*place.bucket, "db/manifest").pop().expect("an object");
    let (folder, number) = last.rsplit_once('/').expect("a folder");
    format!("{folder}/{:020}", number.parse::<u64>().expect("a number") + 1)
}

fn load(db: &Db, numbers: std::ops::Range<u32>, salt: u32) -> Result<u64> {
    let rows = numbers.map(|number| (key(number), value(salt)));
    db.bulk_load(db.default_table(), rows).map(|loaded| loaded.seq.0)
}

/// Commits behind extents that were announced are in the journal before the manifest has these extents.
#[test]
fn announced_extents_end_a_moment_before_they_came() {
    let place = Place::new();
    let writer = place.open("a");
    put_all(&writer, 0..9, 1);
    let from = next_manifest(&place);
    assert_eq!(load(&writer, 20..25, 3).expect("loads"), 10);
    put_all(&writer, 0..5, 2);
    place.clock.sleep(Duration::from_secs(1));
    let before = open_at(&place, Retimed::new(&place, &from), place.now()).expect("it is there");
    assert_eq!(before.commit.0, 9);
    check(&before.db, 0..9, 1);
    check_absent(&before.db, 20..25);
    let behind = open_at(&place, Retimed::new(&place, &from), commit(12)).expect("it is there");
    assert_eq!(behind.commit.0, 12);
    check(&behind.db, 0..2, 2);
    check(&behind.db, 2..9, 1);
    check(&behind.db, 20..25, 3);
}

/// The manifest before a drop may not have extents yet that a commit needs.
#[test]
fn a_drop_that_seems_later_takes_no_commit_away() {
    let place = Place::new();
    let writer = place.open("a");
    writer.create_table("other", &TableOptions::new()).expect("creates");
    put_all(&writer, 0..9, 1);
    let from = next_manifest(&place);
    writer.drop_table("other").expect("drops");
    assert_eq!(load(&writer, 20..25, 3).expect("loads"), 10);
    put_all(&writer, 0..6, 2);
    let shown = open_at(&place, Retimed::new(&place, &from), commit(15)).expect("it is there");
    assert_eq!(shown.commit.0, 15);
    check(&shown.db, 0..5, 2);
    check(&shown.db, 5..9, 1);
    check(&shown.db, 20..25, 3);
}

#[test]
fn a_commit_of_a_table_that_seems_later_is_not_shown_without_it() {
    let place = Place::new();
    let writer = place.open("a");
    put_all(&writer, 0..3, 1);
    let from = next_manifest(&place);
    let late = writer.create_table("late", &TableOptions::new()).expect("creates");
    late.put_with("k", "v", Durability::Synced).expect("puts");
    put_all(&writer, 0..1, 2);
    let before = open_at(&place, Retimed::new(&place, &from), place.now()).expect("it is there");
    assert_eq!(before.commit.0, 3);
    assert_eq!(before.db.tables(), ["default"]);
    check(&before.db, 0..3, 1);
    let shown = open_at(&place, Retimed::new(&place, &from), commit(5)).expect("it is there");
    assert_eq!(shown.db.table("late").and_then(|late| late.get("k")).expect("reads").expect("a row"), "v");
    check(&shown.db, 0..1, 2);
}

/// Only a later manifest says that extents which were announced did not come; what was committed behind the
/// announcement was committed all the same.
#[test]
fn missing_extents_do_not_shorten_the_past() {
    let place = Place::new();
    let bucket = Arc::new(Retimed::new(&place, "none"));
    let deployment = place.deployment("a");
    let opened = deployment.open_in(bucket.clone(), &Options::default(), Functions::default(), Env::real());
    let writer = opened.expect("opens");
    put_all(&writer, 0..9, 1);
    *bucket.refuses.lock() = true;
    load(&writer, 20..25, 3).expect_err("the manifest takes nothing");
    let is_behind = put_as(&writer, 0, 2, Durability::Synced).is_ok();
    std::mem::forget(writer);
    let then = place.now();
    place.clock.sleep(Duration::from_secs(1));
    let second = place.open("b");
    put_all(&second, 0..1, 4);
    let shown = place.open_at_through(place.bucket.clone(), &place.deployment("elsewhere"), then);
    let shown = shown.expect("it is there");
    assert_eq!(shown.commit.0, 10 + u64::from(is_behind));
    check(&shown.db, 0..1, 1 + u32::from(is_behind));
    check(&shown.db, 1..9, 1);
    check_absent(&shown.db, 20..25);
}

/// Objects that the writer replaced and deleted while a moment was opened were not lost.
#[test]
fn objects_deleted_during_an_opening_are_gone() {
    let place = Arc::new(Place::new());
    let writer = place.open("a");
    put_all(&writer, 0..40, 1);
    writer.flush().expect("flushes");
    place.note_named();
    put_all(&writer, 0..40, 2);
    let bucket = Retimed::new(&place, "none");
    let collected = place.clone();
    *bucket.before_data.lock() = Some(Box::new(move || {
        writer.flush().expect("flushes");
        writer.compact_range(writer.default_table(), ..).expect("compacts");
        collect(&collected);
    }));
    let text = refused(open_at(&place, bucket, commit(60)), Kind::Gone);
    assert!(text.contains("is of commit #80"), "{text}");
}
