//! Small programs with known faults: the explorer finds each within a few schedules, and none where there is
//! none. If a lock, an atomic variable or a condition variable lost its points, these fail.

use terrane_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use terrane_base::sync::{Condvar, Mutex};
use terrane_sim::threads::programs::first_failure;

#[test]
fn an_update_that_is_lost_between_a_load_and_a_store_is_found() {
    let add = |counter: &AtomicU64| {
        let before = counter.load(Ordering::Acquire);
        counter.store(before + 1, Ordering::Release);
    };
    let check = |counter: &AtomicU64| assert_eq!(counter.load(Ordering::Acquire), 2, "an update is lost");
    let failure = first_failure(|| AtomicU64::new(0), add, add, check);
    assert!(failure.is_some_and(|why| why.contains("an update is lost")));
}

#[test]
fn locks_that_are_taken_in_two_orders_are_found() {
    let one = |(left, right): &(Mutex<u64>, Mutex<u64>)| *left.lock() += *right.lock();
    let other = |(left, right): &(Mutex<u64>, Mutex<u64>)| {
        let right = right.lock();
        *left.lock() += *right;
    };
    // The first takes the right one first as well: `+=` evaluates its right side first. So this pair is in
    // order ...
    assert_eq!(first_failure(Default::default, one, other, |_| ()), None);
    let one = |(left, right): &(Mutex<u64>, Mutex<u64>)| {
        let left = left.lock();
        *right.lock() += *left;
    };
    // ... and this one is not.
    let failure = first_failure(Default::default, one, other, |_| ()).unwrap();
    assert!(failure.contains("deadlock"), "{failure}");
    // Both callers, by the line of this file in which they wait.
    assert_eq!(failure.matches(&format!("(lock at {}:", file!())).count(), 2, "{failure}");
}

/// A flag that is set without the lock under which another thread decides to wait.
#[derive(Default)]
struct Signal {
    is_set: AtomicBool,
    gate: Mutex<()>,
    changed: Condvar,
}

#[test]
fn a_wake_up_that_is_lost_is_found() {
    let wait = |signal: &Signal| {
        let mut gate = signal.gate.lock();
        while !signal.is_set.load(Ordering::Acquire) {
            signal.changed.wait(&mut gate);
        }
    };
    let set = |signal: &Signal| {
        signal.is_set.store(true, Ordering::Release);
        signal.changed.notify_all();
    };
    let failure = first_failure(Signal::default, wait, set, |_| ()).unwrap();
    assert!(failure.contains("deadlock"), "{failure}");
    assert!(failure.contains(&format!("(condition variable at {}:", file!())), "{failure}");
    assert!(failure.contains("(end of a thread at "), "{failure}");
    let set_locked = |signal: &Signal| {
        let _gate = signal.gate.lock();
        signal.is_set.store(true, Ordering::Release);
        signal.changed.notify_all();
    };
    assert_eq!(first_failure(Signal::default, wait, set_locked, |_| ()), None);
}
