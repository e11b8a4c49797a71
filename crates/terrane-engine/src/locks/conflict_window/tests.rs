//! The window alone: which commits it finds, cuts and forgets.

use terrane_base::TableId;

use super::*;
use crate::read::scan::Bounds;

fn key(text: &str) -> LockKey {
    LockKey::new(TableId(1), text.as_bytes())
}

fn range(lower: Bound<&str>, upper: Bound<&str>) -> KeyRange {
    let own = |bound: Bound<&str>| bound.map(|key| key.as_bytes().to_vec());
    KeyRange { table: TableId(1), bounds: Bounds { lower: own(lower), upper: own(upper), ..Bounds::all() } }
}

fn note(window: &ConflictWindow, seq: u64, keys: &[&str]) {
    let keys: Arc<[LockKey]> = keys.iter().map(|text| key(text)).collect();
    let mut inner = window.inner.lock();
    inner.note(SeqNo(seq), keys, Arc::default());
    window.tidy(&mut inner);
}

#[test]
fn keys_and_ranges_are_found_above_a_position_only() {
    let window = ConflictWindow::new(1 << 20);
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
fn commits_that_all_readers_see_are_dropped() {
    let window = ConflictWindow::new(1 << 20);
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
fn dropping_commits_beyond_the_bound_makes_old_readers_too_old() {
    let window = ConflictWindow::new(3 * bytes_of(&[key("a")]));
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
    let window = ConflictWindow::new(1 << 20);
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

/// By length, then bytes; counts what it is asked.
#[derive(Debug, Default)]
struct Counting(AtomicU64);

impl terrane_base::Comparator for Counting {
    fn name(&self) -> &str {
        "length"
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> std::cmp::Ordering {
        self.0.fetch_add(1, Ordering::Relaxed);
        left.len().cmp(&right.len()).then_with(|| left.cmp(right))
    }
}

/// Keys of a table as a comparator keeps them: with a mark.
fn compared_key(table: u32, number: usize) -> LockKey {
    LockKey::new(TableId(table), &[format!("{number}").as_bytes(), &[0]].concat())
}

fn compared_range(collation: &terrane_base::Collation, from: usize, to: usize) -> KeyRange {
    let bound = |number| compared_key(1, number).key.to_vec();
    let (lower, upper) = (Bound::Included(bound(from)), Bound::Excluded(bound(to)));
    KeyRange { table: TableId(1), bounds: Bounds { lower, upper, collation: collation.clone() } }
}

#[test]
fn under_a_comparator_a_range_is_looked_up_in_its_order_and_among_its_keys() {
    let counting = Arc::new(Counting::default());
    let orders = terrane_base::KeyOrders::new().with_comparator(counting.clone()).expect("a free name");
    let collation = orders.collation("length");
    let window = ConflictWindow::new(1 << 30);
    window.register(|| (SeqNo(1), ()));
    let note = |seq: u64, keys: &mut dyn Iterator<Item = LockKey>| {
        let mut inner = window.inner.lock();
        inner.note(SeqNo(seq), keys.collect(), Arc::default());
        window.tidy(&mut inner);
    };
    let look = |from, to, since| window.look().range(&compared_range(&collation, from, to), SeqNo(since));
    note(2, &mut (0..2000).map(|number| compared_key(1, number)));
    note(3, &mut (0..20_000).map(|number| compared_key(2, number)));
    // By bytes "10" lies between "1" and "2", by length behind "9".
    note(4, &mut [compared_key(1, 10)].into_iter());
    assert_eq!(look(1, 2, 3), Ok(()));
    assert_eq!(look(9, 11, 3), Err(Stale::Changed(compared_key(1, 10), SeqNo(4))));
    assert_eq!(look(9, 10, 3), Ok(()));
    assert_eq!(look(9, 11, 4), Ok(()));
    assert_eq!(look(11, 9, 1), Ok(()), "nothing is in it");
    assert_eq!(look(1900, 2500, 1), Err(Stale::Changed(compared_key(1, 1900), SeqNo(2))));
    let before = counting.0.load(Ordering::Relaxed);
    for from in 0..100 {
        assert_eq!(look(1000 + from, 1004 + from, 3), Ok(()));
    }
    let asked = counting.0.load(Ordering::Relaxed) - before;
    assert!(asked < 100 * 100, "{asked} comparisons for a hundred ranges of four keys among 2,000");

    let held = window.inner.lock().held_bytes();
    let noted = window.inner.lock().bytes;
    assert!(held >= noted + 2000 * 40, "keys in a comparator's order count: {held}, of them {noted} noted");

    // The cut removes older commits here as well, and later ones stay.
    window.register(|| (SeqNo(3), ()));
    window.unregister(SeqNo(1));
    assert_eq!(look(0, 2500, 3), Err(Stale::Changed(compared_key(1, 10), SeqNo(4))));
    let left = window.inner.lock().compared[&TableId(1)].len();
    assert_eq!(left, 1);
    window.unregister(SeqNo(3));
    assert!(window.inner.lock().compared.is_empty());
}

/// Answers that follow no order, and are others the next time.
#[derive(Debug, Default)]
struct Odd(AtomicU64);

impl terrane_base::Comparator for Odd {
    fn name(&self) -> &str {
        "odd"
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> std::cmp::Ordering {
        let mix = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        let asked = self.0.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let is_odd = left.iter().chain(right).chain(&asked).fold(0x811c_9dc5, mix) >> 7 & 1 == 1;
        if is_odd { std::cmp::Ordering::Greater } else { std::cmp::Ordering::Less }
    }
}

#[test]
fn a_contradictory_comparator_leaves_no_keys_and_does_not_panic() {
    let orders =
        terrane_base::KeyOrders::new().with_comparator(Arc::new(Odd::default())).expect("a free name");
    let collation = orders.collation("odd");
    let window = ConflictWindow::new(1 << 30);
    window.register(|| (SeqNo(1), ()));
    for number in 0..600 {
        let mut inner = window.inner.lock();
        inner.note(SeqNo(2 + number as u64), [compared_key(1, number)].into(), Arc::default());
        window.tidy(&mut inner);
        drop(inner);
        let (from, to) = (number * 7919 % 600, number * 104_729 % 600);
        let _ = window.look().range(&compared_range(&collation, from, to), SeqNo(1));
    }
    window.unregister(SeqNo(1));
    assert!(window.inner.lock().compared.is_empty());
}
