//! Where clones and originals may be: other buckets, other directories, clones of clones.

use std::sync::Arc;
use std::time::Duration;

use terrane::{Db, Kind};
use terrane_base::env::{Clock, Env};
use terrane_remote::bucket::DirectoryBucket;
use terrane_remote::{Deployment, JournalRead};

use super::{Place, compact, deployment, expected, filled, of_filled, put_all, rows};
use crate::support::{names, refused};

#[test]
fn a_clone_of_a_clone_reads_each_original() {
    let place = Place::new();
    filled(&place).close().expect("closes");
    place.clone_to("one");
    let one = place.open("one");
    put_all(&one, 0..10, 4);
    one.flush().expect("flushes");
    put_all(&one, 70..75, 5);
    place.clone_between(place.bucket.clone(), ("one", "two"), None).expect("clones");
    assert_eq!((place.pins(), names(&*place.bucket, "one/gc/pins").len()), (2, 1));
    let of_two = expected(&[(0..10, 4), (10..20, 1), (20..50, 2), (50..70, 3), (70..75, 5)]);
    // Both that it reads delete all and collect their garbage.
    one.default_table().delete_range("a", "z").expect("deletes");
    one.flush().expect("flushes");
    compact(&one);
    one.close().expect("closes");
    let original = place.open("db");
    original.default_table().delete_range("a", "z").expect("deletes");
    original.flush().expect("flushes");
    compact(&original);
    original.close().expect("closes");
    place.clock.sleep(Duration::from_secs(7200));
    place.collect("one", 4);
    assert_eq!(place.pins(), 1, "the first clone needs nothing any more");
    place.collect("db", 4);
    place.collect("one", 4);
    let two = place.open("two");
    assert_eq!(rows(&two), of_two);
    put_all(&two, 0..1, 9);
    compact(&two);
    two.close().expect("closes");
    place.collect("two", 4);
    assert_eq!((place.pins(), names(&*place.bucket, "one/gc/pins").len()), (0, 0));
    place.collect("db", 4);
    place.collect("one", 4);
    let two = place.open("two");
    assert_eq!(two.get(super::key(74)).expect("reads").as_deref(), Some(&super::value(5)[..]));
}

#[test]
fn a_target_that_has_anything_is_refused() {
    let place = Place::new();
    let original = filled(&place);
    let clone_to = |to: &str| place.clone_through(place.bucket.clone(), to, None);
    assert!(refused(clone_to("db"), Kind::Invalid).contains("the original itself"));
    drop(place.open("used"));
    assert!(refused(clone_to("used"), Kind::Invalid).contains("empty prefix"));
    terrane_remote::Bucket::create(&*place.bucket, "left/data/x", b"x").expect("creates");
    assert!(refused(clone_to("left"), Kind::Invalid).contains("empty prefix"));
    // The directory of a journal that another database uses.
    let (from, to) =
        (place.deployment("db"), Deployment { prefix: "new".to_owned(), ..place.deployment("db") });
    let buckets = || (place.bucket.clone() as Arc<dyn terrane_remote::Bucket>, place.bucket.clone() as _);
    let cloned = from.clone_in(
        buckets(),
        (&to, None),
        &terrane::Options::default(),
        terrane_base::Functions::default(),
        place.env.clone(),
    );
    assert!(refused(cloned, Kind::Invalid).contains("a directory of its own"));
    let nothing = place.clone_between(place.bucket.clone(), ("none", "new"), None);
    assert!(refused(nothing, Kind::NotFound).contains("no database"));
    assert_eq!(place.pins(), 0);
    assert_eq!(rows(&original), of_filled());
}

/// Both have a prefix of the same name, each in its own bucket, and one service for their journals.
#[test]
fn a_bucket_of_journals_that_has_the_journal_of_another_database_is_refused() {
    let mut two = Two::new();
    let url = format!("file://{}", two.place.directory("journals").display());
    two.to.prefix = "db".to_owned();
    for deployment in [&mut two.from, &mut two.to] {
        deployment.bucket_journal.as_mut().expect("it has one").url = Some(url.clone());
    }
    two.filled().close().expect("closes");
    let before = two.list("journals", "db/journal");
    assert!(!before.is_empty(), "the journal of the original is there");
    let text = refused(two.from.clone_to(&two.to, None), Kind::Invalid);
    assert!(text.contains("journals/db/journal") && text.contains("journal of another database"), "{text}");
    assert_eq!(two.list("journals", "db/journal"), before);
    assert!(two.list("bucket-a", "db/gc/pins").is_empty() && two.list("bucket-b", "db/manifest").is_empty());
    // With a folder of its own there.
    two.to.prefix = "copy".to_owned();
    two.from.clone_to(&two.to, None).expect("clones");
    assert_eq!(rows(&two.to.open().expect("opens")), expected(&[(0..15, 1), (15..30, 2)]));
}

/// Two buckets in directories.
struct Two {
    place: Place,
    from: Deployment,
    to: Deployment,
}

impl Two {
    fn new() -> Two {
        let place = Place::new();
        let url = |name: &str| format!("file://{}", place.directory(name).display());
        let from = deployment(place.directory("journal-a"), &url("bucket-a"), "db");
        let to = deployment(place.directory("journal-b"), &url("bucket-b"), "deep/copy");
        Two { place, from, to }
    }

    fn filled(&self) -> Db {
        let db = self.from.open().expect("opens");
        put_all(&db, 0..20, 1);
        db.flush().expect("flushes");
        put_all(&db, 15..30, 2);
        db
    }

    fn list(&self, bucket: &str, folder: &str) -> Vec<String> {
        let bucket = DirectoryBucket::open(&self.place.directory(bucket), Env::real()).expect("opens");
        names(&bucket, folder)
    }
}

#[test]
fn a_clone_in_another_bucket_reads_the_bucket_of_the_original() {
    let two = Two::new();
    let original = two.filled();
    let cloned = two.from.clone_to(&two.to, None).expect("clones");
    assert!(cloned.objects == 1 && cloned.written_bytes > 0, "{cloned:?}");
    let all = expected(&[(0..15, 1), (15..30, 2)]);
    let clone = two.to.open().expect("opens");
    assert_eq!(rows(&clone), all);
    put_all(&clone, 0..5, 3);
    original.close().expect("closes");
    clone.close().expect("closes");
    let pins = two.from.clone_pins().expect("lists");
    assert!(pins.len() == 1 && pins[0].clone.ends_with("bucket-b/deep/copy"), "{pins:?}");
    let tried = two.to.doctor();
    let original = tried.iter().find(|tried| tried.part == "original").expect("it is there");
    assert!(original.outcome.as_ref().expect("it is well").contains("bucket-a/db"), "{original:?}");
    let tried = two.from.doctor();
    let pin = tried.iter().find(|tried| tried.part == "clone").expect("it is there");
    assert!(pin.outcome.as_ref().expect("it is well").contains("bucket-b/deep/copy"), "{pin:?}");
    // Without the bucket of the original.
    let (here, away) = (two.place.directory("bucket-a"), two.place.directory("away"));
    rename(&here, &away);
    let text = refused(two.to.open().map(drop), Kind::NotFound);
    assert!(text.contains("bucket-a/db") && text.contains("is a clone"), "{text}");
    assert!(!here.exists(), "no opening made it");
    rename(&away, &here);
    assert_eq!(rows(&two.to.open().expect("opens")), expected(&[(0..5, 3), (5..15, 1), (15..30, 2)]));
    assert!(two.list("bucket-b", "db").is_empty());
}

#[expect(clippy::disallowed_methods, reason = "a bucket that is not there for a while")]
fn rename(from: &std::path::Path, to: &std::path::Path) {
    std::fs::rename(from, to).expect("renames");
}

/// The journal in a directory is in the clone if no writer has it open.
#[test]
fn the_directory_of_a_journal_is_read_unless_a_writer_has_it() {
    let mut two = Two::new();
    two.from.bucket_journal = None;
    two.to.bucket_journal = None;
    let original = two.filled();
    let cloned = two.from.clone_to(&two.to, None).expect("clones");
    assert_eq!((cloned.journal, cloned.written_bytes), (JournalRead::HasWriter, 0));
    assert_eq!(rows(&two.to.open().expect("opens")), expected(&[(0..20, 1)]));
    original.close().expect("closes");
    let journal = two.place.directory("journal-c");
    let again = Deployment { prefix: "again".to_owned(), journal, ..two.to.clone() };
    let cloned = two.from.clone_to(&again, None).expect("clones");
    assert_eq!((cloned.journal, cloned.commit.0), (JournalRead::Whole, 35));
    assert_eq!(rows(&again.open().expect("opens")), expected(&[(0..15, 1), (15..30, 2)]));
    assert_eq!(rows(&two.from.open().expect("opens")), expected(&[(0..15, 1), (15..30, 2)]));
}
