//! The watch on threads of the operating system. `shuttle.rs` explores its schedules.
#![cfg(not(feature = "shuttle"))]
#![allow(clippy::unwrap_used, reason = "a failed test may say so by a panic")]
#![allow(clippy::disallowed_methods, reason = "a test may start threads")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use terrane_base::watch::{LINGER, Watch};

/// Looks at a thread that could go on only by a fault.
const LOOKS: u32 = 10_000;

#[test]
fn a_new_watcher_waits_for_unwatched_passes() {
    let (watch, has_begun) = (Arc::new(Watch::new()), Arc::new(AtomicBool::new(false)));
    let unseen = watch.pass().unwrap();
    let watcher = std::thread::spawn({
        let (watch, has_begun) = (watch.clone(), has_begun.clone());
        move || {
            watch.begin();
            has_begun.store(true, Ordering::SeqCst);
        }
    });
    // From here on it waits. One that does not would say so in one of the next looks.
    while watch.pass().is_some() {
        std::thread::yield_now();
    }
    for _ in 0..LOOKS {
        assert!(!has_begun.load(Ordering::SeqCst));
        std::thread::yield_now();
    }
    drop(unseen);
    watcher.join().unwrap();
    assert!(has_begun.load(Ordering::SeqCst));
    assert!(watch.pass().is_none());
}

#[test]
fn a_watch_goes_on_a_little_and_ends() {
    let watch = Watch::new();
    watch.begin();
    watch.begin();
    watch.end();
    for _ in 0..2 * LINGER {
        assert!(watch.pass().is_none());
        watch.passed();
    }
    watch.end();
    let mut watched = 0;
    while watch.pass().is_none() {
        watch.passed();
        watched += 1;
        assert!(watched <= LINGER);
    }
    assert_eq!(watched, LINGER);
    assert_eq!(watch.live(), 0);
}
