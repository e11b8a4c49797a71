//! Crashes, lost answers and refusals at each call of the making of a clone.

use std::ops::ControlFlow;
use std::sync::Arc;

use terrane::{Kind, Options};
use terrane_base::env::{Clock, Env};
use terrane_base::{Functions, Result};
use terrane_remote::bucket::faulty::{Fault, FaultyBucket};
use terrane_remote::{Bucket, CloneProgress, UnfinishedClone};

use super::{Place, compact, filled, of_filled, rows};
use crate::support::{names, refused, retrying};

/// A database, and how many calls a clone of it makes.
fn counted(place: &Place) -> u64 {
    filled(place).close().expect("closes");
    let faulty = FaultyBucket::new(place.bucket.clone());
    place.clone_through(Arc::new(faulty.clone()), "counted", None).expect("clones");
    assert!(faulty.calls() > 20, "{}", faulty.calls());
    faulty.calls()
}

/// A process that dies leaves no clone or a whole one, and the original as it was.
#[test]
fn a_crash_at_any_call_leaves_no_clone_or_a_whole_one() {
    let place = Place::new();
    let calls = counted(&place);
    let mut whole = 0;
    for call in 0..=calls {
        let to = format!("c{call}");
        let faulty = FaultyBucket::new(place.bucket.clone());
        faulty.fail_from(call);
        let made = place.clone_through(Arc::new(faulty), &to, None);
        let is_there = place.state(&to).is_some();
        assert!(is_there || made.is_err(), "call {call}");
        assert!(made.is_ok() || call < calls, "call {call}");
        if is_there {
            whole += 1;
            assert_eq!(rows(&place.open(&to)), of_filled(), "call {call}");
        }
    }
    assert!(whole >= 1, "the last one is whole");
    // The pins of those that are not there go; those that are keep theirs.
    let deployment = place.deployment("db");
    let release = |number| deployment.release_clone_in(place.bucket.clone(), number, false, &place.env);
    // A clone that is being made looks the same.
    let pins = deployment.clone_pins_in(&*place.bucket).expect("lists");
    let kinds: Vec<_> = pins.iter().map(|pin| release(pin.number).expect_err("it is young").kind()).collect();
    assert!(kinds.contains(&Kind::Busy) && kinds.contains(&Kind::Invalid), "{kinds:?}");
    place.clock.sleep(super::AGE);
    for pin in deployment.clone_pins_in(&*place.bucket).expect("lists") {
        let prefix = pin.clone.strip_prefix("memory:/").expect("in the bucket").to_owned();
        let released = release(pin.number);
        match place.state(&prefix) {
            Some(_) => assert_eq!(released.expect_err("it is needed").kind(), Kind::Invalid, "{prefix}"),
            None => drop(released.expect("it is not needed")),
        }
    }
    assert_eq!(place.pins(), whole + 1, "and that of the counted one");
    let original = place.open("db");
    assert_eq!(rows(&original), of_filled());
    compact(&original);
    original.close().expect("closes");
    place.collect("db", 4);
    assert_eq!(rows(&place.open("counted")), of_filled());
}

/// An error that is not a crash takes the pin back, as long as there is certainly no clone.
#[test]
fn a_refusal_at_any_call_leaves_no_pin_without_a_clone() {
    let place = Place::new();
    let calls = counted(&place);
    for call in 0..calls {
        let to = format!("c{call}");
        let faulty = FaultyBucket::new(place.bucket.clone());
        faulty.fail(call, Fault::Refused);
        let before = place.pins();
        let made = place.clone_through(Arc::new(faulty), &to, None);
        let is_there = place.state(&to).is_some();
        assert_eq!(made.is_ok(), is_there, "call {call}: {made:?}");
        assert_eq!(place.pins() - before, usize::from(is_there), "call {call}: {made:?}");
        if is_there {
            assert_eq!(rows(&place.open(&to)), of_filled(), "call {call}");
        }
    }
}

/// The bucket of a deployment repeats its requests, and finds out what happened.
#[test]
fn a_lost_answer_at_any_call_changes_nothing() {
    let place = Place::new();
    let calls = counted(&place);
    for call in 0..calls {
        let to = format!("c{call}");
        let faulty = FaultyBucket::new(place.bucket.clone());
        faulty.fail(call, Fault::After);
        let bucket = retrying(Arc::new(faulty), &place.env);
        place.clone_through(bucket, &to, None).unwrap_or_else(|error| panic!("call {call}: {error}"));
        assert_eq!(rows(&place.open(&to)), of_filled(), "call {call}");
    }
    assert_eq!(place.pins() as u64, calls + 1);
}

/// The opening of what an unfinished clone left makes a new database, which releases what the clone had.
#[test]
fn the_rest_of_an_unfinished_clone_is_not_a_clone() {
    let place = Place::new();
    let calls = counted(&place);
    let die_at = |call: u64| {
        let (to, faulty) = (format!("h{call}"), FaultyBucket::new(place.bucket.clone()));
        faulty.fail_from(call);
        let made = place.clone_through(Arc::new(faulty), &to, None);
        let is_begun = !names(&*place.bucket, &format!("{to}/manifest")).is_empty();
        (made.is_err() && is_begun && place.state(&to).is_none()).then_some(to)
    };
    let half = (0..calls).rev().find_map(die_at).expect("the manifest is begun before its snapshot");
    let text = refused(place.clone_through(place.bucket.clone(), &half, None), Kind::Invalid);
    assert!(text.contains("empty prefix") && text.contains("--replace-unfinished"), "{text}");
    let pins = place.pins();
    let db = place.open(&half);
    assert!(rows(&db).is_empty());
    super::put_all(&db, 0..5, 1);
    db.flush().expect("flushes");
    db.close().expect("closes");
    place.collect(&half, 4);
    assert_eq!(place.pins(), pins - 1);
    assert_eq!(rows(&place.open(&half)), super::expected(&[(0..5, 1)]));
}

fn removed(place: &Place, prefix: &str) -> Result<UnfinishedClone> {
    let bucket: Arc<dyn Bucket> = place.bucket.clone();
    place.deployment(prefix).remove_unfinished_clone_in(&bucket, &place.env)
}

/// After a crash at any call the same clone is made again, and nothing stays of the first attempt.
#[test]
fn the_rest_of_a_crash_at_any_call_is_removed_and_the_clone_made() {
    let place = Place::new();
    let calls = counted(&place);
    let mut begun = 0;
    for call in 0..calls {
        let to = format!("c{call}");
        let faulty = FaultyBucket::new(place.bucket.clone());
        faulty.fail_from(call);
        let made = place.clone_through(Arc::new(faulty), &to, None);
        if place.state(&to).is_some() {
            refused(removed(&place, &to), Kind::Invalid);
            assert_eq!(rows(&place.open(&to)), of_filled(), "call {call}");
            continue;
        }
        made.expect_err("there is no clone");
        let is_begun = !names(&*place.bucket, &to).is_empty();
        begun += u64::from(is_begun);
        // A crash of the removal is followed by another one.
        let half = FaultyBucket::new(place.bucket.clone());
        half.fail_from(call % 7);
        let half: Arc<dyn Bucket> = Arc::new(half);
        let died = place.deployment(&to).remove_unfinished_clone_in(&half, &place.env).is_err();
        let rest = removed(&place, &to).unwrap_or_else(|error| panic!("call {call}: {error}"));
        assert_eq!(rest != UnfinishedClone::default(), is_begun && died, "call {call}: {rest:?}");
        assert_eq!(names(&*place.bucket, &to), [""; 0], "call {call}");
        place.clone_to(&to);
        assert_eq!(rows(&place.open(&to)), of_filled(), "call {call}");
        // A crash between a pin and its reference leaves the pin, for `--release`.
        let pins = place.deployment("db").clone_pins_in(&*place.bucket).expect("lists");
        let own = pins.iter().filter(|pin| pin.clone == format!("memory:/{to}")).count();
        assert!(own == 1 || own == 2 && !is_begun, "call {call}: {own} pins");
    }
    assert!(begun > 3, "{begun} attempts left something");
}

/// Objects that no unfinished clone leaves stay, all of them.
#[test]
fn nothing_of_a_database_is_removed_as_an_unfinished_clone() {
    let place = Place::new();
    filled(&place).close().expect("closes");
    place.clone_to("copy");
    let object = |name: &str| place.bucket.create(name, b"object").expect("creates");
    object("later/data/00000000000000000002-0000000001-00000");
    object("other/data/notes.txt");
    object("journal/journal/00000000000000000001");
    // A database whose manifest is gone, and one whose prefix ends with the name of a clone's folder.
    object("bare/data/00000000000000000001-0000000001-00000");
    object("team/originals/manifest/00000000000000000001");
    for prefix in ["db", "copy", "later", "other", "journal", "bare", "team"] {
        let before = names(&*place.bucket, prefix);
        refused(removed(&place, prefix), Kind::Invalid);
        assert_eq!(names(&*place.bucket, prefix), before, "{prefix}");
    }
    assert_eq!((rows(&place.open("db")), rows(&place.open("copy"))), (of_filled(), of_filled()));
}

/// The pin of another clone under the number of the reference is not taken back.
#[test]
fn a_reference_to_the_pin_of_another_clone_takes_nothing_back() {
    let place = Place::new();
    filled(&place).close().expect("closes");
    place.clone_to("copy");
    let name = names(&*place.bucket, "copy/originals").remove(0);
    let reference = place.bucket.get(&name, 1 << 20).expect("reads");
    // A copy as it is: its pin is that of the clone at the first place.
    place.bucket.create(&name.replace("copy/", "second/"), &reference).expect("creates");
    let text = refused(removed(&place, "second"), Kind::Corrupt);
    assert!(text.contains("the pin is that of another clone") && text.contains("db/gc/pins"), "{text}");
    // Its own number, its own pin, and another id of the clone.
    let mut changed = reference.to_vec();
    changed[32] ^= 1;
    let end = changed.len() - 4;
    let crc = crc32c::crc32c(&changed[..end]).to_le_bytes();
    changed[end..].copy_from_slice(&crc);
    let id = u128::from_str_radix(&name["copy/originals/".len()..][..32], 16).expect("the id of the clone");
    let renamed = name.replace(&format!("{id:032x}"), &format!("{:032x}", id ^ 1));
    place.bucket.create(&renamed.replace("copy/", "other/"), &changed).expect("creates");
    let text = refused(removed(&place, "other"), Kind::Corrupt);
    assert!(text.contains("the pin is that of another clone") && text.contains("db/gc/pins"), "{text}");
    assert_eq!((place.pins(), names(&*place.bucket, "other").len()), (1, 1));
    assert_eq!(rows(&place.open("copy")), of_filled());
}

/// Whenever its caller ends a clone, nothing is left of it, and the next one needs no removal.
#[test]
fn a_clone_that_its_caller_ends_leaves_nothing() {
    let place = Place::new();
    filled(&place).close().expect("closes");
    let mut ended = 0;
    loop {
        let (from, to) = (place.deployment("db"), place.deployment("copy"));
        let bucket: Arc<dyn Bucket> = place.bucket.clone();
        let mut seen: Vec<CloneProgress> = Vec::new();
        let mut tell = |progress: &CloneProgress| {
            seen.push(*progress);
            if seen.len() > ended { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let options = (&Options::default(), Functions::default());
        let made =
            from.clone_in_until((bucket.clone(), bucket), (&to, None), options, Env::real(), &mut tell);
        assert!(seen.is_sorted_by_key(|progress| progress.bytes_done), "{seen:?}");
        let Err(error) = made else {
            assert!(
                seen.last().is_some_and(|last| last.bytes > 0 && last.bytes_done == last.bytes),
                "{seen:?}"
            );
            break;
        };
        assert!(error.kind() == Kind::Cancelled && !error.to_string().contains("not all"), "{error}");
        assert_eq!(names(&*place.bucket, "copy"), [""; 0], "ended at look {ended}");
        assert_eq!(place.pins(), 0, "ended at look {ended}");
        ended += 1;
    }
    assert!(ended > 3, "{ended} looks");
    assert_eq!(rows(&place.open("copy")), of_filled());
}
