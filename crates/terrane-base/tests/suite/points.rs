//! Points: which explorer they ask.
#![cfg(feature = "schedule")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use terrane_base::sync::points::{CallSite, Explorer, Point, explored, is_explored, point};
use terrane_base::sync::{Mutex, atomic};

/// Counts the points that its thread passes.
#[derive(Default)]
struct Counter(AtomicUsize);

impl Explorer for Counter {
    fn number(&self) -> usize {
        0
    }

    fn point(&self, _point: Point) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn give_way(&self, _place: CallSite) {}

    fn block(&self, _on: usize, _timeout: Option<Duration>, _place: CallSite) -> bool {
        unreachable!("no other thread holds what this one takes")
    }

    fn wake(&self, _on: usize, _all: bool) {}
}

/// Most tests of a process pass points before one of them is explored, if any is.
#[test]
fn an_explorer_is_asked_though_points_were_passed_before_without_one() {
    let (lock, flag) = (Mutex::new(0), atomic::AtomicBool::new(false));
    point(Point::Device);
    *lock.lock() += 1;
    assert!(!is_explored());
    let counter = Arc::new(Counter::default());
    explored(counter.clone(), || {
        assert!(is_explored());
        point(Point::Device);
        *lock.lock() += 1;
        flag.store(true, Ordering::Release);
        flag.store(true, Ordering::Relaxed);
        // A thread that has no explorer.
        std::thread::scope(|scope| drop(scope.spawn(|| point(Point::Device))));
    });
    assert_eq!(counter.0.load(Ordering::Relaxed), 3, "a device, a lock and a store that publishes");
    assert!(!is_explored());
    point(Point::Device);
    assert_eq!(counter.0.load(Ordering::Relaxed), 3);
}
