//! Followers behind a writer that takes over.

use terrane::{Durability, Kind};
use terrane_format::journal_object::{JournalObject, JournalTag};
use terrane_remote::{Bucket, Create};

use super::{Place, check, check_absent, journal_header, numbered, put_all, put_as};

#[test]
fn a_follower_goes_on_behind_a_writer_that_took_over() {
    let place = Place::new();
    let first = place.open("a");
    put_all(&first, 0..10, 1);
    let follower = place.follow();
    let view = follower.view();
    // Not in the bucket when the machine is lost.
    put_as(&first, 90, 1, Durability::Buffered).expect("put");
    let second = place.open("b");
    put_all(&second, 5..15, 2);
    follower.catch_up().expect("catches up");
    check(&follower.view(), 0..5, 1);
    check(&follower.view(), 5..15, 2);
    check_absent(&follower.view(), 90..91);
    check(&view, 0..10, 1);
    let error = put_as(&first, 91, 1, Durability::Synced).expect_err("it was replaced");
    assert_eq!(error.kind(), Kind::Poisoned);
    // Two more at once, and one that did nothing else.
    put_all(&place.open("c"), 20..25, 3);
    drop(place.open("d"));
    let last = place.open("e");
    follower.catch_up().expect("catches up");
    check(&follower.view(), 5..15, 2);
    check(&follower.view(), 20..25, 3);
    put_all(&last, 30..31, 4);
    assert_eq!(follower.catch_up().expect("catches up"), 1);
    check(&follower.view(), 30..31, 4);
    check_absent(&follower.view(), 90..92);
}

#[test]
fn late_objects_of_a_fenced_writer_are_not_a_part_of_the_journal() {
    let place = Place::new();
    let first = place.open("a");
    put_all(&first, 0..5, 1);
    let follower = place.follow();
    put_all(&first, 5..6, 1);
    let (last, name) = numbered(&*place.bucket, "db/journal").pop_last().expect("an object");
    let whole = place.bucket.get(&name, u64::MAX - 1).expect("reads");
    let (header, payload) = JournalObject::decode(last, &whole).expect("sound");
    let second = place.open("b");
    let (fence, name) = numbered(&*place.bucket, "db/journal").pop_last().expect("an object");
    assert_eq!(journal_header(&*place.bucket, &name).tag, JournalTag::Fence);
    // Requests of the first writer that arrive late.
    for number in [fence + 1, fence + 2, fence + 7] {
        let late = JournalObject { number, ..header }.encode(payload);
        let name = format!("db/journal/{}", terrane_format::object::object_name(number));
        assert_eq!(place.bucket.create(&name, &late).expect("creates"), Create::Created);
    }
    follower.catch_up().expect("it leaves them alone");
    check(&follower.view(), 0..6, 1);
    put_all(&second, 3..8, 2);
    assert_eq!(follower.catch_up().expect("catches up"), 5);
    check(&follower.view(), 3..8, 2);
    check(&follower.view(), 0..3, 1);
    assert_eq!(follower.lag().expect("looks"), 0);
    // One that begins now leaves them alone, too.
    check(&place.follow().view(), 3..8, 2);
}
