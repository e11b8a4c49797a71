//! The directory beside a journal in a bucket.

use std::path::Path;

use super::{Place, check, put_all};

/// The directory of the last writer has commits that no object has: they count.
#[test]
fn unsynced_commits_of_a_killed_process_stay() {
    let place = Place::memory();
    let db = place.open("a");
    put_all(&db, 0..5, 1);
    db.put("unsynced", "v").expect("put");
    let copy = place.root.path().join("killed");
    copy_all(&place.root.path().join("a"), &copy);
    let again = place.open("killed");
    check(&again, 0..5, 1);
    assert_eq!(again.get("unsynced").expect("reads").expect("it is there"), "v");
    // It is in the bucket now.
    let elsewhere = place.open("b");
    assert_eq!(elsewhere.get("unsynced").expect("reads").expect("it is there"), "v");
}

#[expect(clippy::disallowed_methods, reason = "a copy of a directory, as a killed process leaves it")]
fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("new");
    for entry in std::fs::read_dir(from).expect("there") {
        let entry = entry.expect("reads");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_all(&entry.path(), &target);
        } else if entry.file_name() != "LOCK" {
            std::fs::copy(entry.path(), target).expect("copies");
        }
    }
}
