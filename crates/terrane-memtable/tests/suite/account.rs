//! Accounts of memory: the sum of those in it, and the bytes that are held until they are dropped.
#![cfg(not(feature = "shuttle"))]

use std::sync::Arc;

use terrane_memtable::account::{Account, IndexMemory};

#[test]
fn the_sum_is_that_of_the_accounts_in_it() {
    let sum = Arc::new(IndexMemory::default());
    let [one, two] = [(), ()].map(|()| Account::new(Some(sum.clone())));
    one.take(5);
    two.take(7);
    assert_eq!((one.bytes(), two.bytes(), sum.bytes()), (5, 7, 12));
    one.leave();
    one.leave();
    assert_eq!((one.bytes(), sum.bytes()), (5, 7), "it leaves once");
    one.take(3);
    assert_eq!((one.bytes(), sum.bytes()), (8, 7));
    let alone = Account::new(None);
    alone.take(9);
    alone.leave();
    assert_eq!((alone.bytes(), sum.bytes()), (9, 7));
    two.leave();
    assert_eq!(sum.bytes(), 0);
}

#[test]
fn an_index_that_left_is_held_until_it_is_dropped() {
    let sum = Arc::new(IndexMemory::default());
    let [one, two] = [5, 7].map(|bytes| {
        let account = Account::new(Some(sum.clone()));
        account.take(bytes);
        account
    });
    assert_eq!((sum.bytes(), sum.held_bytes()), (12, 0));
    one.leave();
    one.take(100);
    assert_eq!((sum.bytes(), sum.held_bytes()), (7, 5), "what came later is in the account only");
    drop(two);
    assert_eq!((sum.bytes(), sum.held_bytes()), (0, 5), "it went with its table");
    drop(one);
    assert_eq!((sum.bytes(), sum.held_bytes()), (0, 0));
}

#[test]
fn a_dropped_account_leaves_no_bytes_in_the_sum() {
    const PIECES: u64 = if cfg!(miri) { 50 } else { 5000 };
    let sum = Arc::new(IndexMemory::default());
    for _ in 0..4 {
        let account = Account::new(Some(sum.clone()));
        std::thread::scope(|threads| {
            for _ in 0..2 {
                threads.spawn(|| (0..PIECES).for_each(|bytes| account.take(bytes)));
            }
            threads.spawn(|| account.leave());
        });
        assert_eq!(account.bytes(), PIECES * (PIECES - 1));
        assert_eq!(sum.bytes(), 0);
        drop(account);
        assert_eq!(sum.held_bytes(), 0);
    }
}
