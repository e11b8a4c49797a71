//! Objects that a clone reads are not garbage of the original until the clone needs none of it.

use terrane::Kind;
use terrane_base::env::Env;

use super::{Place, emptied, filled};
use crate::support::{names, refused};

#[test]
fn a_pin_of_a_lost_clone_is_released_by_hand() {
    let place = Place::new();
    let original = filled(&place);
    place.clone_to("copy");
    emptied(&place, original);
    let deployment = place.deployment("db");
    let pins = deployment.clone_pins_in(&*place.bucket).expect("lists");
    assert!(pins.len() == 1 && pins[0].clone == "memory:/copy" && pins[0].commit.0 == 100, "{pins:?}");
    let release = |number, is_forced| {
        deployment.release_clone_in(place.bucket.clone(), number, is_forced, &Env::real())
    };
    let text = refused(release(pins[0].number, false), Kind::Invalid);
    assert!(text.contains("memory:/copy") && text.contains("delete the clone first"), "{text}");
    refused(release(pins[0].number + 1, false), Kind::NotFound);
    assert_eq!(place.pins(), 1);
    terrane_remote::Bucket::delete(&*place.bucket, &names(&*place.bucket, "copy")).expect("deletes");
    release(pins[0].number, false).expect("the clone was deleted");
    assert_eq!(place.pins(), 0);
    assert!(place.collect("db", 4) >= 2);
}

#[test]
fn a_clone_without_its_pin_is_refused_unless_it_needs_nothing() {
    let place = Place::new();
    drop(filled(&place));
    place.clone_to("copy");
    let deployment = place.deployment("db");
    let pins = deployment.clone_pins_in(&*place.bucket).expect("lists");
    let forced = deployment.release_clone_in(place.bucket.clone(), pins[0].number, true, &Env::real());
    assert_eq!(forced.expect("forced"), pins[0]);
    let text = refused(place.try_open("copy"), Kind::Corrupt);
    assert!(text.contains("the pin of this clone is gone") && text.contains("memory:/db"), "{text}");
}

/// A damaged pin keeps everything: what it keeps is unknown.
#[test]
fn a_damaged_pin_stops_the_collection() {
    use terrane_remote::Bucket;
    let place = Place::new();
    let original = filled(&place);
    place.clone_to("copy");
    emptied(&place, original);
    let name = names(&*place.bucket, "db/gc/pins").remove(0);
    let mut bytes = place.bucket.get(&name, 1 << 20).expect("reads").to_vec();
    bytes[40] ^= 1;
    place.bucket.delete(std::slice::from_ref(&name)).expect("deletes");
    place.bucket.create(&name, &bytes).expect("creates");
    let state = place.state("db").expect("a state");
    let store = crate::support::reopened(place.bucket.clone(), 99, &state.extents().collect::<Vec<_>>());
    let text = refused(store.collect_garbage(&super::Named([].into())).map(drop), Kind::Corrupt);
    assert!(text.contains(&name), "{text}");
    let pins = place.deployment("db").clone_pins_in(&*place.bucket);
    refused(pins.map(drop), Kind::Corrupt);
}
