//! The promise of a swip: an object that was loaded under a guard lives as long as the guard, also if another
//! thread evicts it meanwhile.
#![allow(clippy::unwrap_used, reason = "a test says by panicking that it failed")]
#![cfg(not(feature = "shuttle"))]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use terrane_base::env::Env;
use terrane_table::swip::{Swip, enter};

/// Tells when it is dropped.
struct Noted(Arc<AtomicBool>);

impl Drop for Noted {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A swip with an object, and whether that was dropped.
fn noted() -> (Swip<Noted>, Arc<AtomicBool>) {
    let (swip, dropped) = (Swip::default(), Arc::new(AtomicBool::new(false)));
    assert!(swip.publish(Arc::new(Noted(dropped.clone()))).is_ok());
    (swip, dropped)
}

/// Gives the collector every chance to free what it may.
fn collect() {
    for _ in 0..64 {
        enter().collect();
    }
}

/// Takes the object out while a reader can see it, in another thread; it is dropped once the reader has left.
fn take_out(leave: impl FnOnce(Swip<Noted>) + Send) {
    let (swip, dropped) = noted();
    let reader = enter();
    assert!(swip.load(&reader).is_some_and(|seen| !seen.0.load(Ordering::SeqCst)));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            leave(swip);
            collect();
        });
    });
    collect();
    assert!(!dropped.load(Ordering::SeqCst), "dropped while a reader could see it");
    drop(reader);
    let clock = Env::real().clock;
    let until = clock.now() + Duration::from_secs(300);
    while !dropped.load(Ordering::SeqCst) {
        assert!(clock.now() < until, "kept though no reader can see it");
        // Another thread's epoch may be open for a moment.
        collect();
        std::thread::yield_now();
    }
}

#[test]
fn an_object_that_a_reader_sees_outlives_its_eviction() {
    take_out(|swip| {
        assert!(swip.clear(&enter()));
        assert!(swip.load(&enter()).is_none());
    });
}

#[test]
fn an_object_that_a_reader_sees_outlives_its_swip() {
    take_out(drop);
}
