//! Range locks beside locks of keys: batches that replace a range, and owners that lock keys of it one by
//! one.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shuttle::thread;
use terrane_base::TableId;

use crate::locks::key_range::KeyRange;
use crate::locks::lock_table::{LockMode, LockTable, Owner, Refusal};
use crate::locks::range_locks::LockTarget;
use crate::read::scan::Bounds;
use crate::{ENDLESS, explore, key, lock_wait, surroundings};

/// From b to d, and the key.
fn target(name: u8) -> LockTarget {
    let (lower, upper) = (Bound::Included(b"b".to_vec()), Bound::Included(b"d".to_vec()));
    let bounds = Bounds { lower, upper, ..Bounds::all() };
    LockTarget {
        keys: [key(name)].into(),
        ranges: [KeyRange { table: TableId(1), bounds }].into(),
        is_exclusive: false,
    }
}

/// Every thread ends, in every order, and no two owners hold excluding locks at the same time.
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
                let _range_lock =
                    table.lock_ranges(owner as Owner, &target(b'c'), &lock_wait(&around, ENDLESS)).unwrap();
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
                table.acquire(3, key, LockMode::Exclusive, &lock_wait(&around, ENDLESS)).unwrap();
            }
            assert_eq!(within.fetch_add(1, Ordering::Relaxed), 0, "a range lock covers a locked key");
            thread::yield_now();
            within.fetch_sub(1, Ordering::Relaxed);
            table.release(3, &keys);
        }));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// One owner holds the lock of a key and wants a key of the range; the other holds the range lock and wants
/// that first key. At most one of them is refused, with the cycle, and the other goes on.
#[test]
fn a_deadlock_through_a_range_lock_is_found() {
    explore(|| {
        let table = Arc::new(LockTable::new());
        let locks = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                let (around, keys) = (surroundings(), [key(b'x'), key(b'c')]);
                let taken = keys.iter().try_for_each(|key| {
                    table.acquire(1, key, LockMode::Exclusive, &lock_wait(&around, ENDLESS))
                });
                table.release(1, &keys);
                taken
            })
        };
        let ranges = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                let (around, only) = (surroundings(), LockTarget { keys: Arc::default(), ..target(b'c') });
                let locked = table
                    .lock_ranges(2, &only, &lock_wait(&around, ENDLESS))
                    .map(|range_lock| range_lock.keep());
                let taken = locked.and_then(|()| {
                    table.acquire(2, &key(b'x'), LockMode::Exclusive, &lock_wait(&around, ENDLESS))
                });
                table.release(2, &[key(b'x')]);
                table.release_ranges(2);
                taken
            })
        };
        let ends = [locks.join().unwrap(), ranges.join().unwrap()];
        assert!(ends.iter().any(Result::is_ok), "{ends:?}");
        for refused in ends.iter().filter_map(|end| end.as_ref().err()) {
            assert!(matches!(refused, Refusal::Deadlock(edges) if edges.len() == 2), "{refused:?}");
        }
        // Nothing is left behind.
        table.acquire(3, &key(b'c'), LockMode::Exclusive, &lock_wait(&surroundings(), 0)).unwrap();
    });
}
