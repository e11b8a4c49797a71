//! The window alone: what is found, what is cut, what is forgotten.

use terrane_base::TableId;

use super::*;
use crate::scan::Bounds;

fn key(text: &str) -> LockKey {
    LockKey::new(TableId(1), text.as_bytes())
}

fn range(lower: Bound<&str>, upper: Bound<&str>) -> KeyRange {
    let own = |bound: Bound<&str>| bound.map(|key| key.as_bytes().to_vec());
    KeyRange { table: TableId(1), bounds: Bounds { lower: own(lower), upper: own(upper), ..Bounds::all() } }
}

fn note(window: &Window, seq: u64, keys: &[&str]) {
    let keys: Arc<[LockKey]> = keys.iter().map(|text| key(text)).collect();
    let mut inner = window.inner.lock();
    inner.note(SeqNo(seq), keys, Arc::default());
    window.tidy(&mut inner);
}

#[test]
fn keys_and_ranges_are_found_above_a_position_only() {
    let window = Window::new(1 << 20);
    window.register(|| (SeqNo(5), ()));
    note(&window, 6, &["b"]);
    note(&window, 7, &["d"]);
    let mut look = window.look();
    assert_eq!(look.key(&key("b"), SeqNo(5)), Err(Stale::Changed(key("b"), SeqNo(6))));
    assert_eq!(look.key(&key("b"), SeqNo(6)), Ok(()));
    assert_eq!(look.key(&key("c"), SeqNo(5)), Ok(()));
    let all = range(Bound::Unbounded, Bound::Unbounded);
    assert_eq!(look.range(&all, SeqNo(6)), Err(Stale::Changed(key("d"), SeqNo(7))));
    assert_eq!(look.range(&all, SeqNo(7)), Ok(()));
    let between = range(Bound::Excluded("b"), Bound::Excluded("d"));
    assert_eq!(look.range(&between, SeqNo(5)), Ok(()));
    let touching = range(Bound::Excluded("b"), Bound::Included("d"));
    assert!(look.range(&touching, SeqNo(5)).is_err());
    for (lower, upper) in
        [(Bound::Included("z"), Bound::Included("a")), (Bound::Excluded("b"), Bound::Excluded("b"))]
    {
        assert_eq!(look.range(&range(lower, upper), SeqNo(0)), Ok(()), "nothing is in it");
    }
    let other = KeyRange { table: TableId(0), bounds: Bounds::all() };
    assert_eq!(look.range(&other, SeqNo(0)), Ok(()), "another table");
}

#[test]
fn what_all_readers_see_is_cut() {
    let window = Window::new(1 << 20);
    window.register(|| (SeqNo(5), ()));
    window.register(|| (SeqNo(7), ()));
    note(&window, 6, &["a", "b"]);
    note(&window, 8, &["a"]);
    window.unregister(SeqNo(5));
    assert_eq!(window.bytes(), bytes_of(&[key("a")]));
    assert!(window.look().key(&key("a"), SeqNo(7)).is_err());
    assert_eq!(window.look().key(&key("b"), SeqNo(7)), Ok(()));
    window.unregister(SeqNo(7));
    assert_eq!(window.bytes(), 0);
    assert!(window.look().0.last.is_empty());
}

#[test]
fn what_is_beyond_the_bound_makes_old_readers_too_old() {
    let window = Window::new(3 * bytes_of(&[key("a")]));
    window.register(|| (SeqNo(1), ()));
    window.register(|| (SeqNo(2), ()));
    for (seq, text) in [(2, "a"), (3, "b"), (4, "c")] {
        note(&window, seq, &[text]);
    }
    assert_eq!(window.look().key(&key("z"), SeqNo(1)), Ok(()));
    note(&window, 5, &["d"]);
    assert_eq!(window.look().key(&key("z"), SeqNo(1)), Err(Stale::Forgotten(SeqNo(2))));
    assert_eq!(window.look().key(&key("z"), SeqNo(2)), Ok(()), "it saw what was forgotten");
}

#[test]
fn ranges_see_what_was_noted_and_cut_since_the_last_one() {
    let window = Window::new(1 << 20);
    window.register(|| (SeqNo(1), ()));
    let all = range(Bound::Unbounded, Bound::Unbounded);
    note(&window, 2, &["b", "c"]);
    assert_eq!(window.look().range(&all, SeqNo(1)), Err(Stale::Changed(key("b"), SeqNo(2))));
    note(&window, 3, &["b"]);
    assert_eq!(window.look().range(&all, SeqNo(2)), Err(Stale::Changed(key("b"), SeqNo(3))));
    window.register(|| (SeqNo(2), ()));
    window.unregister(SeqNo(1));
    note(&window, 4, &["a"]);
    let inner = window.inner.lock();
    assert_eq!(
        (inner.order.len(), inner.sorted_commits, inner.sorted.len()),
        (2, 1, 1),
        "c is cut, a not sorted"
    );
    drop(inner);
    assert_eq!(window.look().range(&all, SeqNo(3)), Err(Stale::Changed(key("a"), SeqNo(4))));
    window.unregister(SeqNo(2));
    let inner = window.inner.lock();
    assert!(inner.order.is_empty() && inner.last.is_empty() && inner.sorted.is_empty());
    assert_eq!(inner.sorted_commits, 0);
}
