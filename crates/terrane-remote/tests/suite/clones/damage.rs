//! Damaged references are errors.

use terrane::{Kind, SegmentId};
use terrane_base::env::{Clock, Env};
use terrane_format::manifest::object::OBJECT_PAYLOAD_BYTES_MAX;
use terrane_format::manifest::{Edit, EditOp, ManifestObject, ObjectTag, SegmentSpec};
use terrane_format::object::{object_hash, object_name};
use terrane_remote::bucket::DirectoryBucket;
use terrane_remote::{Bucket, Deployment};

use super::{Place, deployment, filled, of_filled, put_all, rows};
use crate::support::{names, refused};

fn replace(place: &Place, name: &str, bytes: &[u8]) {
    place.bucket.delete(&[name.to_owned()]).expect("deletes");
    place.bucket.create(name, bytes).expect("creates");
}

#[test]
fn every_flipped_byte_of_a_reference_is_an_error_that_names_it() {
    let place = Place::new();
    filled(&place).close().expect("closes");
    place.clone_to("copy");
    let name = names(&*place.bucket, "copy/originals").remove(0);
    let whole = place.bucket.get(&name, 1 << 20).expect("reads");
    for at in 0..whole.len() {
        let mut bytes = whole.to_vec();
        bytes[at] ^= 1 << (at % 8);
        replace(&place, &name, &bytes);
        let text = refused(place.try_open("copy"), Kind::Corrupt);
        assert!(text.contains(&name), "byte {at}: {text}");
    }
    for len in [1, whole.len() / 2, whole.len() - 1] {
        replace(&place, &name, &whole[..len]);
        refused(place.try_open("copy"), Kind::Corrupt);
    }
    // Openings that were refused took the manifest over, and damaged nothing.
    replace(&place, &name, &whole);
    assert_eq!(rows(&place.open("copy")), of_filled());
}

#[test]
fn a_reference_or_an_object_that_is_missing_is_damage() {
    let place = Place::new();
    filled(&place).close().expect("closes");
    place.clone_to("copy");
    let name = names(&*place.bucket, "copy/originals").remove(0);
    let whole = place.bucket.get(&name, 1 << 20).expect("reads");
    place.bucket.delete(std::slice::from_ref(&name)).expect("deletes");
    refused(place.try_open("copy"), Kind::Corrupt);
    place.bucket.create(&name, &whole).expect("creates");
    let data = names(&*place.bucket, "db/data");
    place.bucket.delete(&data).expect("deletes");
    let clone = place.open("copy");
    let error = clone.default_table().iter().find_map(Result::err).expect("it cannot be read");
    let text = error.to_string();
    assert!(error.kind() == Kind::Corrupt && text.contains("memory:/db/data/"), "{text}");
    assert!(place.clock.now().is_zero(), "no caller waited");
}

/// A reference under the id of another database counts for nothing; one under another number is damage.
#[test]
fn a_reference_of_another_name_is_not_taken() {
    let place = Place::new();
    filled(&place).close().expect("closes");
    place.clone_to("copy");
    let name = names(&*place.bucket, "copy/originals").remove(0);
    let whole = place.bucket.get(&name, 1 << 20).expect("reads");
    let (front, back) = name.split_at(name.len() - 32);
    let of_other = format!("copy/originals/{:032x}-{back}", 5);
    place.bucket.create(&of_other, b"no reference").expect("creates");
    assert_eq!(rows(&place.open("copy")), of_filled());
    let other = format!("{front}{:032x}", 7);
    place.bucket.create(&other, &whole).expect("creates");
    let text = refused(place.try_open("copy"), Kind::Corrupt);
    assert!(text.contains(&other), "{text}");
}

/// A segment whose length in the manifest is impossible is refused before a byte of it is copied.
#[test]
fn an_impossible_length_of_a_segment_is_an_error_that_names_the_object() {
    let place = Place::new();
    let url = format!("file://{}", place.directory("bucket").display());
    let from = Deployment { bucket_journal: None, ..deployment(place.directory("journal"), &url, "db") };
    let db = from.open().expect("opens");
    put_all(&db, 0..20, 1);
    db.close().expect("closes");
    let bucket = DirectoryBucket::open(&place.directory("bucket"), Env::real()).expect("opens");
    let last = names(&bucket, "db/manifest").pop().expect("a manifest");
    let bytes = bucket.get(&last, OBJECT_PAYLOAD_BYTES_MAX).expect("reads");
    let number = names(&bucket, "db/manifest").len() as u64;
    let (before, _) = ManifestObject::decode(number, &bytes).expect("the last of all");
    let next = ManifestObject {
        tag: ObjectTag::Edits,
        number: number + 1,
        parent: object_hash(&bytes),
        nonce: 77,
        ..before
    };
    let spec = SegmentSpec { id: SegmentId(1 << 40), file: 1 << 20, bytes: 1 << 60 };
    let mut payload = Vec::new();
    Edit { ops: vec![EditOp::AddSegment(spec)] }.encode(&mut payload);
    let name = format!("db/manifest/{}", object_name(next.number));
    bucket.create(&name, &next.encode(&payload)).expect("creates");
    let to = Deployment { prefix: "copy".to_owned(), journal: place.directory("other"), ..from.clone() };
    let text = refused(from.clone_to(&to, None), Kind::Corrupt);
    assert!(text.contains(&name) && text.contains(&(1u64 << 60).to_string()), "{text}");
    assert!(names(&bucket, "copy").is_empty() && names(&bucket, "db/gc/pins").is_empty());
}
