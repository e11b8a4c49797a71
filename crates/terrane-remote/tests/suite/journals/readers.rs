//! Readers beside the writer of a journal in a bucket, and such a journal behind the gRPC service.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use terrane::{Db, Kind, Options};
use terrane_base::Functions;
use terrane_base::env::Env;
use terrane_remote::bucket::DirectoryBucket;
use terrane_remote::{Deployment, JournalRead};

use super::busy::BusyBucket;
use super::{LOOKS_MAX, Place, announce, check, key, number, put_all};
use crate::support::names;

/// A reading with the journal, from the machine that has this directory. Work in the background may overtake
/// some readings, and ends.
#[track_caller]
fn shown_at(place: &Place, directory: &str) -> Db {
    let mut readings = (0..LOOKS_MAX).map(|_| place.read(directory).expect("reads"));
    let reading = readings.find(|reading| reading.journal != JournalRead::Overtaken).expect("it ends");
    assert_eq!(reading.journal, JournalRead::Bucket);
    assert!(reading.db.check(&mut |_, _| ()).expect("reads").findings.is_empty());
    reading.db
}

/// A reading on another machine: the directory `elsewhere` is never there.
#[track_caller]
fn shown(place: &Place) -> Db {
    shown_at(place, "elsewhere")
}

#[test]
fn a_reader_elsewhere_shows_what_was_acknowledged_and_changes_nothing() {
    let place = Place::memory();
    let writer = place.open("a");
    put_all(&writer, 0..5, 1);
    writer.flush().expect("flushes");
    put_all(&writer, 3..40, 2);
    let before = names(&*place.bucket, "db/journal");
    let first = shown(&place);
    check(&first, 0..3, 1);
    check(&first, 3..40, 2);
    assert_eq!(first.put("k", "v").expect_err("it only reads").kind(), Kind::Invalid);
    assert_eq!(names(&*place.bucket, "db/journal"), before, "no fence");
    assert!(!place.root.path().join("elsewhere").exists(), "a reader makes nothing");
    // The writer is the writer still, and the reader stays where it was. More than a segment has.
    put_all(&writer, 40..700, 3);
    assert_eq!(first.get(key(40)).expect("reads"), None);
    check(&shown(&place), 40..700, 3);
    // Also on the writer's machine, while it has the directory.
    check(&shown_at(&place, "a"), 40..700, 3);
    writer.close().expect("closes");
    check(&shown(&place), 3..40, 2);
    // A file that does not say where the journal is.
    let error = place.read_as(&Deployment { bucket_journal: None, ..place.deployment("b") });
    let error = error.expect_err("commits would not be shown");
    assert!(error.kind() == Kind::Invalid && error.to_string().contains("in_bucket"), "{error}");
}

/// Each reading meets the manifest changed: the reader says that it shows nothing of the journal.
#[test]
fn a_reader_behind_a_writer_that_is_always_faster_says_so() {
    let place = Place::memory();
    let writer = place.open("a");
    put_all(&writer, 0..5, 1);
    writer.flush().expect("flushes");
    put_all(&writer, 5..10, 1);
    let busy = BusyBucket::new(place.bucket.clone(), "db/journal", move || {
        writer.default_table().put("more", "v").expect("put");
        writer.flush().expect("flushes");
    });
    let deployment = place.deployment("elsewhere");
    let reading = deployment.read_in(Arc::new(busy), &Options::default(), Functions::default(), Env::real());
    let reading = reading.expect("reads");
    assert_eq!(reading.journal, JournalRead::Overtaken);
    check(&reading.db, 0..5, 1);
}

/// The writer trims what a reader is reading, and the manifest does not change: the reader begins again, and
/// shows everything.
#[test]
fn a_reader_whose_objects_are_trimmed_begins_again() {
    let place = Place::memory();
    let writer = place.open("a");
    // More than a segment has.
    put_all(&writer, 0..700, 1);
    writer.flush().expect("flushes");
    let journal = names(&*place.bucket, "db/journal");
    let (bucket, is_trimmed) = (place.bucket.clone(), AtomicBool::new(false));
    // The one behind the fence.
    let busy = BusyBucket::at_reads(place.bucket.clone(), &journal[1], move || {
        if is_trimmed.swap(true, Ordering::AcqRel) {
            return;
        }
        let needed = announce(&writer, &*bucket, 700..710);
        let trimmed: Vec<String> =
            names(&*bucket, "db/journal").into_iter().skip(1).filter(|name| number(name) < needed).collect();
        assert!(trimmed.len() > 100, "{} objects were trimmed", trimmed.len());
        bucket.delete(&trimmed).expect("deletes");
    });
    let deployment = place.deployment("elsewhere");
    let reading = deployment.read_in(Arc::new(busy), &Options::default(), Functions::default(), Env::real());
    let reading = reading.expect("nothing is lost");
    assert_eq!(reading.journal, JournalRead::Bucket);
    check(&reading.db, 0..700, 1);
    check(&reading.db, 700..710, 9);
    assert!(
        number(&names(&*place.bucket, "db/journal")[1]) > number(&journal[1]),
        "it was trimmed meanwhile"
    );
}

#[cfg(feature = "grpc")]
#[test]
fn a_bucket_on_another_machine_carries_the_journal() {
    use super::put;
    use crate::support::{connect, env, memory, serve};

    let server = serve(memory(&env().1));
    let at = |client| Place::new(Arc::new(client));
    let (here, there) = (at(connect(server.address())), at(connect(server.address())));
    let first = here.open("a");
    put_all(&first, 0..30, 1);
    check(&shown(&there), 0..30, 1);
    // The first machine is lost.
    let second = there.open("b");
    check(&second, 0..30, 1);
    put_all(&second, 30..40, 2);
    let error = put(&first, 0, 9).expect_err("it was replaced");
    assert!(error.kind() == Kind::Poisoned && error.to_string().contains("epoch"), "{error}");
    check(&second, 0..30, 1);
    check(&second, 30..40, 2);
}

#[test]
fn the_journal_in_a_bucket_is_tried_in_words() {
    let place = Place::memory();
    let bucket = place.root.path().join("bucket");
    DirectoryBucket::open(&bucket, Env::real()).expect("a directory for the bucket");
    let deployment = Deployment { url: format!("file://{}", bucket.display()), ..place.deployment("a") };
    let part_of = |deployment: &Deployment, part: &str| {
        let tried = deployment.doctor().into_iter().find(|tried| tried.part == part).expect("it is tried");
        tried.outcome.map_err(|error| error.to_string())
    };
    assert_eq!(part_of(&deployment, "journal in a bucket").expect("sound"), "no object yet");
    let db = deployment.open().expect("opens");
    put_all(&db, 0..3, 1);
    let journal = part_of(&deployment, "journal in a bucket").expect("sound");
    assert!(journal.contains("objects are needed") && journal.contains("epoch 1"), "{journal}");
    part_of(&Deployment { journal: place.root.path().join("b"), ..deployment.clone() }, "manifest")
        .expect("fits");
    let lacks = part_of(&Deployment { bucket_journal: None, ..deployment.clone() }, "manifest");
    assert!(lacks.expect_err("its file lacks the journal").contains("in_bucket"));
    db.close().expect("closes");
}
