//! Fences beside locks: batches that replace a range, and owners that take keys of it one by one.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shuttle::thread;
use terrane_base::TableId;

use crate::scan::Bounds;
use crate::txn::fences::Ground;
use crate::txn::locks::{LockMode, LockTable, Owner};
use crate::txn::range::KeyRange;
use crate::{ENDLESS, env, explore, key, patience};

/// From b to d, and the key.
fn ground(name: u8) -> Ground {
    let bounds = Bounds { lower: Bound::Included(b"b".to_vec()), upper: Bound::Included(b"d".to_vec()) };
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
                let env = env();
                let _fence = table.fence(owner as Owner, &ground(b'c'), &patience(&env, ENDLESS)).unwrap();
                assert_eq!(within.fetch_add(1, Ordering::Relaxed), 0, "both have the same key");
                thread::yield_now();
                within.fetch_sub(1, Ordering::Relaxed);
            }));
        }
        let (table, within) = (Arc::clone(&table), Arc::clone(&within));
        threads.push(thread::spawn(move || {
            let env = env();
            let keys = [key(b'a'), key(b'c'), key(b'd')];
            for key in &keys {
                table.acquire(3, key, LockMode::Exclusive, &patience(&env, ENDLESS)).unwrap();
            }
            assert_eq!(within.fetch_add(1, Ordering::Relaxed), 0, "a fence stands around what is locked");
            thread::yield_now();
            within.fetch_sub(1, Ordering::Relaxed);
            table.release(3, &keys);
        }));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}
