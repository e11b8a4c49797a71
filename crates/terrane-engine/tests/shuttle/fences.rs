//! Fences beside locks: batches that replace a range, and owners that take keys of it one by one.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shuttle::thread;
use terrane_base::TableId;

use crate::read::scan::Bounds;
use crate::txn::key_range::KeyRange;
use crate::txn::lock_table::{LockMode, LockTable, Owner, Refusal};
use crate::txn::range_locks::Ground;
use crate::{ENDLESS, explore, key, patience, surroundings};

/// From b to d, and the key.
fn ground(name: u8) -> Ground {
    let (lower, upper) = (Bound::Included(b"b".to_vec()), Bound::Included(b"d".to_vec()));
    let bounds = Bounds { lower, upper, ..Bounds::all() };
    Ground {
        keys: [key(name)].into(),
        ranges: [KeyRange { table: TableId(1), bounds }].into(),
        is_alone: false,
    }
}

/// Everybody ends, whoever comes first, and nobody is within while somebody else is alone there.
#[test]
fn batches_with_ranges_and_owners_of_keys_pass_each_other() {
    explore(|| {
        let table = Arc::new(LockTable::new());
        let within = Arc::new(AtomicUsize::new(0));
        let mut threads = Vec::new();
        for owner in 1..=2 {
            let (table, within) = (Arc::clone(&table), Arc::clone(&within));
            threads.push(thread::spawn(move || {
                let around = surroundings();
                let _fence = table.fence(owner as Owner, &ground(b'c'), &patience(&around, ENDLESS)).unwrap();
                assert_eq!(within.fetch_add(1, Ordering::Relaxed), 0, "both have the same key");
                thread::yield_now();
                within.fetch_sub(1, Ordering::Relaxed);
            }));
        }
        let (table, within) = (Arc::clone(&table), Arc::clone(&within));
        threads.push(thread::spawn(move || {
            let around = surroundings();
            let keys = [key(b'a'), key(b'c'), key(b'd')];
            for key in &keys {
                table.acquire(3, key, LockMode::Exclusive, &patience(&around, ENDLESS)).unwrap();
            }
            assert_eq!(within.fetch_add(1, Ordering::Relaxed), 0, "a fence stands around what is locked");
            thread::yield_now();
            within.fetch_sub(1, Ordering::Relaxed);
            table.release(3, &keys);
        }));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// Of two owners, one with a lock that wants another behind a fence, one with the fence that wants that lock,
/// one is refused with the circle at most, and the other goes on.
#[test]
fn a_circle_through_a_fence_is_found() {
    explore(|| {
        let table = Arc::new(LockTable::new());
        let locks = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                let (around, keys) = (surroundings(), [key(b'x'), key(b'c')]);
                let taken = keys.iter().try_for_each(|key| {
                    table.acquire(1, key, LockMode::Exclusive, &patience(&around, ENDLESS))
                });
                table.release(1, &keys);
                taken
            })
        };
        let fences = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                let (around, only) = (surroundings(), Ground { keys: Arc::default(), ..ground(b'c') });
                let fenced = table.fence(2, &only, &patience(&around, ENDLESS)).map(|fence| fence.keep());
                let taken = fenced.and_then(|()| {
                    table.acquire(2, &key(b'x'), LockMode::Exclusive, &patience(&around, ENDLESS))
                });
                table.release(2, &[key(b'x')]);
                table.take_down(2);
                taken
            })
        };
        let ends = [locks.join().unwrap(), fences.join().unwrap()];
        assert!(ends.iter().any(Result::is_ok), "{ends:?}");
        for refused in ends.iter().filter_map(|end| end.as_ref().err()) {
            assert!(matches!(refused, Refusal::Deadlock(edges) if edges.len() == 2), "{refused:?}");
        }
        // Nothing is left behind.
        table.acquire(3, &key(b'c'), LockMode::Exclusive, &patience(&surroundings(), 0)).unwrap();
    });
}
