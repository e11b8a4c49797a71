//! Nothing new is made within the directory of a database.
#![allow(clippy::disallowed_methods, reason = "works on files of its own")]

use std::path::Path;

use terrane::{Backups, Db, Kind, Options, RestoreOptions};

/// Asserts that a place was refused, with the database that it lies in, and that nothing is there.
#[track_caller]
fn assert_refused<T: std::fmt::Debug>(done: terrane::Result<T>, target: &Path) {
    let error = done.unwrap_err();
    let text = error.to_string();
    assert_eq!(error.kind(), Kind::Invalid, "{text}");
    assert!(text.contains("within the database") && text.contains("name a place beside it"), "{text}");
    assert!(!target.exists(), "{} was made", target.display());
}

#[test]
fn nothing_is_made_within_a_database() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    let outer = Db::open(at("outer")).unwrap();
    outer.put("k", "v").unwrap();
    let other = Db::open(at("other")).unwrap();
    other.put("k", "v").unwrap();
    let place = Backups::open(at("place"));
    let made = place.create(&other).unwrap();
    Db::open(at("closed")).unwrap().put("k", "v").unwrap();
    std::os::unix::fs::symlink(at("outer"), at("link")).unwrap();
    for name in ["outer/sub", "outer/sub/below", "outer/MANIFEST-000002", "outer/journal/sub", "link/sub"] {
        let target = at(name);
        assert_refused(Db::open(&target), &target);
        assert_refused(other.checkpoint(&target), &target);
        assert_refused(place.restore(made.id, &target), &target);
        assert_refused(Backups::open(&target).create(&other), &target);
        assert_refused(terrane::repair(at("closed"), &target, &Options::default()), &target);
    }
    outer.close().unwrap();
    assert_eq!(Db::open(at("outer")).unwrap().get("k").unwrap().as_deref(), Some(&b"v"[..]));
}

/// Programs of RocksDB make databases below the directory of another one: only its own names are refused.
#[test]
fn beside_others_a_database_may_lie_below_another() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    let options = Options { beside_others: true, ..Options::default() };
    let outer = Db::open_with(at("outer"), &options).unwrap();
    outer.put("k", "outer").unwrap();
    let below = Db::open_with(at("outer/below"), &options).unwrap();
    below.put("k", "below").unwrap();
    let place = Backups::open_beside_others(at("outer/backups"));
    let made = place.create(&below).unwrap();
    below.checkpoint(at("outer/copy")).unwrap();
    let restoring = RestoreOptions::default().beside_others(true);
    let go_on = &mut |_: &terrane::BackupProgress| std::ops::ControlFlow::Continue(());
    place.restore_with(made.id, at("outer/restored"), &restoring, go_on).unwrap();
    for name in ["outer/MANIFEST-000002", "outer/journal/sub", "outer/data/sub", "outer/REMOTE"] {
        let target = at(name);
        assert_refused(Db::open_with(&target, &options), &target);
        assert_refused(below.checkpoint(&target), &target);
        assert_refused(place.restore_with(made.id, &target, &restoring, go_on), &target);
        assert_refused(Backups::open_beside_others(&target).create(&below), &target);
    }
    below.close().unwrap();
    outer.close().unwrap();
    assert_eq!(Db::open(at("outer")).unwrap().get("k").unwrap().as_deref(), Some(&b"outer"[..]));
    for name in ["outer/below", "outer/copy", "outer/restored"] {
        assert_eq!(Db::open(at(name)).unwrap().get("k").unwrap().as_deref(), Some(&b"below"[..]), "{name}");
    }
}
