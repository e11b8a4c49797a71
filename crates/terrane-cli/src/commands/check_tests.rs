//! A check beside a writer.

use super::*;

fn put_all(writer: &Db, value: &str) {
    for key in 0..2000 {
        writer.put(format!("key{key:05}"), value.repeat(30)).expect("puts");
    }
    writer.compact_range(writer.default_table(), ..).expect("compacts");
}

#[test]
fn extents_that_a_writer_gives_up_meanwhile_are_not_damage() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("db");
    let writer = Db::open(&path).expect("opens");
    put_all(&writer, "Ada");
    let follower = Db::open_follower(&path).expect("follows");
    let (stop, mut view) = (AtomicBool::new(false), follower.view());
    let checked = |view: &Db| check_once(view, &stop).map_err(|failure| failure.message).expect("checks");
    assert!(checked(&view).findings.is_empty());
    // Until an extent of the view has been written over.
    for round in 0.. {
        put_all(&writer, &format!("{round:03}"));
        if !checked(&view).findings.is_empty() {
            break;
        }
    }
    let report = check(&mut view, Some(&follower), &stop).map_err(|failure| failure.message).expect("checks");
    assert!(report.findings.is_empty() && report.extents > 0, "{:?}", report.findings);
    let value = |db: &Db| db.get("key00000").expect("reads").map(|value| value.to_vec());
    assert_eq!(value(&view), value(&writer));
}
